"""Probabilities behind noisy frequencies, where most outcomes never happen.

* ``likely_rows`` - the posterior mean of each row
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr

__all__ = ["likely_rows"]

REACH = 50.0
"""Deviations of noise, from which on there is no doubt on which side of 0 a frequency is."""


def likely_rows(
    rows: NDArray[np.float64], noise: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:  # [..., outcome]
    """Return the posterior mean of each row, given its frequencies.

    A priori one outcome of each row is expected to happen, and all outcomes are equally likely. The probability of an
    outcome that happens is uniform on [0, 1]. Noise is assumed to be normal. The means do not sum to 1 by themselves:
    the difference is shared among outcomes in proportion to their uncertainty.

    Args:
        rows: ``[..., outcome]``, frequencies plus noise.
        noise: ``[...]``, the deviation of noise in each frequency of a row.
        scale: ``[...]``, the relative error of the number that a row was divided by.
    """
    noise = noise[..., None] + 1e-9
    x = np.clip(rows / noise, -REACH, REACH)
    log_bell = -0.5 * x**2 - 0.5 * math.log(2.0 * math.pi)
    prior = -math.log(max(rows.shape[-1] - 1.0, 1e-9))  # odds of happening: one outcome against all others
    happens = expit(prior + np.log(noise) + log_ndtr(x) - log_bell)
    lift = np.exp(log_bell - log_ndtr(x))  # what is above 0 by noise was higher than it looks, in deviations
    mean = np.maximum(rows + noise * lift, 0.0)
    variance = np.maximum(noise**2 * (1.0 - lift * (lift + x)), 0.0)
    likely = happens * mean
    doubt = happens * variance + happens * (1.0 - happens) * mean**2 + (scale[..., None] ** 2 + 1e-12) * likely
    doubt[doubt.sum(axis=-1) <= 0.0] = 1.0
    doubt /= doubt.sum(axis=-1, keepdims=True)
    for _ in range(2):  # the second time for those that the first would have made negative
        likely = np.maximum(likely + doubt * (1.0 - likely.sum(axis=-1, keepdims=True)), 0.0)
    return np.asarray(likely / likely.sum(axis=-1, keepdims=True))
