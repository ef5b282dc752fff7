"""Amplification by shuffling: the smaller epsilon of noised reports once they are mixed.

Users noise the reports themselves.

* ``Blanket`` - the part of a report's distribution that no input changes, and in which others hide
* ``amplified_delta``, ``amplified_epsilon`` - the privacy of shuffled reports
* ``closed_form_epsilon`` - a formula for any reports, which is never the smaller one

Proof: docs/proofs/shuffle-amplification.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_LOCAL", "Blanket", "amplified_delta", "amplified_epsilon", "closed_form_epsilon"]

LARGEST_LOCAL = 20.0
"""Local epsilon above which nothing is gained: other users hide hardly anything then, whatever the batch."""

CELLS = 2**18
"""The largest number of cells of the grid on which sums of gains are convolved."""

TAIL = 48.0
"""Sums of gains beyond a probability of exp(-TAIL) are not convolved; they count in full."""


@dataclass(frozen=True, eq=False, slots=True)
class Blanket:
    """The privacy blanket of reports, which hides the inputs of two users.

    It is given by the probabilities of the kinds of reports that tell the two inputs apart.

    Attributes:
        first: Probability of each kind under one user's input.
        second: Its probability under the other's.
        common: The part of the probability of this kind that no input changes: it hides the two. It sums to at most 1.
    """

    first: NDArray[np.float64]  # [kind]
    second: NDArray[np.float64]  # [kind]
    common: NDArray[np.float64]  # [kind]

    @classmethod
    def of_levels(cls, local: float, alone: float, both: float, reports: int = 1) -> Blanket:
        """Return the blanket of independent reports whose densities take two values.

        One value is e^local times the other. Without preference, an outcome is favoured by the first user alone with
        probability ``alone``, by the second alone with the same one, and by both with probability ``both``.
        """
        plain = np.array([[max(0.0, 1.0 - 2.0 * alone - both), alone], [alone, both]])  # favoured by first, by second
        counts = np.ones((1, 1))  # [reports that the first favours, reports that the second favours]
        for _ in range(reports):
            wider = np.zeros((len(counts) + 1, len(counts) + 1))
            for i in (0, 1):
                for j in (0, 1):
                    wider[i : i + len(counts), j : j + len(counts)] += plain[i, j] * counts
            counts = wider
        outside = 1.0 / (1.0 + math.expm1(local) * (alone + both))  # the density where a report is not favoured
        common = (counts * outside**reports).ravel()
        by_first, by_second = (axis.ravel()[common > 0.0] for axis in np.indices(counts.shape))
        common = common[common > 0.0]
        return cls(common * np.exp(local * by_first), common * np.exp(local * by_second), common)

    @classmethod
    def of_variation(cls, local: float, variation: float = 1.0) -> Blanket:
        """Return the blanket of any reports of this local epsilon and total variation.

        The distributions of two reports differ by ``variation`` at most.
        """
        variation = min(variation, math.tanh(local / 2.0))  # no local reports are farther apart
        alpha, ratio = variation / math.expm1(local), math.exp(local)
        alike = max(0.0, 1.0 - alpha * (ratio + 1.0))
        first, second = np.array([alpha * ratio, alpha, alike]), np.array([alpha, alpha * ratio, alike])
        common = np.array([alpha, alpha, alike / ratio])
        seen = common > 0.0
        return cls(first[seen], second[seen], common[seen])


def amplified_epsilon(local: float, users: int, delta: float, blanket: Blanket | None = None) -> float:
    """Return the epsilon of ``users`` shuffled reports, each of which is ``local``-LDP.

    ``blanket`` says more about the reports than their epsilon does; without it, they may be any.
    """
    if local > LARGEST_LOCAL or users < 2:
        return local
    reports = Blanket.of_variation(local) if blanket is None else blanket
    return min(local, _least_epsilon(lambda epsilon: amplified_delta(reports, users, epsilon), local, delta))


def _least_epsilon(delta_at: Callable[[float], float], most: float, delta: float) -> float:
    """Return the least number at which a falling function is at most ``delta``.

    The number is found to a relative precision of 1e-4. It is ``most`` if no smaller number is found. Only numbers at
    which the function was computed and found small enough are returned otherwise.
    """
    low, high = 0.0, most
    at_high = math.log(max(delta_at(most * (1.0 - 1e-6)), 1e-300) / delta)
    if at_high > 0.0:
        return most
    at_low = math.log(max(delta_at(0.0), 1e-300) / delta)
    if at_low <= 0.0:
        return 0.0
    high = most * (1.0 - 1e-6)
    for step in range(60):
        if high - low <= 1e-4 * high:
            break
        # Chords and halves in turn: the logarithm of delta is about a parabola in epsilon.
        share = 0.5 if step % 3 == 2 else min(0.95, max(0.05, at_low / (at_low - at_high)))
        middle = low + share * (high - low)
        there = math.log(max(delta_at(middle), 1e-300) / delta)
        if there <= 0.0:
            high, at_high = middle, there
        else:
            low, at_low = middle, there
    return high


def closed_form_epsilon(local: float, users: int, delta: float) -> float:
    """Return the epsilon of Feldman, McMillan and Talwar 2023, theorem 3.1.

    Where the theorem has no formula, this is ``local``. The formula is for reports of any kind. The numbers of
    ``amplified_epsilon`` are smaller.
    """
    odds = math.log(2.0 / delta)
    if users < 2 or local > math.log(max(1.0, users / (16.0 * odds) - 1.0)):
        return local
    inner = 4.0 * math.sqrt(2.0 * odds / ((math.exp(local) + 1.0) * users)) + 4.0 / users
    return min(local, math.log1p(math.expm1(local) * inner))


def amplified_delta(blanket: Blanket, users: int, epsilon: float) -> float:
    """Return an upper bound on the delta of shuffled reports at ``epsilon``.

    A kind's gain is (first - e^epsilon second) / blanket. Delta is the mean of max(0, sum of gains) / users, where each
    user adds the gain of a kind with the probability that the blanket gives to it, and 0 with the rest.
    Where that is too fine to compute, delta is at most what one report tells on its own, and at most Chernoff's bound.
    """
    alone = float(np.maximum(blanket.first - math.exp(epsilon) * blanket.second, 0.0).sum()) * (1.0 + 1e-12)
    gains = np.append((blanket.first - math.exp(epsilon) * blanket.second) / blanket.common, 0.0)
    masses = np.append(blanket.common, max(0.0, 1.0 - float(blanket.common.sum())))
    unit = float(np.abs(gains).max())
    if float(gains.max()) <= 1e-12 * unit or users < 2:
        return alone
    gains = gains / unit
    top = float(gains.max())
    # The sum is above 0 by chance only. Under weights e^(tilt gain) it has mean 0, so that the mean in question is one
    # of common events: floating point then costs it a share, and not more than there is.
    tilt = _tilt(masses, gains)
    tilted = masses * np.exp(tilt * (gains - top))
    tilted /= tilted.sum()
    chernoff = _in_all(masses, gains, tilt, users) * unit / users / (math.e * tilt)
    variance = float((tilted * gains**2).sum())
    reach = min(TAIL / 3.0 + math.sqrt((TAIL / 3.0) ** 2 + 2.0 * users * variance * TAIL), float(users))  # Bernstein
    step = min(_step(tilted, gains, variance, reach), 1.0 / tilt)
    if 2.2 * (reach + 1.0) / step > CELLS:
        return min(alone, chernoff)
    cells = 1 << math.ceil(math.log2(2.0 * reach / step + 8.0))
    # A gain between two points of the grid is split between them with its mean kept, which spreads it: the mean of
    # max(0, sum) grows by that.
    below = np.floor(gains / step + 1e-9)
    share = np.clip(gains / step - below, 0.0, 1.0)
    places = np.concatenate([below, below + 1.0])
    weights = np.concatenate([masses * (1.0 - share), masses * share]) * np.exp(tilt * (step * places - top))
    total = float(weights.sum())
    chances = np.bincount(places.astype(np.int64) % cells, weights / total, minlength=cells)
    powers = np.fft.rfft(chances) ** users
    sums = np.fft.irfft(powers, cells)[: cells // 2]
    values = step * np.arange(cells // 2)
    falling = values * np.exp(-tilt * values)
    inside = float((np.maximum(sums, 0.0) * falling).sum())
    blurred = (users + 10.0) * 1e-15 * float(np.abs(powers).mean()) * float(falling.sum())  # rounding errors
    beyond = 2.0 * math.exp(-TAIL) / (math.e * tilt)
    factor = math.exp(min(700.0, users * (math.log(total) + tilt * top)))
    delta = unit / users * factor * ((inside + blurred) * (1.0 + 1e-6) + beyond)
    return min(alone, chernoff, delta)


def _in_all(masses: NDArray[np.float64], gains: NDArray[np.float64], tilt: float, users: int) -> float:
    """Return the mean of e^(tilt * sum of gains), rounded up."""
    top = float(gains.max())
    mean = math.log(float((masses * np.exp(tilt * (gains - top))).sum())) + tilt * top
    return math.exp(min(700.0, users * (mean + 1e-15))) * (1.0 + 1e-9)


def _step(
    tilted: NDArray[np.float64],  # [kind], and what is not in the blanket
    gains: NDArray[np.float64],
    variance: float,
    reach: float,
) -> float:
    """Return the step of the grid: a twentieth of a typical gain.

    It divides the most common gain if it can.
    """
    typical = math.sqrt(variance / max(float(tilted[:-1].sum()), 1e-300))
    step = max(2.2 * (reach + 1.0) / CELLS, 0.05 * min(typical, 1.0))
    common = abs(float(gains[int(np.argmax(tilted[:-1]))]))
    if common > 0.0:
        divided = common / math.ceil(common / step)
        if 2.2 * (reach + 1.0) / divided <= CELLS:
            return divided
    return step


def _tilt(masses: NDArray[np.float64], gains: NDArray[np.float64]) -> float:
    """Return the tilt at which the weighted gains have mean 0.

    The weights are e^(tilt * gain). Without weights the mean is below 0, so the tilt is positive.
    """
    from scipy.optimize import brentq

    top = float(gains.max())

    def mean(number: float) -> float:
        weights = masses * np.exp(number * (gains - top))
        return float((weights * gains).sum() / weights.sum())

    high = 1.0
    while mean(high) < 0.0:
        high *= 2.0
    low = 0.0 if mean(0.0) < 0.0 else -1.0
    return max(1e-9, float(brentq(mean, low, high, xtol=1e-12)))
