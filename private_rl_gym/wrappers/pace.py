"""A constant pace for serving users.

Without it, the time that users take reveals something about them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from private_rl_gym.caller import warn
from private_rl_gym.planning.arrays import real, shown

__all__ = ["Pacer"]


class Pacer:
    """A pause that pads the time of users to a stated time.

    The time is stated before they come.
    """

    def __init__(self) -> None:
        self.seconds: float | None = None  # for each user

    def set(self, seconds: float | None) -> None:
        """Set the seconds for each user; None for no padding."""
        if seconds is not None and not 0.0 < real(seconds, "pace") < math.inf:
            raise ValueError(f"pace is {shown(seconds)}: give a number of seconds a user above 0, or None.")
        self.seconds = seconds

    @contextmanager
    def of(self, users: int) -> Iterator[None]:
        """Let the block take a whole multiple of the stated time.

        The time is that for these users, whatever happens in the block.
        """
        assert self.seconds is not None  # noqa: S101 - a pace was stated
        start, stated = time.monotonic(), self.seconds * users
        try:
            yield
        finally:
            times = math.floor((time.monotonic() - start) / stated) + 1
            if times > 1:
                warn(
                    f"Users took longer than the stated pace of {self.seconds:g} s each, and the delay reveals "
                    "something about them. State a slower pace."
                )
            time.sleep(max(0.0, start + times * stated - time.monotonic()))
