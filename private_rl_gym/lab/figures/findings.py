"""Findings of a sweep as sentences, computed from its curves.

Captions of figures and the report's first line have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from private_rl_gym.lab.grids.summary import Curve

__all__ = [
    "finding",
    "finding_against",
    "finding_at_equal_epsilon",
    "finding_of_epsilon",
    "finding_of_mistakes",
    "finding_of_noise",
    "finding_of_shares",
]


def finding(curves: Sequence[Curve]) -> str:
    """Return regret as a share of that of random actions.

    Of private agents at one epsilon, and without privacy.

    The best learner is compared with the worst of those that know as much of the problem. Where the true model is
    unknown, the returns of learners, and that of a random policy.
    """
    if curves[0].measure == "return":
        return _finding_of_returns(curves)
    private, exact = [c for c in curves if c.private], [c for c in curves if not c.private]
    first, rest = (_at_one_epsilon(private), exact) if private else (exact, [])
    if len({curve.problem for curve in curves}) > 1:
        text = f"The best {'private ' if private else ''}learner of each problem has "
        text += f"{_range(_best(first).values())} of the regret of a random policy"
        return text + (f"; without privacy {_range(_best(rest).values())}" if rest else "")
    best = min(first, key=_lost)
    ordered = sorted((curve for curve in first if curve.knows == best.knows), key=_lost)
    text = f"{_named(ordered[0])} has {_percent(_lost(ordered[0]))} of the regret of a random policy"
    text += f", and {_named(ordered[-1])} has {_percent(_lost(ordered[-1]))}" if len(ordered) > 1 else ""
    return text + (f"; without privacy {_percent(min(map(_lost, rest)))}" if rest else "")


def _at_one_epsilon(curves: Sequence[Curve]) -> list[Curve]:
    """Return the curves at the true epsilon that most of them have.

    If several do, at the smallest.
    """
    rounded = [float(f"{curve.epsilon:.2g}") for curve in curves]
    common = max(sorted(set(rounded)), key=rounded.count)
    return [curve for curve, epsilon in zip(curves, rounded, strict=True) if epsilon == common]


def _finding_of_returns(curves: Sequence[Curve]) -> str:
    private = [curve for curve in curves if curve.private] or list(curves)
    ordered = sorted(private, key=lambda curve: -float(curve.mean[-1]))
    text = f"With {_named(ordered[0])}, a user gets {_number(float(ordered[0].mean[-1]))}"
    text += f", and {_number(float(ordered[-1].mean[-1]))} with {_named(ordered[-1])}" if len(ordered) > 1 else ""
    exact = [float(curve.mean[-1]) for curve in curves if not curve.private]
    text += f"; without privacy {_number(max(exact))}" if exact and len(exact) < len(curves) else ""
    one = len({curve.problem for curve in curves}) == 1
    return text + (f"; a random policy gets {_number(curves[0].blind)}" if one else "")


def finding_of_shares(curves: Sequence[Curve], shares: Sequence[float]) -> str:
    """Return the share of the best possible that the last users get.

    Of private agents, without privacy, and of random actions.

    The best curve is compared with the worst of those that know as much of the problem.
    """
    private = [pair for pair in zip(shares, curves, strict=True) if pair[1].private]
    exact = [share for share, curve in zip(shares, curves, strict=True) if not curve.private]
    ordered = sorted(private or zip(shares, curves, strict=True), key=lambda pair: -pair[0])
    ordered = [pair for pair in ordered if pair[1].knows == ordered[0][1].knows]
    (high, best), (low, worst) = ordered[0], ordered[-1]
    text = f"With {_named(best)}, the last users get {_percent(high)} of the best possible"
    text += f", and {_percent(low)} with {_named(worst)}" if len(ordered) > 1 else ""
    text += f"; without privacy {_percent(max(exact))}" if private and exact else ""
    if len({curve.problem for curve in curves}) == 1:
        text += f"; a random policy {_percent(1.0 - curves[0].blind / curves[0].optimum)}"
    return text


def finding_of_epsilon(curves: Sequence[Curve], groups: Mapping[str, Sequence[Curve]]) -> str:
    """Return regret at the smallest and the largest epsilon of the best group.

    And the actual cost of printed constants.

    Where groups have the same values of epsilon, which of them loses least at how many.
    """
    private = [curve for curve in curves if curve.private]
    if not private:
        return "No curve has a guarantee"
    if curves[0].measure == "return":
        return _finding_of_returns(curves)
    counts = {(name, f"{c.epsilon:.2g}"): float(c.mean[-1]) for name, line in groups.items() for c in line if c.private}
    names, places = {name for name, _ in counts}, {place for _, place in counts}
    if len(names) > 1 and len(places) > 1 and len(counts) == len(names) * len(places):
        return _leader(counts, "has the least regret at", "values of epsilon")
    best = min(private, key=lambda curve: float(curve.mean[-1]))
    name, line = next((name, line) for name, line in groups.items() if best in line)
    line = sorted((curve for curve in line if curve.private), key=lambda curve: curve.epsilon)
    low, high = line[0], line[-1]
    if high.epsilon > low.epsilon:
        text = f"{name} has a regret of {low.mean[-1]:,.0f} at an actual epsilon of {low.epsilon:,.4g}, "
        text += f"{high.mean[-1]:,.0f} at {high.epsilon:,.4g}"
    else:
        text = f"{name} has a regret of {best.mean[-1]:,.0f} at an actual epsilon of {best.epsilon:,.4g}"
    dearer = [curve.epsilon / curve.asked for curve in private if curve.asked]
    worst = max(dearer, default=1.0)
    return text + (f"; printed constants cost up to {worst:.2g} times what they print" if worst > 1.01 else "")


def finding_of_noise(curves: Sequence[Curve]) -> str:
    """Return the smallest and the largest noise in the last released sum."""
    noisy = sorted((float(c.noise[:, -1].mean()), c.label) for c in curves if c.noise[:, -1].any())
    if not noisy:
        return "Sums are exact: there is no noise"
    (low, quiet), (high, loud) = noisy[0], noisy[-1]
    text = (
        f"After {max(int(c.users[-1]) for c in curves):,} users one released sum has noise of {_number(low)} ({quiet})"
    )
    return text + (f" to {_number(high)} ({loud})" if len(noisy) > 1 else "")


def finding_of_mistakes(groups: Mapping[str, Sequence[Curve]], bounds: Mapping[float, float | None]) -> str:
    """Return the agent with the fewest mistakes, and at how many epsilons.

    And how near any curve comes to the lower bound.
    """
    counts = {(name, c.epsilon): float(np.mean(c.mistakes)) for name, line in groups.items() for c in line}  # type: ignore[arg-type]
    text = _leader(counts, "makes the fewest mistakes at", "values of epsilon")
    near = [count / bound for (_, epsilon), count in counts.items() if (bound := bounds.get(epsilon))]
    return text + (f"; the nearest to the lower bound is {_number(min(near))} times above it" if near else "")


def finding_at_equal_epsilon(curves: Sequence[Curve]) -> str:
    """Return the agent with the least regret in the most comparisons.

    A comparison is at one problem, trust model and epsilon.
    """
    counts: dict[tuple[str, tuple[str, str, float]], float] = {}
    for curve in curves:
        if curve.private:
            key = curve.line, (curve.problem, curve.trust, float(f"{curve.epsilon:.2g}"))
            counts[key] = min(counts.get(key, np.inf), float(curve.mean[-1]))
    return _leader(counts, "has the least regret in", "comparisons at the same actual epsilon")


def finding_against(counts: Mapping[tuple[str, Any], float], x: str, does: str = "has the least regret") -> str:
    """Return the learner whose number is the smallest at the most values of an axis."""
    return _leader(counts, f"{does} at", f"values of {x}")


def _leader(counts: Mapping[tuple[str, Any], float], does: str, of: str) -> str:
    """Return the name that has the smallest number at the most places."""
    places = list(dict.fromkeys(place for _, place in counts))
    winners = [min((number, name) for (name, at), number in counts.items() if at == place)[1] for place in places]
    best = max(dict.fromkeys(winners), key=winners.count)
    return f"{best} {does} {winners.count(best)} of {len(places)} {of}"


def _best(curves: Iterable[Curve]) -> dict[str, float]:
    """Return the smallest share that is lost, by problem."""
    best: dict[str, float] = {}
    for curve in curves:
        best[curve.problem] = min(_lost(curve), best.get(curve.problem, np.inf))
    return best


def _lost(curve: Curve) -> float:
    return float(curve.mean[-1] / (curve.blind * curve.users[-1]))


def _named(curve: Curve) -> str:
    """Return a label that says epsilon in any case."""
    if "epsilon" in curve.label or not curve.private:
        return curve.label
    return f"{curve.label} (epsilon {curve.epsilon:,.3g})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %" if share < 0.095 else f"{100.0 * share:.0f} %"


def _range(shares: Iterable[float]) -> str:
    low, high = min(shares := list(shares)), max(shares)
    return _percent(low) if _percent(low) == _percent(high) else f"{_percent(low)} to {_percent(high)}"
