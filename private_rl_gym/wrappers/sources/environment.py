"""Users of an episodic environment whose states and actions are counted."""

from __future__ import annotations

import operator
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from gymnasium.utils import seeding
from numpy.typing import NDArray

from private_rl_gym.envs.tabular import TabularEnv, user_option
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.sampling import check_tapes, tape_length
from private_rl_gym.planning.simulate import Trajectories, rollout
from private_rl_gym.wrappers.sources.base import MOST_USERS, TRANSPARENT, Source, layers, lend
from private_rl_gym.wrappers.sources.quiet import BadUserError, harmless, quietly, unheard
from private_rl_gym.wrappers.sources.steps import UserSteps

__all__ = ["EnvironmentSource"]

MOST_UNIFORMS = 2**24
"""Largest number of random numbers of users in memory at once."""


class EnvironmentSource(Source):
    """Users of an environment whose states and actions are counted.

    Episodes of a ``TabularEnv`` have its horizon. Episodes of other environments may end early, and are padded with
    an extra absorbing state, where the action is 0 and the reward is 0. All rewards are mapped to [0, 1], including
    those in the absorbing state.

    Args:
        env: The environment.
        horizon: Largest number of steps in an episode, if the environment does not define it.
        reward_range: The least and the largest reward.

    Attributes:
        first_state, first_action: The environment's own numbers of state 0 and action 0.
        compiled: Whether compiled code meets the users.
    """

    statistic = "tabular"

    def __init__(
        self, env: gym.Env[Any, Any], horizon: int | None, reward_range: tuple[float, float] | None = None
    ) -> None:
        super().__init__(env, reward_range)
        bare = env.unwrapped
        self.model = bare.model if isinstance(bare, TabularEnv) else None
        self.n_actions = _discrete(env.action_space, "action")
        self.first_action = int(env.action_space.start)  # type: ignore[attr-defined]
        if self.model is not None:
            if env.observation_space != bare.observation_space:
                raise TypeError(
                    f"The observation space is {env.observation_space}: a wrapper inside the boundary changed it from "
                    f"{bare.observation_space}, the space of the counts. Put that wrapper outside."
                )
            if isinstance(env.observation_space, spaces.Box):
                raise TypeError(
                    "The observations are feature vectors, and a trust boundary reads states. Build the environment "
                    "without observe_features. Features are for agents without a boundary."
                )
            self.n_states, self.first_state, self.padded = self.model.n_states, 0, False
        else:
            self._count_states()
        self.horizon = self._find_horizon(horizon)
        self.chunk = max(1, min(MOST_USERS, MOST_UNIFORMS // tape_length(self.horizon)))
        self._length = 0 if self.model is None else tape_length(self.model.horizon)
        # Where nothing but a TabularEnv draws random numbers, a tape holds all that is random about a user.
        between = [layer for layer in layers(env) if layer is not bare and not isinstance(layer, TRANSPARENT)]
        self._taped = self.model is not None and all(isinstance(layer, gym.wrappers.TimeLimit) for layer in between)
        whole = self.model is not None and self.horizon == self.model.horizon
        self._mapped = not self.rewards.plain
        # A low end of the range is never above 0: with a high end from 1 on, no reward is refused.
        self.compiled = whole and self.rewards.high >= 1.0 and not between

    def _count_states(self) -> None:
        """Set the number of states, from the observation space.

        One state is added, in which episodes wait that ended early.
        """
        self.n_states = _discrete(self.env.observation_space, "observation") + 1
        self.first_state, self.padded = int(self.env.observation_space.start), True  # type: ignore[attr-defined]

    # What is public ---------------------------------------------------------------------------------------------------

    def state_of(self, observation: Any) -> int:
        """Return the state in an observation, counted from 0."""
        if self.model is not None:
            return int(observation[1]) if np.ndim(observation) else int(observation)
        return int(observation) - self.first_state

    def action_of(self, action: Any) -> int:
        """Return an action of the environment as a plain number, counted from 0.

        It is converted only once.
        """
        try:
            number = operator.index(action)
        except TypeError:
            number = self.first_action - 1
        index = number - self.first_action
        if not 0 <= index < self.n_actions:
            raise InvalidAction(f"The action {action!r} is not in {self.env.action_space}.")
        return index

    def env_action(self, number: int) -> int:
        """Return the environment's own number for this action."""
        return number + self.first_action

    def policy(self, policy: Any) -> Policy:
        """Return a checked table of these sizes.

        It is a copy, which shares no object with the learner.
        """
        sizes = self.horizon, self.n_states, self.n_actions
        if isinstance(policy, Policy):
            table = np.asarray(policy.table)
            if table.shape not in (sizes[:2], sizes) or policy.n_actions != self.n_actions:
                described = f"H={self.horizon}, S={self.n_states}, A={self.n_actions}"
                absorbing = " (the last state is where episodes wait that ended early)" if self.padded else ""
                raise ValueError(
                    f"A policy with a table of shape {table.shape} for {policy.n_actions} actions does not fit the "
                    f"users, who have {described}{absorbing}."
                )
        return Policy.of(policy, horizon=self.horizon, n_states=self.n_states, n_actions=self.n_actions)

    def users(self, users: Any) -> NDArray[np.float64]:
        """Return a checked copy of the tapes of given users."""
        if self.model is None:
            kind = type(self.env.unwrapped).__name__  # the text of an environment may show the user who is in it
            raise ValueError(f"{kind} has no tapes: give the number of users to serve, users=n.")
        return check_tapes(users, self.model.horizon).copy()

    def check_options(self, options: dict[str, Any] | None) -> None:
        """Raise if options are invalid, before a user is admitted.

        They are checked as this project's environments check them.
        """
        if self.model is not None:
            tape = user_option(options)
            if tape is not None:
                check_tapes(tape, self.model.horizon, one=True)

    def pad(self, trajectories: Trajectories, lengths: NDArray[np.int64]) -> None:
        """Let users whose episodes ended early wait in the absorbing state.

        ``lengths`` are their numbers of steps.
        """
        ends = np.where(lengths < self.horizon, lengths, self.horizon + 1)[:, None]
        trajectories.states[np.arange(self.horizon + 1) >= ends] = self.n_states - 1
        behind = np.arange(self.horizon) >= ends
        trajectories.actions[behind], trajectories.rewards[behind] = 0, self.rewards.zero

    # Users ------------------------------------------------------------------------------------------------------------

    def serve(
        self, policy: Policy, count: int, given: NDArray[np.float64] | None, rng: np.random.Generator | None
    ) -> Iterator[tuple[Trajectories | None, int, BadUserError | None]]:
        """Yield users who run a policy, in groups.

        Users who are met one by one are groups of one.
        """
        for start in range(0, count, self.chunk):
            here = min(self.chunk, count - start)
            uniforms = None if policy.deterministic or rng is None else rng.random((here, self.horizon))
            tapes = None if given is None else given[start : start + here]
            if self.compiled:
                yield self.run(policy, self._next_users(here) if tapes is None else tapes, uniforms), here, None
                continue
            for user in range(here):
                options = None if tapes is None else {"user": tapes[user]}
                own = None if uniforms is None else uniforms[user]
                trajectory, problem = quietly(partial(self.walk, policy, options, own))
                yield trajectory, 1, problem

    def run(self, policy: Policy, tapes: NDArray[np.float64], uniforms: NDArray[np.float64] | None) -> Trajectories:
        """Let users run a policy in compiled code, where ``compiled`` is true."""
        assert self.model is not None  # noqa: S101 - compiled environments have one
        met = rollout(self.model.tables, policy, tapes, uniforms)
        return replace(met, rewards=self.rewards.mapped(met.rewards)) if self._mapped else met

    def walk(
        self, policy: Policy, options: dict[str, Any] | None, uniforms: NDArray[np.float64] | None
    ) -> Trajectories:
        """Let one user run a policy, step by step."""
        user = UserSteps(self)
        try:
            user.meet(None, options)
            while user.open:
                uniform = None if uniforms is None else float(uniforms[user.stage])
                user.take(policy.action(user.stage, user.state, uniform))
        finally:
            self.part()
        return user.trajectory

    def meet(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user by ``reset``.

        The result is their first observation, and the harmless part of ``info``. A user is a seed or a tape, drawn
        before they come: it does not depend on how long others stay, or whether they fail. While the user is here, the
        environment draws from a generator of theirs. ``part`` gives it back the one that users are drawn from.
        """
        self.part()
        stream, own = self._stream_of(seed), seed
        if self.model is not None:
            self.env.unwrapped.np_random = stream
            tape = user_option(options)
            tape = self._next_users(1)[0] if tape is None else tape
            options = {"user": tape}
        if self._taped:
            own = None
        else:
            if own is None:
                own = int(stream.integers(2**31)) if self.model is None else zlib.crc32(np.array(tape, float).tobytes())
            self._stream = stream
            lend(self.env, seeding.np_random(own)[0])
        with unheard():
            observation, info = self.env.reset(seed=own, options=options)
        return observation, harmless(info)

    def take(self, number: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Let the current user take an action, given by its number."""
        with unheard():
            observation, reward, terminated, truncated, info = self.env.step(self.env_action(number))
        return observation, reward, bool(terminated), bool(truncated), info

    def _next_users(self, count: int) -> NDArray[np.float64]:
        """Return the tapes of the next users: invited ones, or new ones."""
        invited, self._invited = self._invited[:count], self._invited[count:]
        fresh = self.env.unwrapped.np_random.random((count - len(invited), self._length))
        return np.concatenate([np.reshape(invited, (-1, self._length)), fresh]) if invited else np.asarray(fresh)


def _discrete(space: gym.Space[Any], name: str) -> int:
    """Return the number of elements of a Discrete space.

    For another space, raise TypeError with the name of an adapter.
    """
    if not isinstance(space, spaces.Discrete):
        finite = not isinstance(space, spaces.Box) and "Box" not in str(space)
        remedy = "env = private_rl_gym.wrappers.FlattenSpaces(env)"
        if name == "observation" and not finite:
            remedy = "env = private_rl_gym.wrappers.Discretize(env, bins=8)"
        elif not finite:
            remedy = "env = gymnasium.wrappers.TransformAction(env, lambda number: ..., spaces.Discrete(n))"
        raise TypeError(
            f"The {name} space is {space}: trust boundaries count, and so need Discrete spaces. Put an adapter inside "
            f"the boundary: {remedy}"
        )
    return int(space.n)
