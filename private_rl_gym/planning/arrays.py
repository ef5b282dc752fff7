"""Checks of arrays that callers pass, with clear error messages."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["as_array", "as_distributions", "check_unit_interval", "cumulative", "positive_integer", "read_only"]

TOLERANCE = 1e-6
"""Largest distance from one of the sum of a distribution: the accuracy of single precision."""

LARGEST = 10**12
"""Largest whole number; a larger one is taken for a mistake."""

EXACT = 1e-12
"""Sums that are nearer to one than this are left as they are."""


def as_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """A new float array of ``values``; raises ``ValueError`` if they are not finite numbers in a regular array."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not a regular array of numbers: {error}.") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{_first(name, ~np.isfinite(array))} is not a finite number.")
    return array


def as_distributions(array: NDArray[np.float64], name: str, per: str) -> NDArray[np.float64]:
    """Rows (the last axis) that are probability distributions, one for every ``per``; raises ``ValueError`` otherwise.

    Rows with rounding errors are divided by their sums, so that values and simulations use the same model.
    """
    if (array < 0).any():
        where = _first(name, array < 0)
        raise ValueError(f"{where} is {array[array < 0][0]:g}: a probability cannot be negative.")
    sums = array.sum(axis=-1)
    wrong = np.abs(sums - 1.0) > TOLERANCE
    if wrong.any():
        value = sums[wrong].flat[0]
        raise ValueError(f"{_first(name, wrong)} sums to {value:.8g}, not to 1: each {per} needs a distribution.")
    off = np.abs(sums - 1.0) > EXACT
    return np.where(off[..., None], array / sums[..., None], array)


def cumulative(distributions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative probabilities along the last axis, exactly one from the last possible outcome on."""
    sums = np.minimum(np.cumsum(distributions, axis=-1), 1.0)
    possible = distributions > 0
    later: NDArray[np.int64] = (
        np.cumsum(possible[..., ::-1], axis=-1)[..., ::-1] - possible
    )  # possible outcomes after this one
    return np.where(later == 0, 1.0, sums)


def check_unit_interval(array: NDArray[np.float64], name: str, remedy: str) -> None:
    """Refuse values outside [0, 1], with ``remedy`` in the message."""
    wrong = (array < 0) | (array > 1)
    if wrong.any():
        raise ValueError(f"{_first(name, wrong)} is {array[wrong][0]:.16g}, outside [0, 1]: {remedy}")


def positive_integer(value: Any, name: str, unit: str) -> int:
    """``value`` as an int of at least 1; raises ``TypeError`` or ``ValueError`` otherwise."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: it must be a whole number of {unit}.") from None
    if number < 1:
        raise ValueError(f"{name} is {number}: it must be at least 1 ({unit}).")
    if number > LARGEST:
        raise ValueError(f"{name} is {number}: more than {LARGEST} ({unit}) cannot be counted here.")
    return number


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, made read-only, so that no object that shares it can change it."""
    array.setflags(write=False)
    return array


def _first(name: str, wrong: NDArray[np.bool_]) -> str:
    if wrong.ndim == 0:
        return name
    return f"{name}[{', '.join(str(i) for i in np.argwhere(wrong)[0])}]"
