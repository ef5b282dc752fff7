"""Conversions between (epsilon, delta) and noise, in closed form.

Proofs: docs/proofs/gaussian.md, docs/proofs/geometric.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import real, shown

__all__ = ["check_budget", "gaussian_delta", "gaussian_epsilon", "gaussian_mu", "laplace_scale", "pure_delta"]


LEAST_DELTA = 1e-20
"""The least delta above 0: events that are rarer than this are none of those that noise in double precision has."""

SMALLEST = 1e-9
"""The smallest epsilon: below it noise is too large for double precision, and for releases to be of any use."""


def check_budget(epsilon: float, delta: float) -> None:
    """Raise if (epsilon, delta) guarantees nothing, or cannot be kept."""
    if not (0.0 < real(epsilon, "epsilon") < math.inf):
        raise ValueError(
            f"epsilon is {shown(epsilon)}: it must be a number above 0. For a run without privacy, use OpenBillboard."
        )
    if epsilon < SMALLEST:
        raise ValueError(f"epsilon is {epsilon}: below {SMALLEST:g} the noise is too large to be drawn faithfully.")
    if not 0.0 <= real(delta, "delta") < 1.0:
        raise ValueError(f"delta is {shown(delta)}: it must lie in [0, 1), and should be far below 1 / users.")
    if 0.0 < delta < LEAST_DELTA:
        raise ValueError(
            f"delta is {delta}: it is too small for noise in double precision. Give {LEAST_DELTA:g} or more, or 0 for "
            "a pure guarantee."
        )


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the least delta at which Gaussian noise is (epsilon, delta)-DP.

    Here mu is sensitivity / sigma.
    """
    from scipy.special import log_ndtr

    epsilon, mu = real(epsilon, "epsilon"), real(mu, "mu")
    if math.isnan(epsilon) or math.isnan(mu):
        raise ValueError(f"epsilon is {epsilon} and mu is {mu}: both must be numbers.")
    if mu <= 0.0:
        return 0.0
    first = float(log_ndtr(-epsilon / mu + mu / 2.0))
    second = epsilon + float(log_ndtr(-epsilon / mu - mu / 2.0))
    if first == -math.inf or second >= first:  # too small for a double
        return 0.0
    return max(0.0, -math.exp(first) * math.expm1(second - first))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu at which Gaussian noise is (epsilon, delta)-DP.

    Here mu is sensitivity / sigma.
    """
    check_budget(epsilon, delta)
    if delta == 0.0:
        raise ValueError("delta is 0: Gaussian noise needs delta above 0. Ask for Laplace noise, or for a small delta.")
    return _gaussian_mu(float(epsilon), float(delta))


@lru_cache(maxsize=256)
def _gaussian_mu(epsilon: float, delta: float) -> float:
    return _last_below(lambda mu: gaussian_delta(epsilon, mu), delta)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the least epsilon at which Gaussian noise is (epsilon, delta)-DP.

    Here mu is sensitivity / sigma.
    """
    if not 0.0 < real(delta, "delta") < 1.0:
        raise ValueError(f"delta is {shown(delta)}: Gaussian noise has an epsilon for delta in (0, 1) only.")
    if not 0.0 <= real(mu, "mu") < math.inf:
        raise ValueError(f"mu is {shown(mu)}: sensitivity over sigma is a number, 0 or more.")
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    return 1.0 / _last_below(lambda inverse: gaussian_delta(1.0 / inverse, mu), delta)


def _last_below(rising: Callable[[float], float], level: float) -> float:
    """Return the largest x > 0 at which a rising function is at most ``level``.

    It is found by halving on a logarithmic scale.
    """
    low, high = 1.0, 1.0
    while rising(low) > level:
        low /= 2.0
    while rising(high) <= level:
        high *= 2.0
    while True:
        middle = math.sqrt(low * high)
        if not low < middle < high:
            return low
        if rising(middle) <= level:
            low = middle
        else:
            high = middle


LOST = 1e-15
"""Probability that sums in double precision may lose, which counts against a delta."""

LATTICE = 2**14
"""Largest number of losses of one set of mechanisms that are told apart."""

MOST_COMPOSED = 10**9
"""Largest number of mechanisms whose losses are composed; the epsilons of more are added up."""

