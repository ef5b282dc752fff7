"""Axes, labels and files of figures.

They are readable on light and dark pages, and the same in PNG, SVG and PDF.
"""

from __future__ import annotations

import io
import itertools
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from private_rl_gym.lab.registry import EXACT, INK, GridError
from private_rl_gym.lazy import install

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "COLORS",
    "EPSILON",
    "FAINT",
    "FORMATS",
    "INK",
    "RANDOM",
    "finish",
    "in_lines",
    "in_the_dark",
    "label_ends",
    "look_of",
    "new_axes",
    "new_panels",
    "plain_text",
    "save",
    "say",
    "svg",
]

FORMATS = ("png", "svg", "pdf")

EPSILON, RANDOM = "actual epsilon (smaller is more private)", "random policy"
"""The label of axes of epsilon, and the name of the curve of random actions."""

FAINT, PAPER = "#767676", "#ffffff"
DARK = {INK: "#e6e6e6", FAINT: "#9d9d9d", PAPER: "#131416"}
"""Colours that take the place of these on a dark page; all others become lighter."""

LIGHTER = 0.35
"""Share of white in a colour on a dark page."""

COLORS = (INK, "#1f77c0", "#d55e00", EXACT, "#c2569b", "#8b6ad8", "#a8791c", "#0f95a8")
STYLES = ("-", "--", ":", "-.")
WIDEST = 34
"""Letters of a label in one line."""
TOGETHER = 0.01
"""Ends of curves that are not farther apart, as a share of the height, are seen as one."""


def new_axes(title: str = "") -> tuple[Figure, Any]:
    """Return a figure with one pair of axes."""
    figure, (axes,) = new_panels([title], columns=1, size=(8.6, 4.8))
    return figure, axes


def new_panels(titles: Sequence[str], columns: int, size: tuple[float, float]) -> tuple[Figure, list[Any]]:
    """Return a figure with one panel for each title, row by row.

    Each panel has this size in inches.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise GridError(f"Figures need matplotlib: run {install('figures')}.") from None
    rows = -(-len(titles) // columns)
    figure = Figure(figsize=(columns * size[0], rows * size[1]), layout="constrained", facecolor=PAPER)
    panels = [figure.add_subplot(rows, columns, 1 + number) for number in range(len(titles))]
    for axes, title in zip(panels, titles, strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(plain_text(title), fontsize=10)
    return figure, panels


def say(figure: Figure, finding: str, note: str = "") -> Figure:
    """Give a figure its finding, as the alternative text of its files.

    Args:
        figure: The figure.
        finding: The finding, as a sentence without its full stop.
        note: What is drawn, such as the number of seeds and the meaning of bands. It is written below the axes.
    """
    figure.set_label(finding)
    if note:
        text = "\n".join(in_lines(plain_text(note), int(13.0 * figure.get_figwidth())))
        figure.supxlabel(text, x=0.01, ha="left", fontsize=8.5, color=FAINT)
    return figure


def plain_text(text: str) -> str:
    """Text for matplotlib in which a dollar sign does not start a formula."""
    return text.replace("$", r"\$")


def look_of(number: int) -> dict[str, Any]:
    """Return the colour and line style of a numbered curve without colours."""
    return {"color": COLORS[number % len(COLORS)], "linestyle": STYLES[number // len(COLORS) % len(STYLES)]}


def finish(axes: Any, *, reveal: bool = True) -> None:
    """Format the axes: plain numbers, faint grid lines, no curve hidden.

    Args:
        axes: Axes with limits.
        reveal: Whether a curve that another covers becomes a broad band below it.
    """
    from matplotlib.ticker import AutoLocator, LogLocator, NullLocator

    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log":
            decades = np.log10(limits[1] / limits[0])
            steps = (1.0,) if decades > 2.5 else (1.0, 2.0, 5.0)
            axis.set_major_locator(LogLocator(subs=steps) if decades > 0.7 else AutoLocator())
            axis.set_minor_locator(NullLocator())
        axis.set_major_formatter("{x:,.10g}")
    axes.grid(axis="y", color=FAINT, alpha=0.25, lw=0.6)
    axes.set_axisbelow(True)
    if reveal:
        _reveal(axes)


def _reveal(axes: Any, near: float = 0.012) -> None:
    """Draw a curve that another covers as a broad band below it."""
    curves = []
    for line in axes.lines:
        if line.get_linestyle() == "None" or len(line.get_xdata()) < 3:
            continue
        places = (axes.transScale + axes.transLimits).transform(line.get_xydata())
        curves.append((line, places[np.isfinite(places).all(axis=1)]))
    for number, (line, below) in enumerate(curves):
        for _, above in curves[number + 1 :]:
            inside = (below[:, 0] >= max(0.0, above[0, 0])) & (below[:, 0] <= min(1.0, above[-1, 0]))
            apart = np.abs(np.interp(below[inside, 0], above[:, 0], above[:, 1]) - below[inside, 1])
            if len(apart) > 2 and (apart < near).mean() > 0.75:
                line.set(linewidth=6.0, linestyle="-", alpha=0.6 * (line.get_alpha() or 1.0), zorder=1.5)
                break


def label_ends(axes: Any, ends: Sequence[tuple[float, str, str]], apart: float = 0.055) -> None:
    """Write names at the right ends of curves, moved apart where they would touch.

    Args:
        axes: Axes with limits.
        ends: The height of each end, its name and its colour.
        apart: Least distance between lines of text, as a share of the height of the axes; less if there are many.
    """
    low, high = axes.get_ylim()
    scale = np.log if axes.get_yscale() == "log" else np.asarray
    low, high = float(scale(low)), float(scale(high))

    def share(end: tuple[float, str, str]) -> float:
        if axes.get_yscale() == "log" and end[0] <= 0.0:
            return 0.0
        return min(1.0, max(0.0, (float(scale(end[0])) - low) / (high - low)))

    written = {end: "\n".join(in_lines(end[1])) for end in ends}
    apart = min(apart, 1.0 / max(1, sum(text.count("\n") + 1 for text in written.values())))
    ordered: list[tuple[float, str, str]] = []
    group: list[tuple[float, str, str]] = []  # ends that are one to the eye keep the order in which they came
    for end in sorted(ends):
        if group and share(end) - share(min(group)) > TOGETHER:
            ordered, group = ordered + group, []
        group = sorted([*group, end], key=ends.index, reverse=True)
    ordered += group
    rows = [written[end].count("\n") + 1 for end in ordered]
    gaps = [apart * (first + second) / 2 for first, second in itertools.pairwise(rows)]
    places = _spread([share(end) for end in ordered], gaps)
    size = 8.5 if apart > 0.045 else 7.5
    for place, end in zip(places, ordered, strict=True):
        axes.annotate(
            plain_text(written[end]),
            xy=(1.0, share(end)),
            xytext=(1.03, place),
            xycoords="axes fraction",
            color=end[2],
            fontsize=size,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": end[2],
                "lw": 0.6,
                "shrinkA": 2,
                "shrinkB": 0,
                "relpos": (0.0, 0.5),
            },
        )


def _spread(wanted: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Return places in [0, 1] that are near the wanted ones and apart.

    By least squares, in the same order.
    """
    offsets = [0.0, *itertools.accumulate(gaps)]
    blocks: list[tuple[float, int]] = []  # means, and how many share each
    for place, offset in zip(wanted, offsets, strict=False):
        mean, count = place - offset, 1
        while blocks and blocks[-1][0] >= mean:
            below, others = blocks.pop()
            mean, count = (mean * count + below * others) / (count + others), count + others
        blocks.append((mean, count))
    highest = max(0.0, 1.0 - offsets[-1])
    starts = [min(max(mean, 0.0), highest) for mean, count in blocks for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=False)]


