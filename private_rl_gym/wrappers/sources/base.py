"""The interface of sources of users, with the wrappers that it skips or refuses.

* ``Source`` - users who run a policy, in groups
* ``layers`` - an environment and everything that it wraps
* ``countable`` - whether states and actions of an environment can be counted
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray

from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.envs.logged import LoggedUsers
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.network import Network
from private_rl_gym.planning.rewards import RewardRange
from private_rl_gym.wrappers.sources.quiet import BadUserError, quietly

__all__ = ["MOST_USERS", "TRANSPARENT", "Source", "countable", "layers", "lend", "plain_generator"]

TRANSPARENT = (gym.wrappers.PassiveEnvChecker, gym.wrappers.OrderEnforcing)
"""The wrappers that gym.make puts around every environment. They change nothing, so compiled rollouts may skip them."""

REMEMBERING = (gym.wrappers.NormalizeReward, gym.wrappers.NormalizeObservation)
"""Wrappers that carry something from one user to the next, so that a user could change the sums of others."""

BYTES_PER_STEP = 40
"""Bytes that a step of a user takes: three random numbers, a reward, a state and an action."""

MOST_USERS = 4096
"""Largest number of users in memory at once."""

BIT_GENERATORS = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)


class Source(ABC):
    """The interface of sources of users, who run a policy.

    A user who fails is one user without a trajectory, and changes nothing for others. A source knows no statistic, no
    noise and no budget.

    Args:
        env: The environment that users are met in.
        reward_range: The least and the largest reward, which are mapped to 0 and 1.

    Attributes:
        horizon, n_states, n_actions: Sizes of a trajectory.
        padded: Whether the last state is an absorbing one, in which users wait whose episodes ended early.
        chunk: Number of users in memory at once.
        model: The model of the environment, if it is known.
        network: The network that users run; None where they run tables.
        gone: Whether all users have left, so that none can be met: ``reset`` of the environment says so.
    """

    statistic: ClassVar[str]
    """The statistic that is summed if no other is asked for."""

    horizon: int
    n_states: int
    n_actions: int
    padded: bool
    chunk: int
    model: FiniteModel | None = None
    network: Network | None = None

    broken: bool = False
    """Whether the environment failed for a whole group of users."""

    def __init__(self, env: gym.Env[Any, Any], reward_range: tuple[float, float] | None) -> None:
        self.env, self.rewards = env, RewardRange.of(reward_range)
        self.gone = isinstance(env.unwrapped, LoggedUsers)
        for layer in layers(env):
            if isinstance(layer, REMEMBERING):
                raise ValueError(  # noqa: TRY004 - the place is wrong, not the type
                    f"{type(layer).__name__} inside a trust boundary carries statistics from one user to the next. One "
                    "user could then change the counts of others, and no guarantee would hold. Scale by public "
                    "constants, with gymnasium.wrappers.TransformObservation; or put it outside the boundary, where "
                    "it reads published data only."
                )
        self._invited: list[Any] = []  # users who come next
        self._stream: np.random.Generator | None = None  # of users, while one of them is in the environment
        self._spare = np.random.default_rng()  # of users, where the environment has no generator of numpy's

    @property
    def absorbing(self) -> int | None:
        """The state in which users wait whose episodes ended early.

        It is None if episodes cannot end early.
        """
        return self.n_states - 1 if self.padded else None

    @property
    def memory(self) -> int:
        """Bytes of the random numbers and trajectories of the users in memory."""
        return self.chunk * self.horizon * BYTES_PER_STEP

    @abstractmethod
    def policy(self, policy: Any) -> Any:
        """Return a checked copy of the policy, which shares no object with the learner."""

    @abstractmethod
    def users(self, users: Any) -> NDArray[Any]:
        """Return a checked copy of given users."""

    def invite(self, users: Any) -> None:
        """Let these users come next, in this order."""
        self._invited.extend(self.users(users))

    @abstractmethod
    def serve(
        self, policy: Any, count: int, given: NDArray[Any] | None, rng: np.random.Generator | None
    ) -> Iterator[tuple[Any | None, int, BadUserError | None]]:
        """Yield users who run a policy, in groups.

        A group is their trajectories, their number, and an error that is safe to show. Trajectories are None for a user
        who failed. As many random numbers are drawn for them as for others.

        Args:
            policy: The policy that they run, as ``policy`` returned it.
            count: Their number.
            given: The users, as ``users`` returned them; None for new ones.
            rng: The generator of their actions, where the policy is stochastic.
        """

    @abstractmethod
    def check_options(self, options: dict[str, Any] | None) -> None:
        """Raise if options of ``reset`` are invalid, before a user is admitted."""

    @abstractmethod
    def action_of(self, action: Any) -> int:
        """Return an action of the environment as a plain number, counted from 0.

        It is converted only once.
        """

    def part(self) -> None:
        """Let the current user leave, if there is one.

        Their generator leaves with them.
        """
        if self._stream is not None:
            quietly(partial(lend, self.env, self._stream))
            self._stream = None

    def _stream_of(self, seed: int | None) -> np.random.Generator:
        """Return the generator that users are drawn from.

        It is the environment's, as ``env.reset(seed=...)`` makes it.
        """
        if seed is not None:
            return seeding.np_random(seed)[0]
        held = getattr(self.env.unwrapped, "np_random", None)
        return held if isinstance(held, np.random.Generator) else self._spare

    def _find_horizon(self, given: int | None) -> int:
        """Return the smallest of the known horizons."""
        bare = self.env.unwrapped
        limits = [bare.model.horizon] if isinstance(bare, TabularEnv) else []
        limits += [bare.horizon] if isinstance(bare, LoggedUsers) else []
        time_limits = [layer for layer in layers(self.env) if isinstance(layer, gym.wrappers.TimeLimit)]
        limits += [int(layer._max_episode_steps) for layer in time_limits]
        if given is not None:
            limits.append(positive_integer(given, "horizon", "steps in an episode"))
        if not limits:
            raise ValueError(
                f"{self.env} has no horizon: an episode must have a largest number of steps. Build the boundary with "
                "horizon=, or limit the environment with gymnasium.wrappers.TimeLimit(env, 200) or gym.make(..., "
                "max_episode_steps=200)."
            )
        return min(limits)


def layers(env: gym.Env[Any, Any]) -> Iterator[gym.Env[Any, Any]]:
    """Yield ``env`` and all environments that it wraps, from the outside in."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
    yield env


def countable(env: gym.Env[Any, Any]) -> bool:
    """Return whether states and actions can be counted."""
    if not isinstance(env.action_space, spaces.Discrete):
        return False
    return isinstance(env.unwrapped, TabularEnv) or isinstance(env.observation_space, spaces.Discrete)


def lend(env: gym.Env[Any, Any], generator: np.random.Generator) -> None:
    """Let an environment draw from this generator.

    It does nothing unless the environment draws from one as Gymnasium's environments do.
    """
    if isinstance(getattr(env.unwrapped, "np_random", None), np.random.Generator):
        env.unwrapped.np_random = generator


def plain_generator(rng: Any) -> np.random.Generator:
    """Return ``rng`` if it is one of NumPy's own generators.

    Others could run their own code while users are here.
    """
    if type(rng) is not np.random.Generator or type(rng.bit_generator) not in BIT_GENERATORS:
        raise TypeError(
            f"rng is a {type(rng).__name__}: a stochastic policy draws from numpy's own generators, as "
            "np.random.default_rng makes them."
        )
    return rng
