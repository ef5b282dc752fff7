"""Warnings at the line of user code that called this package."""

from __future__ import annotations

import inspect
import warnings

__all__ = ["warn"]


def warn(sentence: str) -> None:
    """Warn at the line outside this package from which the call came."""
    frame, level = inspect.currentframe(), 1
    package = __name__.partition(".")[0]
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, stacklevel=level)
