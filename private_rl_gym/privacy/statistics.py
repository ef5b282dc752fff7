"""How a trajectory becomes a vector, with its sensitivity under replacing one user.

* ``Statistic`` - the interface that trust boundaries sum by
* ``TabularStatistic`` - what all of them share that count states and actions
* ``TabularCounts`` - visits, transitions and rewards by stage
* ``Counts`` - what a (possibly noisy) sum of vectors says about the model
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.errors import ErrorLaw
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.release import Published, Release

__all__ = ["Counts", "Statistic", "TabularCounts", "TabularStatistic", "check_scale"]

REWARD_GRID = 2.0**-20
"""Rewards are rounded to this before they are summed; their sums, and what is published, lie on it."""

FAITHFUL = 2.0**45
"""How many units of its grid noise may be wide. Beyond doubles round away its last digits, and privacy with them."""


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
    """A map from trajectories to vectors of whole numbers (in units of ``grid``) whose sum is what boundaries keep.

    Attributes:
        horizon, n_states, n_actions: Sizes of the problem.
        cells: Length of the vector.
        l1, l2: How far the vector of one user can be from that of another in her place, in real units. Where users
            randomize their own vectors, with the same randomness in both: it does not depend on their data.
    """

    kind: str
    """What releases speak of: ``"tabular"`` or ``"linear"``."""

    horizon: int
    n_states: int
    n_actions: int
    cells: int
    l1: float
    l2: float

    @property
    def label(self) -> str:
        """What has to be the same wherever these sums are continued, besides sizes and promise."""
        return type(self).__name__

    def paper_scale(self, sensitivity: float, epsilon: float, delta: float) -> float:
        """The scale of noise that the papers print, for a counting mechanism of this sensitivity; or a sentence."""
        del sensitivity, epsilon, delta
        raise ValueError(f"calibration='paper': no paper prints constants for {type(self).__name__}.")

    @property
    @abstractmethod
    def grid(self) -> NDArray[np.float64]:
        """The unit of each entry."""

    @abstractmethod
    def collect(self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None) -> None:
        """Add the vectors of some users to ``sums``; ``source`` is what user-side randomness is drawn from."""

    def absent(self, users: int, sums: NDArray[np.int64], source: NoiseSource | None) -> None:
        """What users add who left early: nothing, or a report of nothing, noised as any other."""
        del users, sums, source

    @abstractmethod
    def sums(self, vector: NDArray[np.float64], users: int) -> dict[str, NDArray[np.float64]]:
        """What a vector of sums, in real units, says, by families."""

    @abstractmethod
    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """What sums by families say, as one vector again, with nothing twice in it."""

    @abstractmethod
    def errors(self, noise: Noise, users: int) -> dict[str, ErrorLaw]:
        """The errors of each family, if every entry of the vector carries ``noise`` on top."""

    @abstractmethod
    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Published:
        """What may be published of these sums."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """State besides the sums."""
        return {}


class TabularStatistic(Statistic):
    """A statistic that says something about visits, transitions and rewards."""

    kind = "tabular"

    @abstractmethod
    def counts(self, vector: NDArray[np.float64], users: int) -> Counts:
        """What a vector of sums, in real units, says."""

    def sums(self, vector: NDArray[np.float64], users: int) -> dict[str, NDArray[np.float64]]:
        """The counts, by name."""
        return self.counts(vector, users)._asdict()

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Transitions and rewards: visits are sums of transitions."""
        return np.concatenate([sums["m"].ravel(), sums["r"].ravel()])

    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Release:
        """Visits, transitions and rewards."""
        return Release(n=sums["n"], m=sums["m"], r=sums["r"], **about)


