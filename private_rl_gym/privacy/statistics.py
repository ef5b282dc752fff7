"""Maps from trajectories to vectors, with their sensitivity under replacing one user.

* ``Statistic`` - the interface that trust boundaries use to sum
* ``TabularStatistic`` - the common part of statistics of states and actions
* ``TabularCounts`` - visits, transitions and rewards by stage
* ``Counts`` - visits, transitions and rewards in a (possibly noisy) sum of vectors
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.amplification import Looks
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.errors import CombinedError, ErrorLaw
from private_rl_gym.privacy.noise import Noises, NoiseSource
from private_rl_gym.privacy.release import Published, Release

__all__ = ["Counts", "Statistic", "TabularCounts", "TabularStatistic", "check_scale"]

REWARD_GRID = 2.0**-20
"""The grid of rewards: they are rounded to it before they are summed, and published sums lie on it."""

REWARD_WEIGHT = 0.5
"""Weight of rewards relative to transitions, if there are several stages; a power of two, so that scaling is exact."""

FAITHFUL = 2.0**45
"""Largest scale of noise in units of its grid. Beyond it doubles round away the last digits, and with them privacy."""


def check_scale(scale: float, grid: float) -> None:
    """Refuse noise that double precision cannot draw to the last unit of its grid."""
    if not scale / grid <= FAITHFUL:
        raise ValueError(
            f"The noise would have scale {scale:.3g}, too large to be drawn faithfully on a grid of {grid:.3g}: "
            "ask for a larger epsilon, or for fewer users or releases."
        )


Noise = Callable[[float], ErrorLaw]  # the error of one entry, given its grid


class Counts(NamedTuple):
    """Sums over users."""

    n: NDArray[np.float64]  # [h, s, a]
    m: NDArray[np.float64]  # [h, s, a, s']
    r: NDArray[np.float64]  # [h, s, a]


class Statistic(ABC):
    """A map from trajectories to vectors of whole numbers (in units of ``grid``) whose sum boundaries keep.

    Attributes:
        horizon, n_states, n_actions: Sizes of the problem.
        cells: Length of the vector.
        tallies: Number of entries after the cells that reveal nothing about a user, such as the number of reports of
            a stage. They are published without noise.
        parts: Pairs (number of sets, L1): a user moves at most that many sets of cells, each by at most that distance.
        l1, l2: Largest L1 and L2 distance between the vectors of a user and of another in her place, in real units.
            Where users randomize their own vectors, both use the same randomness, which does not depend on their data.
    """

    name: str
    """Its value of ``statistic=``, the argument of boundaries and agents, such as ``"tabular"``."""

    title: str
    """Its name in descriptions of guarantees."""

    asks: type[Ask] | None = None
    """The kind of ask that it understands; None for none."""

    leaves_choices: ClassVar[bool] = False
    """Whether users choose at random what they report."""

    horizon: int
    n_states: int
    n_actions: int
    cells: int
    tallies: int = 0
    parts: tuple[tuple[int, float], ...]
    l1: float
    l2: float
    looks: Looks | None = None
    """The knowledge of reports beyond their epsilon, where users randomize their vectors; it amplifies shuffling."""
    gain: float = 1.0
    """The factor by which noise on a cell is larger in the sums that are made of it, where users randomize vectors."""

    @property
    def label(self) -> str:
        """Identity of these sums, besides sizes and guarantee: saved sums are continued only under the same label."""
        return type(self).__name__

    @property
    def exact(self) -> Statistic:
        """The statistic of the same vector without the randomness of users; itself, if there is none."""
        return self

    def paper_scale(self, sensitivity: float, epsilon: float, delta: float) -> float:
        """The scale of noise that the papers print for a mechanism of this sensitivity; raises if they print none."""
        del sensitivity, epsilon, delta
        raise ValueError(f"calibration='paper': no paper prints constants for {type(self).__name__}.")

    @property
    @abstractmethod
    def grid(self) -> NDArray[np.float64]:
        """The unit of each cell."""

    @property
    def grid_range(self) -> tuple[float, float]:
        """The smallest and the largest unit of a cell, without an array of all of them."""
        return float(self.grid.min()), float(self.grid.max())

    def checked(self, ask: Ask | None) -> Ask | None:
        """A copy of the ask in plain arrays of the right sizes; raises if users cannot answer it."""
        if ask is None:
            return None
        if self.asks is None or type(ask) is not self.asks:
            understood = "nothing" if self.asks is None else f"an ask of the kind {self.asks.__name__}"
            raise TypeError(
                f"Users were asked for {type(ask).__name__}: those who report {self.name} sums understand {understood}."
            )
        return ask.checked(self.horizon, self.n_states, self.n_actions)

    def collect(
        self,
        users: Trajectories,
        sums: NDArray[np.int64],
        source: NoiseSource | None = None,
        ask: Ask | None = None,
    ) -> None:
        """Add the vectors of some users to ``sums``.

        Sensitivity is bounded only for users whose states, actions and rewards are in range. So ranges are checked here
        for every caller, before anything is added.

        Args:
            users: Their trajectories.
            sums: One number for each cell and each tally.
            source: The source of user-side randomness, for statistics that have any.
            ask: The ask that they were sent, if any.
        """
        self._collect(self._in_range(users), sums, source, ask)

    def _in_range(self, users: Trajectories) -> Trajectories:
        """The same users in plain arrays; raises if they are out of range, without revealing their data."""
        horizon, n_states, n_actions = self.horizon, self.n_states, self.n_actions
        states, actions = (np.asarray(array) for array in (users.states, users.actions))
        rewards = np.asarray(users.rewards, dtype=np.float64)
        shaped = states.shape == (len(actions), horizon + 1) and actions.shape == rewards.shape == (
            len(actions),
            horizon,
        )
        whole = states.dtype.kind in "iu" and actions.dtype.kind in "iu"
        if not (shaped and whole and _within(states, actions, rewards, n_states, n_actions)):
            raise ValueError(
                f"A user's states, actions or rewards are outside H={horizon}, S={n_states}, A={n_actions} and [0, 1], "
                "for which sensitivity is bounded: nothing of her is counted."
            )
        return Trajectories(states, actions, rewards)

    @abstractmethod
    def _collect(
        self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None, ask: Ask | None
    ) -> None:
        """Add the vectors of users who are in range."""

    def absent(self, users: int, sums: NDArray[np.int64], source: NoiseSource | None = None) -> None:
        """Add the contributions of users who left early: nothing, or an empty report with noise as in any other."""
        del users, sums, source

    def tally(self, users: int, ask: Ask | None, sums: NDArray[np.int64]) -> None:
        """Count users by what they were asked, which is public, whether or not they stayed."""
        del users, ask, sums

    def asked(self, tallies: NDArray[Any]) -> Statistic:
        """The statistic with the sensitivity of a batch that has these tallies; itself, if asks do not change it."""
        del tallies
        return self

    def own_noise(self, users: int) -> float:
        """Standard deviation of the noise that so many users add to a cell themselves."""
        del users
        return 0.0

    @abstractmethod
    def sums(self, vector: NDArray[np.float64], users: int) -> dict[str, NDArray[np.float64]]:
        """The families of sums in a vector of cells (in real units) and tallies."""

    @abstractmethod
    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The vector of cells that has these families, without redundant entries."""

    @abstractmethod
    def errors(self, noise: Noise, users: int) -> dict[str, ErrorLaw]:
        """The error of each family, if every cell carries ``noise`` in addition."""

    @abstractmethod
    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Published:
        """A release of these sums."""

    def noises(self, batches: Sequence[int]) -> Noises:
        """The noise that users add themselves, after batches of these sizes; for audits."""
        del batches
        return []


