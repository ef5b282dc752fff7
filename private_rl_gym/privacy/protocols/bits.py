"""Sums of shuffled bits: the noise bits that they need, and their privacy.

Every user sends, for each counter, their own bit and some noise bits, each as a message of its own. The shuffler
permutes the messages of a counter, so that they reveal only their sum: that of users' own bits, plus a binomial number.
Proof: docs/proofs/shuffled-bits.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import real, shown
from private_rl_gym.privacy.accounting.conversion import check_budget, gaussian_mu

__all__ = ["BinarySums", "NoiseBits", "least_number", "send_and_shuffle", "shuffled_epsilon"]

LEAST_DELTA = 1e-12
MOST_BITS = 1e10
MOST_MOVED = 500_000

LARGE = 1_000_000
"""Users in a batch so large that its noise is that of any larger one, to a thousandth."""


@dataclass(frozen=True, slots=True)
class NoiseBits:
    """The noise of each user in a counter.

    It consists of ``each`` bits, each of which is set with probability ``bias``.
    """

    each: int
    bias: float

    def variance(self, users: int) -> float:
        """Return the variance of the noise of ``users`` users together."""
        return users * self.each * self.bias * (1.0 - self.bias)


class BinarySums:
    """The protocol for one batch, with the noise that its users need.

    Args:
        moved: Number of counters that replacing one user moves up by one; as many move down by one.
        epsilon, delta: Budget of all these counters together.
        paper: Use the constants that the paper prints, a share of epsilon for each of 3 H bits.
        horizon: Number of stages, for the paper's constants.
        dropout: The share of a batch that may vanish without the guarantee being broken.
    """

    fair_share = 0.0
    """The share of noise bits up to which users are so few that bits need no bias: it would cost no less."""

    def __init__(
        self, moved: int, epsilon: float, delta: float, *, paper: bool = False, horizon: int = 1, dropout: float = 0.0
    ) -> None:
        check_budget(epsilon, delta)
        if real(delta, "delta") < LEAST_DELTA:
            raise ValueError(
                f"delta is {delta:g}: the number of noise bits is finite, and its cost is computed down to "
                f"{LEAST_DELTA:g}. Give delta={LEAST_DELTA:g} or more."
            )
        if not 0.0 <= real(dropout, "dropout") < 1.0:
            raise ValueError(f"dropout is {shown(dropout)}: the share of a batch that may vanish lies in [0, 1).")
        self.moved, self.epsilon, self.delta, self.dropout, self.paper = moved, epsilon, delta, dropout, paper
        if not paper:
            fair = least_number(lambda bits: self.cost(math.ceil(bits), 0.5), epsilon, self._guess())
            self.tau, self.true_epsilon = float(math.ceil(fair)), epsilon
            return
        self.tau = 96.0 * math.log(2.0 / delta) / (min(epsilon, 1e100) / (3.0 * horizon)) ** 2
        if self.tau > MOST_BITS:
            raise self._too_many(self.tau)
        # One sender with the fewest fair bits; then biased bits, from the fewest senders up to very many.
        senders = [1, *(math.ceil(self.tau) * times for times in (1, 2, 100, 10_000))]
        sizes = [math.ceil(number / (1.0 - dropout)) for number in senders]
        bits = [(self.sure(users), self.noise_bits(users)) for users in sizes]
        # Between these sizes the cost is larger by less than a hundredth.
        self.true_epsilon = 1.01 * max(self.cost(sent * noise.each, noise.bias) for sent, noise in bits)
        if not math.isfinite(self.true_epsilon):
            raise ValueError(
                f"epsilon is {epsilon:g}, too large for the paper's constants: they give too few noise bits to protect "
                "a user. Use calibration='exact'."
            )

    def cost(self, bits: int, bias: float) -> float:
        """Return the epsilon of so many noise bits."""
        return shuffled_epsilon(bits, bias, self.moved, self.delta)

    def _guess(self) -> float:
        """Return a guess of the number of fair bits.

        It is that for Gaussian noise of the same variance.
        """
        if self.moved > MOST_MOVED:
            raise ValueError(
                f"A user changes {self.moved:,} sums of bits, and at most {MOST_MOVED:,} are accounted for. Use a "
                "shorter horizon, or statistic='reports'."
            )
        guess = 4.0 * 2.0 * self.moved / gaussian_mu(self.epsilon, self.delta) ** 2
        if guess > MOST_BITS:
            raise self._too_many(guess)
        return guess

    def _too_many(self, bits: float) -> ValueError:
        """Return the error for a budget that needs too many noise bits.

        There are more of them than can be accounted for.
        """
        return ValueError(
            f"epsilon is {self.epsilon:g}: a batch would need {bits:.1g} noise bits a counter. Ask for a larger "
            "epsilon."
        )

    def sure(self, users: int) -> int:
        """Return the number of users whose messages arrive if the planned share vanishes.

        ``users`` is the size of the batch.
        """
        return max(1, users - math.floor(self.dropout * users))

    def noise_bits(self, users: int) -> NoiseBits:
        """Return the noise for a batch of ``users`` users.

        The planned share of them may vanish.
        """
        sure = self.sure(users)
        if self.paper:
            if sure < self.tau:
                return NoiseBits(math.ceil(self.tau / sure), 0.5)
            return NoiseBits(1, self.tau / (2.0 * sure))
        each = math.ceil(self.tau / sure)
        if sure <= self.fair_share * self.tau:
            return NoiseBits(each, 0.5)
        # The bias whose variance is that of the least fair bits: p (1 - p) N = M / 4.
        guess = 0.5 * (1.0 - math.sqrt(max(0.0, 1.0 - self.tau / (sure * each))))
        return NoiseBits(each, least_number(lambda bias: self.cost(sure * each, bias), self.epsilon, guess, 0.5))

    def expected_variance(self, users: int) -> float:
        """Return the approximate variance of the noise of ``users`` users.

        It is right to some percent, and takes no search for this number of users. Bits that are rarely set lean to one
        side, and need a larger deviation than fair ones. Between the two it grows about in proportion to 1 - 2 p, which
        is what the skewness of a binomial distribution is proportional to.
        """
        if self.paper:
            return self.noise_bits(users).variance(users)
        sure = self.sure(users)
        number = sure * math.ceil(self.tau / sure)
        fair, rare = 0.5 * math.sqrt(self.tau), math.sqrt(self.noise_bits(LARGE).variance(self.sure(LARGE)))
        low, high = 0.0, 0.5  # the bias at which the bits have this deviation
        for _ in range(50):
            bias = (low + high) / 2.0
            wanted = fair + (rare - fair) * (1.0 - 2.0 * bias)
            low, high = (low, bias) if number * bias * (1.0 - bias) >= wanted**2 else (bias, high)
        return users / sure * number * high * (1.0 - high)


# Privacy of binomial noise --------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def shuffled_epsilon(bits: int, bias: float, moved: int, delta: float) -> float:
    """Return the epsilon at which sums with Binomial(bits, bias) noise are (epsilon, delta)-DP.

    Replacing a user moves ``moved`` of the sums up by one, and as many down by one.
    """
    # If all noise bits are set, or none, the user's own bit shows.
    bare = moved * (bias**bits + (1.0 - bias) ** bits)
    return math.inf if bare > delta else float(_composed(bits, bias, moved).get_epsilon_for_delta(delta))


@lru_cache(maxsize=4)
def _composed(bits: int, bias: float, moved: int) -> Any:
    """Return the distribution of the privacy loss of all sums together.

    Losses are rounded upwards.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    deviation = math.sqrt(bits * bias * (1.0 - bias))
    # Beyond 10 deviations (and 60 bits, where there are few) lies less than 1e-20 of the mass: it counts as lost.
    reach = 10.0 * deviation + 60.0
    low, high = max(0, math.floor(bits * bias - reach)), min(bits, math.ceil(bits * bias + reach))
    step = 1e-3 / max(deviation, 1.0)  # one bit's loss is near 1 / deviation, and is rounded up to this
    k = np.arange(low - 1.0, high + 1.0)
    with np.errstate(divide="ignore"):
        # log P(k) / P(k + 1), by the ratio of the two: logarithms of factorials of millions have no digits to spare.
        fall = np.log((k + 1.0) * (1.0 - bias)) - np.log((bits - k) * bias)
    logs = -np.concatenate([[0.0], np.cumsum(fall[1:-1])])  # of P(low), ..., P(high), up to a constant
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()

    def of(losses: NDArray[np.float64]) -> Any:
        """Return the distribution of the loss for one counter.

        Noise k has probability ``mass`` and loss ``losses``.
        """
        seen = np.isfinite(losses)
        places = np.ceil(losses[seen] / step).astype(np.int64)
        masses = np.bincount(places - places.min(), mass[seen])
        rounded = {int(places.min()) + i: float(part) for i, part in enumerate(masses) if part > 0.0}
        lost = float(mass[~seen].sum()) + 1e-20  # impossible with a bit more or less
        return pld.PrivacyLossDistribution.create_from_rounded_probability(rounded, lost, step)

    up, down = of(fall[1:]), of(-fall[:-1])
    return up.self_compose(moved).compose(down.self_compose(moved))


