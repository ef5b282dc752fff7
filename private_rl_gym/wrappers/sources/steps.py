"""A user who is met step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.requests import Request
from private_rl_gym.wrappers.sources.quiet import BadUserError, harmless

if TYPE_CHECKING:
    from private_rl_gym.wrappers.sources.environment import EnvironmentSource

__all__ = ["UserSteps"]


class UserSteps:
    """One user who is met step by step, and their trajectory so far.

    It is raw data.

    Args:
        source: The source that the user comes from.
        request: The request that they came with: one that was made later could depend on their steps.

    Attributes:
        stage: Number of steps so far.
        open: Whether the episode goes on.
        trajectory: The trajectory. It is padded when the episode ends early.
    """

    __slots__ = ("open", "request", "source", "stage", "trajectory")

    def __init__(self, source: EnvironmentSource, request: Request | None = None) -> None:
        self.source, self.request = source, request
        self.trajectory = Trajectories(
            np.zeros((1, source.horizon + 1), dtype=np.int32),
            np.zeros((1, source.horizon), dtype=np.int32),
            np.zeros((1, source.horizon)),
        )
        self.stage, self.open = 0, True

    @property
    def state(self) -> int:
        """The current state of the user."""
        return int(self.trajectory.states[0, self.stage])

    def meet(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        """Meet the user, and return their first observation and harmless info."""
        observation, info = self.source.meet(seed, options)
        self.trajectory.states[0, 0] = self._state_in(observation)
        return observation, info

    def take(self, number: int) -> tuple[Any, bool, bool, dict[str, Any]]:
        """Let the user take an action, and return the step without the reward.

        The action is given by its number. The last step closes the episode. Raises BadUserError if the step is outside
        the stated ranges.
        """
        source, stage = self.source, self.stage
        observation, paid, terminated, truncated, info = source.take(number)
        ended = terminated or truncated
        if not 0 <= number < source.n_actions:
            raise BadUserError("An action is outside the action space; nothing of this user is released.")
        try:
            reward = source.rewards.mapped(float(paid))
        except (TypeError, ValueError):
            reward = float("nan")
        if not 0.0 <= reward <= 1.0:
            raise BadUserError(
                f"The environment paid a reward outside {source.rewards}, and no guarantee covers it; nothing of this "
                "user is released. Build the boundary with the least and the largest reward, such as "
                "reward_range=(-100, 0)."
            )
        self.trajectory.actions[0, stage], self.trajectory.rewards[0, stage] = number, reward
        self.trajectory.states[0, stage + 1] = self._state_in(observation)
        self.stage = stage = stage + 1
        early = ended and stage < source.horizon
        if early and not source.padded:
            raise BadUserError(
                f"An episode ended before its {source.horizon} steps were over, and there is no absorbing state to "
                "wait in; nothing of this user is released. If episodes are shorter, give horizon=."
            )
        if early:
            source.pad(self.trajectory, np.array([stage]))
        over = stage == source.horizon  # whether or not the environment knows
        self.open = not (over or ended)
        return observation, terminated, truncated or (over and not ended), harmless(info)

    def _state_in(self, observation: Any) -> int:
        try:
            state = self.source.state_of(observation)
        except (TypeError, ValueError, IndexError):
            state = -1
        if not 0 <= state < self.source.n_states - self.source.padded:
            raise BadUserError(
                "The environment returned an observation outside its observation space, which cannot be counted; "
                "nothing of this user is released."
            )
        return state
