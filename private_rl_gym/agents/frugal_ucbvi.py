"""FrugalUCBVI: a private learner that asks each user for little, and for what the plan needs."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.batched import Batch, BatchedAgent
from private_rl_gym.agents.optimism import check_multiplier
from private_rl_gym.agents.reported_model import Asked, ReportedModel, Table
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.reporting import optimism
from private_rl_gym.planning.search import shares
from private_rl_gym.privacy.asks import Wanted
from private_rl_gym.privacy.reports import LocalReports, ReportRelease

__all__ = ["FrugalUCBVI"]

FIRST_BATCH = 12.0
"""Users in the first batch, for each cell and each deviation of noise (one and a half at least)."""

GROWTH, GROWTH_LATER, GROWTH_LOCAL = 0.25, 0.5, 0.1
"""Users in a batch, as a share of those before: while cells are unknown; later; where users add noise themselves."""

SETTLED = 6.0
"""Effective reports of a cell, at least, where all are known well enough for long batches."""

RICH, HOPE = 0.02, 3.0
"""Value, as a share of the horizon, of a policy that is good; it falls once this many first batches have come."""

ENOUGH, TRIES = 0.75, 2
"""Explorers at least, as a share of the first batch; batches after which fewer of them look for what is unknown."""

LONG_BATCH = 1000
"""Users from which on a batch may ask for several reports, once no cell is unknown."""

GROUPS = 8
"""Groups of explorers, who try different actions where nothing is known."""

DRAWN = 4
"""Groups who run the best policies of drawn models, once all cells are known."""

QUIET, QUIET_BONUS = 0.35, 0.7
"""Doubt by noise, as a share of that by sampling, below which all explore who can, and their bonus."""

STAGED = 0.2
"""Share of users who are asked for stages too, where stages may differ."""


@dataclass(slots=True, eq=False)
class _Contest:
    """The policy that most users run, and a challenger, which some of them try.

    What looks best in a noisy model is often what the noise flatters. So a challenger is tried by few users first, and
    by four times as many whenever it still looks better with what they reported; it wins when half of them run it. A
    policy that looks twice as good needs no trial.
    """

    incumbent: Table | None = None
    challenger: Table | None = None
    wins: int = 0
    share: float = 0.0  # of those who do not explore, who tried the challenger last

    def judge(self, model: ReportedModel, best: Table) -> None:
        """Compare both in a new model, and find a new challenger if there is none."""
        if self.incumbent is None or model.value(self.incumbent) < 0.5 * model.value(best):
            self.incumbent, self.challenger = best, None  # there is more to win than to lose
            return
        if self.challenger is not None:
            if model.low_value(self.challenger) > model.low_value(self.incumbent):
                self.wins += 1
                if self.share >= 0.5:
                    self.incumbent, self.challenger = self.challenger, None
            else:
                self.challenger = None
        if self.challenger is None and model.value(best) - model.value(self.incumbent) > 0.02 * model.value(best):
            self.challenger, self.wins = best, 0

    def runs(self, users: int, few: int) -> list[tuple[Table, int]]:
        """The policies of these users: the incumbent, and for some the challenger."""
        assert self.incumbent is not None  # noqa: S101 - judge has been called
        if self.challenger is None or not users:
            self.share = 0.0
            return [(self.incumbent, users)]
        trial = min(users, few * 4**self.wins)
        self.share = trial / users
        return [(self.incumbent, users - trial), (self.challenger, trial)]


class FrugalUCBVI(BatchedAgent):
    """Optimism in the model of single reports, which are asked for where the plan needs them.

    Each user is in one batch and reports one step, or a few: noise is that of one short report, whatever the horizon.
    Batches grow with the number of users so far, and are weighted by what each had to say about a cell. A cell whose
    reports do not stand out of the noise is unknown, and worth as much as any. Once something good is known, most users
    run the best policy; a few explore, and a few try a new policy before the others get it. Where there is little noise
    everybody explores. Some explorers run the best policies of models that are drawn from what is believed. The page of
    the agent says why, with an ablation.

    The model is pooled over stages, for problems whose dynamics and rewards do not depend on the stage. With
    ``stationary=False`` some users also say at which stages their steps were; estimates of parts of the episode then
    overrule that of all stages as far as the data say.

    Args:
        policy: ``"TabularPolicy"``.
        env: A board of any kind: ``JDPBillboard``, ``SDPShuffler``, ``LDPUserSide``, ``OpenBillboard``.
        noise_bonus: Bonus for noise, in deviations along the spread of values; grows slowly with users.
        sampling_bonus: Bonus for sampling, in deviations, while all users explore.
        explorers_bonus: Bonus for sampling, in deviations, while only some do.
        explorers: Share of users who explore once something good is known.
        stationary: Whether the problem is known to be the same at every stage.
        options: ``beta`` (unused), ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    statistic = "reports"  # and stages with them, where they may differ
    saved_arguments: ClassVar[tuple[str, ...]] = (
        "beta",
        "noise_bonus",
        "sampling_bonus",
        "explorers_bonus",
        "explorers",
        "stationary",
    )

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        noise_bonus: float = 0.2,
        sampling_bonus: float = 0.1,
        explorers_bonus: float = 0.5,
        explorers: float = 0.03,
        stationary: bool = True,
        **options: Any,
    ) -> None:
        check_multiplier("noise_bonus", noise_bonus, "the bonus for noise", zero=True)
        check_multiplier("sampling_bonus", sampling_bonus, "the bonus for sampling", zero=True)
        check_multiplier("explorers_bonus", explorers_bonus, "the explorers' bonus for sampling", zero=True)
        if not 0.0 <= explorers <= 1.0:
            raise ValueError(f"explorers is {explorers}: it is a share of users, in [0, 1].")
        self.noise_bonus, self.sampling_bonus, self.explorers_bonus = noise_bonus, sampling_bonus, explorers_bonus
        self.explorers, self.stationary = explorers, bool(stationary)
        self.statistic = "reports" if stationary else "staged-reports"
        super().__init__(policy, env, **options)

    def batches(self) -> Generator[Batch, ReportRelease, Policy]:
        """Plan, ask, estimate; then again with more users."""
        H, S, A = self._board.sizes
        model, past = ReportedModel.of_nothing(H, S, A, stationary=self.stationary), list[Asked]()
        first = self._first_batch()
        contest = _Contest()
        served, staged, tries, left = 0, 0, 0, self.known_users
        deploy = self._policy_of(np.zeros((H, S), dtype=np.int64))
        while left is None or left > 0:
            users = self._next_users(first, served, left, model)
            q, v = self._explore(model, served, self.sampling_bonus)
            careful_q, careful_v = model.plan(H, -0.1, 0.0, 0.0)
            best = _greedy(careful_q)
            runs: list[tuple[Table, int]] = []
            explorers, drawn = users, 0
            plans = [q]
            if past:
                contest.judge(model, best)
                all_known = bool(model.known.all())
                good = RICH * H * min(1.0, HOPE * first / served)  # the longer nothing is found, the less is hoped for
                coming = 1.0 if left is None else (left - users) / left  # of those left, who profit from explorers
                if all_known and self._is_quiet(model):
                    contest, drawn, explorers = _Contest(), DRAWN, int(coming * users)
                    runs = [(best, users - explorers)]
                    q, v = self._explore(model, served, QUIET_BONUS)
                    plans = [q]
                elif all_known or users == left or float(model.initial @ careful_v[0]) > good:
                    tries += not all_known
                    share = coming if all_known or tries <= TRIES else coming * TRIES / tries
                    explorers = min(users, int(share * max(ENOUGH * first, self.explorers * users)))
                    runs = contest.runs(users - explorers, max(explorers, first // 2))
                    q, v = self._explore(model, served, self.explorers_bonus)
                    plans = [q] if all_known else [q, self._explore(model, served, self.explorers_bonus, 0.0)[0]]
                    drawn = DRAWN if all_known else 0
            runs += list(zip(self._tables(plans, model, drawn), shares(explorers, GROUPS), strict=True))
            runs = [(actions, count) for actions, count in runs if count]
            if not self.stationary and past and (not model.alike or staged < STAGED * (served + users)):
                ask, staged = self._ask_for_stages(), staged + users
            else:
                ask = self._ask_for(model, runs, v, users, first=not past)
            deploy = self._policy_of(best if contest.incumbent is None else contest.incumbent)
            release = yield Batch([(self._policy_of(actions), count) for actions, count in runs], ask, deploy)
            past.append(Asked(release, self._noise(users, ask.most), runs, ask))
            served, left = served + users, None if left is None else left - users
            model = self.model = model.updated(past)
        if past:  # also what the last users reported
            contest.judge(model, _greedy(model.plan(H, -0.1, 0.0, 0.0)[0]))
        return deploy if contest.incumbent is None else self._policy_of(contest.incumbent)

    # Sizes of batches ------------------------------------------------------------------------------------------------

    def _noise(self, users: float, most: int = 1) -> float:
        _, S, A = self._board.sizes
        return self._board.expected_noise(max(1, round(users)), Wanted(np.ones((S, A), dtype=bool), most=most))

    def _first_batch(self) -> int:
        """So many users that every cell could stand out of the noise; at most a twentieth of all, or 50."""
        _, S, A = self._board.sizes
        coming = math.inf if self.known_users is None else float(self.known_users)
        users = min(50.0, coming / 4.0)
        while users < coming / 20.0 and users < FIRST_BATCH * S * A * max(1.5, self._noise(users)):
            users *= 1.1
        return max(1, round(users))

    def _next_users(self, first: int, served: int, left: int | None, model: ReportedModel) -> int:
        """A batch that grows with the users so far, and is no smaller than the first in proportion to what is unknown.

        The last one takes all who would be too few for another.
        """
        local = self._noise(2000) > 1.2 * self._noise(1000)
        growth = GROWTH_LATER if _settled(model) else GROWTH_LOCAL if local else GROWTH
        unknown = float((~model.known).mean())
        users = first if not served else _round(max(first * max(0.25, unknown), growth * served))
        return users if left is None or left - users >= users / 2.0 else left

    # Policies --------------------------------------------------------------------------------------------------------

    def _explore(self, model: ReportedModel, served: int, by_sampling: float, unknown: float = 1.0) -> tuple[Any, Any]:
        """Optimistic values: unknown cells are worth as much as any could be, or that share of it."""
        by_noise = self.noise_bonus * (1.0 + 0.5 * max(0.0, math.log(max(served, 1) / 1000.0)))
        return model.plan(self._board.sizes[0], by_noise, by_sampling, unknown)

    def _is_quiet(self, model: ReportedModel) -> bool:
        """Whether noise leaves little in doubt, beside sampling, where an optimist goes."""
        q, v = model.plan(self._board.sizes[0], self.noise_bonus, 1.0, 1.0)
        arrays = model.P, model.known, model.noise, model.n, model.initial, _greedy(q), v
        return bool(optimism(*arrays, 1.0, 0.0).sum() < QUIET * optimism(*arrays, 0.0, 1.0).sum())

    def _tables(self, plans: Sequence[NDArray[np.float64]], model: ReportedModel, drawn: int) -> list[Table]:
        """The policy of each group: the best ones of so many drawn models, and optimistic ones, by each of the plans.

        Among unknown actions, half of the optimistic groups persist in one.
        """
        H, S, A = self._board.sizes
        tables = [_greedy(model.drawn(self.plan_rng).plan(H, 0.0, 0.0, 1.0)[0]) for _ in range(drawn)]
        for group in range(drawn, GROUPS):
            preferred = np.full(S, group // 2 % A) if group % 2 == 0 else self.plan_rng.integers(A, size=S)
            ties = 1e-9 * (np.arange(A) == preferred[:, None]) * ~model.known  # [g, s, a]
            tables.append(_greedy(plans[(group - drawn) // 2 % len(plans)] + ties))
        return tables

    def _policy_of(self, actions: Table) -> Policy:
        return Policy.trusted(actions, self._board.sizes[2])

    # Requests --------------------------------------------------------------------------------------------------------

    def _ask_for(
        self, model: ReportedModel, runs: Sequence[tuple[Table, int]], v: Any, users: int, *, first: bool
    ) -> Wanted:
        """Ask for one report of a wanted cell, or for several of any, whichever takes more off the optimism."""
        H, S, A = self._board.sizes
        if first:
            return Wanted(np.ones((S, A), dtype=bool), anywhere=0.9, starts=0.1)
        known, n = model.known.all(axis=0), model.pooled.n[0]
        arrays = model.P, model.known, model.noise, model.n, model.initial
        gap = sum(optimism(*arrays, actions, v, self.noise_bonus, 1.0) for actions, _ in runs)
        all_known = bool(known.all())
        wanted = gap > 0.1 * gap.max() if all_known else ~known | (n < self._target(n))
        asks = [Wanted(wanted, anywhere=0.5, starts=0.05)]
        most = 1 if isinstance(self._board.statistic, LocalReports) else min(H, S * A)
        cheap = self._noise(users, most) <= 1.2 * math.sqrt(most) * self._noise(users)
        if most > 1 and (cheap or (_settled(model) and users >= LONG_BATCH)):
            asks.append(Wanted(np.ones((S, A), dtype=bool), most=most))

        def gain(ask: Wanted) -> float:
            reports, noise = model.reports(runs, ask), self._noise(users, ask.most)
            more = reports**2 / (reports + S * noise**2 + 1e-9)
            return float((gap * (1.0 - np.sqrt((n + 0.5) / (n + 0.5 + more)))).sum())

        return max(asks, key=gain)

    def _ask_for_stages(self) -> Wanted:
        """Ask for all steps with their stages; users who noise their own reports, for one of them."""
        H, S, A = self._board.sizes
        if isinstance(self._board.statistic, LocalReports):
            return Wanted(np.ones((S, A), dtype=bool), anywhere=1.0, by_stage=True)
        return Wanted(np.ones((S, A), dtype=bool), most=H, by_stage=True)

    @staticmethod
    def _target(n: NDArray[np.float64]) -> float:
        """10 effective reports of each cell, or four times as many, and so on."""
        target = 10.0
        while (n >= target).all():
            target *= 4.0
        return target

    def progress(self) -> dict[str, float]:
        """The number of known cells, and the fewest effective reports of a cell."""
        model = getattr(self, "model", None)
        if model is None:
            return {}
        return {"plan/known": float(model.known.sum()), "plan/fewest": float(model.n.min())}


def _greedy(q: NDArray[np.float64]) -> Table:
    return np.ascontiguousarray(q.argmax(axis=2))


def _settled(model: ReportedModel) -> bool:
    """Whether no cell is left of which little is known."""
    return bool(model.known.all() and model.n.min() >= SETTLED)


def _round(users: float) -> int:
    """Two leading digits: noise is calibrated for few sizes."""
    unit: int = 10 ** max(0, math.floor(math.log10(users)) - 1)
    return int(users / unit) * unit
