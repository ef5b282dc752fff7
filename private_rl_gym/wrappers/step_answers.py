"""Answers of users who are asked at every step: what is told of an observation, and with which budget.

* ``StepBudgets`` - a user's budget, split among her steps, and what is told at each
* ``Digits``, ``Numbers`` - observations as rows of entries, each of which is randomized
* ``StepUsers`` - users whose observations are such rows

Proof: docs/proofs/local-per-step.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.privacy.answers import check_values, one_of, randomized_number
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.wrappers.population import Population

__all__ = ["Digits", "Numbers", "StepBudgets", "StepUsers", "tell_numbers"]


@dataclass(frozen=True, slots=True, eq=False)
class StepBudgets:
    """The budget of every answer of an episode.

    Attributes:
        observations: ``[0..H]``, of each entry of an observation; the first is that of the start.
        rewards: ``[h]``.
        ended: ``[h]``, of the bit that says whether the episode has ended; zeros where there is none.
    """

    observations: NDArray[np.float64]
    rewards: NDArray[np.float64]
    ended: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        epsilon: float,
        horizon: int,
        entries: int,
        shares: Mapping[str, float] | None,
        steps: Sequence[float] | None,
        *,
        ended: bool,
    ) -> StepBudgets:
        """Split epsilon: equally among all answers, or as it is said.

        Args:
            epsilon: The budget of the episode.
            horizon: Number of steps.
            entries: Number of entries of an observation.
            shares: The shares of a step's budget for ``"observations"``, ``"rewards"`` and ``"ended"``.
            steps: The shares of the start and of every step in the budget of the episode.
            ended: Whether a bit says that the episode has ended.
        """
        counts = {"observations": entries, "rewards": 1, **({"ended": 1} if ended else {})}
        answers = sum(counts.values())
        if shares is None:
            parts = {name: count / answers for name, count in counts.items()}
        elif not isinstance(shares, Mapping) or set(shares) != set(counts):
            raise ValueError(f"shares is {shares!r}: it has a number for each of {', '.join(map(repr, counts))}.")
        else:
            parts = dict(zip(shares, _adding_up(list(shares.values()), "shares").tolist(), strict=True))
        if steps is None:
            weights = np.array([entries] + [answers] * horizon) / (entries + answers * horizon)
        else:
            weights = _adding_up(steps, "steps")
            if len(weights) != horizon + 1:
                raise ValueError(
                    f"steps has {len(weights)} shares: the start and {horizon} steps have one each, {horizon + 1}."
                )
        budgets = epsilon * weights
        told = np.append(budgets[:1], budgets[1:] * parts["observations"]) / entries
        return cls(told, budgets[1:] * parts["rewards"], budgets[1:] * parts.get("ended", 0.0))

    def total(self, entries: int) -> float:
        """The sum over all answers, which is the epsilon of an episode."""
        return float(entries * self.observations.sum() + self.rewards.sum() + self.ended.sum())


def _adding_up(given: Sequence[float], name: str) -> NDArray[np.float64]:
    try:
        numbers = np.array(given, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        numbers = np.full(1, math.nan)
    if not (np.isfinite(numbers).all() and (numbers >= 0.0).all()):
        raise ValueError(f"{name} is {given!r}: shares are numbers of at least 0.")
    if abs(numbers.sum() - 1.0) > 1e-9:
        raise ValueError(f"{name} add up to {numbers.sum():g}: a budget is shared out whole, so to 1.")
    return np.asarray(numbers / numbers.sum())


def tell_numbers(numbers: NDArray[np.float64], budget: float, source: NoiseSource) -> NDArray[np.float64]:
    """Randomized answers about numbers in [0, 1], each with this budget; a half where there is none."""
    uniforms = source.uniform(3 * len(numbers)).reshape(3, -1)
    if budget == 0.0:
        return np.full(len(numbers), 0.5)
    return randomized_number(budget).tell(numbers, uniforms)


class Digits:
    """Observations in ``MultiDiscrete`` or ``MultiBinary``: each entry is one of finitely many."""

    def __init__(self, space: spaces.MultiDiscrete | spaces.MultiBinary) -> None:
        if isinstance(space, spaces.MultiDiscrete):
            self._sizes = np.asarray(space.nvec, dtype=np.int64).reshape(-1)
            self._start = np.broadcast_to(space.start, space.shape).reshape(-1).astype(np.int64)
        else:
            self._sizes = np.full(math.prod(space.shape), 2, dtype=np.int64)
            self._start = np.zeros_like(self._sizes)
        check_values(self._sizes)
        self.entries = len(self._sizes)

    def row(self, observation: Any) -> NDArray[Any]:
        """The entries of an observation; raises ValueError if it is not in its space."""
        row = np.asarray(observation).reshape(-1).astype(np.int64) - self._start
        if row.shape != self._sizes.shape or not ((row >= 0) & (row < self._sizes)).all():
            raise ValueError("An observation is not in its space.")
        return np.asarray(row)

    def space(self, budgets: StepBudgets) -> spaces.Space[Any]:  # noqa: ARG002 - that of numbers depends on them
        """The space of answers, counted from 0: one more entry says whether the episode has ended."""
        return spaces.MultiDiscrete(np.append(self._sizes, 2))

    def tell(self, row: NDArray[Any], budget: float, source: NoiseSource) -> NDArray[Any]:
        """A randomized answer about each entry."""
        return one_of(row, self._sizes, budget, source.uniform(2 * self.entries).reshape(2, -1))

    def joined(self, told: NDArray[Any], ended: int) -> NDArray[Any]:
        """The observation of a learner."""
        return np.append(told, ended)


class Numbers:
    """Observations in a ``Box``: each entry is a number between bounds, and is clipped to them."""

    def __init__(self, space: spaces.Box, low: ArrayLike | None, high: ArrayLike | None) -> None:
        self._low = _bounds(space.low if low is None else low, space.shape, "low")
        self._high = _bounds(space.high if high is None else high, space.shape, "high")
        endless = ~(np.abs(np.stack([self._low, self._high])) <= 1e30).all(axis=0)
        if endless.any():
            raise ValueError(
                f"Entries {', '.join(map(str, np.flatnonzero(endless)))} of {space} have no finite bounds. State what "
                "is publicly known of them, or guess: LDPPerStep(env, epsilon, low=[...], high=[...])."
            )
        if not (self._low < self._high).all():
            raise ValueError(f"low is {self._low.tolist()} and high {self._high.tolist()}: low must lie below high.")
        self.entries = len(self._low)

    def row(self, observation: Any) -> NDArray[Any]:
        """The entries of an observation, clipped and mapped to [0, 1]; raises ValueError if it has another size."""
        row = np.asarray(observation, dtype=np.float64).reshape(-1)
        if row.shape != self._low.shape:
            raise ValueError("An observation is not in its space.")
        row = np.clip(np.nan_to_num(row, nan=-np.inf, posinf=np.inf, neginf=-np.inf), self._low, self._high)
        return np.clip((row - self._low) / (self._high - self._low), 0.0, 1.0)

    def space(self, budgets: StepBudgets) -> spaces.Space[Any]:
        """The space of answers, wider than the bounds; one more entry says whether the episode has ended."""
        values = [randomized_number(budget).values for budget in set(budgets.observations.tolist()) if budget > 0.0]
        ends = np.array([value for told in values for value in (told[0], told[-1])] or [0.5])
        low = np.append(self._scaled(np.full(self.entries, ends.min())), 0.0)
        high = np.append(self._scaled(np.full(self.entries, ends.max())), 1.0)
        return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def tell(self, row: NDArray[Any], budget: float, source: NoiseSource) -> NDArray[Any]:
        """A randomized answer about each entry."""
        return self._scaled(tell_numbers(row, budget, source))

    def _scaled(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._low + (self._high - self._low) * numbers)

    def joined(self, told: NDArray[Any], ended: int) -> NDArray[Any]:
        """The observation of a learner."""
        return np.append(told, ended).astype(np.float32)


def _bounds(values: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    try:
        return np.broadcast_to(np.asarray(values, dtype=np.float64), shape).reshape(-1).copy()
    except (TypeError, ValueError):
        raise ValueError(f"{name} does not fit: give one number, or one for each entry of shape {shape}.") from None


class StepUsers(Population):
    """Users whose observations are rows of entries, and not states.

    They have two states: in the one their episode goes on, in the other it has ended. The row of the newest
    observation is kept, and stays when an episode has ended.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        horizon: int | None,
        reward_range: tuple[float, float] | None,
        entries: Digits | Numbers,
    ) -> None:
        self.entries = entries
        self.row: NDArray[Any] = np.zeros(entries.entries)
        super().__init__(env, horizon, reward_range)

    def _count_states(self) -> None:
        self.n_states, self._first_state, self.padded = 2, 0, True

    def state_of(self, observation: Any) -> int:
        """The state of a user whose episode goes on; keeps the entries of her observation."""
        self.row = self.entries.row(observation)
        return 0