def least_number(epsilon_at: Callable[[float], float], epsilon: float, guess: float, most: float = math.inf) -> float:
    """Return a number whose epsilon is at most ``epsilon``, and close to it.

    The epsilon is less by at most 4 / 10,000; or else the number is the least to a thousandth. ``most`` has at most
    this epsilon, and larger numbers have less. Secants in logarithms find it in a few steps: an epsilon falls about as
    the square root of the number grows.
    """
    low, high, slope = 0.0, most, -0.5
    x, before = min(max(guess, 1e-12), most), None
    while x < most and high > 1.001 * low:
        there = epsilon_at(x)
        low, high = (low, x) if there <= epsilon else (x, high)
        if (1.0 - 4e-4) * epsilon <= there <= epsilon:
            break
        point = (math.log(x), math.log(there)) if 0.0 < there < math.inf else None
        if point is not None and before is not None and point[0] != before[0]:
            slope = min(-0.1, (point[1] - before[1]) / (point[0] - before[0]))
        if point is None:
            x *= 1.5
        else:
            x, before = x * math.exp((math.log((1.0 - 2e-4) * epsilon) - point[1]) / slope), point
        if not low < x < high:  # a step beyond what is known
            x = math.sqrt(low * high) if low > 0.0 and high < math.inf else (high / 1.5 if low == 0.0 else low * 1.5)
    return high


# Messages, one by one ------------------------------------------------------------------------------------------------


def send_and_shuffle(
    held: NDArray[np.int64],  # [user, counter], how many of a user's own bits are set
    bits: NoiseBits,
    rng: np.random.Generator,
    own: int = 1,
) -> NDArray[np.int8]:  # [counter, message]
    """Return every message of a batch as the analyst sees it.

    Messages are by counter, in random order. Each user has ``own`` bits of their own.
    """
    users, counters = held.shape
    said = held.T[:, :, None] > np.arange(own)
    noise = rng.random((counters, users, bits.each)) < bits.bias
    messages = np.concatenate([said, noise], axis=2).astype(np.int8).reshape(counters, -1)
    return np.asarray(rng.permuted(messages, axis=1))
