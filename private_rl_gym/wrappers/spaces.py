"""Adapters for spaces: finite ones are flattened, and boxes are put into bins.

Data have no part in the choice of the bins.

* ``FlattenSpaces`` - Tuple, MultiDiscrete, MultiBinary and Dict spaces, of observations and of actions, as ``Discrete``
* ``Discretize`` - observations in a ``Box`` as ``Discrete``, by bins of equal width between stated bounds

Both belong inside a boundary, around the environment. They carry nothing from one user to the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.planning.arrays import numbers, positive_integer, shown

__all__ = ["Discretize", "Finite", "FlattenSpaces", "alternatives", "bounds_of", "boxes_of", "leaves", "values_in"]

HERE = "private_rl_gym.wrappers"
"""The package that messages name wrappers by, so that a line can be written as it stands."""

LARGEST = 10**7
"""The largest number of states or actions that a space is flattened to."""

ENDLESS = 1e30
"""Bounds above this number are as good as none."""

OUTSIDE = "An observation is not in its space."

ONE_OF_MANY = (
    "Let the environment take one of finitely many actions: "
    "env = gymnasium.wrappers.TransformAction(env, lambda number: ..., spaces.Discrete(n))"
)

Finite = spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
"""Spaces of finitely many elements, without parts."""

SEVERAL = 12
"""The largest number of entries of a box that bins are advised for: two bins for each are thousands of states."""


class FlattenSpaces(gym.Wrapper[int, int, Any, Any], gym.utils.RecordConstructorArgs):
    """A numbering of finite spaces, so that trust boundaries can count their elements.

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
        self._seen = _Numbering(env.observation_space, "observation")
        self._done = _Numbering(env.action_space, "action")
        self.observation_space = spaces.Discrete(self._seen.size)  # type: ignore[assignment]
        self.action_space = spaces.Discrete(self._done.size)  # type: ignore[assignment]

    def number(self, observation: Any) -> int:
        """Return the number of an observation.

        Raise ValueError if it is not in its space.
        """
        return self._seen.number(observation)

    def element(self, number: int) -> Any:
        """Return the observation with this number."""
        return self._seen.element(number)

    def action_number(self, action: Any) -> int:
        """Return the number of an action of the environment.

        Raise ValueError if it is not in its space.
        """
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
    """Bins of equal width for observations in a ``Box``.

    With them trust boundaries can count observations. Bounds and bins are stated, or those of the space, and never
    taken from data: a bound that follows the largest observation would tell it. What lies beyond a bound falls into the
    bin next to it. The last entry counts fastest. In a Tuple or Dict the entries of all boxes are put into bins, and
    finite parts are counted as they are.

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
        if not isinstance(bins, int | np.integer | list | tuple) and np.ndim(bins) != 1:
            raise TypeError(f"bins is {shown(bins)}: give a number of bins, or one for each entry.")
        counts = [bins] * entries if isinstance(bins, int | np.integer) else list(bins)
        if len(counts) != entries:
            raise ValueError(f"bins has {len(counts)} numbers: an observation has {entries} entries.")
        each = np.array([positive_integer(count, "bins", "bins of an entry") for count in counts])
        shape = boxes[0].shape if len(boxes) == 1 else (entries,)
        low = np.concatenate([box.low.reshape(-1) for box in boxes]) if low is None else low
        high = np.concatenate([box.high.reshape(-1) for box in boxes]) if high is None else high
        line = f"{HERE}.Discretize(env, bins, low=[...], high=[...])"
        lower, upper = bounds_of(space, low, high, shape, line, each > 1)
        ends = np.cumsum([math.prod(box.shape) for box in boxes])[:-1]
        parts = zip(*(np.split(array, ends) for array in (each, lower, upper)), strict=True)
        self._seen = _Numbering(space, "observation", [_Bins(*part) for part in parts])
        if self._seen.size > LARGEST:
            raise ValueError(
                f"bins make {self._seen.size:.3g} states, and at most {LARGEST:,} can be counted: take fewer."
            )
        self.observation_space = spaces.Discrete(self._seen.size)  # type: ignore[assignment]

    def observation(self, observation: Any) -> int:
        """Return the number of the bin that an observation is in.

        Raise ValueError if an entry is not a number.
        """
        return self._seen.number(observation)


# Parts ---------------------------------------------------------------------------------------------------------------


def leaves(space: gym.Space[Any]) -> list[gym.Space[Any]]:
    """Return the parts of a space that have no parts themselves, in order."""
    if not isinstance(space, spaces.Tuple | spaces.Dict):
        return [space]
    parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
    return [leaf for part in parts for leaf in leaves(part)]


def boxes_of(space: gym.Space[Any]) -> list[spaces.Box]:
    """Return the boxes in a space, in order."""
    return [leaf for leaf in leaves(space) if isinstance(leaf, spaces.Box)]


def values_in(space: gym.Space[Any], element: Any) -> list[Any]:
    """Return the values of an element for the leaves of its space."""
    if not isinstance(space, spaces.Tuple | spaces.Dict):
        return [element]
    if isinstance(space, spaces.Dict):
        return [value for key, part in space.spaces.items() for value in values_in(part, element[key])]
    if len(element) != len(space.spaces):
        raise ValueError(OUTSIDE)
    return [value for part, own in zip(space.spaces, element, strict=True) for value in values_in(part, own)]


def _element_of(space: gym.Space[Any], values: Iterator[Any]) -> Any:
    """Return the element with these values for the leaves of its space."""
    if isinstance(space, spaces.Dict):
        return {name: _element_of(part, values) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_element_of(part, values) for part in space.spaces)
    return next(values)


def alternatives(space: Finite) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of alternatives of each entry of a finite space.

    The first alternative of each entry is returned too.
    """
    if isinstance(space, spaces.MultiBinary):
        sizes = np.full(math.prod(space.shape), 2)
        return sizes, np.zeros_like(sizes)
    sizes = np.asarray(space.n if isinstance(space, spaces.Discrete) else space.nvec)
    starts = np.broadcast_to(space.start, sizes.shape)
    return sizes.reshape(-1).astype(np.int64), starts.reshape(-1).astype(np.int64)


