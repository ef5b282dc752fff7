"""The decorator that compiles functions with numba, for the whole package."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba

__all__ = ["compiled"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile ``function`` on its first call, and cache the result on disk.

    No fast-math: sums run in the order in which they are written, so that every engine sees the same numbers.
    """
    njit: Any = partial(numba.njit, nogil=True, error_model="numpy")
    try:
        return cast(F, njit(cache=True)(function))
    except RuntimeError:  # nowhere to keep it, as in a read-only container: compile in every process
        return cast(F, njit()(function))
