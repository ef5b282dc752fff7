"""A world model as a vector environment of Stable-Baselines3.

Everything here is post-processing of releases: docs/proofs/post-processing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from private_rl_gym.agents.world.fit import WorldModel

__all__ = ["Rules", "Simulation"]

FARTHEST = 50.0
"""Largest standardized number that a learner sees."""

TRIES = 20
"""Draws of a start, until one is not over already."""

Ended = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
Paid = Callable[[NDArray[np.float64], NDArray[Any], NDArray[np.float64]], NDArray[np.float64]]


class Rules:
    """Public knowledge of the environment besides its spaces.

    Args:
        horizon: Number of steps in an episode.
        ended: Whether episodes end in these states; None if they never end early.
        paid: The rewards of states, actions and next states; None if they are learned.
    """

    def __init__(self, horizon: int, ended: Ended | None, paid: Paid | None) -> None:
        self.horizon, self.ended, self.paid = horizon, ended, paid

    def over(self, states: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return whether episodes end in these states."""
        if self.ended is None:
            return np.zeros(len(states), dtype=np.bool_)
        return np.asarray(self.ended(states), dtype=np.bool_).reshape(len(states))


class Simulation(VecEnv):
    """Users of a world model, side by side.

    Observations are standardized states, and actions are those of networks. Rewards are multiplied by ``unit``.

    Args:
        model: The model.
        rules: What is known besides it.
        count: Number of users.
        unit: Factor on rewards.
        rng: The generator of starts.
    """

    def __init__(self, model: WorldModel, rules: Rules, count: int, unit: float, rng: np.random.Generator) -> None:
        self.model, self.rules, self.unit, self.rng = model, rules, unit, rng
        seen = spaces.Box(-FARTHEST, FARTHEST, (model.basis.inputs,), np.float32)
        super().__init__(count, seen, _actions(model))
        self.returns: list[float] = []
        """Returns of whole episodes, without the factor."""
        self._totals, self._steps = np.zeros(count), np.zeros(count, dtype=np.int64)
        self._states = self._fresh(count)
        self._acts: NDArray[Any] = np.zeros(0)

    def _fresh(self, count: int) -> NDArray[np.float64]:
        states = self.model.draw_starts(count, self.rng)
        for _ in range(TRIES):
            over = self.rules.over(states)
            if not over.any():
                break
            states[over] = self.model.draw_starts(int(over.sum()), self.rng)
        return states

    def _seen(self) -> NDArray[np.float32]:
        return np.clip(self.model.standardized(self._states), -FARTHEST, FARTHEST).astype(np.float32)

    def reset(self) -> NDArray[np.float32]:
        """Begin all episodes anew."""
        self._states = self._fresh(self.num_envs)
        self._totals[:], self._steps[:] = 0.0, 0
        return self._seen()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take these actions at the next ``step_wait``."""
        self._acts = actions

    def step_wait(self) -> Any:
        """Take a step of every user; who is done begins anew."""
        model, rules = self.model, self.rules
        acts = np.asarray(self._acts, dtype=np.float64).reshape(self.num_envs, -1)
        changes = model.changes(self._states, acts)
        after = model.after(self._states, changes)
        rewards = changes[:, -1] if rules.paid is None else np.asarray(rules.paid(self._states, acts, after))
        over = rules.over(after)
        self._states = after
        self._steps += 1
        self._totals += rewards
        done = over | (self._steps >= rules.horizon)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if done.any():
            last, places = self._seen(), np.flatnonzero(done)
            for place in places:
                infos[place] = {"terminal_observation": last[place], "TimeLimit.truncated": not over[place]}
                self.returns.append(float(self._totals[place]))
            self._states[done] = self._fresh(len(places))
            self._totals[done], self._steps[done] = 0.0, 0
        return self._seen(), (rewards * self.unit).astype(np.float32), done, infos

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return None for every user, whatever the attribute."""
        return [None] * len(self._some(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Do nothing: users have no attributes."""

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Return None for every user, whatever the method."""
        return [None] * len(self._some(indices))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for every user."""
        return [False] * len(self._some(indices))

    def _some(self, indices: Any) -> Sequence[int]:
        return list(self._get_indices(indices))


def _actions(model: WorldModel) -> spaces.Space[Any]:
    """Return the space of the actions of networks."""
    basis = model.basis
    if not basis.choices:
        return spaces.Box(-1.0, 1.0, (basis.continuous,), np.float32)
    return spaces.Discrete(basis.choices[0]) if len(basis.choices) == 1 else spaces.MultiDiscrete(list(basis.choices))
