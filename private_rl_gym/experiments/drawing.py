"""Axes, looks, labels and files of figures: colour-blind safe, the same in PNG, SVG and PDF."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_rl_gym.experiments.names import GridError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLORS", "FORMATS", "label_ends", "look_of", "new_axes", "new_panels", "plain_text", "save", "svg"]

FORMATS = ("png", "svg", "pdf")
COLORS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#999999")
STYLES = ("-", "--", ":", "-.")


def new_axes(title: str) -> tuple[Figure, Any]:
    """A figure with one pair of axes."""
    figure, (axes,) = new_panels([title], columns=1, size=(8.0, 4.6))
    return figure, axes


def new_panels(titles: Sequence[str], columns: int, size: tuple[float, float]) -> tuple[Figure, list[Any]]:
    """A figure with axes for each title, row by row, each of this size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise GridError("Figures need matplotlib: run `pip install private-rl-gym[figures]`.") from None
    rows = -(-len(titles) // columns)
    figure = Figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
    panels = [figure.add_subplot(rows, columns, 1 + number) for number in range(len(titles))]
    for axes, title in zip(panels, titles, strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(plain_text(title), fontsize=10)
    return figure, panels


def plain_text(text: str) -> str:
    """Text for matplotlib in which a dollar sign does not start a formula."""
    return text.replace("$", r"\$")


def look_of(number: int) -> dict[str, Any]:
    """Colour and line style of the curve with this number."""
    return {"color": COLORS[number % len(COLORS)], "linestyle": STYLES[number // len(COLORS) % len(STYLES)]}


def label_ends(axes: Any, ends: Sequence[tuple[float, str, str]], apart: float = 0.055) -> None:
    """Write names at the right ends of curves, moved apart where they would touch.

    Args:
        axes: Axes with limits, linear in y.
        ends: The height of each end, its name and its colour.
        apart: Least distance between names, as a share of the height of the axes.
    """
    low, high = axes.get_ylim()
    ordered: list[tuple[float, str, str]] = []
    group: list[tuple[float, str, str]] = []  # ends that are close to each other keep the order in which they came
    for end in sorted(ends):
        if group and end[0] - max(group)[0] > apart * (high - low):
            ordered, group = ordered + group, []
        group = sorted([*group, end], key=ends.index, reverse=True)
    ordered += group
    places: list[float] = []
    for height, *_ in ordered:
        place = (height - low) / (high - low)
        places.append(max(place, places[-1] + apart) if places else place)
    for number in range(len(places) - 1, -1, -1):  # those that left the axes come back down
        ceiling = 1.0 if number == len(places) - 1 else places[number + 1] - apart
        places[number] = min(places[number], ceiling)
    for place, (_, name, color) in zip(places, ordered, strict=True):
        axes.text(1.015, place, plain_text(name), transform=axes.transAxes, color=color, fontsize=8.5, va="center")


def save(figure: Figure, stem: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure in every format, without dates, so that the same sweep gives the same files."""
    from matplotlib import rc_context

    paths = []
    dates: dict[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with rc_context({"svg.hashsalt": "private_rl_gym"}):
        for kind in formats:
            path = stem.with_suffix(f".{kind}")
            figure.savefig(path, dpi=130, metadata=dates[kind])
            paths.append(path)
    return paths


def svg(figure: Figure) -> str:
    """A figure as SVG text, to be embedded in a page."""
    from matplotlib import rc_context

    out = io.BytesIO()
    with rc_context({"svg.hashsalt": "private_rl_gym", "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue().decode()[out.getvalue().decode().index("<svg") :]
