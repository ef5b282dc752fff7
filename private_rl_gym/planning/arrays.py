"""Checks of numbers, names, paths and arrays that callers pass, with clear error messages."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "among",
    "as_array",
    "as_distributions",
    "check_unit_interval",
    "cumulative",
    "file_path",
    "flag",
    "numbers",
    "positive_integer",
    "read_only",
    "real",
    "seed_of",
    "shown",
    "whole",
]

TOLERANCE = 1e-6
"""Largest distance from one of the sum of a distribution: the accuracy of single precision."""

LARGEST = 10**12
"""Largest whole number; a larger one is taken for a mistake."""

EXACT = 1e-12
"""Sums that are nearer to one than this are left as they are."""


def as_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return a new float array of ``values``.

    Raises ``ValueError`` if they are not finite numbers in a regular array.
    """
    array = np.array(numbers(values, name), order="C")
    if not np.isfinite(array).all():
        raise ValueError(f"{_first(name, ~np.isfinite(array))} is not a finite number.")
    return array


def numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return ``values`` as a float array, not copied if they are one.

    Raises ``ValueError`` if they are not a regular array of numbers.
    """
    try:
        given = np.asarray(values)
        array = np.ascontiguousarray(given, dtype=None if given.dtype.kind in "cmM" else np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} is not a regular array of numbers: {error}.") from None
    if array.dtype != np.float64:
        raise ValueError(f"{name} is not a regular array of numbers: its entries are {array.dtype}.")
    return array.reshape(given.shape)


def as_distributions(array: NDArray[np.float64], name: str, per: str) -> NDArray[np.float64]:
    """Return ``array`` as probability distributions along the last axis.

    There is one for every ``per``. Raises ``ValueError`` if a row is not a distribution. Rows with rounding errors are
    divided by their sums, so that values and simulations use the same model.
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
    """Return cumulative probabilities along the last axis.

    They are exactly one from the last possible outcome on.
    """
    sums = np.minimum(np.cumsum(distributions, axis=-1), 1.0)
    possible = distributions > 0
    later: NDArray[np.int64] = (
        np.cumsum(possible[..., ::-1], axis=-1)[..., ::-1] - possible
    )  # possible outcomes after this one
    return np.where(later == 0, 1.0, sums)


def check_unit_interval(array: NDArray[np.float64], name: str, remedy: str) -> None:
    """Raise ``ValueError`` for values outside [0, 1], with ``remedy`` in the message."""
    wrong = (array < 0) | (array > 1)
    if wrong.any():
        raise ValueError(f"{_first(name, wrong)} is {array[wrong][0]:.16g}, outside [0, 1]: {remedy}")


def positive_integer(value: Any, name: str, unit: str) -> int:
    """Return ``value`` as an int of at least 1; raise ``TypeError`` or ``ValueError`` otherwise."""
    number = whole(value, name, unit)
    if number < 1:
        raise ValueError(f"{name} is {shown(number)}: it must be at least 1 ({unit}).")
    if number > LARGEST:
        raise ValueError(f"{name} is {shown(number)}: more than {LARGEST} ({unit}) cannot be counted here.")
    return number


def whole(value: Any, name: str, unit: str) -> int:
    """Return ``value`` as an int; raise ``TypeError`` if it is not a whole number."""
    try:
        return int(operator.index(value))  # of True, too
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}: it must be a whole number of {unit}.") from None


def real(value: Any, name: str) -> float:
    """Return ``value`` as a float; raise ``TypeError`` if it is not a number.

    It may be infinite or NaN.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} is {shown(value)}: it must be a number.")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def flag(value: Any, name: str) -> bool:
    """Return ``value`` as a bool; raise ``TypeError`` if it is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {shown(value)}: it must be True or False.")
    return bool(value)


def among(value: Any, options: Collection[str]) -> bool:
    """Return whether ``value`` is one of these names.

    Arrays and objects that cannot be hashed are not.
    """
    return isinstance(value, str) and value in options


def seed_of(value: Any, name: str = "seed") -> int | None:
    """Return ``value`` as the seed of a generator, or None for a random one.

    Raises ``TypeError`` or ``ValueError`` if it is neither.
    """
    if value is None:
        return None
    number = whole(value, name, "0 or more, or None")
    if number < 0:
        raise ValueError(f"{name} is {shown(number)}: a seed is 0 or more, or None for a random one.")
    return number


def file_path(value: Any, name: str = "path") -> Path:
    """Return ``value`` as the path of a file; raise if it cannot be one."""
    try:
        path = Path(value)
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}: it must be the path of a file.") from None
    if "\0" in str(path):
        raise ValueError(f"{name} is {shown(value)}: a path holds no null characters.")
    return path


def shown(value: Any) -> str:
    """Return a public value as text for an error message.

    Short values are shown as they are, others by their type.
    """
    if isinstance(value, str | bytes | bool | float | np.generic) or value is None:
        text = repr(value)
    elif isinstance(value, int):
        text = repr(value) if value.bit_length() < 200 else "a number of more than 60 digits"
    else:
        text = "" if isinstance(value, np.ndarray) else repr(value)
    if 0 < len(text) <= 80 and "\n" not in text:
        return text
    shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}{shape}"


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same array, made read-only.

    No object that shares it can change it then.
    """
    array.setflags(write=False)
    return array


def _first(name: str, wrong: NDArray[np.bool_]) -> str:
    if wrong.ndim == 0:
        return name
    return f"{name}[{', '.join(str(i) for i in np.argwhere(wrong)[0])}]"
