"""Batches of users who have left: their sums, and the newest release."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.release import Published
from private_rl_gym.privacy.statistics import Noise, Statistic

__all__ = ["Batches", "Door", "grown", "number_of_batches"]


def grown(batch_size: int, growth: float, before: int) -> int:
    """Users in the batch that follows ``before`` users."""
    return max(batch_size, math.floor(growth * before))


def number_of_batches(users: int, batch_size: int, growth: float = 0.0, before: int = 0) -> int:
    """The number of batches of ``users`` users, of whom ``before`` were in earlier ones."""
    if not growth:
        return -(-(users - before) // batch_size)
    batches = 0
    while before < users:
        before, batches = before + grown(batch_size, growth, before), batches + 1
    return batches


class Door(ABC):
    """The interface between users and the public: contributions go in, and what may be published comes out."""

    apart: bool = True
    """Whether every batch is published by itself; else releases are of all users so far, and their noise continues."""

    more_releases: ClassVar[str] = "This kind of boundary has no option for that."
    """The end of errors about a release that is not there: the options for more releases, if there are any."""

    @abstractmethod
    def contribute(self, users: Trajectories, ask: Ask | None, sums: NDArray[np.int64]) -> None:
        """Add the contributions of some users to ``sums``."""

    @abstractmethod
    def contribute_nothing(self, users: int, sums: NDArray[np.int64]) -> None:
        """Add the contributions of ``users`` users who left early to ``sums``."""

    @abstractmethod
    def disclose(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """The published cells of these sums, which end with the tallies, in real units.

        The sums are those of one batch, or, where batches are not apart, of all users. Where several releases are due
        at once, noise is drawn for each of them, and only the newest is made (or the sum of that many batches).
        """

    @abstractmethod
    def law(self, releases: int, *, newest: bool) -> Noise:
        """The error that ``disclose`` adds to one cell, given its grid.

        That of the ``releases`` newest batches, or of all releases so far. Noise that users add themselves is not part
        of it, but of the statistic.
        """

    def planned_releases(self) -> int | None:
        """The number of releases that noise was planned for; None if it is not limited."""
        return None

    def check(self) -> None:  # noqa: B027 - most have nothing to check
        """Raise if going on would break the promise."""


class Batches:
    """Users in batches, each user in one batch.

    Args:
        statistic: The statistic of users that is summed.
        door: The treatment of contributions and of sums.
        users: The number of users that may come; None for any number.
        batch_size: Users in a batch. The last batch may be smaller.
        growth: Users in a batch, as a share of those in all batches before it, where that is more.
        absorbing: The state in which episodes that ended early stay; None if episodes cannot end early.
        waiting_reward: The reward of each step there.
    """

    def __init__(
        self,
        statistic: Statistic,
        door: Door,
        *,
        users: int | None,
        batch_size: int,
        growth: float = 0.0,
        absorbing: int | None = None,
        waiting_reward: float = 0.0,
    ) -> None:
        self.statistic, self.users, self.batch_size, self.absorbing = statistic, users, batch_size, absorbing
        self.growth = growth
        self.waiting_reward = waiting_reward
        self._door = door
        self.gone = 0  # users who have left, and whose contributions are in the sums
        self.pending = 0  # of them, since the last release
        self.version = 0
        self.asked_size = 0  # of the current batch, where a learner asked for one
        self.newest_users = self.newest_releases = self.released_users = 0
        self.sums = np.zeros(statistic.cells + statistic.tallies, dtype=np.int64)  # of the batch; else of all users
        self.published = np.zeros(len(self.sums))  # of all users so far
        self.batch_published = np.zeros(len(self.sums) if door.apart else 0)  # of the newest batch
        self._made: dict[str, Published] = {}

    # Who leaves ------------------------------------------------------------------------------------------------------

    def receive(self, users: Trajectories | None, count: int, ask: Ask | None = None) -> None:
        """Add ``count`` users who leave, early if there are no trajectories, and close the batches that they fill."""
        if self.users is not None and self.gone + count > self.users:
            raise RuntimeError(f"Sums are calibrated for {self.users} users: nobody else is let in.")
        self._door.check()
        if self.growth:
            self._receive_batch_by_batch(users, count, ask)
            return
        due, before, last = self._closings(count)
        if due > 1 and self._door.apart:
            self._take(users, 0, before, ask)
            self._publish(due - 1)
            self._take(users, before, last, ask)
            self._publish(1)
        elif due:
            self._take(users, 0, last, ask)
            self._publish(due)
        self._take(users, last, count, ask)

    def _receive_batch_by_batch(self, users: Trajectories | None, count: int, ask: Ask | None) -> None:
        """Fill batches whose sizes differ."""
        start = 0
        while start < count:
            stop = min(count, start + self.users_to_release)
            self._take(users, start, stop, ask)
            start = stop
            if self.pending >= self.size or self.gone == self.users:
                self._publish(1)

    def _closings(self, count: int) -> tuple[int, int, int]:
        """Number of batches that ``count`` users close, and the positions where the last but one and the last close."""
        first = self.size - self.pending
        due = 0 if count < first else 1 + (count - first) // self.batch_size
        last = first + (due - 1) * self.batch_size if due else 0
        before = last - self.batch_size if due > 1 else 0
        if self.users is not None and self.gone + count == self.users and last < count:  # the last one may be smaller
            due, before, last = due + 1, last, count
        return due, before, last

    def _take(self, users: Trajectories | None, start: int, stop: int, ask: Ask | None) -> None:
        """Add contributions, then count users: if interrupted they have not left yet, and will leave with nothing."""
        if start == stop:
            return
        self.statistic.tally(stop - start, ask, self.sums)  # first: noise follows what users were asked
        if users is None:
            self._door.contribute_nothing(stop - start, self.sums)
        else:
            self._door.contribute(users.part(start, stop), ask, self.sums)
        self.gone += stop - start
        self.pending += stop - start

    # Batches ---------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Users in the current batch."""
        return self.asked_size or grown(self.batch_size, self.growth, self.gone - self.pending)

    @property
    def users_to_release(self) -> int:
        """Number of further users until something new is published."""
        missing = self.size - self.pending
        return missing if self.users is None else max(1, min(missing, self.users - self.gone))

    @property
    def closes_early(self) -> bool:
        """Whether a batch may be ended at any time, at no cost."""
        return self._door.apart

    def ask_for(self, users: int) -> None:
        """Set the size of the current batch, of which nobody has left yet."""
        if not self.closes_early:
            raise ValueError("Noise is planned for batches of one size here, and batches are not published apart.")
        if self.pending:
            raise ValueError(f"{self.pending} users of the current batch have left already: close it with publish().")
        self.asked_size = users

    def publish(self) -> None:
        """End the current batch now, if anyone is in it."""
        if not self.pending:
            return
        planned = self._door.planned_releases()
        if planned is not None and self.users is not None:
            later = number_of_batches(self.users, self.batch_size, self.growth, self.gone)
            if self.version + 1 + later > planned:
                raise ValueError(
                    "publish() now would use a release that later users need: noise is calibrated for "
                    f"{planned}. {self._door.more_releases}"
                )
        self._publish(1)

    def _publish(self, releases: int) -> None:
        """Publish ``releases`` times, the last time with all users who have left.

        Steps that can fail come first; then the batch is taken out; then it is published. An interrupt in between loses
        the batch, so that it is never counted twice.
        """
        cells, apart = self.statistic.cells, self._door.apart
        vector = np.concatenate([self._door.disclose(self.sums, releases), self.sums[cells:]])
        total = self.published + vector if apart else vector
        batch, self.pending, self.asked_size = self.pending, 0, 0
        if apart:
            self.sums[:] = 0
            self.batch_published, self.newest_users, self.newest_releases = vector, batch, releases
        self.published, self.released_users = total, self.gone
        self.version += releases
        self._made.clear()

    @property
    def release(self) -> Published:
        """The newest release, of all users so far."""
        if "release" not in self._made:
            law = self._door.law(self.version, newest=False)
            self._made["release"] = self._of(self.published, self.released_users, law)
        return self._made["release"]

    @property
    def batch(self) -> Published:
        """The newest batch by itself."""
        if "batch" not in self._made:
            law = self._door.law(self.newest_releases, newest=True)
            self._made["batch"] = self._of(self.batch_published, self.newest_users, law)
        return self._made["batch"]

    def _of(self, vector: NDArray[np.float64], users: int, law: Noise) -> Published:
        sums = self.statistic.sums(vector, users)
        entries = sum(read_only(array).size for array in sums.values())
        return self.statistic.release(
            sums,
            version=self.version,
            users=users,
            errors=self.statistic.errors(law, users),
            events=entries * self._bounded_releases(),
            absorbing=self.absorbing,
            waiting_reward=self.waiting_reward,
        )

    def _bounded_releases(self) -> int:
        """Number of releases that an error bound has to hold for; v (v + 1) for the v-th of an endless series."""
        if self.users is None:
            return max(1, self.version * (self.version + 1))
        planned = self._door.planned_releases()
        return self.users if planned is None else planned  # publish() may end a batch after every one of them

    # Files -----------------------------------------------------------------------------------------------------------

    counters: tuple[str, ...] = (
        "gone",
        "pending",
        "version",
        "asked_size",
        "released_users",
        "newest_users",
        "newest_releases",
    )
    """Names of the whole numbers that are needed to continue."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that are needed to continue, besides the noise. Secret."""
        return {"sums": self.sums, "published": self.published, "batch_published": self.batch_published}

    def restore(self, counters: Mapping[str, int], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from saved counters and arrays."""
        for name in self.counters:
            setattr(self, name, counters[name])
        for name, array in self.arrays().items():
            array[...] = arrays[name]
        self._made.clear()
