"""The frontier at a glance.

It shows what users get at each true epsilon on one problem, in a few named lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from private_rl_gym.lab.figures.drawing import EPSILON, FAINT, INK, RANDOM, finish, label_ends, new_axes, say
from private_rl_gym.lab.figures.frontier import role_of
from private_rl_gym.lab.figures.plots import about, neighbours
from private_rl_gym.lab.grids.summary import FLAGSHIP, HOMOGENEOUS, Curve
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, EXACT
from private_rl_gym.privacy.accounting.guarantee import plain_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["glance_figure"]

AT_HOME = "ldp"
"""Beside the first trust model the flagship is seen under this one: a shuffler costs too little to be seen."""

OURS = f"{FLAGSHIP}, {HOMOGENEOUS}"

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "untold": (FLAGSHIP, {"color": INK, "ls": "--", "lw": 1.4}),
    "pooled": (f"the best other, {HOMOGENEOUS}", {"color": AGENTS["PSRL"].color, "ls": "-", "lw": 1.6}),
    "papers": ("the papers' best, with better noise", {"color": AGENTS["DPUCBVI"].color, "ls": "-", "lw": 1.6}),
    "printed": ("the papers' best, as printed", {"color": AGENTS["PUCB"].color, "ls": "-", "lw": 1.6}),
}
"""Lines of other agents, of which the best at each epsilon is drawn, by what they are."""


def glance_figure(curves: Sequence[Curve], title: str = "") -> Figure:
    """Draw reward against the true epsilon, as a share of the best possible.

    The problem is the one that most trust models have.

    All lines but one are under the first of them. Of other agents the best at each epsilon is drawn. Bars are one
    standard error over seeds. The line below the axes has delta, the neighbours and the number of seeds.
    """
    private = [curve for curve in curves if curve.private]
    trusts: dict[str, dict[str, None]] = defaultdict(dict)
    for curve in private:
        trusts[curve.problem].setdefault(curve.trust)
    problem = max(trusts, key=lambda name: len(trusts[name]))
    first = next(iter(trusts[problem]))
    best: dict[str, dict[float, Curve]] = defaultdict(dict)
    look: dict[str, dict[str, Any]] = {}
    for curve in private:
        role, trust = role_of(curve), curve.trust
        if curve.problem != problem or (trust != first and (role, trust) != ("flagship", AT_HOME)):
            continue
        name, how = OTHERS.get(role, (OURS, {"color": INK, "ls": "-", "lw": 2.4}))
        if trust != first:
            name, how = f"{name}, local model (LDP)", how | {"ls": BOUNDARIES[trust].style, "lw": 1.6}
        place = float(f"{curve.epsilon:.2g}")
        best[name][place] = max(best[name].get(place, curve), curve, key=_share)
        look[name] = how
    here = [curve for curve in curves if curve.problem == problem]
    users = int(here[0].users[-1])
    drawn = [curve for points in best.values() for curve in points.values()]
    figure, axes = new_axes(title)
    ends = []
    for name, points in sorted(best.items(), key=lambda line: -max(map(_share, line[1].values()))):
        epsilons = sorted(points)
        shares, errors = ([measure(points[epsilon]) for epsilon in epsilons] for measure in (_share, _error))
        axes.errorbar(epsilons, shares, errors, marker="o", ms=4, elinewidth=1.0, **look[name])
        ends.append((shares[-1], name, look[name]["color"]))
    exact = max((_share(curve) for curve in here if not curve.private), default=None)
    if exact is not None:
        axes.axhline(exact, color=EXACT, ls="--", lw=1.2)
        ends.insert(0, (exact, "non-private", EXACT))
    never = 1.0 - here[0].blind / here[0].optimum
    axes.axhline(never, color=FAINT, ls=":", lw=1.4)
    ends.append((never, RANDOM, FAINT))
    axes.set(xscale="log", ylim=(min(0.0, never), 1.02))
    axes.set(xlabel=EPSILON, ylabel="return of all users, share of optimal")
    finish(axes, reveal=False)
    ticks = sorted({epsilon for points in best.values() for epsilon in points})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.yaxis.set_major_formatter(lambda share, _: f"{100.0 * share:.0f} %")
    label_ends(axes, ends)
    deltas = " or ".join(plain_number(delta) for delta in sorted({curve.delta for curve in drawn}))
    bars = f"bars: one standard error; {first.upper()} unless stated; delta = {deltas}; neighbours: {neighbours(drawn)}"
    return say(figure, _finding(best, exact, users), about(drawn, bars))


def _finding(best: dict[str, dict[float, Curve]], exact: float | None, users: int) -> str:
    """Return the flagship's reward near epsilon = 1, beside that of the papers' agents."""
    ours = best.get(OURS) or next(iter(best.values()))
    epsilon = min(ours, key=lambda value: abs(value - 1.0))
    share = _percent(_share(ours[epsilon]))
    text = f"At epsilon = {epsilon:g}, {users:,} people get {share} of the best reward from {OURS}"
    for role, ending in (("papers", "the papers' agents with better noise"), ("printed", "them as printed")):
        other = best[OTHERS[role][0]].get(epsilon) if OTHERS[role][0] in best else None
        text += "" if other is None else f", {_percent(_share(other))} from {ending}"
    return text + ("" if exact is None else f", {_percent(exact)} without privacy")


def _percent(share: float) -> str:
    """Return a share in per cent, with one decimal where it is small."""
    return f"{100.0 * share:.{1 if share < 0.1 else 0}f} %"


def _share(curve: Curve) -> float:
    return float(1.0 - curve.mean[-1] / (curve.users[-1] * curve.optimum))


def _error(curve: Curve) -> float:
    """Return the standard error of the share, over seeds; 0 for a single run."""
    return float(np.nan_to_num(curve.sem[-1]) / (curve.users[-1] * curve.optimum))
