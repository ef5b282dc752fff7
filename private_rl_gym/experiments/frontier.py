"""The frontier: regret at the same true epsilon, problem by problem, as one table and one figure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from private_rl_gym.experiments.drawing import FAINT, INK, in_lines, new_panels, plain_text
from private_rl_gym.experiments.grid import Grid
from private_rl_gym.experiments.looks import AGENT_COLORS, EXACT, hides
from private_rl_gym.experiments.summary import Curve, Layout, learners

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FLAGSHIP",
    "FRONTIER",
    "HEADER",
    "agent_of",
    "frontier_figure",
    "knowledge_of",
    "layout_of",
    "problem_of",
    "role_of",
    "rows",
]

FLAGSHIP = "FrugalUCBVI"
"""The agent that others are compared with; on an open board it is what the table calls not private."""

POOLING = frozenset({FLAGSHIP})
"""Agents that are told that problems are stationary, and pool stages."""

LINEAR = frozenset({"PrivateLinOptVI", "PrivateLinOptPO", "LDPUCRLVTR", "UCRLVTR", "OPPO"})
"""Agents that are told the features of a mixture."""

COLUMNS = 3
"""Panels in a row: as many as are wide enough to be read on a page."""

HEADER = (
    "problem",
    "trust",
    "knowledge",
    "agent",
    "epsilon",
    "delta",
    "users",
    "seeds",
    "regret",
    "sem",
    "never_learning",
    "not_private",
    "median",
    "worst",
)


def rows(curves: Sequence[Curve]) -> list[tuple[str, ...]]:
    """The table as text, one row for each curve: the true epsilon, regret over seeds, and what to compare it with."""
    exact = {problem_of(curve): curve.mean[-1] for curve in curves if agent_of(curve) == FLAGSHIP and not hides(curve)}
    lines: list[tuple[str, ...]] = []
    for curve in curves:
        problem, finals = problem_of(curve), [float(regret) for regret in curve.regret[:, -1]]
        error = statistics.stdev(finals) / math.sqrt(len(finals)) if len(finals) > 1 else None
        lines.append(
            (
                problem,
                str(curve.config["boundary"]["name"]),
                knowledge_of(curve),
                agent_of(curve),
                f"{curve.epsilon:.4g}" if hides(curve) else "inf",
                f"{curve.delta:g}" if hides(curve) else "",
                f"{curve.users[-1]}",
                f"{curve.seeds}",
                f"{statistics.fmean(finals):.1f}",
                "" if error is None else f"{error:.1f}",
                f"{curve.blind * curve.users[-1]:.1f}",
                f"{exact[problem]:.1f}" if problem in exact else "",
                f"{statistics.median(finals):.1f}",
                f"{max(finals):.1f}",
            )
        )
    return lines


FRONTIER = Layout(HEADER, rows)


def layout_of(grid: Grid, curves: Sequence[Curve]) -> Layout:
    """The table that a grid asks for."""
    return FRONTIER if grid.table == "frontier" else learners(curves)


def problem_of(curve: Curve) -> str:
    """The name of a problem with those options that are not its defaults."""
    options = {key: value for key, value in curve.config["environment"].items() if key != "name"}
    name = str(curve.config["environment"]["name"]).partition("/")[2].rpartition("-v")[0]
    return name + "".join(f", {key} = {value}" for key, value in options.items())


def agent_of(curve: Curve) -> str:
    """The name of an agent, and whether the constants of its boundary are printed ones, or those of an experiment."""
    calibration = {"paper": " as printed", "released": " as released"}
    return str(curve.config["agent"]["name"]) + calibration.get(curve.config["boundary"].get("calibration"), "")


def knowledge_of(curve: Curve) -> str:
    """Knowledge that an agent has of the problem: that it is stationary, the features of a mixture, or nothing."""
    agent, boundary = curve.config["agent"], curve.config["boundary"]
    if agent["name"] in LINEAR:
        return "features"
    told = agent.get("stationary", agent["name"] in POOLING) or boundary.get("stationary", False)
    return "stationary" if told else "nothing"


def line_of(curve: Curve) -> str:
    """The name of the curve's line in the figure."""
    pools, knowledge = curve.config["agent"]["name"] in POOLING, knowledge_of(curve)
    if pools == (knowledge == "stationary"):
        return agent_of(curve)
    return agent_of(curve) + (", told nothing" if pools else ", pooled")


