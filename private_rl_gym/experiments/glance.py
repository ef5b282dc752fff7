"""The frontier at a glance: what users get at each true epsilon on one problem, in a few lines that are named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from private_rl_gym.experiments.drawing import FAINT, INK, finish, label_ends, new_axes, say
from private_rl_gym.experiments.frontier import FLAGSHIP, problem_of, role_of
from private_rl_gym.experiments.looks import AGENT_COLORS, EXACT, TRUST_STYLES, hides
from private_rl_gym.experiments.summary import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["glance_figure"]

AT_HOME = "ldp"
"""Beside the first trust model the flagship is seen under this one: a shuffler costs too little to be seen."""

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "untold": (f"{FLAGSHIP}, told nothing", {"color": INK, "ls": "--", "lw": 1.4}),
    "pooled": ("the best other, told that steps are alike", {"color": AGENT_COLORS["PSRL"], "ls": "-", "lw": 1.6}),
    "papers": ("the papers' best, with better noise", {"color": AGENT_COLORS["DPUCBVI"], "ls": "-", "lw": 1.6}),
    "printed": ("the papers' best, as printed", {"color": AGENT_COLORS["PUCB"], "ls": "-", "lw": 1.6}),
}
OTHERS["released"] = OTHERS["printed"]  # constants of an experiment, beside those of a paper
"""Lines of other agents, of which the best at each epsilon is drawn, by what they are."""


def glance_figure(curves: Sequence[Curve]) -> Figure:
    """Reward as a share of the best possible, against the true epsilon, on the problem that most trust models have.

    All lines but one are under the first of them. Of other agents the best at each epsilon is drawn.
    """
    private = [curve for curve in curves if hides(curve)]
    trusts: dict[str, dict[str, None]] = defaultdict(dict)
    for curve in private:
        trusts[problem_of(curve)].setdefault(_trust(curve))
    problem = max(trusts, key=lambda name: len(trusts[name]))
    first = next(iter(trusts[problem]))
    best: dict[str, dict[float, float]] = defaultdict(dict)
    look: dict[str, dict[str, Any]] = {}
    for curve in private:
        role, trust = role_of(curve), _trust(curve)
        if problem_of(curve) != problem or (trust != first and (role, trust) != ("flagship", AT_HOME)):
            continue
        name, how = OTHERS.get(role, (FLAGSHIP, {"color": INK, "ls": "-", "lw": 2.4}))
        if trust != first:
            name, how = f"{name}, noise at home (LDP)", how | {"ls": TRUST_STYLES[trust], "lw": 1.6}
        place = float(f"{curve.epsilon:.2g}")
        best[name][place] = max(best[name].get(place, -1.0), _share(curve))
        look[name] = how
    here = [curve for curve in curves if problem_of(curve) == problem]
    users = int(here[0].users[-1])
    figure, axes = new_axes(f"{problem}; {users:,} users; {first.upper()}, where nothing else is said")
    ends = []
    for name, points in sorted(best.items(), key=lambda line: -max(line[1].values())):
        line = sorted(points.items())
        axes.plot(*zip(*line, strict=True), marker="o", ms=4, **look[name])
        ends.append((line[-1][1], name, look[name]["color"]))
    exact = max((_share(curve) for curve in here if not hides(curve)), default=None)
    if exact is not None:
        axes.axhline(exact, color=EXACT, ls="--", lw=1.2)
        ends.insert(0, (exact, "not private", EXACT))
    never = 1.0 - here[0].blind / here[0].optimum
    axes.axhline(never, color=FAINT, ls=":", lw=1.4)
    ends.append((never, "never learning", FAINT))
    axes.set(xscale="log", ylim=(min(0.0, never), 1.02))
    axes.set(xlabel="true epsilon: smaller is more private", ylabel="reward of all, as a share of the best possible")
    finish(axes, reveal=False)
    ticks = sorted({epsilon for points in best.values() for epsilon in points})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.yaxis.set_major_formatter(lambda share, _: f"{100.0 * share:.0f} %")
    label_ends(axes, ends)
    return say(figure, _finding(best, exact, users))


def _finding(best: dict[str, dict[float, float]], exact: float | None, users: int) -> str:
    """The reward from the flagship at the epsilon nearest to 1, beside that from the papers' agents."""
    ours = best.get(FLAGSHIP) or next(iter(best.values()))
    epsilon = min(ours, key=lambda value: abs(value - 1.0))
    text = (
        f"At epsilon = {epsilon:g}, {users:,} people get {100 * ours[epsilon]:.0f} % of the best reward from {FLAGSHIP}"
    )
    for role, ending in (("papers", "the papers' agents with better noise"), ("printed", "them as printed")):
        share = best[OTHERS[role][0]].get(epsilon) if OTHERS[role][0] in best else None
        text += "" if share is None else f", {100 * share:.0f} % from {ending}"
    return text + ("" if exact is None else f", {100 * exact:.0f} % without privacy")


def _share(curve: Curve) -> float:
    return float(1.0 - curve.mean[-1] / (curve.users[-1] * curve.optimum))


def _trust(curve: Curve) -> str:
    return str(curve.config["boundary"]["name"])
