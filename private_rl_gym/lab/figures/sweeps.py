"""The figures of a sweep, and all of its files.

It says which curves each figure draws, how, and under which caption.

* ``FIGURES`` - an entry for each figure
* ``of_grid`` - the figures of a grid; ``caption_of``, ``finding_of`` - sentences about them
* ``write_sweep`` - figures, numbers, tables and the report, from one reading of the store
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from private_rl_gym.lab.figures import drawing, plots
from private_rl_gym.lab.figures.findings import finding, finding_at_equal_epsilon
from private_rl_gym.lab.figures.frontier import frontier_figure
from private_rl_gym.lab.figures.glance import glance_figure
from private_rl_gym.lab.figures.report import Picture, report
from private_rl_gym.lab.grids import summary
from private_rl_gym.lab.grids.grid import Grid
from private_rl_gym.lab.grids.store import Store
from private_rl_gym.lab.grids.summary import Curve
from private_rl_gym.lab.registry import GridError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "WRITERS", "Sweep", "caption_of", "curves_of", "finding_of", "findings", "of_grid", "write_sweep"]

WRITERS: Mapping[str, Callable[[Sequence[Curve], str], str]] = {
    "csv": lambda curves, _table: summary.as_csv(curves),
    "markdown": summary.as_markdown,
    "latex": summary.as_latex,
}
"""The functions that write a table, by format."""

_ENDINGS = {"csv": "csv", "markdown": "md", "latex": "tex"}


class FigureEntry(NamedTuple):
    """A figure of sweeps.

    Attributes:
        caption: Its caption.
        curves: The curves of a grid that it draws; none if it is not for this grid.
        draw: A function of these curves, a title and the grid.
    """

    caption: str
    curves: Callable[[Grid, Sequence[Curve]], Sequence[Curve]]
    draw: Callable[[Sequence[Curve], str, Grid], Figure]


def _all(_grid: Grid, curves: Sequence[Curve]) -> Sequence[Curve]:
    return curves


def _lost(_grid: Grid, curves: Sequence[Curve]) -> Sequence[Curve]:
    return [curve for curve in curves if curve.measure == "regret"]


def _returned(_grid: Grid, curves: Sequence[Curve]) -> Sequence[Curve]:
    return [curve for curve in curves if curve.measure == "return"]


def _counted(grid: Grid, curves: Sequence[Curve]) -> Sequence[Curve]:
    lost = _lost(grid, curves)
    return lost if any(curve.mistakes is not None for curve in lost) else ()


def _compared(grid: Grid, curves: Sequence[Curve]) -> Sequence[Curve]:
    """Curves of regret, or, where there are none, those of returns."""
    return _lost(grid, curves) or _returned(grid, curves)


FIGURES = {
    "against": FigureEntry(
        "Final regret, or return where the true model is not known, against an option of the grid: mean over seeds; "
        "bands are the range over seeds.",
        lambda grid, curves: _compared(grid, curves) if "x" in grid.figure else (),
        lambda curves, title, grid: plots.against_figure(curves, title, grid.figure["x"], grid.figure.get("panels")),
    ),
    "mistakes": FigureEntry(
        "Number of users whose policy was a mistake, against the actual epsilon: mean over seeds; bands are the range.",
        _counted,
        lambda curves, title, _: plots.mistakes_figure(curves, title),
    ),
    "regret": FigureEntry(
        "Regret against the number of users: mean over seeds; bands are 95 % confidence intervals of the mean.",
        _lost,
        lambda curves, title, grid: plots.regret_figure(curves, title, bounds=bool(grid.figure.get("bounds"))),
    ),
    "privacy": FigureEntry(
        "Final regret against the actual epsilon, for replacing one user. Bars are 95 % confidence "
        "intervals. A cross marks the requested epsilon, where "
        "printed constants cost another.",
        _lost,
        lambda curves, title, _: plots.privacy_figure(curves, title),
    ),
    "return": FigureEntry(
        "Return of the policy that a user gets, in episodes of others, against the number of users: mean over "
        "seeds; bands are 95 % confidence intervals of the mean.",
        _returned,
        lambda curves, title, _: plots.return_figure(curves, title),
    ),
    "privacy-of-return": FigureEntry(
        "Final return against the actual epsilon, for replacing one user. Bars are 95 % confidence intervals.",
        _returned,
        lambda curves, title, _: plots.privacy_figure(curves, title),
    ),
    "noise": FigureEntry(
        "Standard deviation of the noise in one released sum, over time.",
        _all,
        lambda curves, title, _: plots.noise_figure(curves, title),
    ),
    "share": FigureEntry(
        "Reward of a user as a share of the best possible, against users: mean over seeds; bands are the range.",
        _lost,
        lambda curves, title, _: plots.share_figure(curves, title),
    ),
}
"""Figures of a grid, in their order; the main figure stands first."""

FRONTIER = {
    "frontier": FigureEntry(
        "Final regret against the actual epsilon, a panel for each problem and trust model. Bars are one "
        "standard error; the table has the number of seeds of each.",
        _all,
        lambda curves, title, _: frontier_figure(curves, title),
    ),
    "glance": FigureEntry(
        "Reward of all users as a share of the best possible, on one problem. Of other agents the best at each "
        "epsilon is drawn. Time-homogeneous: the agent knows that the problem is the same at every step. Bars are one "
        "standard error.",
        _all,
        lambda curves, title, _: glance_figure(curves, title),
    ),
}
"""Figures of a grid with ``main = "frontier"``, for which the others would have a hundred curves each."""


def _entries(grid: Grid) -> dict[str, FigureEntry]:
    """Return the figures that a grid may have, the main figure first."""
    main = grid.figure.get("main")
    found = FRONTIER if main == "frontier" else FIGURES
    return dict(sorted(found.items(), key=lambda item: item[0] != main))


def of_grid(grid: Grid, curves: Sequence[Curve]) -> dict[str, Figure]:
    """All figures of a grid by name, the main figure first."""
    title = grid.figure.get("title", "")
    drawn = ((name, entry, entry.curves(grid, curves)) for name, entry in _entries(grid).items())
    return {name: entry.draw(here, title, grid) for name, entry, here in drawn if here}


def caption_of(grid: Grid, name: str, curves: Sequence[Curve]) -> str:
    """Return the caption of a figure.

    A caption of regret goes on with the paper's finding, if the grid has it, and with ours.
    """
    caption = _entries(grid)[name].caption
    if name == "regret" and grid.figure.get("bounds"):
        caption += " Dotted: upper bounds, orders with the constant 1, where they are below what can be lost at all."
    if name in ("regret", "privacy", "share") and "paper" in grid.figure:
        caption += f" In the paper: {grid.figure['paper']} Here: {findings(curves)}"
    return caption


def finding_of(grid: Grid, curves: Sequence[Curve]) -> str:
    """Return the finding of a sweep, as a sentence without its full stop."""
    frontier = grid.figure.get("main") == "frontier"
    return finding_at_equal_epsilon(curves) if frontier else finding(_compared(grid, curves))


def findings(curves: Sequence[Curve]) -> str:
    """Return the final regret of all curves as sentences, the least first.

    As shares of that of random actions.
    """
    ranked = sorted(curves, key=lambda curve: curve.mean[-1] / (curve.blind * curve.users[-1]))
    parts, before = [], None
    for curve in ranked:
        final, half = float(curve.mean[-1]), float(curve.half_width[-1])
        share = final / (curve.blind * float(curve.users[-1]))
        text = f"{curve.label} {final:,.0f}"
        text += f" +/- {half:,.0f}" if math.isfinite(half) else ""
        text += f" ({share:.0%} of a random policy"
        text += f", actual epsilon = {curve.epsilon:,.3g}" if curve.dearer else ""
        same = before is not None and _overlap(before, curve)
        parts.append(f"{text}{', not told apart from the one before' if same else ''})")
        before = curve
    return "From the least regret, " + "; ".join(parts) + "."


def _overlap(first: Curve, second: Curve) -> bool:
    """Whether the confidence intervals of two final regrets on one problem meet."""
    if first.cell.environment != second.cell.environment:
        return False
    reach = float(first.half_width[-1]) + float(second.half_width[-1])
    return abs(float(second.mean[-1] - first.mean[-1])) <= reach


class Sweep(NamedTuple):
    """The finding of a sweep, and its files: the main figure first, the report last."""

    finding: str
    paths: list[Path]


def curves_of(grid: Grid, store: Store) -> list[Curve]:
    """Return the curves of those cells that have run."""
    return _curves(store, summary.summarize(store.read(grid.cells)))


def _curves(store: Store, curves: list[Curve]) -> list[Curve]:
    if not curves:
        raise GridError(f"{store.path} has no record of this grid yet: run private-rl-gym sweep first.")
    return curves


def write_sweep(grid: Grid, store: Store, out: Path, again: str = "") -> Sweep:
    """Write all figures, numbers, tables and the report of a sweep.

    The report shows the command ``again``.
    """
    records = list(store.read(grid.cells))
    curves = _curves(store, summary.summarize(records))
    try:
        out.mkdir(parents=True, exist_ok=True)
        paths, pictures = [], []
        for name, figure in of_grid(grid, curves).items():
            paths += drawing.save(figure, out / name)
            svg = (out / f"{name}.svg").read_text("utf-8")
            pictures.append(Picture(name, str(figure.get_label()), caption_of(grid, name, curves), svg))
        captions = "\n".join(f"{picture.name}: {picture.finding}. {picture.caption}\n" for picture in pictures)
        (out / "captions.txt").write_text(captions, "utf-8")
        for kind, write in WRITERS.items():
            (out / f"table.{_ENDINGS[kind]}").write_text(write(curves, grid.table), "utf-8")
        failed = [(cell, text) for cell in grid.cells if (text := store.failure(cell)) is not None]
        page, said = out / "report.html", finding_of(grid, curves)
        page.write_text(report(grid, curves, records, said, pictures, failed, again), "utf-8")
    except OSError as error:
        raise GridError(f"{out} cannot be written to ({error.strerror or type(error).__name__}).") from None
    return Sweep(said, [*paths, page])
