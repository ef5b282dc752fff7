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
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.reporting import expected_reports, optimism, plan, value_from_below
from private_rl_gym.planning.search import shares, simplex
from private_rl_gym.privacy.asks import Wanted
from private_rl_gym.privacy.release import CERTAIN
from private_rl_gym.privacy.reports import LocalReports, ReportRelease

__all__ = ["FrugalUCBVI"]

Table = NDArray[np.int64]  # [h, s], the actions of a deterministic policy

FIRST_BATCH = 9.0
"""Users in the first batch, for each cell and each deviation of noise (two at least)."""

GROWTH, GROWTH_LATER, GROWTH_LOCAL = 0.25, 0.5, 0.1
"""Users in a batch, as a share of those before: while cells are unknown; later; where users add noise themselves."""

SETTLED = 6.0
"""Effective reports of a cell, at least, where all are known well enough for long batches."""

LONG_BATCH = 1000
"""Users from which on a batch may ask for several reports, once no cell is unknown."""

GROUPS = 8
"""Groups of explorers, who try different actions where nothing is known."""

DOUBT = 4.0
"""Deviations of noise that the reports of a cell must reach for the cell to become known; an eighth to stay so."""

FORESIGHT = 0.5
"""Relative uncertainty of the number of reports that the model predicts, which is averaged with the number received."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A batch in the past: its release, and how it came about."""

    release: ReportRelease
    noise: float
    runs: Sequence[tuple[Table, int]]
    ask: Wanted

    @property
    def users(self) -> int:
        """Number of users in the batch."""
        return sum(count for _, count in self.runs)