LARGEST_RATE = 30.0
"""Largest ratio of grid to scale: beyond it, geometric noise is zero but for events too rare for double precision."""

Parts = Sequence[tuple[int, float]]
"""Pairs (number of sets, L1): sets of cells that one user moves, and the L1 distance by which they move each set."""


def laplace_scale(
    parts: Parts, l1: float, times: int, epsilon: float, delta: float, grid: float
) -> tuple[float, float, float]:
    """Return the least scale of Laplace noise, and the budget that it costs.

    The user is in ``times`` sums. The budget is an epsilon and a delta.

    Args:
        parts: Sets of cells that the user moves in each sum.
        l1: L1 distance by which the user moves all these cells together.
        times: Number of sums that the user is in, each with noise of its own.
        epsilon: Epsilon of the budget.
        delta: Delta of the budget. If it is 0, epsilons add up; otherwise, privacy losses are composed.
        grid: The coarsest step of what is published. It bounds the scale from below, so that noise is not always zero.

    Proof: docs/proofs/composition.md.
    """
    scale, spent = l1 * times / epsilon, 0.0
    if delta > LOST and times * sum(count for count, _ in parts) <= MOST_COMPOSED:
        composed = _composed_scale(tuple(parts), times, epsilon, delta)
        if composed < scale:
            scale, spent = composed, delta
    if scale < grid / LARGEST_RATE:
        scale, spent = grid / LARGEST_RATE, 0.0
    return scale, epsilon if spent else min(epsilon, l1 * times / scale), spent


@lru_cache(maxsize=256)
def _composed_scale(parts: tuple[tuple[int, float], ...], times: int, epsilon: float, delta: float) -> float:
    """Return the least scale at which all cells together cost (epsilon, delta).

    The cells are those that a user moves.
    """
    many = [(count * times, size) for count, size in parts]
    return 1.0 / _last_below(lambda rate: pure_delta(epsilon, [(n, size * rate) for n, size in many]), delta)


def pure_delta(epsilon: float, budgets: Sequence[tuple[int, float]]) -> float:
    """Return the least delta at which mechanisms with pure budgets together cost ``epsilon``.

    Budgets are pairs (number of mechanisms, epsilon of each). The worst case is randomized response, whose privacy loss
    is plus or minus its whole budget. Budgets are rounded up to multiples of the least, so that losses lie on a
    lattice. Proof: docs/proofs/composition.md.
    """
    step = min(budget for _, budget in budgets)
    if step <= 0.0:
        some = [pair for pair in budgets if pair[1] > 0.0]
        return pure_delta(epsilon, some) if some else 0.0
    parts = []
    for count, budget in budgets:
        each = math.ceil(budget / step * (1.0 - 1e-12))
        first, masses = _binomial(count, each * step)
        parts.append((each, each * (2 * first - count), masses))
    # One unit of the lattice is two steps, or more where that would be too fine: losses are then rounded up.
    unit = max(1, math.ceil(max(each * len(masses) for each, _, masses in parts) / LATTICE))
    chances, lowest = np.ones(1), 0
    for each, least, masses in parts:
        places = -(-each * np.arange(len(masses)) // unit)
        chances, lowest = np.convolve(chances, np.bincount(places, masses)), lowest + least
    losses = step * (lowest + 2 * unit * np.arange(len(chances)))
    beyond = losses > epsilon
    # Mass that rounding has lost in convolutions counts in full.
    lost = max(0.0, 1.0 - float(chances.sum())) + LOST
    return float(-(chances[beyond] * np.expm1(epsilon - losses[beyond])).sum()) * (1.0 + 1e-9) + lost


def _binomial(count: int, budget: float) -> tuple[int, NDArray[np.float64]]:
    """Return the probabilities of the numbers of true answers among randomized responses.

    The first item of the result is the least of these numbers. Beyond 12 deviations, and 120 answers where there are
    few, lies less than 1e-30: it counts as lost.
    """
    from scipy.stats import binom

    likely = 1.0 / (1.0 + math.exp(-min(budget, 700.0)))
    reach = 12.0 * math.sqrt(count * likely * (1.0 - likely)) + 120.0
    first, last = max(0, math.floor(count * likely - reach)), min(count, math.ceil(count * likely + reach))
    return first, binom.pmf(np.arange(first, last + 1), count, likely)
