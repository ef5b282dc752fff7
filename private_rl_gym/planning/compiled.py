"""The one place where functions are handed to numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["compiled"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile ``function`` when it is first called, and keep the result on disk for the next process.

    No fast-math: sums run in the order in which they are written, so that every engine sees the same numbers.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