def bounds_of(
    space: gym.Space[Any],
    low: ArrayLike,
    high: ArrayLike,
    shape: tuple[int, ...],
    line: str,
    used: NDArray[np.bool_] | bool = True,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds of the entries of an observation.

    They are two rows. Raise ValueError unless bounds are finite where they are used. ``line`` is the line to write
    where there are none.
    """
    lower, upper = _row(low, shape, "low"), _row(high, shape, "high")
    endless = used & ~((np.abs(lower) <= ENDLESS) & (np.abs(upper) <= ENDLESS))
    if endless.any():
        raise ValueError(
            f"Entries {', '.join(map(str, np.flatnonzero(endless)))} of {space} have no finite bounds. Give bounds "
            f"that are publicly known, or guesses: {line}."
        )
    if (used & ~(lower < upper)).any():
        raise ValueError(f"low is {lower.tolist()} and high {upper.tolist()}: low must lie below high.")
    return lower, upper


def _row(values: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    try:
        given = numbers(values, name)
        flat = given.size == math.prod(shape) and given.ndim == 1
        return (given if flat else np.broadcast_to(given, shape)).reshape(-1).copy()
    except (TypeError, ValueError):
        raise ValueError(f"{name} does not fit: give one number, or one for each entry of shape {shape}.") from None


# Numberings ----------------------------------------------------------------------------------------------------------


class _MixedDigits:
    """The numbering of a finite space without parts; the last entry counts fastest."""

    def __init__(self, space: Finite) -> None:
        self._space = space
        self._entries = [(int(size), int(start)) for size, start in zip(*alternatives(space), strict=True)]
        self.size = math.prod(size for size, _ in self._entries)

    def number(self, element: Any) -> int:
        values = [element] if isinstance(self._space, spaces.Discrete) else np.asarray(element).reshape(-1)
        if len(values) != len(self._entries):
            raise ValueError(OUTSIDE)
        number = 0
        for (size, start), value in zip(self._entries, values, strict=True):
            digit = int(value) - start
            if not 0 <= digit < size:
                raise ValueError(OUTSIDE)
            number = number * size + digit
        return number

    def element(self, number: int) -> Any:
        values = []
        for size, start in reversed(self._entries):
            number, digit = divmod(number, size)
            values.append(digit + start)
        if isinstance(self._space, spaces.Discrete):
            return values[0]
        return np.array(values[::-1], dtype=self._space.dtype).reshape(self._space.shape)


class _Bins:
    """The numbering of a box by bins; the last entry counts fastest.

    There are bins for each of its entries.
    """

    def __init__(self, bins: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        self._bins, used = bins, bins > 1
        self._low, self._width = np.where(used, low, 0.0), np.where(used, high - low, 1.0)
        self._strides = np.append(np.cumprod(bins[:0:-1])[::-1], 1)
        self.size = math.prod(bins.tolist())

    def number(self, element: Any) -> int:
        entries = np.asarray(element, dtype=np.float64).reshape(-1)
        if len(entries) != len(self._bins) or np.isnan(entries).any():
            raise ValueError(OUTSIDE)
        share = np.where(self._bins > 1, (np.clip(entries, -1e300, 1e300) - self._low) / self._width, 0.0)
        place = np.clip(np.floor(share * self._bins), 0, self._bins - 1).astype(np.int64)
        return int(place @ self._strides)

    def element(self, number: int) -> Any:
        raise TypeError(f"Bin {number} stands for many observations, and not for one.")


class _Numbering:
    """The numbering of a space; its last part counts fastest.

    ``bins`` number the boxes in it.

    Raises:
        TypeError: If the space has no finite number of elements.
    """

    def __init__(self, space: gym.Space[Any], name: str, bins: Sequence[_Bins] = ()) -> None:
        self._space, boxes = space, iter(bins)
        self._parts: list[_MixedDigits | _Bins] = []
        for leaf in leaves(space):
            if isinstance(leaf, Finite):
                self._parts.append(_MixedDigits(leaf))
            elif isinstance(leaf, spaces.Box) and bins:
                self._parts.append(next(boxes))
            else:
                raise TypeError(
                    f"The {name} space is {space}: {leaf} in it has no finite number of elements. "
                    + (_instead(leaf, space) if name == "observation" else ONE_OF_MANY)
                )
        self.size = math.prod(part.size for part in self._parts)
        if self.size > LARGEST and not bins:
            raise ValueError(
                f"The {name} space is {space}, with {self.size:.3g} elements: at most {LARGEST:,} can be counted. "
                "Leave out what is not needed, with gymnasium.wrappers.TransformObservation."
            )

    def number(self, element: Any) -> int:
        """Return the number of an element; raise ValueError if the space lacks it."""
        number = 0
        for part, value in zip(self._parts, values_in(self._space, element), strict=True):
            number = number * part.size + part.number(value)
        return number

    def element(self, number: int) -> Any:
        """Return the element with this number."""
        values = []
        for part in reversed(self._parts):
            number, own = divmod(number, part.size)
            values.append(part.element(own))
        return _element_of(self._space, reversed(values))


def _instead(space: gym.Space[Any], whole: gym.Space[Any]) -> str:
    """Return advice on a space without a finite number of elements.

    It is the line that puts a box into bins, or leaves a part out.
    """
    few = isinstance(space, spaces.Box) and math.prod(space.shape) <= SEVERAL  # and no picture
    if space is whole and isinstance(space, spaces.Box):
        return f"Put it into bins: env = {HERE}.Discretize(env, bins=...)"
    if space is whole:
        return "Show numbers in its place, with gymnasium.wrappers.TransformObservation."
    return _without(whole) + (f", or put it into bins: env = {HERE}.Discretize(env, bins=...)" if few else "")


def _without(whole: gym.Space[Any]) -> str:
    """Return the line that leaves out parts without a finite number of elements."""
    kept = []
    for key, part in whole.spaces.items() if isinstance(whole, spaces.Dict) else ():
        if all(isinstance(leaf, Finite) for leaf in leaves(part)):
            kept.append(key)
    if kept:
        return f"Leave that part out: env = gymnasium.wrappers.FilterObservation(env, {kept})"
    return "Leave that part out, with gymnasium.wrappers.TransformObservation"
