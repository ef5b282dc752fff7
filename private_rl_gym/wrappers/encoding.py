"""Numbers for networks: rows from observations, and actions from rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

__all__ = ["ActionCode", "ObservationCode"]

LARGEST = 10.0
"""Largest absolute value of a number that a network sees; numbers beyond it are cut off there."""

BOUNDED = 1e4
"""Bounds of a Box above this are no bounds: numbers are then taken as they are, without a scale."""


@dataclass(frozen=True, slots=True, eq=False)
class ObservationCode:
    """A row of numbers for each observation, by what is public about the space.

    Numbers of a Box with bounds are scaled to [-1, 1] and others are taken as they are; choices become one-hots.
    """

    space: spaces.Space[Any]
    size: int
    middle: NDArray[np.float64]
    half: NDArray[np.float64]

    @classmethod
    def of(cls, space: spaces.Space[Any]) -> ObservationCode:
        """The code of a space. Raises TypeError if there is none."""
        size = _size(space)
        middle, half = np.zeros(size), np.ones(size)
        _scales(space, middle, half)
        return cls(space, size, middle, half)

    def rows(self, observations: Any, out: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Write one row for each of a batch of observations; the result says which rows are good.

        A batch is an array with one observation after the other, or a sequence of observations.
        """
        if isinstance(self.space, spaces.Box):
            out[:] = np.asarray(observations, dtype=np.float64).reshape(out.shape)
        elif isinstance(self.space, spaces.Discrete):
            states = np.asarray(observations).astype(np.int64) - int(self.space.start)
            out[:] = 0.0
            inside = np.logical_and(states >= 0, states < self.size)
            out[np.flatnonzero(inside), states[inside]] = 1.0
            return np.array(inside, dtype=np.bool_)
        else:
            for row, observation in zip(out, observations, strict=True):
                _write(self.space, observation, row)
        good = np.array(np.isfinite(out).all(axis=1), dtype=np.bool_)
        out -= self.middle
        out /= self.half
        np.clip(out, -LARGEST, LARGEST, out=out)
        return good


@dataclass(frozen=True, slots=True, eq=False)
class ActionCode:
    """Actions of an environment from the numbers of a network.

    Attributes:
        space: The action space.
        choices: The number of alternatives of each choice.
        continuous: How many numbers a Box action has; [-1, 1] is mapped to its bounds, and cut off there.
    """

    space: spaces.Space[Any]
    choices: tuple[int, ...]
    continuous: int

    @classmethod
    def of(cls, space: spaces.Space[Any]) -> ActionCode:
        """The code of a space. Raises TypeError if there is none."""
        if isinstance(space, spaces.Discrete):
            return cls(space, (int(space.n),), 0)
        if isinstance(space, spaces.MultiDiscrete):
            return cls(space, tuple(int(n) for n in space.nvec.ravel()), 0)
        if isinstance(space, spaces.MultiBinary):
            return cls(space, (2,) * int(np.prod(space.shape)), 0)
        if isinstance(space, spaces.Box) and np.isfinite(space.low).all() and np.isfinite(space.high).all():
            return cls(space, (), int(np.prod(space.shape)))
        raise TypeError(
            f"The action space is {space}: policy networks act in Discrete, MultiDiscrete and MultiBinary spaces, and "
            "in a Box with bounds. Map it to one of these with a wrapper inside the boundary."
        )

    def actions(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """The environment's actions, one for each row."""
        space = self.space
        if isinstance(space, spaces.Discrete):
            return rows[:, 0].astype(np.int64) + int(space.start)
        if isinstance(space, spaces.Box):
            low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
            scaled = (low + high) / 2.0 + np.clip(rows, -1.0, 1.0) * ((high - low) / 2.0)
            return np.clip(scaled, low, high).reshape(len(rows), *space.shape).astype(space.dtype)
        start = space.start.ravel() if isinstance(space, spaces.MultiDiscrete) else 0
        return (rows.astype(np.int64) + start).reshape(len(rows), *space.shape).astype(space.dtype)  # type: ignore[misc]


def _parts(space: spaces.Space[Any]) -> list[spaces.Space[Any]]:
    if isinstance(space, spaces.Tuple):
        return list(space.spaces)
    assert isinstance(space, spaces.Dict)  # noqa: S101 - checked by _size
    return list(space.spaces.values())


def _size(space: spaces.Space[Any]) -> int:
    """Numbers in the row of an observation."""
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return int(np.prod(space.shape))
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return sum(_size(part) for part in _parts(space))
    raise TypeError(
        f"The observation space is {space}: policy networks see Box, Discrete, MultiDiscrete and MultiBinary spaces, "
        "and Tuples and Dicts of them. Map it to one of these with a wrapper inside the boundary."
    )


def _scales(space: spaces.Space[Any], middle: NDArray[np.float64], half: NDArray[np.float64]) -> None:
    """Write the middle and half the width of every number that has bounds."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        at = 0
        for part in _parts(space):
            size = _size(part)
            _scales(part, middle[at : at + size], half[at : at + size])
            at += size
    elif isinstance(space, spaces.Box):
        low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
        bounded = (low > -BOUNDED) & (high < BOUNDED) & (high > low)
        low, high = low[bounded], high[bounded]
        middle[bounded], half[bounded] = (low + high) / 2.0, (high - low) / 2.0


def _write(space: spaces.Space[Any], observation: Any, row: NDArray[np.float64]) -> None:
    """Write one observation, without its scale; numbers outside their space become NaN."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        values = observation if isinstance(space, spaces.Tuple) else [observation[key] for key in space.spaces]
        at = 0
        for part, value in zip(_parts(space), values, strict=True):
            size = _size(part)
            _write(part, value, row[at : at + size])
            at += size
        return
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        row[:] = np.asarray(observation, dtype=np.float64).ravel()
        return
    row[:] = 0.0
    discrete = isinstance(space, spaces.Discrete)
    sizes = [int(space.n)] if discrete else [int(n) for n in space.nvec.ravel()]  # type: ignore[attr-defined]
    starts = np.asarray(space.start).ravel()  # type: ignore[attr-defined]
    at = 0
    for size, start, value in zip(sizes, starts, np.asarray(observation).ravel(), strict=True):
        if 0 <= int(value) - int(start) < size:
            row[at + int(value) - int(start)] = 1.0
        else:
            row[at] = np.nan
        at += size
