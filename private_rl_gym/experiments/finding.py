"""Findings of a sweep as sentences, computed from its curves: titles of figures and the first line of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from private_rl_gym.experiments.frontier import agent_of, knowledge_of, problem_of
from private_rl_gym.experiments.looks import hides
from private_rl_gym.experiments.summary import Curve

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
    """The share that learners lose of what actions at random lose: private ones at one epsilon, and without privacy.

    Where nobody knows the true model, the returns of learners, and that of actions at random.
    """
    if curves[0].measure == "return":
        return _finding_of_returns(curves)
    private, exact = [c for c in curves if hides(c)], [c for c in curves if not hides(c)]
    first, rest = (_at_one_epsilon(private), exact) if private else (exact, [])
    if len({problem_of(curve) for curve in curves}) > 1:
        text = f"Of what actions at random lose, the best {'private ' if private else ''}learner of each problem loses "
        text += _range(_best(first).values())
        return text + (f"; without privacy {_range(_best(rest).values())}" if rest else "")
    ordered = sorted(first, key=_lost)
    text = f"{_named(ordered[0])} loses {_percent(_lost(ordered[0]))} of what actions at random lose"
    text += f", and {_named(ordered[-1])} loses {_percent(_lost(ordered[-1]))}" if len(ordered) > 1 else ""
    return text + (f"; without privacy {_percent(min(map(_lost, rest)))}" if rest else "")


def _at_one_epsilon(curves: Sequence[Curve]) -> list[Curve]:
    """The curves at the true epsilon that most of them have, the smallest if several do."""
    rounded = [float(f"{curve.epsilon:.2g}") for curve in curves]
    common = max(sorted(set(rounded)), key=rounded.count)
    return [curve for curve, epsilon in zip(curves, rounded, strict=True) if epsilon == common]


def _finding_of_returns(curves: Sequence[Curve]) -> str:
    private = [curve for curve in curves if hides(curve)] or list(curves)
    ordered = sorted(private, key=lambda curve: -float(curve.mean[-1]))
    text = f"With {_named(ordered[0])}, a user gets {_number(float(ordered[0].mean[-1]))}"
    text += f", and {_number(float(ordered[-1].mean[-1]))} with {_named(ordered[-1])}" if len(ordered) > 1 else ""
    exact = [float(curve.mean[-1]) for curve in curves if not hides(curve)]
    text += f"; without privacy {_number(max(exact))}" if exact and len(exact) < len(curves) else ""
    one = len({problem_of(curve) for curve in curves}) == 1
    return text + (f"; actions at random get {_number(curves[0].blind)}" if one else "")


def finding_of_shares(curves: Sequence[Curve], shares: Sequence[float]) -> str:
    """The share of the best possible that the last users get: private ones, without privacy, and never learning."""
    private = [pair for pair in zip(shares, curves, strict=True) if hides(pair[1])]
    exact = [share for share, curve in zip(shares, curves, strict=True) if not hides(curve)]
    ordered = sorted(private or zip(shares, curves, strict=True), key=lambda pair: -pair[0])
    (high, best), (low, worst) = ordered[0], ordered[-1]
    text = f"With {_named(best)}, the last users get {_percent(high)} of the best possible"
    text += f", and {_percent(low)} with {_named(worst)}" if len(ordered) > 1 else ""
    text += f"; without privacy {_percent(max(exact))}" if private and exact else ""
    if len({problem_of(curve) for curve in curves}) == 1:
        text += f"; never learning {_percent(1.0 - curves[0].blind / curves[0].optimum)}"
    return text


def finding_of_epsilon(curves: Sequence[Curve], groups: Mapping[str, Sequence[Curve]]) -> str:
    """Regret at the smallest and the largest true epsilon of the best group; what printed constants really cost.

    Where groups have the same values of epsilon, which of them loses least at how many.
    """
    private = [curve for curve in curves if hides(curve)]
    if not private:
        return "No curve promises anything"
    if curves[0].measure == "return":
        return _finding_of_returns(curves)
    counts = {(name, f"{c.epsilon:.2g}"): float(c.mean[-1]) for name, line in groups.items() for c in line if hides(c)}
    names, places = {name for name, _ in counts}, {place for _, place in counts}
    if len(names) > 1 and len(places) > 1 and len(counts) == len(names) * len(places):
        return _leader(counts, "loses least at", "values of epsilon")
    best = min(private, key=lambda curve: float(curve.mean[-1]))
    name, line = next((name, line) for name, line in groups.items() if best in line)
    line = sorted((curve for curve in line if hides(curve)), key=lambda curve: curve.epsilon)
    low, high = line[0], line[-1]
    if high.epsilon > low.epsilon:
        text = f"{name} loses {low.mean[-1]:,.0f} at a true epsilon of {low.epsilon:,.4g}, "
        text += f"{high.mean[-1]:,.0f} at {high.epsilon:,.4g}"
    else:
        text = f"{name} loses {best.mean[-1]:,.0f} at a true epsilon of {best.epsilon:,.4g}"
    dearer = [curve.epsilon / curve.asked for curve in private if curve.asked]
    worst = max(dearer, default=1.0)
    return text + (f"; printed constants cost up to {worst:.2g} times what they print" if worst > 1.01 else "")


def finding_of_noise(curves: Sequence[Curve]) -> str:
    """The smallest and the largest noise in the last released sum."""
    noisy = sorted((float(c.noise[:, -1].mean()), c.label) for c in curves if c.noise[:, -1].any())
    if not noisy:
        return "Sums are exact: there is no noise"
    (low, quiet), (high, loud) = noisy[0], noisy[-1]
    text = (
        f"After {max(int(c.users[-1]) for c in curves):,} users one released sum has noise of {_number(low)} ({quiet})"
    )
    return text + (f" to {_number(high)} ({loud})" if len(noisy) > 1 else "")


def finding_of_mistakes(groups: Mapping[str, Sequence[Curve]], bounds: Mapping[float, float | None]) -> str:
    """The agent with the fewest mistakes, at how many epsilons; and how near the lower bound any curve comes."""
    counts = {(name, c.epsilon): float(np.mean(c.mistakes)) for name, line in groups.items() for c in line}  # type: ignore[arg-type]
    text = _leader(counts, "makes the fewest mistakes at", "values of epsilon")
    near = [count / bound for (_, epsilon), count in counts.items() if (bound := bounds.get(epsilon))]
    return text + (f"; the nearest to the lower bound is {_number(min(near))} times above it" if near else "")


def finding_at_equal_epsilon(curves: Sequence[Curve]) -> str:
    """The agent that loses least in the most comparisons at one problem, trust model and true epsilon."""
    counts: dict[tuple[str, tuple[str, str, float]], float] = {}
    for curve in curves:
        if hides(curve):
            name = agent_of(curve) + (", told nothing" if knowledge_of(curve) == "nothing" else "")
            place = (problem_of(curve), str(curve.config["boundary"]["name"]), float(f"{curve.epsilon:.2g}"))
            counts[name, place] = min(counts.get((name, place), np.inf), float(curve.mean[-1]))
    return _leader(counts, "loses least in", "comparisons at the same true epsilon")


def finding_against(counts: Mapping[tuple[str, Any], float], x: str, does: str = "loses least") -> str:
    """The learner whose number is the smallest at the most values of an axis."""
    return _leader(counts, f"{does} at", f"values of {x}")


def _leader(counts: Mapping[tuple[str, Any], float], does: str, of: str) -> str:
    """The name that has the smallest number at the most places."""
    places = list(dict.fromkeys(place for _, place in counts))
    winners = [min((number, name) for (name, at), number in counts.items() if at == place)[1] for place in places]
    best = max(dict.fromkeys(winners), key=winners.count)
    return f"{best} {does} {winners.count(best)} of {len(places)} {of}"


def _best(curves: Iterable[Curve]) -> dict[str, float]:
    """The smallest share that is lost, by problem."""
    best: dict[str, float] = {}
    for curve in curves:
        best[problem_of(curve)] = min(_lost(curve), best.get(problem_of(curve), np.inf))
    return best


def _lost(curve: Curve) -> float:
    return float(curve.mean[-1] / (curve.blind * curve.users[-1]))


def _named(curve: Curve) -> str:
    """A label that says epsilon in any case."""
    if "epsilon" in curve.label or not hides(curve):
        return curve.label
    return f"{curve.label} (epsilon {curve.epsilon:,.3g})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %" if share < 0.095 else f"{100.0 * share:.0f} %"


def _range(shares: Iterable[float]) -> str:
    low, high = min(shares := list(shares)), max(shares)
    return _percent(low) if _percent(low) == _percent(high) else f"{_percent(low)} to {_percent(high)}"
