"""The schedule of releases: sizes of batches, and the number of releases.

* ``Schedule`` - batches of one size, or of growing sizes
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from private_rl_gym.planning.arrays import positive_integer, real, shown

__all__ = ["Schedule"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Batches of users, with a release after every batch.

    The last batch may be smaller.

    Attributes:
        batch_size: Number of users in a batch.
        growth: Makes later batches larger: each has this share of the users before it, or ``batch_size`` if that is
            more. A tenth to a quarter needs few releases, which cost less noise.
        releases: The number of releases that noise is calibrated for; by default one for each batch. More of them leave
            room for ``publish()``.
    """

    batch_size: int = 1
    growth: float = 0.0
    releases: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", positive_integer(self.batch_size, "batch_size", "users in a batch"))
        if not 0.0 <= real(self.growth, "growth") <= 1.0:
            raise ValueError(f"growth is {shown(self.growth)}: it is a share of the users so far, in [0, 1].")
        object.__setattr__(self, "growth", float(self.growth))
        if self.releases is not None:
            object.__setattr__(self, "releases", positive_integer(self.releases, "releases", "releases"))

    @classmethod
    def of(cls, value: Any) -> Schedule:
        """Return the schedule for a value of ``schedule=``.

        A schedule is returned as it is. A number gives batches of so many users.

        Raises:
            TypeError: If it is neither.
        """
        if isinstance(value, Schedule):
            return value
        try:
            return cls(value)
        except TypeError:
            raise TypeError(
                f"schedule is {shown(value)}: give the number of users in a batch, or "
                "Schedule(batch_size=500, growth=0.25)."
            ) from None

    def __str__(self) -> str:
        """Return the value of ``schedule=``, as it is written."""
        rest = f", growth={self.growth:g}" if self.growth else ""
        rest += "" if self.releases is None else f", releases={self.releases}"
        return f"Schedule({self.batch_size}{rest})" if rest else str(self.batch_size)

    def size(self, before: int) -> int:
        """Return the number of users in the batch that follows ``before`` users."""
        return max(self.batch_size, math.floor(self.growth * before))

    def batches(self, users: int, before: int = 0) -> int:
        """Return the number of batches of ``users`` users, after the first ``before`` of them."""
        if not self.growth:
            return -(-(users - before) // self.batch_size)
        batches = 0
        while before < users:
            size = self.size(before)
            # All batches up to the first larger one, at once; floats may move that one by a batch.
            until = min(float(users), (size + 1) / self.growth)
            alike = max(1, int((until - before) / size))
            if self.size(before + (alike - 1) * size) != size:
                alike = 1
            before, batches = before + alike * size, batches + alike
        return batches

    def planned(self, users: int) -> int:
        """Return the number of releases that noise is calibrated for.

        Raises:
            ValueError: If there are fewer of them than batches.
        """
        batches = self.batches(users)
        if self.releases is None:
            return batches
        if self.releases < batches:
            raise ValueError(
                f"releases is {self.releases}: {users} users in batches of {self.batch_size} make {batches} releases "
                "at least."
            )
        return self.releases

    @property
    def described(self) -> str:
        """The schedule in words, as the end of the description of a mechanism."""
        if self.growth:
            return f"after every batch, each of {self.batch_size} users or {self.growth:g} of those before"
        return f"every {self.batch_size} users"
