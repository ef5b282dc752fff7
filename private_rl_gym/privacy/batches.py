"""Sums of shuffled batches: each user in one of them, each with the noise of its own users.

* ``ShuffledBits`` - a user's steps as bits, one for each counter
* ``ShuffledSums`` - batches, closed one after the other, and the sum of what they published
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.errors import BoundedError, CombinedError, ErrorLaw
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.publishing import PublicSums
from private_rl_gym.privacy.shuffling import BinarySums, NoiseBits, send_and_shuffle
from private_rl_gym.privacy.statistics import Noise, Statistic, TabularCounts

__all__ = ["ShuffledBits", "ShuffledSums"]

MOST_MESSAGES = 100_000_000

ACCOUNT = np.dtype(
    [
        ("users", "f8"),  # in batches that are closed, or written off
        ("variance", "f8"),  # of all noise in one counter
        ("mean", "f8"),  # of all noise in one counter
        ("lost", "f8"),  # users of the current batch who have vanished
    ]
)


class ShuffledBits(TabularCounts):
    """Counts of which every entry of a user is a bit; her rewards are rounded to bits on her side, without bias.

    Privacy:
        Replacing her moves ``moved`` = 2H counters up by one and 2H down (3H with ``separate_visits``).
        Proof: docs/proofs/tabular-sensitivity.md, docs/proofs/shuffled-bits.md.

    Args:
        sizes: Horizon, states, actions.
        separate_visits: Whether visits are counted on their own, as the paper does.
        bits: Whether rewards are bits already, as everybody knows.
    """

    def __init__(self, sizes: tuple[int, int, int], *, separate_visits: bool, bits: bool) -> None:
        super().__init__(*sizes, separate_visits=separate_visits, raw_rewards=True)
        self.bits = bits
        self.moved = round(self.l1 / 2.0)

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """Bits are counted one by one."""
        return read_only(np.ones(self.cells))

    def _collect(self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None) -> None:
        """Add the bits of every user."""
        assert source is not None  # noqa: S101 - rewards are rounded with it
        uniforms = source.uniform(users.actions.size).reshape(users.actions.shape)
        self._add(users, (uniforms < users.rewards).astype(np.float64), 1.0, sums)

    def errors(self, noise: Noise, users: int = 0) -> dict[str, ErrorLaw]:
        """Those of exact counts; rewards that had to be rounded are off by that, too."""
        found = super().errors(lambda _: noise(1.0), users)
        if not self.bits:
            found["r"] = CombinedError.of(found["r"], BoundedError(0.0, 1.0, users / 4.0))
        return found


class ShuffledSums(PublicSums):
    """Batches of bits, each with noise by its own users, and the sum over all batches so far.

    The last batch takes what would be left over: it is larger, so that none is small. A batch closes only with as many
    messages as its promise was made for: where too many of its users vanish they are written off, and those who are
    left join the next.

    Args:
        protocol: How many noise bits a batch needs; None where users noised their reports themselves.
        smallest: The fewest reports that are ever shuffled together, without a protocol.
        shuffler: Where noise bits come from.
        by_message: Make every message, and permute them, in place of drawing their sum.
        options: Of ``PublicSums``.
    """

    def __init__(
        self,
        statistic: Statistic,
        *,
        protocol: BinarySums | None,
        shuffler: NoiseSource,
        by_message: bool = False,
        smallest: int = 1,
        **options: Any,
    ) -> None:
        self.protocol, self.shuffler, self.by_message, self.smallest = protocol, shuffler, by_message, smallest
        self.shuffled = np.zeros(statistic.cells, dtype=np.int64)  # bits that were set, noise included
        self.account = np.zeros((), dtype=ACCOUNT)
        self._held: list[NDArray[np.int64]] = []  # of the current batch, where messages are made
        super().__init__(statistic, **options)
        sizes = (1, self.publish_every, 2 * self.publish_every) if by_message and protocol is not None else ()
        each = [users * (1.0 + protocol.noise_bits(users).each) for users in sizes] if protocol is not None else []
        most = max(each, default=0.0) * statistic.cells
        if by_message and most > MOST_MESSAGES:
            raise ValueError(
                f"A batch would be {most:.2g} messages, too many to make one by one: take simulation='aggregate', "
                "which has the same law, or smaller batches."
            )

    @property
    def batched_users(self) -> int:
        """Users in batches that are closed, and those who vanished from one that could not be."""
        return int(self.account["users"])

    @property
    def lost(self) -> int:
        """Users of the current batch whose messages never came."""
        return int(self.account["lost"])

    def batch_size(self) -> int | None:
        """Users in the current batch; None if that is open."""
        if self.users is None:
            return self.publish_every
        rest = self.users - self.batched_users
        return self.publish_every if rest >= 2 * self.publish_every else rest

    @property
    def users_to_release(self) -> int:
        """How many are missing in the current batch."""
        size = self.batch_size()
        return max(1, (size or 0) - self.pending)

    def receive(self, users: Trajectories | None, count: int) -> None:
        """Users leave, and close as many batches as they fill."""
        if self.users is not None and self.gone + count > self.users:
            raise RuntimeError(f"Batches are planned for {self.users} users: nobody else is let in.")
        start = 0
        while start < count:
            stop = min(count, start + self.users_to_release)
            self._collect(users, start, stop)
            self.gone += stop - start
            self.pending += stop - start
            start = stop
            self._close_if_full()

    def publish(self) -> None:
        """Close the current batch, if anyone is in it; a sentence, where that would hide fewer than was promised."""
        if self.pending and not self._enough():
            self._write_off()
        if not self.pending:
            return
        if not self._enough():
            raise ValueError(
                f"publish() now would shuffle {self.pending} reports, and the promise is made for {self.smallest} at "
                "least: let more users come, or build the boundary with a smallest_batch= that says less."
            )
        self._close()

    def lose(self, users: int) -> None:
        """So many users vanish: nothing of theirs arrives, noise included."""
        for _ in range(users):
            self.gone += 1
            self.pending += 1
            self.account["lost"] += 1
            self._close_if_full()

    def _close_if_full(self) -> None:
        if self.pending < (self.batch_size() or 1):
            return
        if not self._enough():
            self._write_off()
        if self.pending >= (self.batch_size() or 1) and self._enough():
            self._close()

    def _enough(self) -> bool:
        """Whether as many messages have come as the promise needs."""
        sent = self.pending - self.lost
        return sent >= (self.smallest if self.protocol is None else self.protocol.sure(self.pending))

    def _write_off(self) -> None:
        """Whoever vanished is in no batch; the others go on as if they had just come, and will be noised anew."""
        lost = self.lost
        self.account["lost"] = 0.0
        self.account["users"] += lost
        self.pending -= lost

    def _collect(self, users: Trajectories | None, start: int, stop: int) -> None:
        if not self.by_message:
            super()._collect(users, start, stop)
            return
        for user in range(start, stop):
            bits = np.zeros_like(self._sums)
            if users is not None:
                self.statistic.collect(users.part(user, user + 1), bits, self.user_source)
            self._held.append(bits)
            self._sums += bits

    def _close(self) -> None:
        """Publish a batch: first all that can fail; then it is taken out; then it is published.

        Whoever interrupts in between loses the batch. It is never counted twice.
        """
        size, sent = self.pending, self.pending - self.lost
        total, account = self._sums, self.account.copy()
        if self.protocol is not None and sent:
            bits = self.protocol.noise_bits(size)
            total = self._mixed(bits, sent)
            account["variance"] += bits.variance(sent)
            account["mean"] += sent * bits.each * bits.bias
        account["users"] += size
        account["lost"] = 0.0
        # Whole numbers are summed, and the mean of all noise is taken off what is published: with rounding in between,
        # the last digit would tell a count from its noise.
        shuffled = self.shuffled + total
        sums = self.statistic.sums((shuffled - account["mean"]) * self.statistic.grid, self.gone)
        self._sums[:] = 0
        self._held.clear()
        self.pending = 0
        self.shuffled[...], self.account[...] = shuffled, account
        self.version += 1
        self.release = self.restored(sums, self.gone)

    def _mixed(self, bits: NoiseBits, sent: int) -> NDArray[np.int64]:
        """What is left of a batch after the shuffle: for every counter, how many bits were set."""
        if not self.by_message:
            return self._sums + self.shuffler.generator.binomial(sent * bits.each, bits.bias, len(self._sums))
        if len(self._held) != sent:
            raise RuntimeError("Messages of this batch are missing: nothing is published.")
        messages = send_and_shuffle(np.array(self._held), bits, self.shuffler.generator)
        return np.asarray(messages.sum(axis=1, dtype=np.int64))

    @property
    def closes_early(self) -> bool:
        """Not where reports hide among each other: fewer of them hide less."""
        return self.protocol is not None

    def _law(self) -> Noise:
        """Of one counter: centred bits, many of them."""
        variance = float(self.account["variance"])
        return lambda grid: BoundedError(variance * grid**2, grid)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is published, and the account of it."""
        if self._held:
            raise ValueError("A batch of messages is open: close it with publish(), then save.")
        return super().arrays() | {"shuffled": self.shuffled, "account": self.account}

    def sources(self) -> dict[str, NoiseSource]:
        """Two: for what users round or noise themselves, and for noise bits."""
        return super().sources() | {"shuffler": self.shuffler}
