"""Thousands of users of a tabular model at once, in numpy."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from private_rl_gym.envs.rendering import Path, picture, text
from private_rl_gym.envs.tabular import TabularEnv, user_option
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.memory import check_room
from private_rl_gym.planning.sampling import check_tapes

__all__ = ["TabularVectorEnv"]

Integers = NDArray[np.int64]
Step = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class TabularVectorEnv(VectorEnv[NDArray[Any], Integers, NDArray[Any]]):
    """A vector environment of many users of one model.

    User i has the same outcomes as in the single environment with tape i. All episodes have H steps, so all users
    change together: the step after the last one ignores its actions and starts the next users
    (``AutoresetMode.NEXT_STEP``). The tapes of new users are the rows of one draw from the environment's generator.
    With one user and the same seed they are the single environment's.

    Args:
        env: A single environment, which gives the model, the observations and the pictures.
        num_envs: Number of users at a time.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> envs = gym.make_vec("PrivateRL/RiverSwim-v0", num_envs=4, horizon=20)
        >>> observations, _ = envs.reset(seed=0)
        >>> observations
        array([0, 0, 0, 0])
        >>> tapes = envs.unwrapped.model.draw_users(envs.np_random, 4)
        >>> _ = envs.reset(options={"user": tapes})
        >>> envs.step([1, 1, 0, 0])[1]
        array([0.   , 0.   , 0.005, 0.005])
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, env: TabularEnv, num_envs: int = 1) -> None:
        if not isinstance(env, TabularEnv):
            raise TypeError(f"TabularVectorEnv is made from a TabularEnv, not from {env!r}: pass env.unwrapped.")
        if env.render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(
                f"render_mode is {env.render_mode!r}: many users at once render as 'ansi' or 'rgb_array' only."
            )
        self.env = env
        self.model = env.model
        self.num_envs = positive_integer(num_envs, "num_envs", "users")
        check_room(8 * self.num_envs * self.model.tape_length, f"{self.num_envs:,} users at a time", "Take fewer.")
        self.render_mode = env.render_mode
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = batch_space(env.observation_space, self.num_envs)
        self.action_space = batch_space(env.action_space, self.num_envs)
        self._outcomes = _BatchedOutcomes(env)
        self._tapes: NDArray[np.float64] | None = None  # [uniform, user]
        self._stage = 0
        self._states: Integers = np.zeros(self.num_envs, dtype=np.int64)
        self._paths: list[Path] = []  # kept only where they can be rendered

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start the episodes of the next users.

        The users are the tapes ``[user, uniform]`` in ``options["user"]``, or new ones.
        """
        super().reset(seed=seed)
        if options is not None and "reset_mask" in options:
            raise ValueError(
                "The users of a vector environment start and end together: reset all of them, without a reset_mask."
            )
        tapes = user_option(options)
        if tapes is None:
            tapes = self.model.draw_users(self.np_random, self.num_envs)
        self._tapes = np.array(check_tapes(tapes, self.model.horizon, self.num_envs).T, order="C")  # a copy
        tables = self.model.tables
        first = np.searchsorted(tables.initial_cumulative, self._tapes[0], side="right")
        self._states = tables.initial_states[first]
        self._stage = 0
        if self.render_mode is not None:
            self._paths = [Path.start(state) for state in self._states.tolist()]
        return self._observations(), {}

    def step(self, actions: Integers) -> Step:
        """Take one step of every user, or start the next users."""
        if self._tapes is None:
            raise ResetNeeded("There are no users yet: call reset() before step().")
        ended = np.zeros(self.num_envs, dtype=np.bool_)
        if self._stage == self.model.horizon:
            observations, info = self.reset()
            return observations, np.zeros(self.num_envs), ended, ended.copy(), info
        actions = self._checked(actions)
        stage = self._stage
        means, self._states = self._outcomes.of(stage, self._states, actions, self._tapes[2 * stage + 2])
        if self.model.reward_law == "bernoulli":
            means = (self._tapes[2 * stage + 1] < means).astype(np.float64)
        self._stage += 1
        if self.render_mode is not None:
            steps = zip(self._paths, actions.tolist(), means.tolist(), self._states.tolist(), strict=True)
            self._paths = [path.then(*step) for path, *step in steps]
        if self._stage == self.model.horizon:
            ended[:] = True
        return self._observations(), means, ended, np.zeros_like(ended), {}

    def render(self) -> tuple[Any, ...] | None:
        """Return one picture, or one text, for each user."""
        if self.render_mode is None:
            return None
        scene = self.env.scene()
        show = text if self.render_mode == "ansi" else picture
        return tuple(show(scene, path) for path in self._paths)

    def _observations(self) -> NDArray[Any]:
        if self.env.features is not None:
            seen = self.env.features[self._states]
            over = np.full((self.num_envs, 1), self._stage / self.model.horizon, dtype=np.float32)
            return np.hstack([seen, over]) if self.env.observe_time else seen
        if self.env.observe_time:
            stage = min(self._stage, self.model.horizon - 1)
            return np.column_stack([np.full(self.num_envs, stage), self._states])
        return self._states.copy()

    def _checked(self, actions: Any) -> Integers:
        array = np.asarray(actions)
        if array.shape != (self.num_envs,) or not np.issubdtype(array.dtype, np.integer):
            raise InvalidAction(
                f"The actions have shape {array.shape} and type {array.dtype}: they must be one whole number for each "
                f"of the {self.num_envs} users."
            )
        if array.min() < 0 or array.max() >= self.model.n_actions:
            raise InvalidAction(
                f"An action is outside 0..{self.model.n_actions - 1}: they run from {array.min()} to {array.max()}."
            )
        return array.astype(np.int64)


class _BatchedOutcomes:
    """The model's outcomes in rows of equal length.

    One search serves all users. Each row of cumulative probabilities is filled up with infinity to a power of two. A
    binary search for the first entry above a uniform then takes as many numpy calls as the power.
    """

    def __init__(self, env: TabularEnv) -> None:
        tables = env.model.tables
        widths = np.diff(tables.offsets)
        self._width = 1 << int(widths.max() - 1).bit_length()
        rows = np.repeat(np.arange(len(widths)), widths)
        places = rows * self._width + np.arange(len(rows)) - np.repeat(tables.offsets[:-1], widths)
        size = len(widths) * self._width
        self._cumulative = np.full(size, np.inf)
        self._successors = np.zeros(size, dtype=np.int64)
        self._means = np.zeros(size)
        self._cumulative[places] = tables.cumulative
        self._successors[places] = tables.successors
        self._means[places] = tables.rewards
        self._n_actions = tables.n_actions
        self._stride = 0 if tables.stationary else tables.n_states * tables.n_actions

    def of(
        self, stage: int, states: Integers, actions: Integers, uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], Integers]:
        """Return mean rewards and next states."""
        places = (states * self._n_actions + (actions + stage * self._stride)) * self._width
        half = self._width >> 1
        while half:
            places += half * (self._cumulative[places + (half - 1)] <= uniforms)
            half >>= 1
        return self._means[places], self._successors[places]


def __getattr__(family: str) -> Callable[..., TabularVectorEnv]:
    """Return a function for ``gym.make_vec`` that makes many users of a family.

    The name is that of the family, such as ``RiverSwim``.
    """
    families = importlib.import_module("private_rl_gym.envs")
    if family not in families.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {family!r}")

    def make(num_envs: int = 1, **options: Any) -> TabularVectorEnv:
        return TabularVectorEnv(getattr(families, family)(**options), num_envs)

    return make
