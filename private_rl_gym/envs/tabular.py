"""One user of a tabular model, as a Gymnasium environment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from operator import index
from typing import Any, ClassVar, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded
from numpy.typing import NDArray

from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.envs.rendering import GraphScene, Path, Scene, Window, picture, text
from private_rl_gym.planning.arrays import among, as_array, flag, shown
from private_rl_gym.planning.memory import check_room
from private_rl_gym.planning.sampling import check_tapes

__all__ = ["Observation", "TabularEnv", "observation_space", "user_option"]

BYTES = 40
"""Bytes that a number of a tape takes, as one of Python's and as one of NumPy's."""

Observation = int | NDArray[np.int64] | NDArray[np.float32]

_Row = tuple[list[float], list[int], list[float]]  # cumulative probabilities, next states, mean rewards


def observation_space(
    model: FiniteModel, observe_time: bool, features: NDArray[np.float32] | None = None
) -> spaces.Space[Any]:
    """Return ``Discrete(S)``, ``MultiDiscrete([H, S])`` with the stage, or a ``Box`` of features."""
    if features is not None:
        low, high = np.minimum(features.min(axis=0), np.float32(0.0)), np.maximum(features.max(axis=0), np.float32(1.0))
        if observe_time:
            low, high = np.append(low, np.float32(0.0)), np.append(high, np.float32(1.0))
        return spaces.Box(low, high, dtype=np.float32)
    if observe_time:
        return spaces.MultiDiscrete([model.horizon, model.n_states])
    return spaces.Discrete(model.n_states)


def user_option(options: dict[str, Any] | None) -> Any:
    """Return the tapes in ``options["user"]``, or None.

    Raises an error for other options, which may be misspelt.
    """
    if not isinstance(options, Mapping | None):
        raise TypeError(f"options is a {type(options).__name__}: give a dictionary, such as {{'user': tape}}, or None.")
    unknown = set(options or ()) - {"user"}
    if unknown:
        raise ValueError(f"There is no reset option {min(map(str, unknown))!r}: the only one is 'user', for tapes.")
    return None if options is None else options.get("user")


class TabularEnv(gym.Env[Observation, int]):
    """An environment in which each episode is one user of a finite model.

    An episode has H steps, which the user's tape determines. A tape holds the 2H + 1 uniforms behind a user's initial
    state, rewards and next states. It is drawn from the environment's generator at ``reset``, or passed with
    ``reset(options={"user": tape})``. The same tape gives the same answers. The episode terminates after H steps,
    because the horizon belongs to the problem.

    Args:
        model: The true model. It is available as ``env.unwrapped.model``, for exact regret.
        observe_time: Observe ``[stage, state]`` instead of the state, for learners that do not count stages. The
            observation after the last step repeats the last stage, to stay inside its space.
        features: ``[s, i]``: observe row s in place of the state s, for learners that need vectors. With
            ``observe_time``, the share of the episode that is over follows.
        render_mode: ``"ansi"``, ``"rgb_array"``, ``"human"`` or None.

    Example:
        >>> import numpy as np
        >>> from private_rl_gym.envs import TabularEnv, TabularModel
        >>> env = TabularEnv(TabularModel([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], horizon=2))
        >>> user = np.array([0.0, 0.9, 0.7, 0.9, 0.2])
        >>> env.reset(options={"user": user})
        (0, {})
        >>> env.step(0)
        (1, 0.0, False, False, {})
        >>> env.step(0)
        (0, 1.0, True, False, {})
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 4}  # type: ignore[misc]

    scene_type: ClassVar[type[Scene]] = GraphScene
    """The class of the drawing of this family."""

    def __init__(
        self,
        model: FiniteModel,
        *,
        observe_time: bool = False,
        features: NDArray[np.float32] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if not isinstance(model, FiniteModel):
            raise TypeError(
                f"TabularEnv is made from a TabularModel or a SparseModel, not from {type(model).__name__}."
            )
        observe_time = flag(observe_time, "observe_time")
        check_room(BYTES * model.tape_length, f"An episode of {model.horizon:,} steps", "Shorten the horizon.")
        if features is not None:
            features = as_array(features, "features").astype(np.float32)
            if features.ndim != 2 or len(features) != model.n_states or not features.size:
                raise ValueError(f"features have shape {features.shape}: they must be [{model.n_states}, any number].")
        if render_mode is not None and not among(render_mode, self.metadata["render_modes"]):
            raise ValueError(
                f"render_mode is {shown(render_mode)}: choose one of {', '.join(self.metadata['render_modes'])}, or "
                "None."
            )
        self.model, self.title = model, type(self).__name__
        self.observe_time = observe_time
        self.render_mode = render_mode
        self.features = features
        self.observation_space = observation_space(model, observe_time, features)
        self.action_space = cast("spaces.Space[int]", spaces.Discrete(model.n_actions))
        self._window: Window | None = None
        # step() looks these up thousands of times a second
        self._horizon = model.horizon
        self._n_actions = model.n_actions
        self._bernoulli = model.reward_law == "bernoulli"
        self._stride = 0 if model.stationary else model.n_states * model.n_actions  # rows from stage to stage
        self._rows: list[_Row | None] = [None] * len(model.tables.offsets)
        self._tape: list[float] = []
        self._stage = self._horizon  # no episode yet
        self._state = 0
        self._path = Path.start(0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start the episode of the next user.

        The user is ``options["user"]``, or a new one.
        """
        super().reset(seed=seed)
        tape = user_option(options)
        if tape is None:
            self._tape = self.np_random.random(self.model.tape_length).tolist()
        else:
            self._tape = check_tapes(tape, self._horizon, one=True).tolist()
        tables = self.model.tables
        first = int(np.searchsorted(tables.initial_cumulative, self._tape[0], side="right"))
        self._state = int(tables.initial_states[first])
        self._stage = 0
        if self.render_mode is not None:
            self._path = Path.start(self._state)
            if self.render_mode == "human":
                self.render()
        return self._observation(), {}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one of the user's H steps."""
        stage = self._stage
        if stage >= self._horizon:
            raise ResetNeeded(self._why_no_step())
        try:
            action = index(action)
        except TypeError:
            raise InvalidAction(self._why_not(action)) from None
        if not 0 <= action < self._n_actions:
            raise InvalidAction(self._why_not(action))
        row = stage * self._stride + self._state * self._n_actions + action
        cumulative, successors, means = self._rows[row] or self._read_row(row)
        entry = bisect_right(cumulative, self._tape[2 * stage + 2])
        reward = means[entry]
        if self._bernoulli:
            reward = 1.0 if self._tape[2 * stage + 1] < reward else 0.0
        self._state = successors[entry]
        self._stage = stage = stage + 1
        if self.render_mode is not None:
            self._path = self._path.then(action, reward, self._state)
            if self.render_mode == "human":
                self.render()
        return self._observation(), reward, stage == self._horizon, False, {}

    def render(self) -> Any:
        """Show the state of the user, as text, as a picture or in a window."""
        if self.render_mode is None:
            gym.logger.warn(
                "Nothing is rendered without a render mode: pass render_mode='ansi', 'rgb_array' or 'human' to "
                "gym.make."
            )
            return None
        if not self._tape:
            raise ResetNeeded("There is no user to show yet: call reset() before render().")
        scene = self.scene()
        if self.render_mode == "ansi":
            return text(scene, self._path)
        if self.render_mode == "rgb_array":
            return picture(scene, self._path)
        if self._window is None:
            self._window = Window(scene.title, fps=self.metadata["render_fps"])
        self._window.show(scene, self._path)
        return None

    def scene(self) -> Scene:
        """Return the scene that draws this family."""
        return self.scene_type(self.model, self.title)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def _observation(self) -> Observation:
        if self.features is not None:
            seen = self.features[self._state]
            return np.append(seen, np.float32(self._stage / self._horizon)) if self.observe_time else seen.copy()
        if self.observe_time:
            return np.array([min(self._stage, self._horizon - 1), self._state], dtype=np.int64)
        return self._state

    def _read_row(self, row: int) -> _Row:
        """Return the outcomes of one (stage, state, action) as Python numbers.

        They are kept for the next visit.
        """
        tables = self.model.tables
        entries = slice(tables.offsets[row], tables.offsets[row + 1])
        outcomes = (
            tables.cumulative[entries].tolist(),
            tables.successors[entries].tolist(),
            tables.rewards[entries].tolist(),
        )
        self._rows[row] = outcomes
        return outcomes

    def _why_no_step(self) -> str:
        if not self._tape:
            return "There is no user yet: call reset() before step()."
        return f"This user's episode ended after {self._horizon} steps: call reset() to meet the next one."

    def _why_not(self, action: Any) -> str:
        return (
            f"The action {action!r} is not a whole number in 0..{self._n_actions - 1}, the actions of this environment."
        )

    def __getstate__(self) -> dict[str, Any]:
        # A window and a cache stay behind.
        return {**self.__dict__, "_window": None, "_rows": [None] * len(self._rows)}
