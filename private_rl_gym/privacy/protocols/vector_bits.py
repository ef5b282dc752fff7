"""Noise bits for sums of vectors of whole numbers.

A user moves many entries by a little. These are linear moments behind a shuffler.

* ``VectorSums`` - the noise bits that such sums need, if their differences have a bounded L2 norm

Proof: docs/proofs/shuffled-vectors.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from private_rl_gym.privacy.accounting.conversion import gaussian_mu
from private_rl_gym.privacy.protocols.bits import BinarySums

__all__ = ["VectorSums", "vector_epsilon"]

MOST_WORK = 5e8
"""Probabilities that one account of a batch may go through, which takes seconds."""


class VectorSums(BinarySums):
    """The protocol for one batch of vectors of whole numbers.

    It has the noise that its users need.

    Args:
        reach: L2 distance by which replacing one user moves the vector, in levels.
        most: The largest distance by which the user moves one entry.
        epsilon, delta: Budget of the whole vector.
        dropout: The share of a batch that may vanish without the guarantee being broken.
    """

    fair_share = 0.02

    def __init__(self, reach: float, most: int, epsilon: float, delta: float, *, dropout: float = 0.0) -> None:
        self.reach, self.most = reach, most
        super().__init__(0, epsilon, delta, dropout=dropout)

    def cost(self, bits: int, bias: float) -> float:
        """Return the epsilon of so many noise bits."""
        return vector_epsilon(bits, bias, self.reach, self.most, self.delta, self.epsilon)

    def _guess(self) -> float:
        guess = 4.0 * (self.reach / gaussian_mu(self.epsilon, self.delta)) ** 2
        if self.most * 10.0 * math.sqrt(guess) > MOST_WORK:
            raise self._too_many(guess)
        return 1.1 * guess


@lru_cache(maxsize=65536)
def vector_epsilon(bits: int, bias: float, reach: float, most: int, delta: float, epsilon: float) -> float:
    """Return an epsilon of vectors of whole numbers with binomial noise.

    Every entry has Binomial(bits, bias) noise, and the epsilon is for this delta. Two users' vectors differ by at most
    ``reach`` in L2, and by at most ``most`` in an entry. ``epsilon`` is about what is expected: it chooses the order of
    the Renyi divergence. Whatever the order, the bound holds.
    """
    deviation = math.sqrt(bits * bias * (1.0 - bias))
    order = _best_order(epsilon, delta)
    width = 10.0 * deviation + 60.0
    low, high = max(0, math.floor(bits * bias - width)), min(bits, math.ceil(bits * bias + width))
    first, last = max(0, low - most), min(bits, high + most)
    k = np.arange(first, last + 1.0)
    fall = np.log((k[:-1] + 1.0) * (1.0 - bias)) - np.log((bits - k[:-1]) * bias)  # log P(k) / P(k + 1)
    logs = -np.concatenate([[0.0], np.cumsum(fall)])
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    steepest, lost = 0.0, 0.0
    for shift in range(1, most + 1):
        for away in (shift, -shift) if bias != 0.5 else (shift,):
            here = slice(max(0, -away), len(k) - max(0, away))
            there = slice(max(0, away), len(k) - max(0, -away))
            inside = float(mass[here].sum())
            if inside == 0.0:  # no noise is large enough to hide this distance
                return math.inf
            moment = float((mass[here] * np.exp((order - 1.0) * (logs[here] - logs[there]))).sum())
            renyi = (math.log(moment) - order * math.log(inside)) / (order - 1.0)
            steepest, lost = max(steepest, renyi / shift**2), max(lost, 1.0 - inside)
    # Entries that move are whole numbers: no more of them than the square of the reach.
    left = delta - reach**2 * (lost + 1e-20)
    if left <= 0.0:
        return math.inf
    spent = reach**2 * steepest * (1.0 + 1e-9)
    return max(0.0, spent + math.log1p(-1.0 / order) - math.log(left * order) / (order - 1.0))


@lru_cache(maxsize=256)
def _best_order(epsilon: float, delta: float) -> float:
    """Return the order at which this conversion needs the least Gaussian noise."""
    from scipy.optimize import minimize_scalar

    def negative_square(depth: float) -> float:  # -mu^2, at order 1 + e^depth
        order = 1.0 + math.exp(depth)
        return -2.0 * (epsilon - math.log1p(-1.0 / order) + math.log(order * delta) / (order - 1.0)) / order

    guess = math.log(math.sqrt(2.0 * math.log(1.0 / delta)) / gaussian_mu(epsilon, delta))
    found = minimize_scalar(negative_square, bounds=(guess - 2.0, guess + 2.0), method="bounded")
    return 1.0 + math.exp(float(found.x))