class TabularCounts(TabularStatistic):
    """Visits n(h,s,a), transitions m(h,s,a,s') and rewards r(h,s,a) of a user, each kept by stage.

    Privacy:
        Replacing one user moves, at each stage, at most one unit out of one cell and one into another, in each
        family: L1 at most 2H and squared L2 at most 2H a family. By default the families are m and r, and n is the
        sum of m over next states, for free; with three families n is summed, and paid for, on its own. With
        ``public_start`` she is replaced by a user with the same start state, who then does the same at stage 0: one
        unit less in r, two less in a separate n. Proof: docs/proofs/tabular-sensitivity.md.

    Example:
        >>> statistic = TabularCounts(horizon=20, n_states=6, n_actions=2)
        >>> statistic.l1, round(statistic.l2, 2)
        (80.0, 8.94)
    """

    def __init__(
        self,
        horizon: int,
        n_states: int,
        n_actions: int,
        *,
        separate_visits: bool = False,
        public_start: bool = False,
    ) -> None:
        self.horizon, self.n_states, self.n_actions = horizon, n_states, n_actions
        self.separate_visits = separate_visits
        self._pairs = horizon * n_states * n_actions
        self._transitions = self._pairs * n_states
        families = 3 if separate_visits else 2
        self.cells = self._transitions + (families - 1) * self._pairs
        spared = (3.0 if separate_visits else 1.0) if public_start else 0.0
        self.l1 = 2.0 * horizon * families - spared
        self.l2 = math.sqrt(self.l1)  # each cell moves by at most one

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """One for counts, a small fraction for rewards."""
        grid = np.ones(self.cells)
        grid[self._transitions : self._transitions + self._pairs] = REWARD_GRID
        return read_only(grid)

    def collect(self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None = None) -> None:
        """Add exact counts; there is no randomness in them."""
        del source
        self._add(users, users.rewards, REWARD_GRID, sums)

    def _add(self, users: Trajectories, rewards: NDArray[np.float64], grid: float, sums: NDArray[np.int64]) -> None:
        """Every user's counts, with rewards in units of ``grid``."""
        sizes = self.n_states, self.n_actions
        _add_counts(users.states, users.actions, rewards, grid, sums, *sizes, self.separate_visits)

    def paper_scale(self, sensitivity: float, epsilon: float, delta: float) -> float:
        """3 H log(T) / epsilon, the base of the logarithm left open: read as the number of levels."""
        del delta
        return 3.0 * self.horizon * sensitivity / epsilon

    def counts(self, vector: NDArray[np.float64], users: int = 0) -> Counts:
        """The vector, cut into its families."""
        del users
        pairs = (self.horizon, self.n_states, self.n_actions)
        m = vector[: self._transitions].reshape(*pairs, self.n_states)
        r = vector[self._transitions : self._transitions + self._pairs].reshape(pairs)
        n = vector[self._transitions + self._pairs :].reshape(pairs) if self.separate_visits else _over_next(m)
        return Counts(n, m, r)

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The families side by side, visits only where they are counted on their own."""
        found = super().vector(sums)
        return np.concatenate([found, sums["n"].ravel()]) if self.separate_visits else found

    def errors(self, noise: Noise, users: int = 0) -> dict[str, ErrorLaw]:
        """Each entry's own; visits that are summed from transitions carry the noise of all of them."""
        del users
        visits = noise(1.0) if self.separate_visits else noise(1.0).summed(self.n_states)
        return {"n": visits, "m": noise(1.0), "r": noise(REWARD_GRID)}


@compiled
def _add_counts(
    states: Any,
    actions: Any,
    rewards: Any,
    grid: float,
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
            sums[pairs * n_states + pair] += int(np.floor(rewards[user, h] / grid + 0.5))
            if separate_visits:
                sums[pairs * n_states + pairs + pair] += 1


@compiled
def _over_next(m: Any) -> Any:
    """The sum over next states: numpy's, without its overhead on thousands of short rows."""
    H, S, A, _ = m.shape
    n = np.zeros((H, S, A))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                for successor in range(S):
                    n[h, s, a] += m[h, s, a, successor]
    return n