ROLES: dict[str, dict[str, Any]] = {  # the lines of each kind of agent, in the agent's colour
    "flagship": {"lw": 2.2},
    "untold": {"lw": 1.4, "ls": "--"},
    "papers": {"lw": 1.4},
    "pooled": {"lw": 1.4, "ls": "-."},
    "printed": {"lw": 1.4, "ls": ":"},
    "released": {"lw": 1.4, "ls": (0, (1, 1, 5, 1))},
}
MARKERS = "os^Dv"
DASHES: dict[str, Any] = {  # of lines without privacy, which are all green
    FLAGSHIP: "--",
    "UCBVI": "-.",
    "UCRLVTR": (0, (9, 2)),
    "OPPO": (0, (2, 1)),
    "DPSE": ":",
}


def frontier_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Regret against the true epsilon, with standard errors; a panel for each problem and trust model."""
    from matplotlib.ticker import LogLocator

    places = list(dict.fromkeys((problem_of(c), str(c.config["boundary"]["name"])) for c in curves if hides(c)))
    titles = ["\n".join(in_lines(f"{problem}, {trust.upper()}")) for problem, trust in _short(places)]
    columns = min(COLUMNS, max(1, len(places)))
    figure, panels = new_panels(titles, columns, (3.4, 3.0))
    figure.suptitle(plain_text(title), fontsize=11)
    others = dict.fromkeys(name for name in (str(c.config["agent"]["name"]) for c in curves) if name != FLAGSHIP)
    marker = {name: MARKERS[number % len(MARKERS)] for number, name in enumerate(others)}
    ticks = sorted({float(f"{c.epsilon:.1g}") for c in curves if hides(c)})
    lines: dict[str, Any] = {}
    for axes, (problem, trust) in zip(panels, places, strict=True):
        here = [curve for curve in curves if problem_of(curve) == problem]
        for name, line in _lines(c for c in here if hides(c) and c.config["boundary"]["name"] == trust).items():
            agent = str(line[0].config["agent"]["name"])
            look: dict[str, Any] = {**ROLES[role_of(line[0])], "ms": 4, "capsize": 2, "elinewidth": 0.8}
            look |= {"marker": marker.get(agent, "o"), "color": AGENT_COLORS.get(agent, INK)}
            errors = [c.regret[:, -1].std(ddof=1) / math.sqrt(c.seeds) if c.seeds > 1 else 0.0 for c in line]
            lines[name] = axes.errorbar([c.epsilon for c in line], [c.mean[-1] for c in line], errors, **look)
        for curve in here:
            if not hides(curve):
                style, name = DASHES.get(agent_of(curve), "-."), f"{agent_of(curve)}, not private"
                lines[name] = axes.axhline(curve.mean[-1], color=EXACT, ls=style, lw=1.2)
        lines.pop("never learning", None)  # so that it stands last
        lines["never learning"] = axes.axhline(here[0].blind * here[0].users[-1], color=FAINT, ls=(0, (1, 3)), lw=1.4)
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.minorticks_off()
        axes.grid(axis="y", color=FAINT, alpha=0.25, lw=0.6)
        axes.set_xlim(ticks[0] / 1.2, ticks[-1] * 1.2)
    for axes in panels[::columns]:
        axes.set_ylabel(f"regret of {int(curves[0].users[-1]):,} users")
    for axes in panels[-columns:]:  # the lowest of each column
        axes.set_xlabel("true epsilon")
    room = len(places) % columns > 0 and len(places) > columns
    place = {"loc": "lower right"} if room else {"loc": "outside lower center", "ncols": columns}
    figure.legend(list(lines.values()), [plain_text(name) for name in lines], fontsize=10, frameon=False, **place)
    return figure


def _short(places: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Problems by their names alone, where no other has the same."""
    names = [problem.partition(",")[0] for problem, _ in places]
    different = {name: {problem for problem, _ in places if problem.partition(",")[0] == name} for name in names}
    return [
        (name if len(different[name]) == 1 else place[0], place[1]) for name, place in zip(names, places, strict=True)
    ]


def role_of(curve: Curve) -> str:
    """The kind of line that a curve has in the figure: a key of ``ROLES``."""
    if curve.config["agent"]["name"] == FLAGSHIP:
        return "flagship" if knowledge_of(curve) == "stationary" else "untold"
    if knowledge_of(curve) == "stationary":
        return "pooled"
    return {"paper": "printed", "released": "released"}.get(curve.config["boundary"].get("calibration"), "papers")


def _lines(curves: Iterable[Curve]) -> dict[str, list[Curve]]:
    """Curves by agent, sorted by epsilon."""
    lines: dict[str, list[Curve]] = {}
    for curve in sorted(curves, key=lambda curve: curve.epsilon):
        lines.setdefault(line_of(curve), []).append(curve)
    return lines
