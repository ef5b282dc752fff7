"""Figures of a sweep: colour-blind safe, the same in PNG, SVG and PDF."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from private_rl_gym.experiments.names import GridError
from private_rl_gym.experiments.summary import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from private_rl_gym.experiments.auditing.report import Report

__all__ = [
    "FIGURES",
    "FORMATS",
    "noise_figure",
    "privacy_figure",
    "regret_figure",
    "save",
    "svg",
    "tradeoff",
    "tradeoff_figure",
]

FORMATS = ("png", "svg", "pdf")
COLORS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#999999")
STYLES = ("-", "--", ":", "-.")


def _axes(title: str) -> tuple[Figure, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise GridError("Figures need matplotlib: run `pip install private-rl-gym[figures]`.") from None
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(_plain(title), fontsize=10)
    return figure, axes


def _plain(text: str) -> str:
    """Text as it is: a dollar begins no formula."""
    return text.replace("$", r"\$")


def _look(number: int) -> dict[str, Any]:
    return {"color": COLORS[number % len(COLORS)], "linestyle": STYLES[number // len(COLORS) % len(STYLES)]}


def regret_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Regret against users, mean and 95 % confidence band over seeds."""
    figure, axes = _axes(title)
    for number, curve in enumerate(curves):
        look, half = _look(number), np.nan_to_num(curve.half_width)
        axes.plot(curve.users, curve.mean, label=_plain(curve.label), **look)
        low = np.maximum(curve.mean - half, 0.0)
        axes.fill_between(curve.users, low, curve.mean + half, color=look["color"], alpha=0.18, lw=0)
    axes.set(xlabel="users", ylabel="regret, mean and 95 % confidence", yscale="log", xscale="log")
    axes.legend(frameon=False, fontsize=8)
    return figure


def privacy_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Final regret against the epsilon that is really promised; a cross where another was asked for."""
    figure, axes = _axes(title)
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(curve.label.split(", epsilon")[0], []).append(curve)
    for number, (name, members) in enumerate(groups.items()):
        look = _look(number)
        private = sorted((curve for curve in members if math.isfinite(curve.epsilon)), key=lambda curve: curve.epsilon)
        if not private:
            for curve in members:
                axes.axhline(curve.mean[-1], label=_plain(f"{name}, no promise"), **look)
            continue
        epsilons, regret = [curve.epsilon for curve in private], [curve.mean[-1] for curve in private]
        errors = [float(np.nan_to_num(curve.half_width[-1])) for curve in private]
        axes.errorbar(epsilons, regret, yerr=errors, marker="o", ms=4, capsize=2, label=_plain(name), **look)
        for curve in private:
            if curve.asked is not None and abs(curve.asked - curve.epsilon) > 1e-6 * curve.epsilon:
                axes.plot([curve.asked, curve.epsilon], [curve.mean[-1]] * 2, ":", color=look["color"], lw=1)
                axes.plot(curve.asked, curve.mean[-1], "x", color=look["color"], ms=6)
    axes.set(xlabel="true epsilon, against replacing one user (x: as printed)", ylabel="final regret", yscale="log")
    if any(math.isfinite(curve.epsilon) for curve in curves):
        axes.set_xscale("log")
    axes.legend(frameon=False, fontsize=8)
    return figure


def noise_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Noise in what is released, against users."""
    figure, axes = _axes(title)
    for number, curve in enumerate(curves):
        noise = curve.noise.mean(axis=0)
        if noise.any():
            axes.plot(curve.users, np.where(noise > 0.0, noise, np.nan), label=_plain(curve.label), **_look(number))
    axes.set(xlabel="users", ylabel="standard deviation of one released sum", xscale="log")
    if any(curve.noise.any() for curve in curves):
        axes.set_yscale("log")
        axes.legend(frameon=False, fontsize=8)
    else:
        axes.text(0.5, 0.5, "exact sums: no noise", transform=axes.transAxes, ha="center")
    return figure


def tradeoff_figure(report: Report) -> Figure:
    """Both kinds of error of whoever tells two users apart: what the claim leaves, and what attacks reached."""
    figure, axes = _axes(f"Audit: {report.claim}")
    tradeoff(axes, report)
    return figure


def tradeoff(axes: Any, report: Report) -> None:
    """The same, on axes of somebody's own."""
    from scipy.special import ndtr, ndtri

    from private_rl_gym.privacy.conversion import gaussian_mu

    claim = report.claim
    alarms = np.unique(np.concatenate([np.linspace(0.0, 1.0, 400), np.geomspace(1e-4, 1.0, 200)]))
    if math.isfinite(claim.epsilon):
        grown = math.exp(claim.epsilon)
        least = np.maximum(1.0 - claim.delta - grown * alarms, (1.0 - claim.delta - alarms) / grown)
        least = np.clip(least, 0.0, 1.0)
        axes.fill_between(alarms, 0.0, least, color="#d9d9d9", lw=0, label="ruled out by the claim")
        if claim.delta > 0.0 and any(result.gaussian is not None for result in report.results):
            curve = ndtr(ndtri(1.0 - alarms) - gaussian_mu(claim.epsilon, claim.delta))
            axes.plot(alarms, curve, ":", color="#555555", lw=1.2, label="Gaussian noise as stated")
    axes.plot([0.0, 1.0], [1.0, 0.0], color="#bbbbbb", lw=0.8, label="guessing")
    for number, result in enumerate(report.results):
        look, found = _look(number + 1), result.finding
        if found is None:
            continue
        axes.plot(found.curve[:, 0], found.curve[:, 1], lw=1.2, label=_plain(result.said), **look)
        alarm, miss, most_alarms, most_misses = (found.event if result.proved else found.best).rates
        axes.plot([alarm, most_alarms], [miss, miss], color=look["color"], lw=2.5)
        axes.plot([alarm, alarm], [miss, most_misses], color=look["color"], lw=2.5)
        axes.plot(alarm, miss, "o", color=look["color"], ms=5)
    axes.set(xlabel="false alarms: one user taken for the other", ylabel="misses", xlim=(-0.01, 1.0), ylim=(-0.01, 1.0))
    axes.legend(frameon=False, fontsize=8, loc="upper right")


FIGURES: dict[str, Callable[[Sequence[Curve], str], Figure]] = {
    "regret": regret_figure,
    "privacy": privacy_figure,
    "noise": noise_figure,
}
"""What can be drawn, by name."""


def save(figure: Figure, stem: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure in every format, without a date in it: the same sweep gives the same files."""
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
    """A figure as text, to stand inside a page."""
    from matplotlib import rc_context

    out = io.BytesIO()
    with rc_context({"svg.hashsalt": "private_rl_gym", "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue().decode()[out.getvalue().decode().index("<svg") :]
