"""The frontier: regret at the same true epsilon, problem by problem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from private_rl_gym.lab.figures.drawing import FAINT, RANDOM, in_lines, new_panels, plain_text, say
from private_rl_gym.lab.figures.findings import finding_at_equal_epsilon
from private_rl_gym.lab.figures.plots import about, neighbours
from private_rl_gym.lab.figures.styles import own_colors, own_parts
from private_rl_gym.lab.grids.summary import FLAGSHIP, Curve
from private_rl_gym.lab.registry import EXACT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["frontier_figure", "role_of"]

COLUMNS = 3
"""Panels in a row: as many as are wide enough to be read on a page."""

ROLES: dict[str, dict[str, Any]] = {  # the lines of each kind of agent, in the agent's colour
    "flagship": {"lw": 2.2},
    "untold": {"lw": 1.4, "ls": "--"},
    "papers": {"lw": 1.4},
    "pooled": {"lw": 1.4, "ls": "-."},
    "printed": {"lw": 1.4, "ls": ":"},
}
MARKERS = "os^Dv"


def frontier_figure(curves: Sequence[Curve], title: str = "") -> Figure:
    """Draw regret against the true epsilon, with standard errors.

    A panel for each problem and trust model.
    """
    from matplotlib.ticker import LogLocator

    places = list(dict.fromkeys((c.problem, c.trust) for c in curves if c.private))
    titles = ["\n".join(in_lines(f"{problem}, {trust.upper()}")) for problem, trust in _short(places)]
    columns = min(COLUMNS, max(1, len(places)))
    figure, panels = new_panels(titles, columns, (3.4, 3.0))
    figure.suptitle(plain_text(title), fontsize=11)
    others = dict.fromkeys(c.agent.name for c in curves if c.agent.name != FLAGSHIP)
    marker = {name: MARKERS[number % len(MARKERS)] for number, name in enumerate(others)}
    own = own_colors((c for c in curves if c.private), (c.agent.color for c in curves if not c.cell.own))
    ticks = sorted({float(f"{c.epsilon:.1g}") for c in curves if c.private})
    lines: dict[str, Any] = {}
    for axes, (problem, trust) in zip(panels, places, strict=True):
        here = [curve for curve in curves if curve.problem == problem]
        for name, line in _lines(c for c in here if c.private and c.trust == trust).items():
            agent = line[0].agent
            look: dict[str, Any] = {**ROLES[role_of(line[0])], "ms": 4, "capsize": 2, "elinewidth": 0.8}
            look |= {"marker": marker.get(agent.name, "o"), "color": own.get(own_parts(line[0]), agent.color or INK)}
            errors = [float(np.nan_to_num(c.sem[-1])) for c in line]
            lines[name] = axes.errorbar(
                [c.epsilon for c in line], [c.regret[:, -1].mean() for c in line], errors, **look
            )
        for curve in here:
            if not curve.private:
                name = f"{curve.line}, not private"
                lines[name] = axes.axhline(curve.mean[-1], color=EXACT, ls=curve.agent.dash, lw=1.2)
        lines.pop(RANDOM, None)  # so that it stands last
        lines[RANDOM] = axes.axhline(here[0].blind * here[0].users[-1], color=FAINT, ls=(0, (1, 3)), lw=1.4)
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.minorticks_off()
        axes.grid(axis="y", color=FAINT, alpha=0.25, lw=0.6)
        axes.set_xlim(ticks[0] / 1.2, ticks[-1] * 1.2)
    for axes in panels[::columns]:
        axes.set_ylabel("cumulative regret")
    for axes in panels[-columns:]:  # the lowest of each column
        axes.set_xlabel("actual epsilon")
    room = len(places) % columns > 0 and len(places) > columns
    # Not below: the line about the figure is there, and the layout would draw both in one place.
    place = {"loc": "lower right"} if room else {"loc": "outside upper center", "ncols": columns}
    figure.legend(list(lines.values()), [plain_text(name) for name in lines], fontsize=10, frameon=False, **place)
    bars = f"bars: one standard error; neighbours: {neighbours(curves)}"
    return say(figure, finding_at_equal_epsilon(curves), about(curves, bars))


def _short(places: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Problems by their names alone, where no other has the same."""
    names = [problem.partition(",")[0] for problem, _ in places]
    different = {name: {problem for problem, _ in places if problem.partition(",")[0] == name} for name in names}
    return [
        (name if len(different[name]) == 1 else place[0], place[1]) for name, place in zip(names, places, strict=True)
    ]


def role_of(curve: Curve) -> str:
    """Return the kind of line of a curve, a key of ``ROLES``."""
    homogeneous = curve.knows == "stationary"
    if curve.agent.name == FLAGSHIP:
        return "flagship" if homogeneous else "untold"
    return "pooled" if homogeneous else "printed" if curve.printed else "papers"


def _lines(curves: Iterable[Curve]) -> dict[str, list[Curve]]:
    """Curves by agent, sorted by epsilon."""
    lines: dict[str, list[Curve]] = {}
    for curve in sorted(curves, key=lambda curve: curve.epsilon):
        lines.setdefault(curve.line, []).append(curve)
    return lines
