"""Actions for observations, with Stable-Baselines3's conventions for one and for several users."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from private_rl_gym.agents.base import Agent

__all__ = ["Actor"]


class Actor:
    """Reads stages and states from observations, and takes actions from the agent's policy."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._stateless_calls = 0

    def act(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None,
        episode_start: NDArray[np.bool_] | None,
        *,
        deterministic: bool,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The actions, and the next stages."""
        agent = self._agent
        observations = np.asarray(observation)
        timed = isinstance(agent.observation_space, gym.spaces.MultiDiscrete)
        single = observations.ndim == int(timed)
        rows = observations[None] if single else observations
        states = rows[:, 1] if timed else rows - int(getattr(agent.observation_space, "start", 0))
        stages = rows[:, 0] if timed else self._stages(len(rows), state, episode_start)
        policy = agent.best_policy()
        last = policy.horizon - 1
        actions = np.empty(len(rows), dtype=np.int64)
        for row, (stage, where) in enumerate(zip(np.minimum(stages, last), states, strict=True)):
            if policy.deterministic:
                actions[row] = policy.table[stage, where]
            elif deterministic:
                actions[row] = np.argmax(policy.table[stage, where])
            else:
                actions[row] = policy.action(int(stage), int(where), agent._predict_rng.random())
        actions += int(getattr(agent.action_space, "start", 0))
        return (actions[0] if single else actions), np.minimum(stages + 1, last + 1)

    def _stages(
        self, users: int, state: tuple[NDArray[Any], ...] | None, episode_start: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        if state is None:
            self._stateless_calls += episode_start is None
            if self._stateless_calls == 2 and episode_start is None:
                warnings.warn(
                    "predict was called again without a state, and plays stage 0 each time. Policies depend on the "
                    "stage: hand back the state that predict returned, or observe the stage with observe_time=True.",
                    stacklevel=4,
                )
            return np.zeros(users, dtype=np.int64)
        if self._stateless_calls == 1:
            self._stateless_calls = 0  # that was the start of an episode
        stages = np.asarray(state[0], dtype=np.int64).copy()
        if episode_start is not None:
            stages[np.asarray(episode_start, dtype=bool)] = 0
        return stages