class TabularStatistic(Statistic):
    """A statistic from which visits, transitions and rewards can be estimated."""

    name = "tabular"
    title = "counts"

    @abstractmethod
    def counts(self, vector: NDArray[np.float64], users: int) -> Counts:
        """The counts in a vector of sums, in real units."""

    def sums(self, vector: NDArray[np.float64], users: int) -> dict[str, NDArray[np.float64]]:
        """The counts, by name."""
        return self.counts(vector, users)._asdict()

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Transitions and rewards, because visits are sums of transitions."""
        return np.concatenate([sums["m"].ravel(), sums["r"].ravel()])

    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Release:
        """Visits, transitions and rewards."""
        return Release(n=sums["n"], m=sums["m"], r=sums["r"], **about)


class TabularCounts(TabularStatistic):
    """Visits n(h,s,a), transitions m(h,s,a,s') and rewards r(h,s,a) of a user, each kept by stage.

    The sums that get noise are m and w (r - n / 2): a centred reward adds at most half as much as a plain one. Visits
    need no noise of their own, because they are the sum of m over next states. The weight w is that of rewards relative
    to transitions: 1 where there is a single stage, so that transitions do not matter; 1/2 otherwise.

    Privacy:
        Replacing one user moves, at each stage, at most one unit of m out of one cell and one into another, and w (r -
        n / 2) by w in all: L1 at most (2 + w) H. Two users who are paid differently in one cell at a stage are in
        different states at the next, so that squared L2 is at most 2 H + w^2 (3 H / 4), rounded up to a quarter of a
        stage. With ``separate_visits`` n, m and r are summed as they are, as the papers do: L1 and squared L2 are 6 H,
        3 less with ``public_start``, where she is replaced by a user with the same start. With ``raw_rewards`` m and r
        are summed as they are: both are 4 H. Proof: docs/proofs/tabular-sensitivity.md. With ``zero_out`` she is
        compared with nobody in her place: docs/proofs/zero-out.md.

    Example:
        >>> statistic = TabularCounts(horizon=20, n_states=6, n_actions=2)
        >>> statistic.l1, round(statistic.l2**2, 2)
        (50.0, 43.75)
    """

    def __init__(
        self,
        horizon: int,
        n_states: int,
        n_actions: int,
        *,
        separate_visits: bool = False,
        public_start: bool = False,
        raw_rewards: bool = False,
        zero_out: bool = False,
    ) -> None:
        self.horizon, self.n_states, self.n_actions = horizon, n_states, n_actions
        self.separate_visits, self.raw_rewards = separate_visits, raw_rewards or separate_visits
        self._pairs = horizon * n_states * n_actions
        self._transitions = self._pairs * n_states
        families = 3 if separate_visits else 2
        self.cells = self._transitions + (families - 1) * self._pairs
        H = horizon
        if self.raw_rewards:
            self.weight = 1.0
            spared = (3 if separate_visits else 1) if public_start else 0
            self.parts: tuple[tuple[int, float], ...] = ((2 * H * families - spared, 1.0),)
            self.l1 = 2.0 * H * families - spared
            self.l2 = math.sqrt(self.l1)  # each cell moves by at most one
        else:
            self.weight = w = 1.0 if H == 1 else REWARD_WEIGHT
            self.parts = ((2 * H, 1.0), (H, w))
            self.l1 = (2.0 + w) * H
            self.l2 = math.sqrt(2.0 * H + w**2 * ((H + 1) // 2 + 0.5 * (H // 2)))
        if zero_out and self.raw_rewards:
            self.l1, self.l2, self.parts = float(H * families), math.sqrt(H * families), ((H * families, 1.0),)
        elif zero_out:
            self.l1, self.l2 = (1.0 + w / 2.0) * H, math.sqrt((1.0 + w**2 / 4.0) * H)
            self.parts = ((H, 1.0), (H, w / 2.0))

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The unit of each cell: 1 for counts, a small fraction for rewards."""
        grid = np.ones(self.cells)
        grid[self._transitions : self._transitions + self._pairs] = self.weight * REWARD_GRID
        return read_only(grid)

    @property
    def grid_range(self) -> tuple[float, float]:
        """The unit of rewards, and that of counts."""
        return self.weight * REWARD_GRID, 1.0

    def _collect(
        self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None, ask: Ask | None
    ) -> None:
        """Add exact counts, without randomness."""
        del source, ask
        self.add(users, users.rewards, REWARD_GRID, sums)

    def add(self, users: Trajectories, rewards: NDArray[np.float64], grid: float, sums: NDArray[np.int64]) -> None:
        """Add every user's counts, with rewards in units of ``grid``."""
        sizes, middle = (self.n_states, self.n_actions), 0 if self.raw_rewards else round(0.5 / grid)
        _add_counts(users.states, users.actions, rewards, grid, middle, sums, *sizes, self.separate_visits)

    def paper_scale(self, sensitivity: float, epsilon: float, delta: float) -> float:
        """3 H log(T) / epsilon: the paper gives no base of the logarithm, so log(T) is read as the number of levels."""
        del delta
        return 3.0 * self.horizon * sensitivity / epsilon

    def counts(self, vector: NDArray[np.float64], users: int = 0) -> Counts:
        """The counts in a vector of sums, in real units."""
        del users
        pairs = (self.horizon, self.n_states, self.n_actions)
        m = vector[: self._transitions].reshape(*pairs, self.n_states)
        r = vector[self._transitions : self._transitions + self._pairs].reshape(pairs)
        n = vector[self._transitions + self._pairs :].reshape(pairs) if self.separate_visits else _over_next(m)
        return Counts(n, m, r if self.raw_rewards else r / self.weight + n / 2.0)

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The families one after the other, with visits only where they are counted on their own."""
        if not self.raw_rewards:
            sums = {**sums, "r": (sums["r"] - sums["n"] / 2.0) * self.weight}
        cells = super().vector(sums)
        return np.concatenate([cells, sums["n"].ravel()]) if self.separate_visits else cells

    def errors(self, noise: Noise, users: int = 0) -> dict[str, ErrorLaw]:
        """The error of an entry: visits summed from transitions carry the noise of all of them, rewards half."""
        del users
        visits = noise(1.0) if self.separate_visits else noise(1.0).summed(self.n_states)
        rewards = noise(self.weight * REWARD_GRID)
        if not self.raw_rewards:
            rewards = CombinedError.of(rewards.scaled(1.0 / self.weight), visits.scaled(0.5))
        return {"n": visits, "m": noise(1.0), "r": rewards}


@compiled
def _within(states: Any, actions: Any, rewards: Any, n_states: int, n_actions: int) -> bool:
    users, horizon = actions.shape
    for user in range(users):
        for h in range(horizon):
            if not (0 <= actions[user, h] < n_actions and 0.0 <= rewards[user, h] <= 1.0):
                return False
        for h in range(horizon + 1):
            if not 0 <= states[user, h] < n_states:
                return False
    return True


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
) -> None:
    users, horizon = actions.shape
    pairs = horizon * n_states * n_actions
    for user in range(users):
        for h in range(horizon):
            pair = (h * n_states + states[user, h]) * n_actions + actions[user, h]
            sums[pair * n_states + states[user, h + 1]] += 1
            sums[pairs * n_states + pair] += int(np.floor(rewards[user, h] / grid + 0.5)) - middle
            if separate_visits:
                sums[pairs * n_states + pairs + pair] += 1


@compiled
def _over_next(m: Any) -> Any:
    """The sum over next states, without NumPy's overhead on thousands of short rows."""
    H, S, A, _ = m.shape
    n = np.zeros((H, S, A))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                for successor in range(S):
                    n[h, s, a] += m[h, s, a, successor]
    return n
