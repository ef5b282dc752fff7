"""The total cost of several releases. Proofs: docs/proofs/composition.md.

Closed forms where there are any; privacy-loss distributions (the package dp-accounting, imported when needed) for the
rest. Budgets are under replacing one user throughout: Gaussian events have mu = our own sensitivity / sigma.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from private_rl_gym.planning.arrays import positive_integer, real, shown
from private_rl_gym.privacy.accounting.conversion import gaussian_epsilon

__all__ = ["ApproximateDP", "Event", "GaussianEvent", "LaplaceEvent", "PureDP", "compose", "renyi_divergence"]


@dataclass(frozen=True, slots=True)
class PureDP:
    """Anything that is epsilon-DP."""

    epsilon: float


@dataclass(frozen=True, slots=True)
class LaplaceEvent:
    """Two-sided geometric noise on one number, at cost ``epsilon``.

    A user moves the number by ``units`` steps of its grid. The coarser the grid, the easier a user is to tell apart at
    the same epsilon; a single unit is the worst case.
    """

    epsilon: float
    units: int = 1


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Gaussian noise; mu = L2 sensitivity / sigma."""

    mu: float


@dataclass(frozen=True, slots=True)
class ApproximateDP:
    """Anything that is (epsilon, delta)-DP."""

    epsilon: float
    delta: float


Event = PureDP | LaplaceEvent | GaussianEvent | ApproximateDP


def compose(events: Iterable[Event], delta: float) -> tuple[float, float]:
    """Return the total (epsilon, delta) of ``events`` on the same users.

    Each event may depend on the ones before.

    Args:
        events: The releases, or other mechanisms, that use their data.
        delta: The delta that may be spent; pure and approximate budgets spend only what they need of it.

    Example:
        >>> compose([PureDP(0.5), PureDP(1.0)], delta=0.0)
        (1.5, 0.0)
        >>> epsilon, delta = compose([GaussianEvent(0.1)] * 4, delta=1e-6)
        >>> round(epsilon, 3) == round(compose([GaussianEvent(0.2)], delta=1e-6)[0], 3)
        True
    """
    if not isinstance(events, Iterable) or (isinstance(events, np.ndarray) and not events.ndim):
        raise TypeError(f"events are {shown(events)}: give a list of events, such as GaussianEvent(0.1).")
    events = list(events)
    for event in events:
        _check(event)
    if not 0.0 <= real(delta, "delta") < 1.0:
        raise ValueError(f"delta is {shown(delta)}: it must lie in [0, 1).")
    if not events:
        return 0.0, 0.0
    if all(isinstance(event, PureDP | LaplaceEvent) for event in events) and delta == 0.0:
        return math.fsum(event.epsilon for event in events if not isinstance(event, GaussianEvent)), 0.0
    if all(isinstance(event, GaussianEvent) for event in events):
        mu = math.sqrt(math.fsum(event.mu**2 for event in events if isinstance(event, GaussianEvent)))
        return gaussian_epsilon(delta, mu), delta
    if all(isinstance(event, PureDP | ApproximateDP) for event in events):
        spent = math.fsum(event.delta for event in events if isinstance(event, ApproximateDP))
        if spent > delta:
            raise ValueError(f"The events spend delta = {spent:g} already: ask for at least that, not for {delta:g}.")
        added = math.fsum(event.epsilon for event in events if not isinstance(event, GaussianEvent))
        composed = _by_privacy_loss(events, delta) if delta > spent else math.inf
        return (composed, delta) if composed < added else (added, spent)
    return _by_privacy_loss(events, delta), delta


def renyi_divergence(event: Event, order: float) -> float:
    """Return the largest Renyi divergence of this order between neighbours.

    The order is above 1. The divergence is infinite if the event has a delta. Divergences of one order add up over
    adaptive releases on the same users. ``compose`` is never worse.

    Example:
        >>> renyi_divergence(GaussianEvent(0.5), order=4.0)
        0.5
        >>> round(renyi_divergence(PureDP(1.0), order=4.0), 3)
        0.896
    """
    _check(event)
    if isinstance(event, GaussianEvent):
        return order * event.mu**2 / 2.0
    if getattr(event, "delta", 0.0) > 0.0:
        return math.inf
    lie = -math.log1p(math.exp(event.epsilon))  # of randomized response, the worst case; truth is epsilon above
    ways = (order * event.epsilon + lie, (1.0 - order) * event.epsilon + lie)
    most = max(ways)
    return (most + math.log(math.fsum(math.exp(way - most) for way in ways))) / (order - 1.0)


def _check(event: Event) -> None:
    """Raise if the numbers of an event are not a budget."""
    if not isinstance(event, Event):
        raise TypeError(
            f"An event is {shown(event)}: it must be a PureDP, LaplaceEvent, GaussianEvent or ApproximateDP."
        )
    named = {field.name: getattr(event, field.name) for field in fields(event)}
    numbers = [real(number, name) for name, number in named.items()]
    if isinstance(event, LaplaceEvent):
        positive_integer(event.units, "units", "steps of the grid")
    if not all(0.0 <= number < math.inf for number in numbers) or getattr(event, "delta", 0.0) >= 1.0:
        raise ValueError(f"{event} is no budget: its numbers must be 0 or more, and its delta below 1.")


def _by_privacy_loss(events: Sequence[Event], delta: float) -> float:
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = None
    for event, times in Counter(events).items():
        if isinstance(event, GaussianEvent) and event.mu == 0.0:
            continue
        if not isinstance(event, GaussianEvent) and event.epsilon == 0.0 and getattr(event, "delta", 0.0) == 0.0:
            continue
        if isinstance(event, GaussianEvent):
            distribution = pld.from_gaussian_mechanism(standard_deviation=1.0 / event.mu)
        elif isinstance(event, LaplaceEvent):
            distribution = pld.from_discrete_laplace_mechanism(event.epsilon / event.units, sensitivity=event.units)
        else:
            spent = event.delta if isinstance(event, ApproximateDP) else 0.0
            distribution = pld.from_privacy_parameters(pld.common.DifferentialPrivacyParameters(event.epsilon, spent))
        distribution = distribution if times == 1 else distribution.self_compose(times)
        total = distribution if total is None else total.compose(distribution)
    if total is None:
        return 0.0
    return float(total.get_epsilon_for_delta(delta))
