"""From (epsilon, delta) to noise and back, in closed form.

Proofs: docs/proofs/gaussian.md, docs/proofs/geometric.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

__all__ = ["check_budget", "gaussian_delta", "gaussian_epsilon", "gaussian_mu", "laplace_scale", "pure_delta"]


SMALLEST = 1e-9
"""Below this an epsilon asks for more noise than double precision can draw faithfully, and promises nothing useful."""


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse an (epsilon, delta) that promises nothing, or cannot be kept."""
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


LARGEST_RATE = 30.0
"""Beyond this scale over grid, geometric noise is zero more surely than double precision can draw."""

Parts = Sequence[tuple[int, float]]
"""Pairs (how many, L1): sets of cells that one user moves, and how far each of them."""


def laplace_scale(
    parts: Parts, l1: float, times: int, epsilon: float, delta: float, grid: float
) -> tuple[float, float, float]:
    """The least scale of Laplace noise for a user who is in so many sums, and the (epsilon, delta) that it costs.

    Args:
        parts: Sets of cells that she moves in each of them.
        l1: How far she moves all of them together.
        times: How many sums she is in, each with noise of its own.
        epsilon: The budget.
        delta: At 0 what she moves adds up; above, privacy losses are composed.
        grid: The coarsest step of what is published. Noise is never so small beside it that none would be drawn.

    Proof: docs/proofs/composition.md.
    """
    scale, spent = l1 * times / epsilon, 0.0
    if delta > 0.0:
        composed = _composed_scale(tuple(parts), times, epsilon, delta)
        if composed < scale:
            scale, spent = composed, delta
    if scale < grid / LARGEST_RATE:
        scale, spent = grid / LARGEST_RATE, 0.0
    return scale, epsilon if spent else min(epsilon, l1 * times / scale), spent


@lru_cache(maxsize=256)
def _composed_scale(parts: tuple[tuple[int, float], ...], times: int, epsilon: float, delta: float) -> float:
    """The least scale at which everything that a user moves costs (epsilon, delta) together."""
    many = [(count * times, size) for count, size in parts]
    return 1.0 / _last_below(lambda rate: pure_delta(epsilon, [(n, size * rate) for n, size in many]), delta)


def pure_delta(epsilon: float, budgets: Sequence[tuple[int, float]]) -> float:
    """The least delta at which mechanisms with pure budgets, pairs (how many, epsilon), cost ``epsilon`` together.

    The worst of them is randomized response: it loses its whole budget, one way or the other. Budgets are rounded up to
    multiples of the least, so that losses lie on a lattice. Proof: docs/proofs/composition.md.
    """
    from scipy.stats import binom

    step = min(budget for _, budget in budgets)
    if step <= 0.0:
        return pure_delta(epsilon, [pair for pair in budgets if pair[1] > 0.0]) if len(budgets) > 1 else 0.0
    chances, lowest = np.ones(1), 0
    for count, budget in budgets:
        each = math.ceil(budget / step * (1.0 - 1e-12))
        one = np.zeros(2 * each * count + 1)
        one[:: 2 * each] = binom.pmf(np.arange(count + 1), count, 1.0 / (1.0 + math.exp(-min(each * step, 700.0))))
        chances, lowest = np.convolve(chances, one), lowest - each * count
    losses = step * (lowest + np.arange(len(chances)))
    beyond = losses > epsilon
    # What convolution has lost counts in full.
    lost = max(0.0, 1.0 - float(chances.sum())) + 1e-15
    return float(-(chances[beyond] * np.expm1(epsilon - losses[beyond])).sum()) * (1.0 + 1e-9) + lost
