"""FrugalUCBVI: a private learner that requests short reports where the plan needs them."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.batched import Batch, BatchedAgent
from private_rl_gym.agents.optimism import check_multiplier
from private_rl_gym.agents.tabular import frugal_constants as chosen
from private_rl_gym.agents.tabular.reported_model import ReportedBatch, ReportedModel, Table
from private_rl_gym.planning.arrays import flag, real, shown
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.reporting import optimism
from private_rl_gym.planning.search import shares
from private_rl_gym.privacy.release import ReportRelease
from private_rl_gym.privacy.requests import Wanted
from private_rl_gym.wrappers.boundary import Boundary

__all__ = ["FrugalUCBVI"]


@dataclass(slots=True, eq=False)
class _Contest:
    """The policy that most users run, and a challenger, which some of them try.

    The best policy in a noisy model is often best by noise alone. So few users try a challenger first. Whenever it is
    still better with their reports, four times as many users try it. It wins when half of the users run it. A policy
    that looks twice as good needs no trial.
    """

    incumbent: Table | None = None
    challenger: Table | None = None
    wins: int = 0
    share: float = 0.0  # of the users who do not explore: those who tried the challenger last

    def judge(self, model: ReportedModel, best: Table) -> None:
        """Compare both policies in a new model; find a challenger if there is none."""
        if self.incumbent is None or model.value(self.incumbent) < model.value(best) / chosen.OVERTAKE:
            self.incumbent, self.challenger = best, None  # there is more to win than to lose
            return
        if self.challenger is not None:
            if model.low_value(self.challenger) > model.low_value(self.incumbent):
                self.wins += 1
                if self.share >= 0.5:
                    self.incumbent, self.challenger = self.challenger, None
            else:
                self.challenger = None
        if self.challenger is None and model.value(best) - model.value(self.incumbent) > chosen.BETTER * model.value(
            best
        ):
            self.challenger, self.wins = best, 0

    def runs(self, users: int, few: int) -> list[tuple[Table, int]]:
        """Return the policies of these users: the incumbent, and for some the challenger."""
        assert self.incumbent is not None  # noqa: S101 - judge has been called
        if self.challenger is None or not users:
            self.share = 0.0
            return [(self.incumbent, users)]
        trial = min(users, few * chosen.TRIAL_GROWTH**self.wins)
        self.share = trial / users
        return [(self.incumbent, users - trial), (self.challenger, trial)]


@dataclass(slots=True, eq=False)
class _Run:
    """The state of the algorithm between two batches.

    Attributes:
        model: The model of all batches so far.
        first: Users in the first batch.
        left: Users who may still come; None for any number.
        served: Users so far.
        staged: Those of them who were asked for stages too.
        tries: Batches in which some users explored unknown cells, and others ran the best policy.
        past: The batches so far.
        contest: The policy that most users run, and its challenger.
    """

    model: ReportedModel
    first: int
    left: int | None
    served: int = 0
    staged: int = 0
    tries: int = 0
    past: list[ReportedBatch] = field(default_factory=list)
    contest: _Contest = field(default_factory=_Contest)

    @property
    def all_known(self) -> bool:
        """Whether no cell is unknown."""
        return bool(self.model.known.all())

    @property
    def settled(self) -> bool:
        """Whether all cells are known and none has few effective reports."""
        return self.all_known and bool(self.model.n.min() >= chosen.SETTLED)


class FrugalUCBVI(BatchedAgent):
    """Optimism in a model of short reports, requested where the plan needs them.

    Each user is in one batch and reports one step, or a few: noise is that of one short report, whatever the horizon.
    Batches grow with the number of users so far, and are weighted by their reports over their noise. A cell whose
    reports do not exceed the noise is unknown, and has the largest possible value. Once something good is known, most
    users run the best policy; a few explore, and a few try a new policy before the others get it. Where there is little
    noise, all users explore. Some explorers run the best policies of models that are drawn from the posterior. The page
    of the agent explains why, with an ablation.

    With ``stationary=True`` the model is pooled over stages, for problems whose dynamics and rewards do not depend on
    the stage. Otherwise some users also report the stages of their steps. Estimates of parts of the episode then
    replace that of all stages as far as the data support it.

    Args:
        policy: ``"TabularPolicy"``.
        env: A board of any kind: ``JDPBillboard``, ``SDPShuffler``, ``LDPUserSide``, ``OpenBillboard``.
        noise_bonus: Bonus for noise, in deviations along the spread of values; grows slowly with users.
        sampling_bonus: Bonus for sampling, in deviations, while all users explore.
        explorers_bonus: Bonus for sampling, in deviations, while only some do.
        explorers: Share of users who explore once something good is known.
        stationary: Whether the problem is known to be the same at every stage. By default what the board was built
            for: False, unless it was built with ``stationary=True`` or with ``statistic="reports"``.
        options: ``beta`` (unused), ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    statistic = "staged-reports"  # "reports" where stages are known to be alike

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        noise_bonus: float = 0.2,
        sampling_bonus: float = 0.1,
        explorers_bonus: float = 0.5,
        explorers: float = 0.03,
        stationary: bool | None = None,
        **options: Any,
    ) -> None:
        self.noise_bonus = check_multiplier("noise_bonus", noise_bonus, "the bonus for noise", zero=True)
        self.sampling_bonus = check_multiplier("sampling_bonus", sampling_bonus, "the bonus for sampling", zero=True)
        self.explorers_bonus = check_multiplier(
            "explorers_bonus", explorers_bonus, "their bonus for sampling", zero=True
        )
        self.stationary = None if stationary is None else flag(stationary, "stationary")
        if not 0.0 <= real(explorers, "explorers") <= 1.0:
            raise ValueError(f"explorers is {shown(explorers)}: it is a share of users, in [0, 1].")
        self.explorers = float(explorers)
        super().__init__(policy, env, **options)

    def needs(self, board: Boundary) -> str:
        """Return ``"reports"`` if stages are pooled, else ``"staged-reports"``.

        Stages are pooled if the problem is known to be time-homogeneous.
        """
        known = board.stationary or board.statistic.name == "reports"
        pools = known if self.stationary is None else self.stationary
        self.statistic = "reports" if pools else "staged-reports"
        return self.statistic

    def batches(self) -> Generator[Batch, ReportRelease, Policy]:
        """Yield batches of growing size, each followed by a new estimate."""
        H, S, A = self._board.sizes
        self.model = ReportedModel.of_nothing(H, S, A, stationary=self.statistic == "reports")
        run = _Run(self.model, self._first_batch(), self.known_users)
        deploy = self._policy_of(np.zeros((H, S), dtype=np.int64))
        while run.left is None or run.left > 0:
            users = self._next_users(run)
            best, safe = self._best(run.model)
            runs, v = self._choose_policies(run, users, best, safe)
            request = self._choose_request(run, runs, v, users)
            deploy = self._policy_of(best if run.contest.incumbent is None else run.contest.incumbent)
            release = yield Batch([(self._policy_of(actions), count) for actions, count in runs], request, deploy)
            self._estimate(run, ReportedBatch(release, self._noise(users, request.most), runs, request))
        if run.past:  # also what the last users reported
            run.contest.judge(run.model, self._best(run.model)[0])
        return deploy if run.contest.incumbent is None else self._policy_of(run.contest.incumbent)

    def _estimate(self, run: _Run, batch: ReportedBatch) -> None:
        """Take in a batch, and estimate the model anew."""
        run.past.append(batch)
        run.served, run.left = run.served + batch.users, None if run.left is None else run.left - batch.users
        run.staged += batch.users * batch.request.by_stage
        run.model = self.model = run.model.updated(run.past)

    # Sizes of batches ------------------------------------------------------------------------------------------------

    def _noise(self, users: float, most: int = 1) -> float:
        _, S, A = self._board.sizes
        return self._board.expected_noise(max(1, round(users)), Wanted(np.ones((S, A), dtype=bool), most=most))

    def _first_batch(self) -> int:
        """Return a number of users at which every cell could exceed the noise.

        It is at most a twentieth of all users, or 50 if this is more.
        """
        _, S, A = self._board.sizes
        coming = math.inf if self.known_users is None else float(self.known_users)
        users, most = min(chosen.FIRST_USERS, coming / 4.0), coming / chosen.FIRST_PART
        while users < most and users < chosen.FIRST_BATCH * S * A * max(chosen.LEAST_NOISE, self._noise(users)):
            users *= 1.1
        return max(1, round(users))

    def _next_users(self, run: _Run) -> int:
        """Return the size of the next batch.

        It grows with the number of users so far. It is at least the size of the first batch times the share of unknown
        cells. The last batch also takes the users who would be too few for another.
        """
        local = self._noise(2000) > chosen.LOCAL * self._noise(1000)
        growth = chosen.GROWTH_LATER if run.settled else chosen.GROWTH_LOCAL if local else chosen.GROWTH
        unknown = max(chosen.LEAST_UNKNOWN, float((~run.model.known).mean()))
        users = run.first if not run.served else _round(max(run.first * unknown, growth * run.served))
        return users if run.left is None or run.left - users >= users / 2.0 else run.left

    # Policies --------------------------------------------------------------------------------------------------------

    def _choose_policies(
        self, run: _Run, users: int, best: Table, safe: float
    ) -> tuple[list[tuple[Table, int]], NDArray[np.float64]]:
        """Return the policies of these users, and the optimistic values of explorers.

        All users explore, or some.
        """
        explorers, others, by_sampling = users, list[tuple[Table, int]](), self.sampling_bonus
        if run.past:
            run.contest.judge(run.model, best)
            # Explorers help later users: all users at first, none in the last batch.
            coming = 1.0 if run.left is None else (run.left - users) / run.left
            if run.all_known and self._is_quiet(run.model):
                run.contest, by_sampling, explorers = _Contest(), chosen.QUIET_BONUS, int(coming * users)
                others = [(best, users - explorers)]
            elif run.all_known or users == run.left or safe > self._good(run):
                run.tries += not run.all_known
                share = coming if run.all_known or run.tries <= chosen.TRIES else coming * chosen.TRIES / run.tries
                explorers = min(users, int(share * max(chosen.ENOUGH * run.first, self.explorers * users)))
                others = run.contest.runs(users - explorers, max(explorers, run.first // 2))
                by_sampling = self.explorers_bonus
        q, v = self._optimistic(run, by_sampling)
        refine = bool(others) and not run.all_known  # half of the groups then refine what is known
        plans = [q, self._optimistic(run, by_sampling, 0.0)[0]] if refine else [q]
        tables = self._tables(plans, run.model, chosen.DRAWN if run.all_known else 0)
        explore = list(zip(tables, shares(explorers, chosen.GROUPS), strict=True))
        return [(actions, count) for actions, count in others + explore if count], v

    def _best(self, model: ReportedModel) -> tuple[Table, float]:
        """Return the best policy, less some noise, and its value.

        Unknown cells have value 0.
        """
        q, v = model.plan(self._board.sizes[0], -chosen.CAUTION, 0.0, 0.0)
        return _greedy(q), float(model.initial @ v[0])

    def _good(self, run: _Run) -> float:
        """Return the value above which a policy is good.

        It falls while nothing is found.
        """
        return chosen.RICH * self._board.sizes[0] * min(1.0, chosen.HOPE * run.first / run.served)

    def _optimistic(self, run: _Run, by_sampling: float, unknown: float = 1.0) -> tuple[Any, Any]:
        """Return optimistic values.

        Unknown cells have the largest possible value, times ``unknown``.
        """
        by_noise = self.noise_bonus * (1.0 + 0.5 * max(0.0, math.log(max(run.served, 1) / 1000.0)))
        return run.model.plan(self._board.sizes[0], by_noise, by_sampling, unknown)

    def _is_quiet(self, model: ReportedModel) -> bool:
        """Return whether noise causes little uncertainty, compared with sampling.

        It is compared along an optimistic policy.
        """
        q, v = model.plan(self._board.sizes[0], self.noise_bonus, 1.0, 1.0)
        arrays = model.P, model.known, model.noise, model.n, model.initial, _greedy(q), v
        return bool(optimism(*arrays, 1.0, 0.0).sum() < chosen.QUIET * optimism(*arrays, 0.0, 1.0).sum())

    def _tables(self, plans: Sequence[NDArray[np.float64]], model: ReportedModel, drawn: int) -> list[Table]:
        """Return the policy of each group.

        The first ones are the best policies of ``drawn`` models that are drawn at random. The others are optimistic, by
        each of the plans. Among unknown actions, half of the optimistic groups persist in one.
        """
        H, S, A = self._board.sizes
        tables = [_greedy(model.drawn(self.plan_rng).plan(H, 0.0, 0.0, 1.0)[0]) for _ in range(drawn)]
        for group in range(drawn, chosen.GROUPS):
            preferred = np.full(S, group // 2 % A) if group % 2 == 0 else self.plan_rng.integers(A, size=S)
            ties = 1e-9 * (np.arange(A) == preferred[:, None]) * ~model.known  # [g, s, a]
            tables.append(_greedy(plans[(group - drawn) // 2 % len(plans)] + ties))
        return tables

    def _policy_of(self, actions: Table) -> Policy:
        return Policy.trusted(actions, self._board.sizes[2])

    # Requests --------------------------------------------------------------------------------------------------------

    def _choose_request(self, run: _Run, runs: Sequence[tuple[Table, int]], v: Any, users: int) -> Wanted:
        """Return the request: stages from some users where these may differ, else steps.

        It asks for one step of a wanted cell, or for several steps of any cell.
        """
        H, S, A = self._board.sizes
        everything = np.ones((S, A), dtype=bool)
        if not run.past:
            return Wanted(everything, anywhere=chosen.FIRST_ANYWHERE, starts=chosen.FIRST_STARTS)
        few = run.staged < chosen.STAGED * (run.served + users)
        if self.statistic != "reports" and (few or not run.model.alike):
            if self._board.loads == 1:  # users who noise their own reports
                return Wanted(everything, anywhere=1.0, by_stage=True)
            return Wanted(everything, most=H, by_stage=True)
        return self._choose_steps(run, runs, v, users)

    def _choose_steps(self, run: _Run, runs: Sequence[tuple[Table, int]], v: Any, users: int) -> Wanted:
        """Return the request for steps that reduces optimism most.

        It asks for one report of a wanted cell, or for several reports of any cell.
        """
        H, S, A = self._board.sizes
        model = run.model
        known, n = model.known.all(axis=0), model.pooled.n[0]
        arrays = model.P, model.known, model.noise, model.n, model.initial
        gap = sum(optimism(*arrays, actions, v, self.noise_bonus, 1.0) for actions, _ in runs)
        wanted = gap > chosen.WORTH_ASKING * gap.max() if known.all() else ~known | (n < self._target(n))
        requests = [Wanted(wanted, anywhere=chosen.ANYWHERE, starts=chosen.STARTS)]
        most = 1 if self._board.loads == 1 else min(H, S * A)
        cheap = self._noise(users, most) <= chosen.CHEAP * math.sqrt(most) * self._noise(users)
        if most > 1 and (cheap or (run.settled and users >= chosen.LONG_BATCH)):
            requests.append(Wanted(np.ones((S, A), dtype=bool), most=most))

        def gain(request: Wanted) -> float:
            reports, noise = model.reports(runs, request), self._noise(users, request.most)
            more = reports**2 / (reports + S * noise**2 + 1e-9)
            return float((gap * (1.0 - np.sqrt((n + 0.5) / (n + 0.5 + more)))).sum())

        return max(requests, key=gain)

    @staticmethod
    def _target(n: NDArray[np.float64]) -> float:
        """Return the number of effective reports that each cell should have.

        If all cells have it, it is multiplied until they do not.
        """
        target = chosen.TARGET
        while (n >= target).all():
            target *= chosen.TARGET_GROWTH
        return target

    def known_now(self) -> NDArray[np.bool_]:
        """Return whether the model knows the action of ``predict``, ``[h, s]``."""
        H, S, _ = self._board.sizes
        model, policy = getattr(self, "model", None), self.best_policy()
        if model is None:
            return np.zeros((H, S), dtype=bool)
        blocks = np.arange(H) * len(model.known) // H
        return np.asarray((model.known[blocks] | (policy.probabilities == 0.0)).all(axis=2))

    def progress(self) -> dict[str, float]:
        """Return the number of known cells, and the fewest effective reports of a cell."""
        if self.board is None:
            return {}
        return {"plan/known": float(self.model.known.sum()), "plan/fewest": float(self.model.n.min())}


def _greedy(q: NDArray[np.float64]) -> Table:
    return np.ascontiguousarray(q.argmax(axis=2))


def _round(users: float) -> int:
    """Return ``users`` with two leading digits.

    So noise is calibrated for few sizes.
    """
    unit: int = 10 ** max(0, math.floor(math.log10(users)) - 1)
    return int(users / unit) * unit
