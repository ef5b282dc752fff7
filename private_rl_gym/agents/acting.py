"""Actions for observations, with Stable-Baselines3's conventions for one and for several users."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import flag

if TYPE_CHECKING:
    from private_rl_gym.agents.base import Agent

__all__ = ["Actor"]


class Actor:
    """Actions of an agent's policy, for the stages and states in observations."""

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
        """Return the actions, and the next stages."""
        agent, deterministic = self._agent, flag(deterministic, "deterministic")
        policy = agent.best_policy()
        last = policy.horizon - 1
        rows, single, timed = self._rows(observation)
        states = self._states(rows, policy.n_states, timed=timed)
        stages = rows[:, 0] if timed else self._stages(len(rows), state, episode_start)
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

    def look_up(self, table: NDArray[Any], observation: Any, state: tuple[NDArray[Any], ...] | None) -> NDArray[Any]:
        """Return the entries of ``[h, s]`` for these observations."""
        rows, single, timed = self._rows(observation)
        states = self._states(rows, table.shape[1], timed=timed)
        given = np.zeros(len(rows), dtype=np.int64) if state is None else self._stages(len(rows), state, None)
        stages = np.minimum(rows[:, 0] if timed else given, len(table) - 1)
        found = table[stages, states]
        return np.asarray(found[0] if single else found)

    def _states(self, rows: NDArray[np.int64], n_states: int, *, timed: bool) -> NDArray[np.int64]:
        """Return the states in the rows of observations, numbered from 0.

        Raises ValueError if they are out of range.
        """
        states = rows[:, 1] if timed else rows - int(getattr(self._agent.observation_space, "start", 0))
        shown = rows[:, 0] if timed else np.zeros(1)
        if not ((states >= 0) & (states < n_states)).all() or (shown < 0).any():
            raise self._refused()
        return np.asarray(states)

    def _rows(self, observation: Any) -> tuple[NDArray[np.int64], bool, bool]:
        """Return observations as rows of whole numbers, and two properties of them.

        The properties are whether there is only one user, and whether observations contain the stage.
        """
        timed = isinstance(self._agent.observation_space, gym.spaces.MultiDiscrete)
        try:
            observations = np.asarray(observation)
            whole = observations.astype(np.int64)
            fits = bool((whole == observations).all()) and observations.dtype.kind in "iuf"
        except (TypeError, ValueError, OverflowError):
            raise self._refused() from None
        single = whole.ndim == int(timed)
        rows = whole[None] if single else whole
        if not fits or rows.ndim != 1 + int(timed) or (timed and rows.shape[1] != 2):
            raise self._refused()
        return rows, single, timed

    def _refused(self) -> ValueError:
        """Return the error for an invalid observation.

        It does not contain the observation, which may be a user's.
        """
        space = self._agent.observation_space
        return ValueError(
            f"An observation is not in {space}: give predict one observation, as reset and step return it, or an array "
            "with one for each of several users."
        )

    def _stages(
        self, users: int, state: tuple[NDArray[Any], ...] | None, episode_start: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        if state is None:
            self._stateless_calls += episode_start is None
            if self._stateless_calls == 2 and episode_start is None:
                warnings.warn(
                    "predict was called again without state=, so that it plays stage 0 each time. Pass the state that "
                    "predict returned, or observe the stage with observe_time=True.",
                    stacklevel=4,
                )
            return np.zeros(users, dtype=np.int64)
        if self._stateless_calls == 1:
            self._stateless_calls = 0  # that was the start of an episode
        given = np.asarray(state[0] if isinstance(state, tuple | list) and len(state) == 1 else -1)
        if given.shape != (users,) or given.dtype.kind not in "iu" or (given < 0).any():
            raise ValueError(
                "state is not what predict returned for these users: write action, state = agent.predict(observation, "
                "state), and state=None when an episode starts."
            )
        stages = given.astype(np.int64)
        if episode_start is not None:
            stages[np.asarray(episode_start, dtype=bool)] = 0
        return stages
