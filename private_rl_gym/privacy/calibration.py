"""Choice and calibration of the noise on sums: the scale that a budget asks for, exact or as the papers print it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from private_rl_gym.privacy.conversion import LARGEST_RATE, gaussian_epsilon, gaussian_mu, laplace_scale
from private_rl_gym.privacy.counting import COUNTING, ContinualNoise
from private_rl_gym.privacy.counting.base import Law
from private_rl_gym.privacy.refreshed import Refreshed, refreshed_cost
from private_rl_gym.privacy.statistics import Statistic

__all__ = ["MECHANISMS", "SMALL_DELTA", "allowed", "calibrate", "choose_counting", "noise_without_delta"]

SMALL_DELTA = 1e-6
"""A delta that is usual, and small beside one over the number of users."""

MECHANISMS: dict[str, type[ContinualNoise]] = {**COUNTING, Refreshed.name: Refreshed}
"""The mechanisms that may be chosen, and that of ``calibration="released"``."""


def allowed(delta: float) -> list[tuple[str, Law]]:
    """All mechanisms, each with the laws of noise that have a proof for this delta and make use of it."""
    return [
        (name, law)
        for name, mechanism in COUNTING.items()
        for law in mechanism.laws
        if (delta > 0.0 or law == "laplace") and (delta == 0.0 or mechanism.composes)
    ]


def choose_counting(
    counting: str | None,
    noise: str | None,
    statistic: Statistic,
    releases: int,
    epsilon: float,
    delta: float,
    *,
    paper: bool = False,
    released: bool = False,
    apart: bool = False,
    visits: int = 1,
) -> tuple[str, Law]:
    """The mechanism and the law of noise: those that were asked for, or the most accurate ones for this budget.

    Args:
        counting: Name of a mechanism, or None for any.
        noise: ``"laplace"``, ``"gaussian"``, or None for either.
        statistic: The statistic that is summed.
        releases: The number of releases.
        epsilon: Epsilon of the budget.
        delta: Delta of the budget.
        paper: Whether the papers' constants are asked for, which determines the mechanism.
        released: Whether the noise of the released experiment is asked for, which determines it too.
        apart: Whether every batch has to be published by itself.
        visits: The number of batches that a user may be in.

    Raises:
        ValueError: If a name is unknown, or if no mechanism fits the request.
    """
    if counting is not None and counting not in COUNTING:
        raise ValueError(f"There is no counting {counting!r}: choose one of {', '.join(sorted(COUNTING))}.")
    if noise not in (None, "laplace", "gaussian"):
        raise ValueError(f"There is no noise {noise!r}: choose 'laplace' or 'gaussian'.")
    if released:
        if counting is not None or noise is not None or apart or statistic.name != "tabular":
            raise ValueError(
                "calibration='released' is an experiment on counts, with fresh Laplace noise at every release: leave "
                "counting, noise and statistic out, and take an agent that learns from counts and closes no batches."
            )
        return Refreshed.name, "laplace"
    if paper:
        printed = "laplace" if statistic.name == "tabular" else "gaussian"
        if counting not in (None, "binary-tree") or noise not in (None, printed):
            raise ValueError(
                f"calibration='paper' is counting='binary-tree' with noise={printed!r}, as the papers print it."
            )
        counting, noise = "binary-tree", printed
    if counting is None and apart:
        counting = "batched"
    gaussian_only = counting is not None and COUNTING[counting].laws == ("gaussian",)
    if (noise == "gaussian" or gaussian_only) and delta == 0.0:
        raise ValueError(
            "delta is 0: Gaussian noise needs delta above 0. Give a small one, or ask for a tree and Laplace noise."
        )
    candidates = [(name, law) for name, law in allowed(delta) if counting in (None, name) and noise in (None, law)]
    if not candidates:
        assert counting is not None  # noqa: S101 - without a name there is always a candidate
        laws = COUNTING[counting].laws
        if noise is not None and noise not in laws:
            known = laws[0].capitalize()
            raise ValueError(f"counting={counting!r} is for {known} noise: leave noise out, or take another counting.")
        raise ValueError(
            f"counting={counting!r} has a proof for delta = 0, and would waste a delta of {delta:g}: leave delta out, "
            "or take the default, counting='matrix-factorization' with Gaussian noise, which is better by far."
        )
    if len(candidates) == 1 or paper:
        return candidates[0]
    about = releases, statistic, epsilon, delta, visits
    return min(candidates, key=lambda candidate: _error(candidate, *about, candidates))


def noise_without_delta(
    chosen: tuple[str, Law], statistic: Statistic, releases: int, epsilon: float, *, apart: bool, visits: int = 1
) -> float:
    """The noise of this mechanism at delta = 0, as a multiple of the least noise at ``SMALL_DELTA``."""
    other = choose_counting(None, None, statistic, releases, epsilon, SMALL_DELTA, apart=apart, visits=visits)
    pure = _error(chosen, releases, statistic, epsilon, 0.0, visits, [chosen])
    return pure / _error(other, releases, statistic, epsilon, SMALL_DELTA, visits, [other])


def _error(
    candidate: tuple[str, Law],
    releases: int,
    statistic: Statistic,
    epsilon: float,
    delta: float,
    visits: int,
    candidates: Sequence[tuple[str, Law]],
) -> float:
    """The standard deviation of a cell, averaged over all releases.

    Where Gaussian noise is a candidate too, Laplace noise is calibrated to a pure budget here: where composition of
    losses would allow less Laplace noise, Gaussian noise is smaller still.
    """
    name, law = candidate
    mechanism = _mechanism(name, law, releases)
    if law == "gaussian":
        scale = statistic.l2 * mechanism.returning(visits) / gaussian_mu(epsilon, delta)
    elif any(other == "gaussian" for _, other in candidates):
        scale = statistic.l1 * mechanism.returning(visits) / epsilon * math.sqrt(2.0)
    else:
        scale = calibrate(mechanism, statistic, epsilon, delta, paper=False, visits=visits)[0] * math.sqrt(2.0)
    return scale * _mean_spread(name, law, releases)


@lru_cache(maxsize=256)
def _mechanism(name: str, law: Law, releases: int) -> ContinualNoise:
    """A mechanism for one cell, of which only sensitivity and errors are used."""
    return COUNTING[name](releases, 1, law)


@lru_cache(maxsize=256)
def _mean_spread(name: str, law: Law, releases: int) -> float:
    return _mechanism(name, law, releases).mean_spread()


def calibrate(
    noise: ContinualNoise, statistic: Statistic, epsilon: float, delta: float, *, paper: bool, visits: int = 1
) -> tuple[float, float, float]:
    """The scale of one standard noise in real units, and the epsilon and delta that it costs.

    Gaussian noise of scale b has mu = (L2 times sensitivity) / b; ``laplace_scale`` computes the cost of Laplace noise,
    ``refreshed_cost`` that of noise that is drawn anew at every release. A user who may be in several batches is
    calibrated for once, with all of them: docs/proofs/returning.md.
    Proofs: docs/proofs/binary-tree.md, docs/proofs/composition.md.
    """
    if isinstance(noise, Refreshed):
        scale = max(1.0 / epsilon, statistic.grid_range[1] / LARGEST_RATE)  # below it, noise would often be 0
        return scale, *refreshed_cost(statistic.parts, statistic.l1, scale, noise.steps, delta)
    if paper:
        scale = statistic.paper_scale(noise.sensitivity, epsilon, delta)
        if noise.law == "gaussian":
            return scale, gaussian_epsilon(delta, statistic.l2 * noise.sensitivity / scale), delta
        scale = max(scale, statistic.grid_range[1] / LARGEST_RATE)
        return scale, statistic.l1 * noise.sensitivity / scale, 0.0
    if noise.law == "gaussian":
        return statistic.l2 * noise.returning(visits) / gaussian_mu(epsilon, delta), epsilon, delta
    # Losses are composed where each sum holds her once: nodes of a tree may hold several of her batches.
    spare = delta if noise.composes and (visits == 1 or noise.apart) else 0.0
    coarse = statistic.grid_range[1]
    return laplace_scale(statistic.parts, statistic.l1, round(noise.returning(visits)), epsilon, spare, coarse)
