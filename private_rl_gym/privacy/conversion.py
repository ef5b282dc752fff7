"""From (epsilon, delta) to noise and back, in closed form.

Proofs: docs/proofs/gaussian.md, docs/proofs/geometric.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

__all__ = ["check_budget", "gaussian_delta", "gaussian_epsilon", "gaussian_mu"]


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
