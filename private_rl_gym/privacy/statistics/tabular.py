"""Counts of visits, transitions and rewards, each kept by stage.

* ``TabularCounts`` - the counts of a user, with rewards as they are or rounded to bits
* ``TabularSteps`` - the same as outcomes: one for each step of a user, or one step at random
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import flag, positive_integer, read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.errors import CellError, CombinedError, ErrorDistribution
from private_rl_gym.privacy.release import Release
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.statistics.base import Alphabet, Sensitivity, Statistic

__all__ = ["REWARD_GRID", "TabularCounts", "TabularSteps", "errors_of_outcomes"]

REWARD_GRID = 2.0**-20
"""The grid of rewards: they are rounded to it before they are summed, and published sums lie on it."""

REWARD_WEIGHT = 0.5
"""Weight of rewards relative to transitions, if there are several stages; a power of two, so that scaling is exact."""


class TabularStatistic(Statistic):
    """A statistic from which visits, transitions and rewards can be estimated."""

    name = "tabular"
    title = "counts"
    release_type = Release
    randomizers: ClassVar[tuple[str, ...]] = ("one-step", "unary", "laplace", "gaussian")
    replays = True
    waits = True


class TabularCounts(TabularStatistic):
    """A user's counts by stage: visits n(h,s,a), transitions m(h,s,a,s') and rewards r(h,s,a).

    The sums that get noise are m and w (r - n / 2): a centred reward adds at most half as much as a plain one. Visits
    need no noise of their own, because they are the sum of m over next states. The weight w is that of rewards relative
    to transitions: 1 where there is a single stage, so that transitions do not matter; 1/2 otherwise.

    Privacy:
        Replacing one user moves, at each stage, at most one unit of m out of one cell and one into another, and w (r -
        n / 2) by w in all: L1 at most (2 + w) H. Two users who are paid differently in one cell at a stage are in
        different states at the next, so that squared L2 is at most 2 H + w^2 (3 H / 4), rounded up to a quarter of a
        stage. With ``separate_visits`` n, m and r are summed as they are, as the papers do: L1 and squared L2 are 6 H,
        3 less for neighbours with the same start. With ``raw_rewards`` m and r are summed as they are: both are 4 H,
        and with ``bits`` as many counters move up by one as down. Proof: docs/proofs/tabular-sensitivity.md,
        docs/proofs/shuffled-bits.md. If a user's data is compared with none in their place: docs/proofs/zero-out.md.

    Args:
        horizon, n_states, n_actions: Sizes of the problem.
        separate_visits: Whether visits are counted on their own, as the papers do.
        raw_rewards: Whether rewards are summed as they are.
        bits: Whether every entry of a user is a bit. Rewards are rounded to bits at random, without bias. Sums are
            those of the rounded rewards, and errors are measured against them.

    Example:
        >>> statistic = TabularCounts(horizon=20, n_states=6, n_actions=2)
        >>> statistic.sensitivity().l1, round(statistic.sensitivity().l2**2, 2)
        (50.0, 43.75)
    """

    pooled: ClassVar[bool] = False
    """Whether one stage stands for all, and a user counts once in each cell."""

    def __init__(
        self,
        horizon: int,
        n_states: int,
        n_actions: int,
        *,
        separate_visits: bool = False,
        raw_rewards: bool = False,
        bits: bool = False,
    ) -> None:
        self.separate_visits, self.bits = flag(separate_visits, "separate_visits"), flag(bits, "bits")
        self.raw_rewards = flag(raw_rewards, "raw_rewards") or separate_visits or bits
        self.horizon = horizon = positive_integer(horizon, "horizon", "steps in an episode")
        self.n_states = n_states = positive_integer(n_states, "n_states", "states")
        self.n_actions = n_actions = positive_integer(n_actions, "n_actions", "actions")
        self._stages = 1 if self.pooled else horizon
        self._most = min(horizon, n_states * n_actions) if self.pooled else horizon  # cells that a user is in
        self._pairs = self._stages * n_states * n_actions
        self._transitions = self._pairs * n_states
        self._families = 3 if separate_visits else 2
        self.cells = self._transitions + (self._families - 1) * self._pairs
        self.weight = 1.0 if self.raw_rewards or (horizon == 1 and not self.pooled) else REWARD_WEIGHT
        self.units = (1.0 if bits else self.weight * REWARD_GRID), 1.0  # of rewards, and of counts
        self.draws = horizon if bits else 0

    @property
    def label(self) -> str:
        """Identity of the sums: the name of the class, and whether they are bits."""
        name = type(self).__name__
        return name.replace("Counts", "Bits") if self.bits else name

    @property
    def exact(self) -> TabularCounts:
        """The counts without rounding."""
        sizes = self.horizon, self.n_states, self.n_actions
        return type(self)(*sizes, separate_visits=self.separate_visits, raw_rewards=True) if self.bits else self

    def sensitivity(self, load: int = 1, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Sensitivity:
        """Return how far one user moves the counts."""
        most, w, units = self._most, self.weight, self.units
        if self.raw_rewards:
            ones = most * self._families
            if neighbours is not Neighbours.ZERO_OUT:
                spared = 2 * self._families - 3 if neighbours is Neighbours.SAME_START else 0
                ones = 2 * ones - spared
            return Sensitivity.of_ones(ones)._replace(units=units)
        if neighbours is Neighbours.ZERO_OUT:
            l2 = math.sqrt((1.0 + w**2 / 4.0) * most)
            return Sensitivity((1.0 + w / 2.0) * most, l2, ((most, 1.0), (most, w / 2.0)), units)
        paid = most if self.pooled else (most + 1) // 2 + 0.5 * (most // 2)  # squares of rewards that differ
        return Sensitivity((2.0 + w) * most, math.sqrt(2.0 * most + w**2 * paid), ((2 * most, 1.0), (most, w)), units)

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The unit of each cell: 1 for counts, a small fraction for rewards."""
        grid = np.ones(self.cells)
        grid[self._transitions : self._transitions + self._pairs] = self.units[0]
        return read_only(grid)

    def coded(self, alphabet: Alphabet) -> Statistic:
        """Return the counts as they are, as bits, or as outcomes."""
        sizes = self.horizon, self.n_states, self.n_actions
        if alphabet is Alphabet.BITS:
            return type(self)(*sizes, separate_visits=self.separate_visits, bits=True)
        if alphabet in (Alphabet.STEP, Alphabet.STEPS) and not self.separate_visits:
            return TabularSteps(*sizes, one=alphabet is Alphabet.STEP)
        return super().coded(alphabet)

    def _add(
        self, users: Trajectories, sums: NDArray[np.int64], request: Request | None, uniforms: NDArray[np.float64]
    ) -> None:
        """Add the counts of some users."""
        rewards, grid = users.rewards, REWARD_GRID
        if self.bits:
            rewards, grid = (uniforms < rewards).astype(np.float64), 1.0
        middle = 0 if self.raw_rewards else round(0.5 / grid)
        sizes = self.n_states, self.n_actions
        _add_counts(users.states, users.actions, rewards, grid, middle, sums, *sizes, self.separate_visits, self.pooled)

    def sums(self, cells: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return visits, transitions and rewards, for every stage.

        If there is one stage for all, it is repeated.
        """
        pairs = (self._stages, self.n_states, self.n_actions)
        m = cells[: self._transitions].reshape(*pairs, self.n_states)
        r = cells[self._transitions : self._transitions + self._pairs].reshape(pairs)
        if self.separate_visits:
            n = cells[self._transitions + self._pairs :].reshape(pairs)
        else:
            n = m.sum(axis=-1) if self.pooled else _over_next(m)
        families = {"n": n, "m": m, "r": r if self.raw_rewards else r / self.weight + n / 2.0}
        if self.pooled:
            return {family: np.repeat(array, self.horizon, axis=0) for family, array in families.items()}
        return families

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the families one after the other.

        Visits are left out unless they are counted on their own.
        """
        n, m, r = (sums[family][: self._stages] for family in "nmr")
        parts = [m, r if self.raw_rewards else (r - n / 2.0) * self.weight, *([n] if self.separate_visits else [])]
        return np.concatenate([part.ravel() for part in parts])

    def errors(self, error: CellError, users: int) -> dict[str, ErrorDistribution]:
        """Return the error of an entry of each family.

        Visits carry the noise of all their transitions, and rewards carry half of that.
        """
        visits = error(1.0) if self.separate_visits else error(1.0).summed(self.n_states)
        rewards = error(self.units[0])
        if not self.raw_rewards:
            rewards = CombinedError.of(rewards.scaled(1.0 / self.weight), visits.scaled(0.5))
        return {"n": visits, "m": error(1.0), "r": rewards}


class TabularSteps(TabularStatistic):
    """The steps of a user as outcomes (s, a, s', reward bit).

    There is a block of cells for each stage. Rewards that are not bits are rounded to bits at random, without bias.

    Args:
        horizon, n_states, n_actions: Sizes of the problem.
        one: Whether a user sends one step, at a stage drawn at random, which counts H times; else they send all.
    """

    rounds = True

    def __init__(self, horizon: int, n_states: int, n_actions: int, *, one: bool) -> None:
        self.horizon, self.n_states, self.n_actions, self.one = horizon, n_states, n_actions, one
        self._outcomes = 2 * n_states * n_actions * n_states
        self.cells, self.blocks = horizon * self._outcomes, horizon
        pairs = horizon, n_states, n_actions
        self.shapes = {"m": (*pairs, n_states), "r": pairs}  # visits are sums of transitions
        self.messages, self.times = (1, horizon) if one else (horizon, 1)
        self.draws = 2 if one else 1  # the stage, and the rounding of the reward

    @property
    def exact(self) -> TabularCounts:
        """The counts that the steps add up to."""
        return TabularCounts(self.horizon, self.n_states, self.n_actions)

    def sensitivity(self, load: int = 1, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Sensitivity:
        """Return how far one user moves the counts of outcomes."""
        return Sensitivity.of_ones(2 * self.messages)

    def _add(
        self, users: Trajectories, sums: NDArray[np.int64], request: Request | None, uniforms: NDArray[np.float64]
    ) -> None:
        """Add the outcomes of some users."""
        drawn = uniforms.reshape(len(users), self.messages, self.draws)
        blocks, places = self.outcomes(users, request, drawn)
        np.add.at(sums, (blocks * self._outcomes + places).ravel(), 1)

    def outcomes(
        self, users: Trajectories | None, request: Request | None, uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the stage and the outcome of every message."""
        count = len(uniforms)
        if self.one:
            stages = (uniforms[:, :, 0] * self.horizon).astype(np.int64)
        else:
            stages = np.repeat(np.arange(self.horizon)[None], count, axis=0)
        if users is None:
            return stages, np.full(stages.shape, -1)
        plain, each = self.in_range(users), np.arange(count)[:, None]
        s, a = plain.states[each, stages].astype(np.int64), plain.actions[each, stages]
        bits = uniforms[:, :, -1] < plain.rewards[each, stages]
        return stages, ((s * self.n_actions + a) * self.n_states + plain.states[each, stages + 1]) * 2 + bits

    def sums(self, cells: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return visits, transitions and rewards, as sums of counted outcomes."""
        by_outcome = cells.reshape(self.horizon, self.n_states, self.n_actions, self.n_states, 2)
        m = by_outcome.sum(axis=-1)
        return {"n": m.sum(axis=-1), "m": m, "r": by_outcome[..., 1].sum(axis=-1)}

    def errors(self, error: CellError, users: int) -> dict[str, ErrorDistribution]:
        """Return the error of a cell, for every outcome that is summed."""
        return errors_of_outcomes(error(1.0), self.n_states)


def errors_of_outcomes(cell: ErrorDistribution, n_states: int) -> dict[str, ErrorDistribution]:
    """Return the errors of counts that are sums of outcomes.

    Outcomes are (s, a, s', reward bit), each with this error.
    """
    return {"n": cell.summed(2 * n_states), "m": cell.summed(2), "r": cell.summed(n_states)}


@compiled
def _add_counts(
    states: Any,
    actions: Any,
    rewards: Any,
    grid: float,
    middle: int,  # steps of the grid that are taken off each reward
    sums: Any,
    n_states: int,
    n_actions: int,
    separate_visits: bool,
    pooled: bool,  # whether a user counts once in each (s, a), whatever the stage
) -> None:
    users, horizon = actions.shape
    pairs = (1 if pooled else horizon) * n_states * n_actions
    met = np.zeros(pairs if pooled else 0, dtype=np.int64)  # the last user who was in this cell, from 1
    for user in range(users):
        for h in range(horizon):
            pair = ((0 if pooled else h) * n_states + states[user, h]) * n_actions + actions[user, h]
            if pooled:
                if met[pair] == user + 1:
                    continue
                met[pair] = user + 1
            sums[pair * n_states + states[user, h + 1]] += 1
            sums[pairs * n_states + pair] += int(np.floor(rewards[user, h] / grid + 0.5)) - middle
            if separate_visits:
                sums[pairs * n_states + pairs + pair] += 1


@compiled
def _over_next(m: Any) -> Any:
    """Return the sum over next states, without NumPy's overhead on thousands of short rows."""
    H, S, A, _ = m.shape
    n = np.zeros((H, S, A))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                for successor in range(S):
                    n[h, s, a] += m[h, s, a, successor]
    return n
