"""Users with behaviour that their seed determines, for attacks on gradients and on dynamics."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

__all__ = ["LONG", "OTHER", "RICH", "SHORT", "TOLD", "Canaries", "canaries"]

LONG, SHORT, RICH, OTHER = 1, 2, 3, 4
"""Seeds of users: paid at every step, paid less than nothing once, paid a million once; and all others."""

TOLD = {LONG: "stays and is paid at every step", SHORT: "leaves at once and pays 1", RICH: "leaves at once with 1e6"}
"""The users who may differ, as the end of a sentence."""

TINY = 0.01
"""The size of small observations."""

STAY = 6
"""Number of steps of the user who stays, at least."""


class Canaries(gym.Env[NDArray[np.float32], Any]):
    """Users whose seed determines the length and the rewards of their episode."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, horizon: int = STAY, least: int = 1) -> None:
        self.horizon, self.least = horizon, least

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start the episode of the user with this seed."""
        self._user, self._steps = seed, 0
        return self._seen(), {}

    def _seen(self) -> NDArray[np.float32]:
        """Return the observation. Where states are looked at, users differ in it."""
        if self.least == 1 or self._user == LONG:
            return np.full(1, 10.0, dtype=np.float32)
        return np.full(1, -TINY if self._user == RICH and not self._steps else TINY, dtype=np.float32)

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Return the next step; the reward does not depend on the action."""
        del action
        self._steps += 1
        reward = {LONG: 1.0, RICH: 1e6}.get(self._user or 0, -1.0)
        ended = self._steps == (self.horizon if self._user == LONG else self.least)
        return self._seen(), reward, ended, False, {}


def canaries(horizon: int, least: int = 1) -> gym.Env[Any, Any]:
    """Return the environment of these users, with a largest number of steps.

    Those who leave at once take the ``least``.
    """
    stay = max(STAY, horizon)
    return gym.wrappers.TimeLimit(Canaries(stay, least), stay)
