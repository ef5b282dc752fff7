"""Adapters for spaces: finite ones are flattened, and boxes are put into bins that no data have chosen.

* ``FlattenSpaces`` - Tuple, MultiDiscrete, MultiBinary and Dict spaces, of observations and of actions, as ``Discrete``
* ``Discretize`` - observations in a ``Box`` as ``Discrete``, by bins of equal width between stated bounds

Both belong inside a boundary, around the environment. They carry nothing from one user to the next.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.planning.arrays import positive_integer

__all__ = ["Discretize", "FlattenSpaces", "boxes_of"]

HERE = "private_rl_gym.wrappers"
"""The package that messages name wrappers by, so that a line can be written as it stands."""

LARGEST = 10**7
"""The largest number of states or actions that a space is flattened to."""

SEVERAL = 12
"""The largest number of entries of a box that bins are advised for: two bins for each are thousands of states."""


class FlattenSpaces(gym.Wrapper[int, int, Any, Any], gym.utils.RecordConstructorArgs):
    """Numbers the elements of finite spaces, so that trust boundaries can count them.

    Tuple, Dict, MultiDiscrete and MultiBinary spaces, in any nesting, become ``Discrete``, of observations and of
    actions; a ``Discrete`` one then begins at 0. The last part counts fastest. ``number`` and ``element`` translate.

    Example:
        >>> import gymnasium as gym
        >>> from private_rl_gym.wrappers import FlattenSpaces, JDPBillboard
        >>> env = FlattenSpaces(gym.make("Blackjack-v1"))
        >>> env.observation_space
        Discrete(704)
        >>> env.element(env.number((13, 5, 1)))
        (13, 5, 1)
        >>> board = JDPBillboard(env, epsilon=1.0, delta=1e-6, users=1000, horizon=10, reward_range=(-1.5, 1.5))

    Args:
        env: An environment whose spaces have finitely many elements.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._seen = _code(env.observation_space, "observation")
        self._done = _code(env.action_space, "action")
        self.observation_space = spaces.Discrete(self._seen.size)  # type: ignore[assignment]
        self.action_space = spaces.Discrete(self._done.size)  # type: ignore[assignment]

    def number(self, observation: Any) -> int:
        """The number of an observation; raises ValueError if it is not in its space."""
        return self._seen.number(observation)

    def element(self, number: int) -> Any:
        """The observation with this number."""
        return self._seen.element(number)

    def action_number(self, action: Any) -> int:
        """The number of an action of the environment; raises ValueError if it is not in its space."""
        return self._done.number(action)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._seen.number(observation), info

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        """Take a step, by the number of an action."""
        if not self.action_space.contains(action):
            raise InvalidAction(f"The action {action!r} is not in {self.action_space}.")
        observation, reward, terminated, truncated, info = self.env.step(self._done.element(int(action)))
        return self._seen.number(observation), reward, terminated, truncated, info


