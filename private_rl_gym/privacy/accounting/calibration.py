"""Choice and calibration of the noise on sums: the scale that a budget asks for.

* ``choose_mechanism`` - the mechanism and the law of noise that were asked for, or the most accurate ones
* ``calibrate`` - the scale of the noise for a budget
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from private_rl_gym.planning.arrays import among, shown
from private_rl_gym.privacy.accounting.conversion import gaussian_mu, laplace_scale
from private_rl_gym.privacy.mechanisms import MECHANISMS, Mechanism
from private_rl_gym.privacy.mechanisms.base import Law
from private_rl_gym.privacy.statistics.base import Sensitivity

__all__ = ["SMALL_DELTA", "allowed", "calibrate", "choose_mechanism", "noise_without_delta"]

SMALL_DELTA = 1e-6
"""A delta that is usual, and small beside one over the number of users."""


def allowed(delta: float) -> list[tuple[str, Law]]:
    """Return all mechanisms that ``choose_mechanism`` considers at this delta, by name.

    Each name comes with a law of noise that fits this delta.
    """
    return [(kind.name, law) for kind, law in _fitting(MECHANISMS.values(), delta)]


def _fitting(kinds: Iterable[type[Mechanism]], delta: float) -> list[tuple[type[Mechanism], Law]]:
    """Return the mechanisms, with the laws of noise, that fit this delta.

    A pair fits if it has a proof for this delta and makes use of all of it.
    """
    return [
        (kind, law)
        for kind in kinds
        for law in kind.laws
        if (delta > 0.0 or law == "laplace") and (delta == 0.0 or kind.composes)
    ]


def choose_mechanism(
    counting: str | type[Mechanism] | None,
    noise: str | None,
    sensitivity: Sensitivity,
    releases: int,
    epsilon: float,
    delta: float,
    *,
    apart: bool = False,
    visits: int = 1,
) -> tuple[type[Mechanism], Law]:
    """Return the requested mechanism and law of noise, or the most accurate ones.

    The most accurate ones have the least error at this budget.

    Args:
        counting: Name of a mechanism, a subclass of ``Mechanism``, or None for any in ``MECHANISMS``.
        noise: ``"laplace"``, ``"gaussian"``, or None for either.
        sensitivity: How far one user moves a sum.
        releases: The number of releases.
        epsilon: Epsilon of the budget.
        delta: Delta of the budget.
        apart: Whether every batch has to be published by itself.
        visits: The number of batches that a user may be in.

    Raises:
        ValueError: If a name is unknown, or if no mechanism fits the request.
    """
    own = isinstance(counting, type) and issubclass(counting, Mechanism)
    if counting is not None and not own and not among(counting, MECHANISMS):
        raise ValueError(
            f"There is no mechanism {shown(counting)}: choose one of {', '.join(sorted(MECHANISMS))}, or give a "
            "subclass of Mechanism."
        )
    if noise is not None and not among(noise, ("laplace", "gaussian")):
        raise ValueError(f"There is no noise {shown(noise)}: choose 'laplace' or 'gaussian'.")
    if counting is None and apart:
        counting = "batched"
    kind = counting if isinstance(counting, type) else None if counting is None else MECHANISMS[counting]
    gaussian_only = kind is not None and kind.laws == ("gaussian",)
    if (noise == "gaussian" or gaussian_only) and delta == 0.0:
        raise ValueError(
            "delta is 0: Gaussian noise needs delta above 0. Give a small delta, or use Laplace noise and a tree."
        )
    kinds = MECHANISMS.values() if kind is None else (kind,)
    candidates = [pair for pair in _fitting(kinds, delta) if noise in (None, pair[1])]
    if not candidates:
        assert kind is not None  # noqa: S101 - without a name there is always a candidate
        if noise is not None and noise not in kind.laws:
            first = kind.laws[0].capitalize()
            raise ValueError(f"counting={kind.name!r} is for {first} noise: leave noise out, or take another counting.")
        raise ValueError(
            f"counting={kind.name!r} gives a guarantee with delta = 0, and has no use for delta = {delta:g}. Leave "
            "delta out, or use the default, counting='matrix-factorization' with Gaussian noise, which needs much "
            "less noise."
        )
    if visits > 1 and noise is None:  # mechanisms without a bound for Gaussian noise are left with Laplace noise
        bounded = [(kind, law) for kind, law in candidates if law == "laplace" or kind.bounds_returning()]
        candidates = bounded or candidates
    if len(candidates) == 1:
        return candidates[0]
    about = releases, sensitivity, epsilon, delta, visits
    return min(candidates, key=lambda candidate: _error(candidate, *about, candidates))


def noise_without_delta(
    chosen: tuple[type[Mechanism], Law],
    sensitivity: Sensitivity,
    releases: int,
    epsilon: float,
    *,
    apart: bool,
    visits: int = 1,
) -> float:
    """Return the noise of this mechanism at delta = 0, relative to other mechanisms.

    It is a multiple of the least noise at ``SMALL_DELTA``.
    """
    other = choose_mechanism(None, None, sensitivity, releases, epsilon, SMALL_DELTA, apart=apart, visits=visits)
    pure = _error(chosen, releases, sensitivity, epsilon, 0.0, visits, [chosen])
    return pure / _error(other, releases, sensitivity, epsilon, SMALL_DELTA, visits, [other])


def _error(
    candidate: tuple[type[Mechanism], Law],
    releases: int,
    sensitivity: Sensitivity,
    epsilon: float,
    delta: float,
    visits: int,
    candidates: Sequence[tuple[type[Mechanism], Law]],
) -> float:
    """Return the standard deviation of a cell, averaged over all releases.

    Where Gaussian noise is a candidate too, Laplace noise is calibrated to a pure budget here: where composition of
    losses would allow less Laplace noise, Gaussian noise is smaller still.
    """
    kind, law = candidate
    mechanism = _mechanism(kind, law, releases)
    if law == "gaussian":
        scale = sensitivity.l2 * mechanism.returning(visits) / gaussian_mu(epsilon, delta)
    elif any(other == "gaussian" for _, other in candidates):
        scale = sensitivity.l1 * mechanism.returning(visits) / epsilon * math.sqrt(2.0)
    else:
        scale = calibrate(mechanism, sensitivity, epsilon, delta, visits=visits)[0] * math.sqrt(2.0)
    return scale * _mean_spread(kind, law, releases)


@lru_cache(maxsize=256)
def _mechanism(kind: type[Mechanism], law: Law, releases: int) -> Mechanism:
    """Return a mechanism for one cell, to compute sensitivities and errors."""
    return kind(releases, 1, law)


@lru_cache(maxsize=256)
def _mean_spread(kind: type[Mechanism], law: Law, releases: int) -> float:
    return _mechanism(kind, law, releases).mean_spread()


def calibrate(
    noise: Mechanism, sensitivity: Sensitivity, epsilon: float, delta: float, *, visits: int = 1
) -> tuple[float, float, float]:
    """Return the scale of one standard noise, and the budget that it costs.

    The scale is in real units, and the budget is an epsilon and a delta. Gaussian noise of scale b has mu = (L2 times
    sensitivity) / b; ``laplace_scale`` computes the cost of Laplace noise. A user who may be in several batches is
    calibrated for once, with all of them: docs/proofs/returning.md. Proofs: docs/proofs/binary-tree.md,
    docs/proofs/composition.md.
    """
    if noise.law == "gaussian":
        return sensitivity.l2 * noise.returning(visits) / gaussian_mu(epsilon, delta), epsilon, delta
    # Losses are composed where each sum holds a user once: nodes of a tree may hold several of their batches.
    spare = delta if noise.composes and (visits == 1 or noise.apart) else 0.0
    coarse = sensitivity.units[1]
    return laplace_scale(sensitivity.parts, sensitivity.l1, _whole(noise, visits), epsilon, spare, coarse)


def _whole(noise: Mechanism, visits: int) -> int:
    """Return the number of sums that a user moves.

    Raise ValueError if it is no whole number.
    """
    sums = noise.returning(visits)
    if not float(sums).is_integer():
        raise ValueError(
            f"counting={noise.name!r} has a sensitivity of {sums:g}, and Laplace noise needs a whole number. If users "
            "change every sum by whole units, return math.ceil of it. Otherwise use Gaussian noise."
        )
    return int(sums)
