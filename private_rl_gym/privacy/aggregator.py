"""Batches of users who have left: their sums, and the releases made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.protocols.base import ClosedBatch
from private_rl_gym.privacy.protocols.base import Protocol as PublishingProtocol
from private_rl_gym.privacy.randomizers.base import UserSide
from private_rl_gym.privacy.release import Published
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.privacy.statistics.base import About

__all__ = ["Aggregator", "Observer"]


class Observer(Protocol):
    """An auditor that looks inside a boundary.

    It is shown raw data, so no part of a learner may be an observer.
    """

    def left(self, users: Any | None, count: int) -> None:
        """Record that ``count`` users have left.

        ``users`` is None if their episodes were not completed.
        """

    def reported(self, vector: NDArray[np.int64]) -> None:
        """Record the summed messages of a group of users.

        It is called where users noise their own messages.
        """


class Aggregator:
    """The batches of a boundary, from the first user to the release.

    It opens and closes batches, counts users, hands closed batches to a protocol, and keeps the releases. Each user is
    in one batch. The sums of the open batch are kept apart from those of closed ones, so that they can be discarded.

    Args:
        side: What leaves the users' side.
        protocol: What happens behind it.
        users: The number of users that may come; None for any number.
        schedule: Sizes of batches.
        absorbing: The state in which episodes wait that ended early; None if they cannot end early.
        waiting_reward: The reward of each step there.
    """

    NUMBERS = (
        *("gone", "pending", "closed", "lost", "discarded", "version", "asked", "load"),
        *("newest_load", "newest_users", "newest_releases", "released_users"),
    )
    """Names of the whole numbers that are needed to continue."""

    gone = 0  # users who have left
    pending = 0  # of them, in the current batch
    closed = 0  # of them, in closed batches, or written off
    lost = 0  # of those in the current batch, those whose messages never came
    discarded = 0  # users of discarded batches, who are in no release
    version = 0
    asked = 0  # size of the current batch, where a learner asked for one
    load = 0  # the largest of the current batch
    newest_load = newest_users = newest_releases = released_users = 0

    def __init__(
        self,
        side: UserSide,
        protocol: PublishingProtocol,
        users: int | None,
        schedule: Schedule,
        absorbing: int | None,
        waiting_reward: float,
    ) -> None:
        self.side, self.protocol, self.users, self.schedule = side, protocol, users, schedule
        self._apart = protocol.plan.apart
        self._waiting = absorbing, waiting_reward
        self.sums = np.zeros(side.size, dtype=np.int64)  # of the current batch
        self.closed_sums = np.zeros(0 if self._apart else side.size, dtype=np.int64)  # of all batches before
        self.published = np.zeros(side.size)  # of all users so far
        self.newest = np.zeros(side.size if self._apart else 0)  # of the newest batch
        self.observers: list[Observer] = []
        self._made: dict[str, Published] = {}

    # Users who leave --------------------------------------------------------------------------------------------------

    def receive(self, users: Any | None, count: int, request: Request | None) -> None:
        """Add ``count`` users who leave, and close the batches that they fill.

        ``users`` is None if they left early.
        """
        if self.users is not None and self.gone + count > self.users:
            raise RuntimeError(
                f"Noise is calibrated for {self.users} users, and no more are admitted. Build a new boundary, with a "
                "larger users=."
            )
        self.protocol.check()
        for observer in self.observers:
            observer.left(users, count)
        start = 0
        while start < count:
            stop, releases = self._next_stop(start, count)
            self._take(None if users is None else users.part(start, stop), stop - start, request)
            start = stop
            self._close_if_full(releases)

    def _next_stop(self, start: int, count: int) -> tuple[int, int]:
        """Return the end of the next group of users, and the releases due then.

        All users of the group are added at once. Where releases may be merged, those of several full batches that are
        due at once are made as one.
        """
        stop = min(count, start + self.users_to_release)
        if not self.protocol.merges or self.schedule.growth or self.asked or stop - start < self.size - self.pending:
            return stop, 1
        full = (count - stop) // self.schedule.batch_size
        if self._apart:  # the newest alone is published by itself
            return (stop + (full - 1) * self.schedule.batch_size, full) if full > 1 else (stop, 1)
        stop += full * self.schedule.batch_size
        if self.gone + count - start == self.users and stop < count:  # the last batch may be smaller
            return count, full + 2
        return stop, full + 1

    def _take(self, users: Any | None, count: int, request: Request | None) -> None:
        """Add the messages of some users to the current batch."""
        self.load = max(self.load, self.side.load(request))  # first: noise follows what users were asked
        if self.observers and self.side.randomizer is not None:
            message = np.zeros_like(self.sums)
            self.protocol.receive(users, count, request, message)
            for observer in self.observers:
                observer.reported(message)
            self.sums += message
        else:
            self.protocol.receive(users, count, request, self.sums)
        self.gone, self.pending = self.gone + count, self.pending + count

    def lose(self, users: int) -> None:
        """Count users who vanish: neither their messages nor their noise arrive."""
        for _ in range(users):
            self.gone, self.pending, self.lost = self.gone + 1, self.pending + 1, self.lost + 1
            self._close_if_full(1)

    def discard(self, gone: int) -> None:
        """Close the current batch without publishing it: its users' data are never used.

        Args:
            gone: The number of users who have left by then, those of an interrupted call included.
        """
        vars(self).update(self._emptied(), gone=gone, closed=gone, discarded=gone - self.released_users)
        self.protocol.discard()

    # Batches ----------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of users in the current batch.

        It is all remaining users where they would be too few for two batches.
        """
        size = self.asked or self.schedule.size(self.closed)
        if not self.protocol.last_joins or self.users is None:
            return size
        rest = self.users - self.closed
        enough = rest >= size + self.schedule.batch_size or (self.asked and rest >= size)
        return size if enough else max(rest, 1)

    @property
    def users_to_release(self) -> int:
        """Number of further users until something new is published."""
        missing = self.size - self.pending
        return max(1, missing if self.users is None else min(missing, self.users - self.gone))

    def begin(self, users: int) -> None:
        """Set the size of the current batch, of which no user has left yet."""
        if not self._apart:
            raise ValueError("Noise is calibrated for batches of one size, and the size cannot be changed.")
        if users < self.protocol.needed(users):
            raise ValueError(f"A batch of {users} would shuffle fewer reports than it may, {self.protocol.refusal}")
        if self.pending:
            raise ValueError(f"{self.pending} users of the current batch have left already: close it with publish().")
        self.asked = users

    def publish(self) -> None:
        """End the current batch now, if any user is in it.

        Raise ValueError if it has fewer messages than the guarantee needs.
        """
        if not self.pending:
            return
        planned = self.protocol.plan.releases
        if planned is not None and self.users is not None:
            later = self.schedule.batches(self.users, self.gone)
            if self.version + 1 + later > planned:
                raise ValueError(
                    f"publish() now would use a release that later users need: noise is calibrated for {planned} "
                    f"releases. {self.protocol.more_releases}"
                )
        if not self._enough():
            self._write_off()
        if self.pending and not self._enough():
            raise ValueError(f"publish() now would shuffle {self.pending} reports, {self.protocol.refusal}")
        if self.pending:
            self._close(1)

    def _close_if_full(self, releases: int) -> None:
        """Close the current batch if it is full, or if no further user comes."""
        over = self.gone == self.users and not self.protocol.last_joins
        if releases == 1 and self.pending < self.size and not over:
            return
        if not self._enough():
            self._write_off()
            if self.pending < self.size or not self._enough():
                return
        self._close(releases)

    def _enough(self) -> bool:
        """Return whether as many messages have come as the guarantee needs."""
        return self.pending - self.lost >= self.protocol.needed(self.pending)

    def _write_off(self) -> None:
        """Remove users who vanished from the batch.

        The others count as new arrivals, and will get new noise.
        """
        self.closed, self.pending, self.lost = self.closed + self.lost, self.pending - self.lost, 0

    def _close(self, releases: int) -> None:
        """Publish the current batch.

        Steps that can fail come first. The rest is one step that no interrupt divides.
        """
        cells = self.side.statistic.cells
        batch = ClosedBatch(self.pending, self.pending - self.lost, max(1, self.load))
        sums = self.sums if self._apart else self.closed_sums + self.sums
        vector = np.concatenate([self.protocol.publish(sums[:cells], batch, releases), sums[cells:]])
        kept: dict[str, Any] = {
            "closed": self.closed + self.pending,
            "version": self.version + releases,
            "newest_load": batch.load,
            "released_users": self.gone - self.discarded,
            "published": self.published + vector if self._apart else vector,
        }
        if self._apart:
            kept |= {"newest": vector, "newest_users": batch.users, "newest_releases": releases}
        else:
            kept["closed_sums"] = sums
        vars(self).update(self._emptied(), **kept, _made={})

    def _emptied(self) -> dict[str, Any]:
        """Return the attributes of an open batch that no user has come to yet."""
        return {"sums": np.zeros_like(self.sums), "pending": 0, "asked": 0, "lost": 0, "load": 0}

    # Releases ---------------------------------------------------------------------------------------------------------

    @property
    def release(self) -> Published:
        """The newest release, of all users so far."""
        return self._decoded("release", self.published, self.version, self.released_users, newest=False)

    @property
    def batch(self) -> Published:
        """The newest batch alone."""
        return self._decoded("batch", self.newest, self.newest_releases, self.newest_users, newest=True)

    def _decoded(self, name: str, vector: NDArray[np.float64], releases: int, users: int, *, newest: bool) -> Published:
        if name not in self._made:
            error = self.protocol.error(releases, max(1, self.newest_load), newest=newest)
            about = About(self.version, users, self._bounded_releases(), *self._waiting)
            self._made[name] = self.side.decode(vector, error, about)
        return self._made[name]

    def _bounded_releases(self) -> int:
        """Return the number of releases that a bound has to hold for.

        For release v of an endless series it is v (v + 1).
        """
        if self.users is None:
            return max(1, self.version * (self.version + 1))
        planned = self.protocol.plan.releases
        return self.users if planned is None else planned  # publish() may end a batch after every one of them

    # Files ------------------------------------------------------------------------------------------------------------

    def numbers(self) -> dict[str, int]:
        """Return the whole numbers that are needed to continue."""
        return {name: getattr(self, name) for name in self.NUMBERS}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that are needed to continue.

        They are saved, and restored in place. They are secret.
        """
        return {name: getattr(self, name) for name in ("sums", "closed_sums", "published", "newest")}

    def restore(self, numbers: Mapping[str, int], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from saved numbers and arrays."""
        for name in self.NUMBERS:
            setattr(self, name, numbers[name])
        for name, array in self.arrays().items():
            array[...] = arrays[name]
        self._made.clear()
