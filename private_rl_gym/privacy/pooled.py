"""Counts pooled over stages, for problems that are known to be the same at every stage.

* ``PooledCounts`` - a user's first step in each (s, a), whatever the stage
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.errors import CombinedError, ErrorLaw
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.release import Release
from private_rl_gym.privacy.statistics import REWARD_GRID, REWARD_WEIGHT, Counts, Noise, TabularStatistic

__all__ = ["PooledCounts"]


class PooledCounts(TabularStatistic):
    """Transitions and rewards of a user's first step in each (s, a), whatever the stage.

    Which step is the first is decided by the past alone, so next states and rewards are unbiased where stages are
    alike. In releases every stage has the same counts, so that agents need not know. As in ``TabularCounts``, the sums
    that get noise are m and w (r - n / 2), w being a half.

    Privacy:
        A user has a first step in at most V = min(H, S A) cells. Replacing her moves m by at most V units up and V
        down, and rewards by w in all for each pair of cells: L1 at most (2 + w) V, squared L2 at most (2 + w^2) V. With
        ``raw_rewards`` m and r are summed as they are, and both are 4 V.
        Proof: docs/proofs/pooled-sensitivity.md. With ``zero_out`` she is compared with nobody:
        docs/proofs/zero-out.md.

    Example:
        >>> pooled = PooledCounts(horizon=20, n_states=6, n_actions=2)
        >>> pooled.l1, pooled.l2**2
        (30.0, 27.0)
    """

    def __init__(
        self, horizon: int, n_states: int, n_actions: int, *, raw_rewards: bool = False, zero_out: bool = False
    ) -> None:
        self.horizon, self.n_states, self.n_actions, self.raw_rewards = horizon, n_states, n_actions, raw_rewards
        self._pairs = n_states * n_actions
        self._transitions = self._pairs * n_states
        self.cells = self._transitions + self._pairs
        V = min(horizon, self._pairs)
        self.weight = w = 1.0 if raw_rewards else REWARD_WEIGHT
        if raw_rewards:
            self.parts: tuple[tuple[int, float], ...] = ((4 * V, 1.0),)
            self.l1 = 4.0 * V
            self.l2 = math.sqrt(self.l1)  # each cell moves by at most one
        else:
            self.parts = ((2 * V, 1.0), (V, w))
            self.l1 = (2.0 + w) * V
            self.l2 = math.sqrt((2.0 + w**2) * V)
        if zero_out and raw_rewards:
            self.l1, self.l2, self.parts = 2.0 * V, math.sqrt(2.0 * V), ((2 * V, 1.0),)
        elif zero_out:
            self.l1, self.l2 = (1.0 + w / 2.0) * V, math.sqrt((1.0 + w**2 / 4.0) * V)
            self.parts = ((V, 1.0), (V, w / 2.0))

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The unit of each cell: 1 for counts, a small fraction for rewards."""
        grid = np.ones(self.cells)
        grid[self._transitions :] = self.weight * REWARD_GRID
        return read_only(grid)

    def _collect(
        self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None, ask: Ask | None
    ) -> None:
        """Add exact counts, without randomness."""
        del source, ask
        self.add(users, users.rewards, REWARD_GRID, sums)

    def add(self, users: Trajectories, rewards: NDArray[np.float64], grid: float, sums: NDArray[np.int64]) -> None:
        """Add every user's counts, with rewards in units of ``grid``."""
        middle = 0 if self.raw_rewards else round(0.5 / grid)
        _add_first_steps(users.states, users.actions, rewards, grid, middle, self.n_states, self.n_actions, sums)

    def counts(self, vector: NDArray[np.float64], users: int = 0) -> Counts:
        """The counts in a vector of sums, in real units, repeated for every stage."""
        del users
        H, S, A = self.horizon, self.n_states, self.n_actions
        m = np.repeat(vector[: self._transitions].reshape(1, S, A, S), H, axis=0)
        r = np.repeat(vector[self._transitions : self.cells].reshape(1, S, A), H, axis=0)
        n = m.sum(axis=-1)
        return Counts(n, m, r if self.raw_rewards else r / self.weight + n / 2.0)

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Transitions and rewards of the first stage, which are those of all."""
        m, r = sums["m"][0], sums["r"][0]
        return np.concatenate([m.ravel(), (r if self.raw_rewards else (r - sums["n"][0] / 2.0) * self.weight).ravel()])

    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Release:
        """Visits, transitions and rewards, the same at every stage."""
        return super().release(sums, pooled=True, **about)

    def errors(self, noise: Noise, users: int = 0) -> dict[str, ErrorLaw]:
        """The error of an entry: visits summed from transitions carry the noise of all of them, rewards half."""
        del users
        visits, rewards = noise(1.0).summed(self.n_states), noise(self.weight * REWARD_GRID)
        if not self.raw_rewards:
            rewards = CombinedError.of(rewards.scaled(1.0 / self.weight), visits.scaled(0.5))
        return {"n": visits, "m": noise(1.0), "r": rewards}


@compiled
def _add_first_steps(
    states: Any,
    actions: Any,
    rewards: Any,
    grid: float,
    middle: int,  # steps of the grid that are taken off each reward
    n_states: int,
    n_actions: int,
    sums: Any,
) -> None:
    users, horizon = actions.shape
    pairs = n_states * n_actions
    met = np.zeros(pairs, dtype=np.int64)  # the last user who was in this cell, from 1
    for user in range(users):
        for h in range(horizon):
            pair = states[user, h] * n_actions + actions[user, h]
            if met[pair] == user + 1:
                continue
            met[pair] = user + 1
            sums[pair * n_states + states[user, h + 1]] += 1
            sums[pairs * n_states + pair] += int(np.floor(rewards[user, h] / grid + 0.5)) - middle
