"""The sizes of a problem whose users' episodes are finished."""

from __future__ import annotations

from typing import Any, NoReturn, cast

import gymnasium as gym
from gymnasium import spaces

from private_rl_gym.planning.arrays import positive_integer

__all__ = ["LoggedUsers"]


class LoggedUsers(gym.Env[int, int]):
    """The sizes of a table of finished episodes, for a boundary around them.

    Users cannot be served here. Sizes are public: state them from what is known of the problem, never from what is in
    the table.

    Args:
        n_states: Number of states; the table numbers them from 0.
        n_actions: Number of actions; the table numbers them from 0.
        horizon: Largest number of steps in an episode. Episodes may be shorter; what is longer is cut.

    Example:
        >>> from private_rl_gym.envs import LoggedUsers
        >>> from private_rl_gym.wrappers import Episodes, JDPBillboard
        >>> board = JDPBillboard(LoggedUsers(n_states=3, n_actions=2, horizon=2), 1.0, 1e-6, users=2, schedule=2)
        >>> board.ingest(Episodes(["ann", "bob"], state=[[0, 1, 2], [0, 2, 1]], action=[[1, 0], [0, 0]],
        ...                       reward=[[0, 1], [0, 0]]))
        2
        >>> board.release.users
        2
    """

    def __init__(self, n_states: int, n_actions: int, horizon: int) -> None:
        self.horizon = positive_integer(horizon, "horizon", "steps in an episode")
        self.observation_space = cast(
            "spaces.Space[int]", spaces.Discrete(positive_integer(n_states, "n_states", "states"))
        )
        self.action_space = cast(
            "spaces.Space[int]", spaces.Discrete(positive_integer(n_actions, "n_actions", "actions"))
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> NoReturn:
        """Raise an error, because the episodes of these users are finished."""
        raise gym.error.Error(
            "The episodes of these users are over, and no new user can be simulated. Add the episodes with "
            "board.ingest(...), and plan with agent.learn_offline()."
        )

    def step(self, action: int) -> NoReturn:
        """Raise the same error as ``reset``."""
        self.reset()
