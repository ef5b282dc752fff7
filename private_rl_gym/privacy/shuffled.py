"""Shuffled batches: each user in one of them, each with the noise of its own users.

* ``ShuffledBits`` - a user's steps as bits, one for each counter
* ``PooledBits`` - her first step in each (s, a), whatever the stage, as bits
* ``ShuffledBatches`` - batches that close only with as many messages as their promise needs
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.batches import Batches, grown
from private_rl_gym.privacy.errors import BoundedError, CombinedError, ErrorLaw
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.pooled import PooledCounts
from private_rl_gym.privacy.statistics import Noise, TabularCounts, TabularStatistic

__all__ = ["PooledBits", "ShuffledBatches", "ShuffledBits"]


class _Bits(TabularStatistic):
    """Counts in which every entry of a user is a bit; her rewards are rounded to bits on her side, without bias."""

    bits: bool
    """Whether rewards are publicly known to be bits already."""

    @property
    @abstractmethod
    def exact(self) -> TabularCounts | PooledCounts:
        """The counts without rounding."""

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The unit of each cell, which is 1."""
        return read_only(np.ones(self.cells))

    @property
    def grid_range(self) -> tuple[float, float]:
        """The unit of every cell."""
        return 1.0, 1.0

    @property
    def moved(self) -> int:
        """Number of counters that replacing a user moves up by one; as many move down."""
        return round(self.l1 / 2.0)

    def _collect(
        self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None, ask: Ask | None
    ) -> None:
        """Add the bits of every user."""
        del ask
        assert source is not None  # noqa: S101 - rewards are rounded with it
        uniforms = source.uniform(users.actions.size).reshape(users.actions.shape)
        self.exact.add(users, (uniforms < users.rewards).astype(np.float64), 1.0, sums)

    def errors(self, noise: Noise, users: int = 0) -> dict[str, ErrorLaw]:
        """The errors of exact counts, and of the rounding of rewards to bits."""
        laws = self.exact.errors(lambda _: noise(1.0), users)
        if not self.bits:
            laws["r"] = CombinedError.of(laws["r"], BoundedError(0.0, 1.0, users / 4.0))
        return laws


class ShuffledBits(_Bits, TabularCounts):
    """Counts by stage, as bits.

    Privacy:
        Replacing her moves ``moved`` = 2H counters up by one and 2H down (3H with ``separate_visits``).
        Proof: docs/proofs/tabular-sensitivity.md, docs/proofs/shuffled-bits.md.

    Args:
        sizes: Horizon, states, actions.
        separate_visits: Whether visits are counted on their own, as the paper does.
        bits: Whether rewards are publicly known to be bits already.
    """

    def __init__(self, sizes: tuple[int, int, int], *, separate_visits: bool, bits: bool) -> None:
        super().__init__(*sizes, separate_visits=separate_visits, raw_rewards=True)
        self.bits = bits

    @cached_property
    def exact(self) -> TabularCounts:
        """The counts without rounding."""
        sizes = self.horizon, self.n_states, self.n_actions
        return TabularCounts(*sizes, separate_visits=self.separate_visits, raw_rewards=True)


class PooledBits(_Bits, PooledCounts):
    """Counts pooled over stages, as bits.

    Privacy:
        Replacing her moves ``moved`` = 2 V counters up by one and 2 V down, with V = min(H, S A).
        Proof: docs/proofs/pooled-sensitivity.md, docs/proofs/shuffled-bits.md.

    Args:
        sizes: Horizon, states, actions.
        bits: Whether rewards are publicly known to be bits already.
    """

    def __init__(self, sizes: tuple[int, int, int], *, bits: bool) -> None:
        super().__init__(*sizes, raw_rewards=True)
        self.bits = bits

    @cached_property
    def exact(self) -> PooledCounts:
        """The counts without rounding."""
        return PooledCounts(self.horizon, self.n_states, self.n_actions, raw_rewards=True)


class ShuffledBatches(Batches):
    """Batches of messages, of which the last takes all remaining users, so that none is too small.

    Where too many users of a batch vanish, they are removed from it, and the others join the next batch.

    Args:
        enough: The number of messages that a batch needs, as a function of its number of users.
        refusal: The end of the error message if a batch would have fewer.
        arguments, options: The arguments of ``Batches``.
    """

    def __init__(self, *arguments: Any, enough: Callable[[int], int], refusal: str, **options: Any) -> None:
        self._needed, self._refusal = enough, refusal
        self.closed_users = 0  # users in batches that are closed, or written off
        self.lost = 0  # users of the current batch whose messages never came
        super().__init__(*arguments, **options)

    @property
    def size(self) -> int:
        """Users in the current batch: all remaining users, where they are too few for two batches."""
        size = self.asked_size or grown(self.batch_size, self.growth, self.closed_users)
        if self.users is None:
            return size
        rest = self.users - self.closed_users
        return size if rest >= size + self.batch_size or (self.asked_size and rest >= size) else max(rest, 1)

    @property
    def users_to_release(self) -> int:
        """Number of users who are missing in the current batch."""
        return max(1, self.size - self.pending)

    def receive(self, users: Trajectories | None, count: int, ask: Ask | None = None) -> None:
        """Add ``count`` users who leave, and close the batches that they fill."""
        if self.users is not None and self.gone + count > self.users:
            raise RuntimeError(f"Batches are planned for {self.users} users: nobody else is let in.")
        start = 0
        while start < count:
            stop = min(count, start + self.users_to_release)
            self._take(users, start, stop, ask)
            start = stop
            self._close_if_full()

    def lose(self, users: int) -> None:
        """Count ``users`` users who vanish: none of their messages arrive, and no noise either."""
        for _ in range(users):
            self.gone += 1
            self.pending += 1
            self.lost += 1
            self._close_if_full()

    def publish(self) -> None:
        """Close the current batch, if anyone is in it; raises if it has fewer messages than the promise needs."""
        if self.pending and not self._enough():
            self._write_off()
        if not self.pending:
            return
        if not self._enough():
            raise ValueError(f"publish() now would shuffle {self.pending} reports, {self._refusal}")
        self._close()

    def ask_for(self, users: int) -> None:
        """Set the size of the current batch, of which nobody has left yet; raises if it is too small."""
        if users < self._needed(users):
            raise ValueError(f"A batch of {users} would shuffle fewer reports than it may, {self._refusal}")
        super().ask_for(users)

    def _close_if_full(self) -> None:
        if self.pending < self.size:
            return
        if not self._enough():
            self._write_off()
        if self.pending >= self.size and self._enough():
            self._close()

    def _enough(self) -> bool:
        """Whether as many messages have come as the promise needs."""
        return self.pending - self.lost >= self._needed(self.pending)

    def _write_off(self) -> None:
        """Remove users who vanished from the batch; the others count as new arrivals, and will get new noise."""
        lost, self.lost = self.lost, 0
        self.closed_users += lost
        self.pending -= lost

    def _close(self) -> None:
        size = self.pending
        self._publish(1)
        self.closed_users += size
        self.lost = 0

    counters = (*Batches.counters, "closed_users", "lost")
