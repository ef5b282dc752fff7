"""The range of rewards, which are mapped to [0, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["RewardRange"]


@dataclass(frozen=True, slots=True)
class RewardRange:
    """The least and the largest reward; the map takes them to 0 and 1.

    An episode that ended early earns 0 until the horizon, and 0 is mapped too: to ``zero``. So a return G over
    H steps becomes (G - H low) / (high - low), and the order of policies stays.

    Example:
        >>> steps = RewardRange.of((-100, 0))
        >>> steps.mapped(-1.0), steps.zero, steps.original(0.99)
        (0.99, 1.0, -1.0)
    """

    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, given: Any) -> RewardRange:
        """Return the given range of rewards, or [0, 1] for None.

        Raises ValueError if it is not a valid range.
        """
        if given is None:
            return cls()
        if isinstance(given, RewardRange):
            return given
        try:
            low, high = (float(number) for number in given)
        except (TypeError, ValueError):
            raise ValueError(
                f"reward_range is {given!r}: it must be two numbers, the least and the largest reward."
            ) from None
        if not (low < high and math.isfinite(high - low)):
            raise ValueError(f"reward_range is {given!r}: its first number must be below its second, and both finite.")
        if not low <= 0.0 <= high:
            raise ValueError(
                f"reward_range is {given!r}: it must contain 0, which is earned after an episode has ended early."
            )
        return cls(low, high)

    @property
    def plain(self) -> bool:
        """Whether rewards stay as they are."""
        return (self.low, self.high) == (0.0, 1.0)

    @property
    def zero(self) -> float:
        """The mapped value of reward 0."""
        return float(self.mapped(0.0))

    def mapped(self, reward: Any) -> Any:
        """Return rewards mapped to [0, 1].

        The argument is a number or an array. Rewards outside the range stay outside [0, 1].
        """
        return (reward - self.low) / (self.high - self.low)

    def original(self, reward: Any) -> Any:
        """Return the reward that is mapped to this one."""
        return self.low + (self.high - self.low) * reward

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"
