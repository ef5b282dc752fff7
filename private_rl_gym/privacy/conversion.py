"""Conversions between (epsilon, delta) and noise, in closed form.

Proofs: docs/proofs/gaussian.md, docs/proofs/geometric.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

__all__ = ["check_budget", "gaussian_delta", "gaussian_epsilon", "gaussian_mu", "laplace_scale", "pure_delta"]


LEAST_DELTA = 1e-20
"""The least delta above 0: events that are rarer than this are none of those that noise in double precision has."""

SMALLEST = 1e-9
"""The smallest epsilon: below it noise is too large for double precision, and for releases to be of any use."""


def check_budget(epsilon: float, delta: float) -> None:
    """Raise if (epsilon, delta) promises nothing, or cannot be kept."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise TypeError(f"{name} is {value!r}: it must be a number.")
    if not (epsilon > 0.0 and math.isfinite(epsilon)):
        raise ValueError(
            f"epsilon is {epsilon}: it must be a number above 0. For a run without privacy, use OpenBillboard."
        )
    if epsilon < SMALLEST:
        raise ValueError(f"epsilon is {epsilon}: below {SMALLEST:g} the noise is too large to be drawn faithfully.")
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta is {delta}: it must lie in [0, 1), and should be far below one over the users.")
    if 0.0 < delta < LEAST_DELTA:
        raise ValueError(
            f"delta is {delta}: noise in double precision has no events as rare as that. Give {LEAST_DELTA:g} or more, "
            "or 0 for a pure promise."
        )


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta for which Gaussian noise with sensitivity / sigma = mu is (epsilon, delta)-DP."""
    from scipy.special import log_ndtr

    if mu <= 0.0:
        return 0.0
    first = float(log_ndtr(-epsilon / mu + mu / 2.0))
    second = epsilon + float(log_ndtr(-epsilon / mu - mu / 2.0))
    if first == -math.inf or second >= first:  # too small for a double
        return 0.0
    return max(0.0, -math.exp(first) * math.expm1(second - first))


@lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu = sensitivity / sigma for which Gaussian noise is (epsilon, delta)-DP."""
    check_budget(epsilon, delta)
    if delta == 0.0:
        raise ValueError("delta is 0: Gaussian noise needs delta above 0. Ask for Laplace noise, or for a small delta.")
    return _last_below(lambda mu: gaussian_delta(epsilon, mu), delta)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """The least epsilon for which Gaussian noise with sensitivity / sigma = mu is (epsilon, delta)-DP."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}: Gaussian noise has an epsilon for delta in (0, 1) only.")
    if not (mu >= 0.0 and math.isfinite(mu)):
        raise ValueError(f"mu is {mu}: sensitivity over sigma is a number, 0 or more.")
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    return 1.0 / _last_below(lambda inverse: gaussian_delta(1.0 / inverse, mu), delta)


def _last_below(rising: Callable[[float], float], level: float) -> float:
    """The largest x > 0 at which a rising function is at most ``level``, by halving on a logarithmic scale."""
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

LARGEST_RATE = 30.0
"""Largest ratio of grid to scale: beyond it, geometric noise is zero but for events too rare for double precision."""

Parts = Sequence[tuple[int, float]]
"""Pairs (number of sets, L1): sets of cells that one user moves, and the L1 distance by which she moves each set."""


def laplace_scale(
    parts: Parts, l1: float, times: int, epsilon: float, delta: float, grid: float
) -> tuple[float, float, float]:
    """The least scale of Laplace noise for a user who is in ``times`` sums, and the (epsilon, delta) that it costs.

    Args:
        parts: Sets of cells that she moves in each sum.
        l1: L1 distance by which she moves all these cells together.
        times: Number of sums that she is in, each with noise of its own.
        epsilon: Epsilon of the budget.
        delta: Delta of the budget. If it is 0, epsilons add up; otherwise, privacy losses are composed.
        grid: The coarsest step of what is published. It bounds the scale from below, so that noise is not always zero.

    Proof: docs/proofs/composition.md.
    """
    scale, spent = l1 * times / epsilon, 0.0
    if delta > LOST:
        composed = _composed_scale(tuple(parts), times, epsilon, delta)
        if composed < scale:
            scale, spent = composed, delta
    if scale < grid / LARGEST_RATE:
        scale, spent = grid / LARGEST_RATE, 0.0
    return scale, epsilon if spent else min(epsilon, l1 * times / scale), spent


@lru_cache(maxsize=256)
def _composed_scale(parts: tuple[tuple[int, float], ...], times: int, epsilon: float, delta: float) -> float:
    """The least scale at which all cells that a user moves cost (epsilon, delta) together."""
    many = [(count * times, size) for count, size in parts]
    return 1.0 / _last_below(lambda rate: pure_delta(epsilon, [(n, size * rate) for n, size in many]), delta)


def pure_delta(epsilon: float, budgets: Sequence[tuple[int, float]]) -> float:
    """The least delta at which mechanisms with pure budgets cost ``epsilon`` together.

    Budgets are pairs (number of mechanisms, epsilon of each). The worst case is randomized response, whose privacy loss
    is plus or minus its whole budget. Budgets are rounded up to multiples of the least, so that losses lie on a
    lattice. Proof: docs/proofs/composition.md.
    """
    from scipy.stats import binom

    step = min(budget for _, budget in budgets)
    if step <= 0.0:
        some = [pair for pair in budgets if pair[1] > 0.0]
        return pure_delta(epsilon, some) if some else 0.0
    chances, lowest = np.ones(1), 0
    for count, budget in budgets:
        each = math.ceil(budget / step * (1.0 - 1e-12))
        masses = np.zeros(2 * each * count + 1)
        masses[:: 2 * each] = binom.pmf(np.arange(count + 1), count, 1.0 / (1.0 + math.exp(-min(each * step, 700.0))))
        chances, lowest = np.convolve(chances, masses), lowest - each * count
    losses = step * (lowest + np.arange(len(chances)))
    beyond = losses > epsilon
    # Mass that rounding has lost in convolutions counts in full.
    lost = max(0.0, 1.0 - float(chances.sum())) + LOST
    return float(-(chances[beyond] * np.expm1(epsilon - losses[beyond])).sum()) * (1.0 + 1e-9) + lost
