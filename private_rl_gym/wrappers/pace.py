"""A constant pace for serving users, because the time that they take reveals something about them."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Pacer"]


class Pacer:
    """Pads the time that users take to a time that was stated before they came."""

    def __init__(self) -> None:
        self.seconds: float | None = None  # for each user

    def set(self, seconds: float | None) -> None:
        """Set the seconds for each user; None for no padding."""
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0.0):
            raise ValueError(f"pace is {seconds}: give a number of seconds a user above 0, or None.")
        self.seconds = seconds

    @contextmanager
    def of(self, users: int) -> Iterator[None]:
        """Let the block take a whole multiple of the stated time for this number of users, whatever happens in it."""
        if self.seconds is None:
            yield
            return
        start, stated = time.monotonic(), self.seconds * users
        try:
            yield
        finally:
            times = math.floor((time.monotonic() - start) / stated) + 1
            if times > 1:
                warnings.warn(
                    f"Users took longer than the stated pace of {self.seconds:g} s each, which tells something of "
                    "them: state a slower one.",
                    stacklevel=5,
                )
            time.sleep(max(0.0, start + times * stated - time.monotonic()))