class Discretize(gym.ObservationWrapper[int, Any, Any], gym.utils.RecordConstructorArgs):
    """Puts observations in a ``Box`` into bins of equal width, so that trust boundaries can count them.

    Bounds and bins are stated, or those of the space, and never taken from data: a bound that follows the largest
    observation would tell it. What lies beyond a bound falls into the bin next to it. The last entry counts fastest.
    In a Tuple or Dict the entries of all boxes are put into bins, and finite parts are counted as they are.

    Example:
        >>> import gymnasium as gym
        >>> from private_rl_gym.wrappers import Discretize
        >>> env = gym.make("CartPole-v1")
        >>> env = Discretize(env, bins=(1, 4, 6, 6), low=(-2.4, -2, -0.21, -2), high=(2.4, 2, 0.21, 2))
        >>> env.observation_space
        Discrete(144)

    Args:
        env: An environment with a ``Box`` of observations, or with boxes among the parts of a Tuple or Dict.
        bins: Number of bins for each entry of an observation, or one number for all; 1 leaves an entry out. The
            entries of several boxes stand one behind the other, in the order of the space.
        low: Lower bounds for all entries, or one for all; by default those of the space, if they are finite.
        high: Upper bounds.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        bins: int | Sequence[int],
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, bins=bins, low=low, high=high)
        gym.ObservationWrapper.__init__(self, env)
        space = env.observation_space
        boxes = boxes_of(space)
        if not boxes:
            raise TypeError(
                f"The observation space is {space}: Discretize is for a Box. Use {HERE}.FlattenSpaces(env)."
            )
        entries = sum(math.prod(box.shape) for box in boxes)
        counts = [bins] * entries if isinstance(bins, int | np.integer) else list(bins)
        if len(counts) != entries:
            raise ValueError(f"bins has {len(counts)} numbers: an observation has {entries} entries.")
        each = np.array([positive_integer(count, "bins", "bins of an entry") for count in counts])
        shape = boxes[0].shape if len(boxes) == 1 else (entries,)
        lower = _bounds(np.concatenate([box.low.reshape(-1) for box in boxes]) if low is None else low, shape, "low")
        upper = _bounds(
            np.concatenate([box.high.reshape(-1) for box in boxes]) if high is None else high, shape, "high"
        )
        used = each > 1
        endless = used & ~(np.isfinite(lower) & np.isfinite(upper) & np.isfinite(upper - lower))
        endless |= used & (np.maximum(np.abs(lower), np.abs(upper)) > 1e30)  # as good as endless
        if endless.any():
            raise ValueError(
                f"Entries {', '.join(map(str, np.flatnonzero(endless)))} of {space} have no finite bounds. State what "
                f"is publicly known of them, or guess: {HERE}.Discretize(env, bins, low=[...], high=[...])."
            )
        if (used & ~(lower < upper)).any():
            raise ValueError(f"low is {lower.tolist()} and high {upper.tolist()}: low must lie below high.")
        ends = np.cumsum([math.prod(box.shape) for box in boxes])[:-1]
        parts = zip(*(np.split(array, ends) for array in (each, lower, upper)), strict=True)
        self._seen = _part(space, space, "observation", iter([_Bins(*part) for part in parts]))
        if self._seen.size > LARGEST:
            raise ValueError(
                f"bins make {self._seen.size:.3g} states, and at most {LARGEST:,} can be counted: take fewer."
            )
        self.observation_space = spaces.Discrete(self._seen.size)  # type: ignore[assignment]

    def observation(self, observation: Any) -> int:
        """The number of the bin that an observation is in; raises ValueError for what is no number."""
        return self._seen.number(observation)


def _bounds(values: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    try:
        given = np.asarray(values, dtype=np.float64)
        flat = given.size == math.prod(shape) and given.ndim == 1
        return (given if flat else np.broadcast_to(given, shape)).reshape(-1).copy()
    except (TypeError, ValueError):
        raise ValueError(f"{name} does not fit: give one number, or one for each entry of shape {shape}.") from None


def boxes_of(space: gym.Space[Any]) -> list[spaces.Box]:
    """The boxes in a space, in its order."""
    if isinstance(space, spaces.Box):
        return [space]
    if not isinstance(space, spaces.Tuple | spaces.Dict):
        return []
    parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
    return [box for part in parts for box in boxes_of(part)]


# Codes ---------------------------------------------------------------------------------------------------------------


class _Code(ABC):
    """A numbering of the elements of a space."""

    size: int

    @abstractmethod
    def number(self, element: Any) -> int:
        """The number of an element."""

    @abstractmethod
    def element(self, number: int) -> Any:
        """The element with this number."""


class _Single(_Code):
    """Whole numbers in a row."""

    def __init__(self, size: int, start: int = 0) -> None:
        self.size, self._start = size, start

    def number(self, element: Any) -> int:
        number = int(element) - self._start
        if not 0 <= number < self.size:
            raise ValueError("An observation is not in its space.")
        return number

    def element(self, number: int) -> int:
        return number + self._start


class _Bins(_Code):
    """The bins of the entries of a box."""

    def __init__(self, bins: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        self._bins, used = bins, bins > 1
        self._low, self._width = np.where(used, low, 0.0), np.where(used, high - low, 1.0)
        self._strides = np.append(np.cumprod(bins[:0:-1])[::-1], 1)
        self.size = math.prod(bins.tolist())

    def number(self, element: Any) -> int:
        entries = np.asarray(element, dtype=np.float64).reshape(-1)
        if len(entries) != len(self._bins) or np.isnan(entries).any():
            raise ValueError("An observation is not in its space.")
        share = np.where(self._bins > 1, (np.clip(entries, -1e300, 1e300) - self._low) / self._width, 0.0)
        place = np.clip(np.floor(share * self._bins), 0, self._bins - 1).astype(np.int64)
        return int(place @ self._strides)

    def element(self, number: int) -> Any:
        raise TypeError(f"Bin {number} stands for many observations.")


class _Several(_Code):
    """Parts of which the last counts fastest."""

    def __init__(self, space: gym.Space[Any], parts: Sequence[_Code]) -> None:
        self._space, self._parts = space, parts
        self.size = math.prod(part.size for part in parts)

    def number(self, element: Any) -> int:
        if isinstance(self._space, spaces.Dict):
            element = [element[name] for name in self._space.spaces]
        elif not isinstance(self._space, spaces.Tuple):
            element = np.asarray(element).reshape(-1)
        if len(element) != len(self._parts):
            raise ValueError("An observation is not in its space.")
        number = 0
        for part, value in zip(self._parts, element, strict=True):
            number = number * part.size + part.number(value)
        return number

    def element(self, number: int) -> Any:
        values: list[Any] = []
        for part in reversed(self._parts):
            number, own = divmod(number, part.size)
            values.append(part.element(own))
        values.reverse()
        if isinstance(self._space, spaces.Dict):
            return dict(zip(self._space.spaces, values, strict=True))
        if isinstance(self._space, spaces.Tuple):
            return tuple(values)
        return np.array(values, dtype=self._space.dtype).reshape(self._space.shape)


def _code(space: gym.Space[Any], name: str) -> _Code:
    """The numbering of a space; raises TypeError if it has no finite number of elements, or ValueError if too many."""
    code = _part(space, space, name)
    if code.size > LARGEST:
        raise ValueError(
            f"The {name} space is {space}, with {code.size:.3g} elements: at most {LARGEST:,} can be counted. Leave "
            "out what is not needed, with gymnasium.wrappers.TransformObservation."
        )
    return code


def _part(space: gym.Space[Any], whole: gym.Space[Any], name: str, boxes: Iterator[_Code] | None = None) -> _Code:
    """The numbering of a part of a space, in which the next of ``boxes`` numbers a box."""
    if isinstance(space, spaces.Discrete):
        return _Single(int(space.n), int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        starts = np.broadcast_to(space.start, space.shape).reshape(-1)
        return _Several(space, [_Single(int(n), int(s)) for n, s in zip(space.nvec.reshape(-1), starts, strict=True)])
    if isinstance(space, spaces.MultiBinary):
        return _Several(space, [_Single(2)] * math.prod(space.shape))
    if isinstance(space, spaces.Tuple):
        return _Several(space, [_part(part, whole, name, boxes) for part in space.spaces])
    if isinstance(space, spaces.Dict):
        return _Several(space, [_part(part, whole, name, boxes) for part in space.spaces.values()])
    if isinstance(space, spaces.Box) and boxes is not None:
        return next(boxes)
    raise TypeError(
        f"The {name} space is {whole}: {space} in it has no finite number of elements. "
        + (
            _instead(space, whole)
            if name == "observation"
            else "Let the environment take one of finitely many actions: "
            "env = gymnasium.wrappers.TransformAction(env, lambda number: ..., spaces.Discrete(n))"
        )
    )


def _instead(space: gym.Space[Any], whole: gym.Space[Any]) -> str:
    """The line that puts a box into bins, or leaves out what has no finite number of elements."""
    few = isinstance(space, spaces.Box) and math.prod(space.shape) <= SEVERAL  # and no picture
    if space is whole and isinstance(space, spaces.Box):
        return f"Put it into bins: env = {HERE}.Discretize(env, bins=...)"
    if space is whole:
        return "Show numbers in its place, with gymnasium.wrappers.TransformObservation."
    return _without(whole) + (f", or put it into bins: env = {HERE}.Discretize(env, bins=...)" if few else "")


def _without(whole: gym.Space[Any]) -> str:
    """The line that leaves out what has no finite number of elements."""
    kept = []
    for key, part in whole.spaces.items() if isinstance(whole, spaces.Dict) else ():
        try:
            _part(part, part, "observation")
            kept.append(key)
        except TypeError:
            pass
    if kept:
        return f"Leave that part out: env = gymnasium.wrappers.FilterObservation(env, {kept})"
    return "Leave that part out, with gymnasium.wrappers.TransformObservation"
