"""The worth of policies, on the experimenter's side: exact where a true model is known, else by episodes.

* ``Exact`` - values under the true model, which make regret
* ``Tried`` - mean returns of episodes in an environment of its own, of which no learner hears
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol

import gymnasium as gym
import numpy as np

from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.experiments.foreign import padded_for
from private_rl_gym.planning.policy import Policy
from private_rl_gym.wrappers.population import Population

__all__ = ["EPISODES", "Exact", "Judge", "Measure", "Tried"]

Measure = Literal["regret", "return"]
"""The measure of a run: regret where the true model is known, else the return of the policy that users got."""

EPISODES = 100
"""Episodes that estimate a value where the true model is not known. They are not those of users."""


class Judge(Protocol):
    """The worth of policies."""

    measure: ClassVar[Measure]
    points: ClassVar[int]

    def value(self, policy: Policy) -> float:
        """The value of a policy."""


class Exact:
    """Values under the true model, in rewards mapped to [0, 1]."""

    measure: ClassVar[Measure] = "regret"
    points: ClassVar[int] = 200
    """Number of points of a stored curve, on a logarithmic grid; the last point is the exact number of users."""

    def __init__(self, truth: FiniteModel) -> None:
        self._truth = truth
        self.best = truth.optimal_value()

    def value(self, policy: Policy) -> float:
        """The value of a policy."""
        return self._truth.value_of(padded_for(self._truth, policy))


class Tried:
    """Mean returns of episodes of other users, in rewards as they are.

    Args:
        env: An environment that nobody else uses.
        population: The users behind the boundary, for their sizes.
        seed: The seed of the episodes, and of actions drawn at random.
    """

    measure: ClassVar[Measure] = "return"
    points: ClassVar[int] = 20

    def __init__(self, env: gym.Env[Any, Any], population: Population, seed: int) -> None:
        self._env, self._population = env, population
        self._rng = np.random.default_rng(seed)
        env.reset(seed=seed % 2**31)

    def value(self, policy: Policy) -> float:
        """The mean return of a policy."""
        env, population, total = self._env, self._population, 0.0
        for _ in range(EPISODES):
            observation, _ = env.reset()
            for stage in range(population.horizon):
                uniform = None if policy.deterministic else float(self._rng.random())
                action = policy.action(stage, population.state_of(observation), uniform)
                observation, reward, terminated, truncated, _ = env.step(population.env_action(action))
                total += float(reward)
                if terminated or truncated:
                    break
        return total / EPISODES
