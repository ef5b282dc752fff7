"""Numbers for networks: rows from observations, and actions from rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from private_rl_gym.wrappers.spaces import Finite, alternatives, leaves, values_in

__all__ = ["ActionCode", "ObservationCode"]

LARGEST = 10.0
"""Largest absolute value of a number that a network sees; numbers beyond it are cut off there."""

BOUNDED = 1e4
"""Bounds of a Box above this are no bounds: numbers are then taken as they are, without a scale."""


@dataclass(frozen=True, slots=True, eq=False)
class ObservationCode:
    """A row of numbers for each observation.

    It is computed from public facts about the space. Numbers of a Box with bounds are scaled to [-1, 1] and others are
    taken as they are; choices become one-hots.
    """

    space: spaces.Space[Any]
    size: int
    middle: NDArray[np.float64]
    half: NDArray[np.float64]

    @classmethod
    def of(cls, space: spaces.Space[Any]) -> ObservationCode:
        """Return the code of a space; raise TypeError if there is none."""
        sizes = [_size(leaf) for leaf in leaves(space)]
        middle, half, at = np.zeros(sum(sizes)), np.ones(sum(sizes)), 0
        for leaf, size in zip(leaves(space), sizes, strict=True):
            if isinstance(leaf, spaces.Box):
                low, high = leaf.low.ravel().astype(np.float64), leaf.high.ravel().astype(np.float64)
                bounded = np.flatnonzero((low > -BOUNDED) & (high < BOUNDED) & (high > low))
                low, high = low[bounded], high[bounded]
                middle[at + bounded], half[at + bounded] = (low + high) / 2.0, (high - low) / 2.0
            at += size
        return cls(space, sum(sizes), middle, half)

    def rows(self, observations: Any, out: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Write one row for each of a batch of observations.

        The result states which rows are good. A batch is an array with one observation after the other, or a sequence
        of observations.
        """
        if isinstance(self.space, spaces.Box):
            out[:] = np.asarray(observations, dtype=np.float64).reshape(out.shape)
        elif isinstance(self.space, spaces.Discrete):
            states = np.asarray(observations).reshape(len(out)).astype(np.int64) - int(self.space.start)
            out[:] = 0.0
            inside = np.logical_and(states >= 0, states < self.size)
            out[np.flatnonzero(inside), states[inside]] = 1.0
            return np.array(inside, dtype=np.bool_)
        else:
            for row, observation in zip(out, observations, strict=True):
                self.write(observation, row)
        return self.scale(out)

    def write(self, observation: Any, row: NDArray[np.float64]) -> None:
        """Write one observation, without its scale.

        Numbers outside their space become NaN. Raises an error if the observation cannot be read.
        """
        at = 0
        for leaf, value in zip(leaves(self.space), values_in(self.space, observation), strict=True):
            if isinstance(leaf, spaces.Box | spaces.MultiBinary):
                size = int(np.prod(leaf.shape))
                row[at : at + size] = np.asarray(value, dtype=np.float64).reshape(size)
                at += size
                continue
            sizes, starts = alternatives(leaf)  # type: ignore[arg-type] # of spaces that have a size
            row[at : at + sizes.sum()] = 0.0
            for size, start, choice in zip(sizes, starts, np.asarray(value).ravel(), strict=True):
                place = int(choice) - int(start)
                inside = 0 <= place < size
                row[at + (place if inside else 0)] = 1.0 if inside else np.nan
                at += size

    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and the largest numbers of rows: bounds of the space, or ``LARGEST``."""
        low, high, at = np.full(self.size, -LARGEST), np.full(self.size, LARGEST), 0
        for leaf in leaves(self.space):
            size = _size(leaf)
            if isinstance(leaf, spaces.Box):
                below, above = leaf.low.ravel().astype(np.float64), leaf.high.ravel().astype(np.float64)
                bounded = at + np.flatnonzero((below > -BOUNDED) & (above < BOUNDED) & (above > below))
                low[bounded], high[bounded] = -1.0, 1.0
            else:
                low[at : at + size], high[at : at + size] = 0.0, 1.0
            at += size
        return low, high

    def observations(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the observations of a Box from their rows."""
        if not isinstance(self.space, spaces.Box):
            raise TypeError(f"Functions of observations are for a Box, and these are of {self.space}.")
        return (rows * self.half + self.middle).reshape(len(rows), *self.space.shape)

    def scale(self, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Scale written rows in place, and return which rows are good."""
        good = np.array(np.isfinite(rows).all(axis=1), dtype=np.bool_)
        rows -= self.middle
        rows /= self.half
        np.clip(rows, -LARGEST, LARGEST, out=rows)
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
        """Return the code of a space; raise TypeError if there is none."""
        if isinstance(space, Finite):
            return cls(space, tuple(alternatives(space)[0].tolist()), 0)
        if isinstance(space, spaces.Box) and np.isfinite(space.low).all() and np.isfinite(space.high).all():
            return cls(space, (), int(np.prod(space.shape)))
        raise TypeError(
            f"The action space is {space}: policy networks act in Discrete, MultiDiscrete and MultiBinary spaces, and "
            "in a Box with bounds. Map it to one of these with a wrapper inside the boundary."
        )

    def actions(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Return the environment's actions, one for each row."""
        space = self.space
        if isinstance(space, spaces.Discrete):
            return rows[:, 0].astype(np.int64) + int(space.start)
        if isinstance(space, spaces.Box):
            low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
            scaled = (low + high) / 2.0 + np.clip(rows, -1.0, 1.0) * ((high - low) / 2.0)
            return np.clip(scaled, low, high).reshape(len(rows), *space.shape).astype(space.dtype)
        start = space.start.ravel() if isinstance(space, spaces.MultiDiscrete) else 0
        return (rows.astype(np.int64) + start).reshape(len(rows), *space.shape).astype(space.dtype)  # type: ignore[misc]


def _size(leaf: spaces.Space[Any]) -> int:
    """Return the length of one part of an observation in its row.

    The part has no parts itself.
    """
    if isinstance(leaf, spaces.Box | spaces.MultiBinary):
        return int(np.prod(leaf.shape))
    if isinstance(leaf, spaces.Discrete | spaces.MultiDiscrete):
        return int(alternatives(leaf)[0].sum())
    raise TypeError(
        f"The observation space is {leaf}: policy networks see Box, Discrete, MultiDiscrete and MultiBinary spaces, "
        "and Tuples and Dicts of them. Map it to one of these with a wrapper inside the boundary."
    )
