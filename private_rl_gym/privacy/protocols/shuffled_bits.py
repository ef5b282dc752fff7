"""Users' bits and noise bits, mixed batch by batch by a shuffler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.errors import BoundedError, CellError
from private_rl_gym.privacy.noise import AdditiveNoise, NoiseBitsOfBatches, Noises, NoiseSource
from private_rl_gym.privacy.protocols.base import ClosedBatch, Options, Protocol, ProtocolPlan
from private_rl_gym.privacy.protocols.bits import BinarySums, NoiseBits, send_and_shuffle
from private_rl_gym.privacy.protocols.vector_bits import VectorSums
from private_rl_gym.privacy.randomizers.base import UserSide
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.statistics.base import Alphabet

__all__ = ["BitsOptions", "ShuffledBits"]

MOST_MESSAGES = 100_000_000
"""The largest number of messages that are made one by one."""


@dataclass(frozen=True, kw_only=True)
class BitsOptions(Options):
    """The options of a shuffler of bits.

    Attributes:
        epsilon, delta: The budget.
        printed: Whether the paper's printed constants are taken.
        dropout: The share of a batch that may vanish without the guarantee being broken.
        by_message: Whether messages are made and mixed one by one.
        source: The source of the shuffler.
    """

    epsilon: float
    delta: float
    printed: bool
    dropout: float
    by_message: bool
    source: NoiseSource


class ShuffledBits(Protocol):
    """Mixed bits: those that encode contributions, and noise bits of the same users."""

    alphabets = (Alphabet.BITS, Alphabet.LEVELS)
    merges = False
    last_joins = True
    refusal = "and noise is planned for more: let more users come."
    options: BitsOptions

    @classmethod
    def stated(cls, options: BitsOptions) -> Guarantee:
        """Return the budget."""
        vanish = f", of whom a share of {options.dropout:g} may vanish" if options.dropout else ""
        described = f"sums of shuffled bits, noised by the users of each batch{vanish}"
        return Guarantee(TrustModel.SDP, options.epsilon, options.delta, options.users, described)

    @classmethod
    def noise_of(cls, side: UserSide, options: BitsOptions, load: int) -> BinarySums:
        """Return the noise of users whose bits have this load."""
        known, budget = side.sensitivity(load), (options.epsilon, options.delta)
        if known.linf > 1:
            return VectorSums(known.l2, known.linf, *budget, dropout=options.dropout)
        moved = math.ceil(known.l1 / 2.0)  # so many counters move up by one, and as many down
        return BinarySums(
            moved, *budget, paper=options.printed, horizon=side.statistic.horizon, dropout=options.dropout
        )

    @classmethod
    def planned(cls, side: UserSide, options: BitsOptions, *, apart: bool) -> ProtocolPlan:
        """Return the noise bits for the smallest load, with the guarantee for all loads."""
        noise, stated = cls.noise_of(side, options, 1), cls.stated(options)
        notes: tuple[str, ...] = ()
        if options.printed:
            notes = (f"calibration='paper', {printed_as(options.epsilon)}; composed exactly it is what stands here",)
        if options.by_message:
            size = options.schedule.batch_size
            own = side.statistic.own_bits
            most = max(users * (own + noise.noise_bits(users).each) for users in (1, size, 2 * size))
            if most * side.statistic.cells > MOST_MESSAGES:
                raise ValueError(
                    f"A batch would be {most * side.statistic.cells:.2g} messages, too many to make one by one: take "
                    "simulation='aggregate', which has the same distribution, or smaller batches."
                )
        guarantee = Guarantee(
            stated.model, noise.true_epsilon, stated.delta, stated.users, stated.mechanism, notes=notes
        )
        terms = {
            "budget": [options.epsilon, options.delta],
            "calibration": options.printed,
            "dropout": float(options.dropout),
            "simulation": options.by_message,
        }
        return ProtocolPlan(guarantee, terms=terms, chosen=noise)

    def __init__(self, side: UserSide, options: BitsOptions, plan: ProtocolPlan) -> None:
        super().__init__(side, options, plan)
        self._noise: dict[int, BinarySums] = {1: plan.chosen}
        self._held: list[NDArray[np.int64]] = []  # messages of the current batch, where they are mixed one by one
        self._variance = np.zeros(2)  # of all noise bits in one counter, and of those in the newest batch

    def noise_for(self, load: int) -> BinarySums:
        """Return the noise of a batch of this load."""
        if load not in self._noise:
            self._noise[load] = self.noise_of(self.side, self.options, load)
        return self._noise[load]

    def receive(self, users: Any | None, count: int, request: Request | None, sums: NDArray[np.int64]) -> None:
        """Add the bits of users to ``sums``.

        Where messages are mixed one by one, the bits of each user are held too.
        """
        if not self.options.by_message:
            super().receive(users, count, request, sums)
            return
        for user in range(count):
            message = np.zeros_like(sums)
            self.side.add(None if users is None else users.part(user, user + 1), 1, request, message)
            self._held.append(message)
            sums += message

    def needed(self, users: int) -> int:
        """Return the number of messages that arrive if the planned share vanishes."""
        return self.noise_for(1).sure(users)

    def discard(self) -> None:
        """Forget the messages of the current batch."""
        self._held.clear()

    def publish(self, sums: NDArray[np.int64], batch: ClosedBatch, releases: int) -> NDArray[np.float64]:
        """Return the sums of all bits after mixing, less the mean noise.

        The bits are those of users and their noise bits.
        """
        if not batch.sent:
            return np.zeros(len(sums))
        bits = self.noise_for(batch.load).noise_bits(batch.users)
        mixed = self.mixed(sums, bits, batch.sent)
        self._variance += bits.variance(batch.sent), bits.variance(batch.sent) - self._variance[1]
        return np.asarray((mixed - batch.sent * bits.each * bits.bias) * self.side.statistic.grid)

    def mixed(self, sums: NDArray[np.int64], bits: NoiseBits, sent: int) -> NDArray[Any]:
        """Return the sums with the noise bits of ``sent`` users."""
        generator = self.options.source.generator
        if not self.options.by_message:
            return np.asarray(sums + generator.binomial(sent * bits.each, bits.bias, len(sums)))
        if len(self._held) != sent:
            raise RuntimeError("Messages of this batch are missing: nothing is published.")
        own = self.side.statistic.own_bits
        least = own // 2 if own > 1 else 0
        held = np.array(self._held) + least  # how many of a user's own bits are set
        self._held.clear()
        messages = send_and_shuffle(held, bits, generator, own)
        return np.asarray(messages.sum(axis=1, dtype=np.int64) - sent * least)

    def error(self, releases: int, load: int, *, newest: bool) -> CellError:
        """Return the error of a counter: a sum of many centred bits."""
        variance = float(self._variance[1 if newest else 0])
        return lambda grid: BoundedError(variance * grid**2, grid)

    def batch_error(self, users: int, load: int) -> CellError:
        """Return the approximate error of a batch of so many users.

        It is right to some percent, because an exact one takes a search for each size.
        """
        variance = self.noise_for(load).expected_variance(users)
        return lambda grid: BoundedError(variance * grid**2, grid)

    def noises(self, batches: Sequence[int], load: int) -> Noises:
        """Return the noise bits of all users of each batch."""
        noise, known = self.noise_for(load), self.side.sensitivity(load)
        of_batches = [(size, noise.noise_bits(size)) for size in batches]
        if known.linf > 1:  # so many bits that a linear score is the best one
            spread = [math.sqrt(bits.variance(size)) * known.units[1] for size, bits in of_batches]
            return [AdditiveNoise(np.tril(np.ones((len(spread), 1)) * spread), 1.0, "bits")]
        return [NoiseBitsOfBatches(tuple((size * bits.each, bits.bias) for size, bits in of_batches))]

    @classmethod
    def sources(cls, side: UserSide, options: BitsOptions) -> dict[str, NoiseSource]:
        """Return the sources of the users and of the shuffler."""
        return {"users": side.source, "shuffler": options.source}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the variances of noise bits."""
        if self._held:
            raise ValueError("A batch of messages is open: close it with publish(), then save.")
        return {"variance": self._variance}


def printed_as(epsilon: float) -> str:
    """Return a note on the budget that the paper's constants are printed for."""
    return f"printed as epsilon = {epsilon:g}, which basic composition makes {2 * epsilon:g} for a replaced user"
