"""From (epsilon, delta) to noise and back, in closed form.

Proofs: docs/proofs/gaussian.md, docs/proofs/geometric.md.
"""

from __future__ import annotations

import math

__all__ = ["check_budget", "gaussian_delta", "gaussian_epsilon", "gaussian_mu"]


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse an (epsilon, delta) that promises nothing, or cannot be kept."""
    if not (epsilon > 0.0 and math.isfinite(epsilon)):
        raise ValueError(
            f"epsilon is {epsilon}: it must be a number above 0. For a run without privacy, use OpenBillboard."
        )
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta is {delta}: it must lie in [0, 1), and should be far below one over the users.")


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta for which Gaussian noise with sensitivity / sigma = mu is (epsilon, delta)-DP."""
    from scipy.special import log_ndtr

    if mu <= 0.0:
        return 0.0
    first = float(log_ndtr(-epsilon / mu + mu / 2.0))
    second = epsilon + float(log_ndtr(-epsilon / mu - mu / 2.0))
    return max(0.0, -math.exp(first) * math.expm1(second - first))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu = sensitivity / sigma for which Gaussian noise is (epsilon, delta)-DP."""
    from scipy.optimize import brentq

    check_budget(epsilon, delta)
    if delta == 0.0:
        raise ValueError("delta is 0: Gaussian noise needs delta above 0. Ask for Laplace noise, or for a small delta.")
    high = 1.0
    while gaussian_delta(epsilon, high) < delta:
        high *= 2.0
    low = high
    while gaussian_delta(epsilon, low) > delta:
        low /= 2.0
    mu = high if low == high else float(brentq(lambda x: gaussian_delta(epsilon, x) - delta, low, high, xtol=1e-14))
    while gaussian_delta(epsilon, mu) > delta:  # never on the wrong side of the root
        mu *= 1.0 - 1e-12
    return mu


def gaussian_epsilon(delta: float, mu: float) -> float:
    """The least epsilon for which Gaussian noise with sensitivity / sigma = mu is (epsilon, delta)-DP."""
    from scipy.optimize import brentq

    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta}: Gaussian noise has an epsilon for delta in (0, 1) only.")
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(high, mu) > delta:
        high *= 2.0
    epsilon = float(brentq(lambda x: gaussian_delta(x, mu) - delta, 0.0, high, xtol=1e-14))
    while gaussian_delta(epsilon, mu) > delta:  # never on the wrong side of the root
        epsilon *= 1.0 + 1e-12
    return epsilon
