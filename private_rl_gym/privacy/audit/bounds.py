"""Lower bounds on epsilon from the success rate of an attack.

Proofs: docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.planning.arrays import as_array, positive_integer, real, shown, whole
from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon

__all__ = ["clopper_pearson", "epsilon_below", "epsilon_of_mu", "mu_below", "one_run_epsilon", "one_run_p_value"]

LARGEST = 50.0
"""The largest epsilon that is considered: no attack that can be run shows a larger one."""

MOST_CANARIES = 10**7
"""The largest number of canaries, whose probabilities are added one by one."""


def clopper_pearson(hits: ArrayLike, trials: int, failure: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a lower and an upper bound on a probability, from counted hits.

    Each bound fails with probability at most ``failure``.

    Example:
        >>> low, high = clopper_pearson([0, 50], 100, failure=0.025)
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.0, 0.398], [0.036, 0.602])
    """
    from scipy.special import betaincinv

    counts, trials = as_array(hits, "hits"), positive_integer(trials, "trials", "runs")
    if not 0.0 < real(failure, "failure") < 1.0:
        raise ValueError(f"failure is {shown(failure)}: it is a probability, above 0 and below 1.")
    if not ((counts >= 0) & (counts <= trials)).all():
        raise ValueError(f"hits are not between 0 and the {trials} trials.")
    low, high = np.zeros(counts.shape), np.ones(counts.shape)
    some, missed = counts > 0, counts < trials
    low[some] = betaincinv(counts[some], trials - counts[some] + 1.0, failure)
    high[missed] = betaincinv(counts[missed] + 1.0, trials - counts[missed], 1.0 - failure)
    return low, high


def epsilon_below(
    hits: ArrayLike, alarms: ArrayLike, trials: tuple[int, int], delta: float, failure: float
) -> NDArray[np.float64]:
    """Return a lower bound on epsilon that holds for any mechanism.

    It is ln((P - delta) / Q), for the probabilities P and Q of one event in both worlds.

    Args:
        hits: Number of runs with the event in the world where it should happen.
        alarms: Number of runs with the event in the other world.
        trials: Number of runs in each of these worlds.
        delta: The delta for which epsilon is bounded.
        failure: Probability with which the bound may be wrong.
    """
    low, high = _rates(hits, alarms, trials, failure)
    if not 0.0 <= real(delta, "delta") < 1.0:
        raise ValueError(f"delta is {shown(delta)}: it must lie in [0, 1).")
    with np.errstate(divide="ignore", invalid="ignore"):
        epsilons = np.log((low - delta) / high)
    return np.where(low > delta, np.maximum(epsilons, 0.0), 0.0)


def mu_below(hits: ArrayLike, alarms: ArrayLike, trials: tuple[int, int], failure: float) -> NDArray[np.float64]:
    """Return a lower bound on mu for Gaussian noise.

    It is the mu of the trade-off curve through the bounds on both rates.
    """
    from scipy.special import ndtri

    low, high = _rates(hits, alarms, trials, failure)
    with np.errstate(invalid="ignore"):
        differences = ndtri(low) - ndtri(high)
    return np.where(np.isfinite(differences), np.maximum(differences, 0.0), 0.0)


def _rates(
    hits: ArrayLike, alarms: ArrayLike, trials: tuple[int, int], failure: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a lower bound on the rate of hits, and an upper one for alarms.

    Both hold together.
    """
    if not isinstance(trials, tuple | list) or len(trials) != 2:
        raise TypeError(f"trials are {shown(trials)}: give two numbers of runs, one for each world.")
    each = real(failure, "failure") / 2.0
    low, _ = clopper_pearson(hits, trials[0], each)
    _, high = clopper_pearson(alarms, trials[1], each)
    if low.shape != high.shape:
        raise ValueError(f"hits have shape {low.shape} and alarms {high.shape}: both must have the same.")
    return low, high


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return the epsilon of a Gaussian mechanism; infinite where delta is 0.

    Gaussian noise is never pure.
    """
    if mu <= 0.0:
        return 0.0
    return gaussian_epsilon(delta, mu) if delta > 0.0 else math.inf


def one_run_p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return a bound on the probability of so many correct guesses.

    The bound holds if the mechanism is (epsilon, delta)-DP. Steinke, Nasr, Jagielski (2023), theorem 5.2: each of
    ``canaries`` users was chosen from two by a fair coin, and ``guesses`` of the coins were guessed from one run.

    Example:
        >>> round(one_run_p_value(75, 100, 100, epsilon=1.0986123, delta=0.0), 3)  # ln 3: right 3 times of 4
        0.553
    """
    from scipy.stats import binom

    counts = {"correct": correct, "guesses": guesses, "canaries": canaries}
    correct, guesses, canaries = (whole(value, name, "users") for name, value in counts.items())
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0.0 <= real(value, name) < math.inf:
            raise ValueError(f"{name} is {shown(value)}: it must be 0 or more, and finite.")
    if canaries > MOST_CANARIES:
        raise ValueError(f"canaries is {shown(canaries)}: one run has at most {MOST_CANARIES:,} of them.")
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError(f"{correct} correct of {guesses} guesses among {canaries} users: that cannot be.")
    right = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binom.sf(correct - 1, guesses, right))
    if delta > 0.0 and correct:
        fewer = np.arange(1, correct + 1)
        just_below = binom.cdf(correct - 1, guesses, right) - binom.cdf(correct - 1 - fewer, guesses, right)
        tail += 2.0 * canaries * delta * float((just_below / fewer).max())
    return min(1.0, tail)


def one_run_epsilon(correct: int, guesses: int, canaries: int, delta: float, failure: float) -> float:
    """Return a lower bound on epsilon, from the guesses of one run."""
    if not 0.0 < real(failure, "failure") < 1.0:
        raise ValueError(f"failure is {shown(failure)}: it is a probability, above 0 and below 1.")
    low, high = 0.0, LARGEST
    if one_run_p_value(correct, guesses, canaries, 0.0, delta) > failure:
        return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2.0
        if one_run_p_value(correct, guesses, canaries, middle, delta) <= failure:
            low = middle
        else:
            high = middle
    return low
