"""Randomized answers of users at every step.

The observation is answered in parts, each with its budget.

* ``StepBudgets`` - a user's budget, split among their steps and answers
* ``States``, ``Digits``, ``Numbers`` - users whose observations are states, or rows of entries

Proof: docs/proofs/local-per-step.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.randomizers.answers import check_values, one_of, randomized_number
from private_rl_gym.wrappers.sources import EnvironmentSource
from private_rl_gym.wrappers.spaces import OUTSIDE, alternatives, bounds_of

__all__ = ["Entries", "States", "StepBudgets", "source_of", "tell_numbers"]


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
        """Return the split of epsilon among all answers.

        It is equal, or follows the given shares.

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
        """Return the sum over all answers, which is the epsilon of an episode."""
        return float(entries * self.observations.sum() + self.rewards.sum() + self.ended.sum())


def _adding_up(given: Sequence[float], name: str) -> NDArray[np.float64]:
    try:
        numbers = np.array(given, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        numbers = np.full(1, math.nan)
    if not (np.isfinite(numbers).all() and (numbers >= 0.0).all()):
        raise ValueError(f"{name} is {given!r}: shares are numbers of at least 0.")
    if abs(numbers.sum() - 1.0) > 1e-9:
        raise ValueError(f"{name} add up to {numbers.sum():g}: the shares of a budget must add up to 1.")
    return np.asarray(numbers / numbers.sum())


def tell_numbers(numbers: NDArray[np.float64], budget: float, noise: NoiseSource) -> NDArray[np.float64]:
    """Return randomized answers about numbers in [0, 1], each with this budget.

    Without a budget, each answer is a half.
    """
    uniforms = noise.uniform(3 * len(numbers)).reshape(3, -1)
    if budget == 0.0:
        return np.full(len(numbers), 0.5)
    return randomized_number(budget).tell(numbers, uniforms)


class States(EnvironmentSource):
    """Users who answer with one of finitely many states.

    The stage is no secret.
    """

    entries, ends = 1, False

    def __init__(self, env: gym.Env[Any, Any], horizon: int | None, reward_range: Any) -> None:
        super().__init__(env, horizon, reward_range)
        check_values(self.n_states)
        self._timed = self.model is not None and not isinstance(env.observation_space, spaces.Discrete)

    def answers(self, _budgets: StepBudgets) -> spaces.Space[Any]:
        """Return the space of answers.

        It is that of states, with the stage where observations have it.
        """
        return spaces.MultiDiscrete([self.horizon, self.n_states]) if self._timed else spaces.Discrete(self.n_states)

    def tell(self, state: int, stage: int, budgets: StepBudgets, noise: NoiseSource) -> Any:
        """Return the state after randomized response."""
        told = _one(state, self.n_states, float(budgets.observations[stage]), noise)
        return np.array([min(stage, self.horizon - 1), told], dtype=np.int64) if self._timed else told


class Entries(EnvironmentSource):
    """Users who answer with rows of entries.

    One more entry, a bit, answers whether their episode has ended. They have two states: in the one their episode goes
    on, in the other it has ended. The row of the newest observation is kept, and stays when an episode has ended.
    """

    entries, ends = 1, True

    def __init__(self, env: gym.Env[Any, Any], horizon: int | None, reward_range: Any) -> None:
        self._row: NDArray[Any] = np.zeros(self.entries)
        super().__init__(env, horizon, reward_range)

    def _count_states(self) -> None:
        self.n_states, self.first_state, self.padded = 2, 0, True

    def state_of(self, observation: Any) -> int:
        """Return the state of a user whose episode goes on.

        The entries of the observation are kept.
        """
        self._row = self.row(observation)
        return 0

    @abstractmethod
    def row(self, observation: Any) -> NDArray[Any]:
        """Return the entries of an observation.

        Raise ValueError if it is not in its space.
        """

    @abstractmethod
    def answers(self, budgets: StepBudgets) -> spaces.Space[Any]:
        """Return the space of answers."""

    @abstractmethod
    def told(self, row: NDArray[Any], budget: float, noise: NoiseSource) -> NDArray[Any]:
        """Return a randomized answer about each entry."""

    def tell(self, state: int, stage: int, budgets: StepBudgets, noise: NoiseSource) -> Any:
        """Return every entry, randomized.

        It is no secret that a start is never the end.
        """
        told = self.told(self._row, float(budgets.observations[stage]), noise)
        ended = _one(state, 2, float(budgets.ended[stage - 1]), noise) if stage else 0
        return np.append(told, ended).astype(told.dtype)


class Digits(Entries):
    """Users whose observations are ``MultiDiscrete`` or ``MultiBinary``.

    Each entry is one of finitely many values.
    """

    def __init__(self, env: gym.Env[Any, Any], horizon: int | None, reward_range: Any) -> None:
        self._sizes, self._start = alternatives(env.observation_space)  # type: ignore[arg-type] # it was looked at
        check_values(self._sizes)
        self.entries = len(self._sizes)
        super().__init__(env, horizon, reward_range)

    def row(self, observation: Any) -> NDArray[Any]:
        """Return the entries, counted from 0."""
        row = np.asarray(observation).reshape(-1).astype(np.int64) - self._start
        if row.shape != self._sizes.shape or not ((row >= 0) & (row < self._sizes)).all():
            raise ValueError(OUTSIDE)
        return np.asarray(row)

    def answers(self, _budgets: StepBudgets) -> spaces.Space[Any]:
        """Return the space of answers, counted from 0."""
        return spaces.MultiDiscrete(np.append(self._sizes, 2))

    def told(self, row: NDArray[Any], budget: float, noise: NoiseSource) -> NDArray[Any]:
        """Return each entry after randomized response."""
        return one_of(row, self._sizes, budget, noise.uniform(2 * self.entries).reshape(2, -1))


class Numbers(Entries):
    """Users whose observations are a ``Box``.

    Each entry is a number between bounds, and is clipped to them.
    """

    def __init__(
        self, env: gym.Env[Any, Any], horizon: int | None, reward_range: Any, low: Any = None, high: Any = None
    ) -> None:
        box: Any = env.observation_space
        low, high = box.low if low is None else low, box.high if high is None else high
        self._low, self._high = bounds_of(box, low, high, box.shape, "LDPPerStep(env, epsilon, low=[...], high=[...])")
        self.entries = len(self._low)
        super().__init__(env, horizon, reward_range)

    def row(self, observation: Any) -> NDArray[Any]:
        """Return the entries, clipped and mapped to [0, 1]."""
        row = np.asarray(observation, dtype=np.float64).reshape(-1)
        if row.shape != self._low.shape:
            raise ValueError(OUTSIDE)
        row = np.clip(np.nan_to_num(row, nan=-np.inf, posinf=np.inf, neginf=-np.inf), self._low, self._high)
        return np.clip((row - self._low) / (self._high - self._low), 0.0, 1.0)

    def answers(self, budgets: StepBudgets) -> spaces.Space[Any]:
        """Return the space of answers, which is wider than the bounds."""
        values = [randomized_number(budget).values for budget in set(budgets.observations.tolist()) if budget > 0.0]
        ends = np.array([value for told in values for value in (told[0], told[-1])] or [0.5])
        low = np.append(self._scaled(np.full(self.entries, ends.min())), 0.0)
        high = np.append(self._scaled(np.full(self.entries, ends.max())), 1.0)
        return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def told(self, row: NDArray[Any], budget: float, noise: NoiseSource) -> NDArray[Any]:
        """Return a randomized number for each entry, whose mean is the entry."""
        return self._scaled(tell_numbers(row, budget, noise)).astype(np.float32)

    def _scaled(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._low + (self._high - self._low) * numbers)


def source_of(
    env: gym.Env[Any, Any], horizon: int | None, reward_range: Any, low: ArrayLike | None, high: ArrayLike | None
) -> States | Entries:
    """Return the source of users for this observation space.

    ``low`` and ``high`` are bounds of a Box.
    """
    space, counted = env.observation_space, isinstance(env.unwrapped, TabularEnv)
    if isinstance(space, spaces.Box) and not counted:
        return Numbers(env, horizon, reward_range, low, high)
    if low is not None or high is not None:
        raise ValueError(f"The observation space is {space}: low= and high= are bounds of a Box. Leave them out.")
    finite = isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary) and not counted
    return (Digits if finite else States)(env, horizon, reward_range)


def _one(true: int, size: int, budget: float, noise: NoiseSource) -> int:
    """Return one of ``size`` values after randomized response."""
    return int(one_of(np.array([true]), np.array([size]), budget, noise.uniform(2).reshape(2, 1))[0])