def in_lines(text: str, letters: int = WIDEST) -> list[str]:
    """Return a text in lines.

    No line ends between a name, its sign and its value, or before a percent sign.
    """
    joined = text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}").replace(" %", "\N{NO-BREAK SPACE}%")
    return [
        line.replace("\N{NO-BREAK SPACE}", " ") for line in textwrap.wrap(joined, letters, break_on_hyphens=False)
    ] or [""]


def _dress(figure: Figure) -> None:
    """Give ink to everything that has no colour."""
    from matplotlib.text import Text

    for axes in figure.axes:
        axes.tick_params(which="both", color=INK, labelcolor=INK)
        for spine in axes.spines.values():
            spine.set_edgecolor(INK)
    for text in figure.findobj(Text):
        if text.get_color() == "black":
            text.set_color(INK)


def save(figure: Figure, stem: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure in every format.

    Files hold no dates, so that the same sweep gives the same files.

    Text in PDF files is in Type 42 fonts: publishers refuse matplotlib's usual Type 3.
    """
    from matplotlib import rc_context

    paths = []
    title = {"Title": str(figure.get_label())} if figure.get_label() else {}
    dates: dict[str, dict[str, Any]] = {"png": {}, "pdf": {"CreationDate": None}}
    _dress(figure)
    for kind in formats:
        path = stem.with_suffix(f".{kind}")
        if kind == "svg":
            path.write_text(_svg(figure), "utf-8")
        else:
            with rc_context({"pdf.fonttype": 42}):
                figure.savefig(path, dpi=130, metadata=title | dates.get(kind, {}))
        paths.append(path)
    return paths


def svg(figure: Figure) -> str:
    """Return a figure as SVG text, to be embedded in a page."""
    text = _svg(figure)
    return text[text.index("<svg") :]


def in_the_dark(color: str) -> str:
    """Return the colour that takes the place of this one on a dark page."""
    if color in DARK:
        return DARK[color]
    parts = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(part + LIGHTER * (255 - part)):02x}" for part in parts)


def _svg(figure: Figure) -> str:
    """Write a figure as SVG that follows the colours of its page."""
    from matplotlib import rc_context

    _dress(figure)
    title = {"Title": str(figure.get_label())} if figure.get_label() else {}
    out = io.BytesIO()
    with rc_context({"svg.hashsalt": "private_rl_gym", "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", metadata={"Date": None, **title})
    text = out.getvalue().decode()
    found = sorted(set(re.findall(r"(fill|stroke): (#[0-9a-f]{6})", text)))
    rules = "".join(
        f'[style*="{part}: {color}"] {{ {part}: {in_the_dark(color)} !important }} ' for part, color in found
    )
    start = text.index(">", text.index("<svg")) + 1
    return f"{text[:start]}\n <style>@media (prefers-color-scheme: dark) {{ {rules}}}</style>{text[start:]}"