@dataclass(slots=True, eq=False)
class _Model:
    """A stationary model that is known in part.

    ``P`` is [s, a, s'], ``r`` [s, a]; ``known`` says where both are estimated; ``noise`` is the deviation of noise in a
    probability, and ``n`` the effective number of reports.
    """

    P: NDArray[np.float64]
    r: NDArray[np.float64]
    initial: NDArray[np.float64]
    known: NDArray[np.bool_]
    noise: NDArray[np.float64]
    n: NDArray[np.float64]

    @classmethod
    def of_nothing(cls, S: int, A: int) -> _Model:
        cell, P = np.zeros((S, A)), np.full((S, A, S), 1.0 / S)
        return cls(P, cell, np.full(S, 1.0 / S), np.zeros((S, A), dtype=bool), np.ones((S, A)), cell + 1e-9)

    def absorb(self, state: int, reward: float) -> None:
        """Write down that no action leaves this state, and the reward of each step there."""
        self.P[state], self.r[state], self.known[state] = 0.0, reward, True
        self.P[state, :, state] = 1.0
        self.noise[state], self.n[state] = 0.0, CERTAIN

    @property
    def settled(self) -> bool:
        """Whether no cell is left of which little is known."""
        return bool(self.known.all() and self.n.min() >= SETTLED)

    def plan(self, H: int, by_noise: float, by_sampling: float, unknown: float) -> tuple[Any, Any]:
        """Q and V, optimistic where multipliers are positive."""
        q, v = plan(self.P, self.r, self.known, self.noise, self.n, H, by_noise, by_sampling, unknown)
        return q, v

    def value(self, actions: Table) -> float:
        """The value of a policy; unknown cells are worth nothing."""
        return value_from_below(self.P, self.r, self.noise, self.initial, actions, 0.0)

    def low_value(self, actions: Table) -> float:
        """The value of a policy, less a deviation of noise at every step."""
        return value_from_below(self.P, self.r, self.noise, self.initial, actions, 1.0)

    def reports(self, runs: Sequence[tuple[Table, int]], ask: Wanted) -> NDArray[np.float64]:  # [s, a]
        """The number of reports of each cell that is expected in a batch."""
        total = np.zeros_like(self.r)
        for actions, count in runs:
            each = np.zeros_like(self.r)
            expected_reports(self.P, self.initial, actions, ask.cells, ask.anywhere, ask.starts, ask.most, each)
            total += count * each
        return total


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

    def judge(self, model: _Model, best: Table) -> None:
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
    run the best policy; a few explore, and a few try a new policy before the others get it. The page of the agent says
    why, with an ablation.

    The model is pooled over stages: this agent is for problems whose dynamics and rewards do not depend on the stage.

    Args:
        policy: ``"TabularPolicy"``.
        env: A board of any kind: ``JDPBillboard``, ``SDPShuffler``, ``LDPUserSide``, ``OpenBillboard``.
        noise_bonus: Bonus for noise, in deviations along the spread of values; grows slowly with users.
        sampling_bonus: Bonus for sampling, in deviations, while all users explore.
        explorers_bonus: Bonus for sampling, in deviations, while only some do.
        explorers: Share of users who explore once something good is known.
        options: ``beta`` (unused), ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    statistic = "reports"
    saved_arguments: ClassVar[tuple[str, ...]] = (
        "beta",
        "noise_bonus",
        "sampling_bonus",
        "explorers_bonus",
        "explorers",
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
        **options: Any,
    ) -> None:
        check_multiplier("noise_bonus", noise_bonus, "the bonus for noise", zero=True)
        check_multiplier("sampling_bonus", sampling_bonus, "the bonus for sampling", zero=True)
        check_multiplier("explorers_bonus", explorers_bonus, "the explorers' bonus for sampling", zero=True)
        if not 0.0 <= explorers <= 1.0:
            raise ValueError(f"explorers is {explorers}: it is a share of users, in [0, 1].")
        self.noise_bonus, self.sampling_bonus, self.explorers_bonus = noise_bonus, sampling_bonus, explorers_bonus
        self.explorers = explorers
        super().__init__(policy, env, **options)

    def batches(self) -> Generator[Batch, ReportRelease, Policy]:
        """Plan, ask, estimate; then again with more users."""
        H, S, A = self._board.sizes
        model, past = _Model.of_nothing(S, A), list[_Asked]()
        first = self._first_batch()
        contest = _Contest()
        served, tries, left = 0, 0, self.known_users
        deploy = self._policy_of(np.zeros((H, S), dtype=np.int64))
        while left is None or left > 0:
            users = self._next_users(first, served, left, model)
            q, v = self._explore(model, served, self.sampling_bonus)
            careful_q, careful_v = model.plan(H, -0.1, 0.0, 0.0)
            best = _greedy(careful_q)
            runs: list[tuple[Table, int]] = []
            explorers = users
            if past:
                contest.judge(model, best)
                rich = float(model.initial @ careful_v[0]) > 0.02 * H
                if rich:
                    enough = first / 2.0  # users whose reports stand out of the noise
                    tries += not model.known.all()
                    patience = 1.0 if model.known.all() or tries <= 6 else 6.0 / tries
                    explorers = min(users, int(patience * max(enough, self.explorers * users)))
                    runs = contest.runs(users - explorers, max(explorers, round(enough)))
                    if users > explorers:
                        q, v = self._explore(model, served, self.explorers_bonus)
            runs += list(zip(self._tables(q, model), shares(explorers, GROUPS), strict=True))
            runs = [(actions, count) for actions, count in runs if count]
            ask = self._ask_for(model, runs, v, users, first=not past)
            deploy = self._policy_of(best if contest.incumbent is None else contest.incumbent)
            release = yield Batch([(self._policy_of(actions), count) for actions, count in runs], ask, deploy)
            past.append(_Asked(release, self._noise(users, ask.most), runs, ask))
            served, left = served + users, None if left is None else left - users
            model = self._estimate(model, past)
            self.model = model
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
        while users < coming / 20.0 and users < FIRST_BATCH * S * A * max(2.0, self._noise(users)):
            users *= 1.1
        return max(1, round(users))

    def _next_users(self, first: int, served: int, left: int | None, model: _Model) -> int:
        """A batch that grows with the users so far, and is no smaller than the first in proportion to what is unknown.

        The last one takes all who would be too few for another.
        """
        local = self._noise(2000) > 1.2 * self._noise(1000)
        growth = GROWTH_LATER if model.settled else GROWTH_LOCAL if local else GROWTH
        unknown = float((~model.known).mean())
        users = first if not served else _round(max(first * max(0.25, unknown), growth * served))
        return users if left is None or left - users >= users / 2.0 else left

    # Policies --------------------------------------------------------------------------------------------------------

    def _explore(self, model: _Model, served: int, by_sampling: float) -> tuple[Any, Any]:
        """Optimistic values: unknown cells are worth as much as any could be."""
        by_noise = self.noise_bonus * (1.0 + 0.5 * max(0.0, math.log(max(served, 1) / 1000.0)))
        return model.plan(self._board.sizes[0], by_noise, by_sampling, 1.0)

    def _tables(self, q: NDArray[np.float64], model: _Model) -> list[Table]:
        """The optimistic policy of each group. Among unknown actions, half of the groups persist in one."""
        _, S, A = self._board.sizes
        tables = []
        for group in range(GROUPS):
            preferred = np.full(S, group // 2 % A) if group % 2 == 0 else self.plan_rng.integers(A, size=S)
            ties = 1e-9 * (np.arange(A) == preferred[:, None]) * ~model.known
            tables.append(_greedy(q + ties))
        return tables

    def _policy_of(self, actions: Table) -> Policy:
        return Policy.trusted(actions, self._board.sizes[2])

    # Requests --------------------------------------------------------------------------------------------------------

    def _ask_for(self, model: _Model, runs: Sequence[tuple[Table, int]], v: Any, users: int, *, first: bool) -> Wanted:
        """Ask for one report of a wanted cell, or for several of any, whichever takes more off the optimism."""
        H, S, A = self._board.sizes
        if first:
            return Wanted(np.ones((S, A), dtype=bool), anywhere=0.9, starts=0.1)
        known, n = model.known, model.n
        gap = sum(optimism(model.P, known, model.noise, n, model.initial, t, v, self.noise_bonus, 1.0) for t, _ in runs)
        all_known = bool(known.all())
        wanted = gap > 0.1 * gap.max() if all_known else ~known | (n < self._target(n))
        asks = [Wanted(wanted, anywhere=0.5, starts=0.05)]
        most = 1 if isinstance(self._board.statistic, LocalReports) else min(H, S * A)
        cheap = self._noise(users, most) <= 1.2 * math.sqrt(most) * self._noise(users)
        if most > 1 and (cheap or (model.settled and users >= LONG_BATCH)):
            asks.append(Wanted(np.ones((S, A), dtype=bool), most=most))

        def gain(ask: Wanted) -> float:
            reports, noise = model.reports(runs, ask), self._noise(users, ask.most)
            more = reports**2 / (reports + S * noise**2 + 1e-9)
            return float((gap * (1.0 - np.sqrt((n + 0.5) / (n + 0.5 + more)))).sum())

        return max(asks, key=gain)

    @staticmethod
    def _target(n: NDArray[np.float64]) -> float:
        """10 effective reports of each cell, or four times as many, and so on."""
        target = 10.0
        while (n >= target).all():
            target *= 4.0
        return target

    # Estimates -------------------------------------------------------------------------------------------------------

    def _estimate(self, before: _Model, past: Sequence[_Asked]) -> _Model:
        """The model of all batches, each weighted by the reports that the model itself expects of it."""
        _, S, A = self._board.sizes
        model, was_known = before, before.known
        initial = _starts(past, S)
        for _ in range(6):  # weights follow from the model, and the model from weights
            model.initial = initial
            sums, expected, noise, sampling = np.zeros((S, A, S, 2)), *np.zeros((3, S, A))
            for batch in past:
                reports = model.reports(batch.runs, batch.ask) + 1e-9
                weight = reports / (reports + batch.noise**2)
                sums += weight[:, :, None, None] * batch.release.reports
                noise += (weight * batch.noise) ** 2
                expected += weight * reports
                sampling += weight**2 * reports
            received, precision = sums.sum(axis=(2, 3)), 1.0 / (2 * S * noise + sampling + 1e-9)
            trust = 1.0 / (FORESIGHT * expected + 1e-9) ** 2
            n = (trust * expected + precision * received) / (trust + precision)
            deviation = np.sqrt(noise)
            known = (n > 1.0) & ((n > DOUBT * deviation) | (was_known & (n > DOUBT / 8.0 * deviation)))
            n = np.maximum(n, 1e-9)
            rows = _simplex_rows((sums / n[:, :, None, None]).reshape(S, A, -1)).reshape(S, A, S, 2)
            rows[~known] = 0.5 / S
            model = _Model(
                P=rows.sum(axis=-1),
                r=np.where(known, rows[..., 1].sum(axis=-1), 0.0),
                initial=initial,
                known=known,
                noise=np.where(known, deviation / n, 1.0),
                n=np.maximum(n**2 / (n + S * noise + 1e-9), 1e-9),
            )
            if past[0].release.absorbing is not None:
                model.absorb(past[0].release.absorbing, past[0].release.waiting_reward)
        return model

    def progress(self) -> dict[str, float]:
        """The number of known cells, and the fewest effective reports of a cell."""
        model = getattr(self, "model", None)
        if model is None:
            return {}
        return {"plan/known": float(model.known.sum()), "plan/fewest": float(model.n.min())}


def _greedy(q: NDArray[np.float64]) -> Table:
    return np.ascontiguousarray(q.argmax(axis=2))


def _starts(past: Sequence[_Asked], S: int) -> NDArray[np.float64]:
    """Where users start, from all batches that were asked, weighted as the others."""
    total, reports = np.zeros(S), 0.0
    for batch in past:
        asked = batch.ask.starts * batch.users
        weight = asked / (asked + S * batch.noise**2 + 1e-9)
        total += weight * batch.release.starts
        reports += weight * asked
    return simplex(np.append(total, max(reports, 1e-9)))[:-1]


def _simplex_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:  # [..., outcome]
    """The nearest probabilities, row by row: small false outcomes vanish."""
    ordered = np.sort(rows, axis=-1)[..., ::-1]
    shifts = (np.cumsum(ordered, axis=-1) - 1.0) / np.arange(1, rows.shape[-1] + 1)
    last = (ordered > shifts).sum(axis=-1, keepdims=True) - 1
    return np.maximum(rows - np.take_along_axis(shifts, last, axis=-1), 0.0)


def _round(users: float) -> int:
    """Two leading digits: noise is calibrated for few sizes."""
    unit: int = 10 ** max(0, math.floor(math.log10(users)) - 1)
    return int(users / unit) * unit
