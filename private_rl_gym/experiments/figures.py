"""Figures of a sweep."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.experiments.bounds import lower_bound
from private_rl_gym.experiments.config import curve_name
from private_rl_gym.experiments.drawing import label_ends, look_of, new_axes, plain_text
from private_rl_gym.experiments.frontier import frontier_figure
from private_rl_gym.experiments.grid import Grid
from private_rl_gym.experiments.summary import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = [
    "FIGURES",
    "against_figure",
    "mistakes_figure",
    "noise_figure",
    "of_grid",
    "privacy_figure",
    "regret_figure",
    "share_figure",
]


def regret_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Regret against users, mean and 95 % confidence band over seeds."""
    figure, axes = new_axes(title)
    for number, curve in enumerate(curves):
        look, half = look_of(number), np.nan_to_num(curve.half_width)
        axes.plot(curve.users, curve.mean, label=plain_text(curve.label), **look)
        low = np.maximum(curve.mean - half, 0.0)
        axes.fill_between(curve.users, low, curve.mean + half, color=look["color"], alpha=0.18, lw=0)
    axes.set(xlabel="users", ylabel="regret, mean and 95 % confidence", yscale="log", xscale="log")
    axes.legend(frameon=False, fontsize=8)
    return figure


def privacy_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Final regret against the true epsilon; a cross marks the requested epsilon where it differs."""
    figure, axes = new_axes(title)
    groups = _grouped(curves, "boundary.epsilon")
    for number, (name, members) in enumerate(groups.items()):
        look = look_of(number)
        private = sorted((curve for curve in members if math.isfinite(curve.epsilon)), key=lambda curve: curve.epsilon)
        if not private:
            for curve in members:
                axes.axhline(curve.mean[-1], label=plain_text(f"{name}, no promise"), **look)
            continue
        epsilons, regret = [curve.epsilon for curve in private], [curve.mean[-1] for curve in private]
        errors = [float(np.nan_to_num(curve.half_width[-1])) for curve in private]
        axes.errorbar(epsilons, regret, yerr=errors, marker="o", ms=4, capsize=2, label=plain_text(name), **look)
        for curve in private:
            if curve.asked is not None and abs(curve.asked - curve.epsilon) > 1e-6 * curve.epsilon:
                axes.plot([curve.asked, curve.epsilon], [curve.mean[-1]] * 2, ":", color=look["color"], lw=1)
                axes.plot(curve.asked, curve.mean[-1], "x", color=look["color"], ms=6)
    axes.set(xlabel="true epsilon, against replacing one user (x: as printed)", ylabel="final regret", yscale="log")
    if any(math.isfinite(curve.epsilon) for curve in curves):
        axes.set_xscale("log")
    axes.legend(frameon=False, fontsize=8)
    return figure


def share_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Reward of a user as a share of the best possible, against users: mean over seeds, with the range."""
    figure, axes = new_axes(title)
    ends = []
    for number, curve in enumerate(curves):
        places, shares = _shares(curve)
        look = look_of(number)
        axes.plot(places, shares.mean(axis=0), **look)
        axes.fill_between(places, shares.min(axis=0), shares.max(axis=0), color=look["color"], alpha=0.12, lw=0)
        ends.append((float(shares[:, -1].mean()), curve.label, look["color"]))
    blind = 1.0 - curves[0].blind / curves[0].optimum
    axes.axhline(blind, color="#999999", ls=":")
    ends.append((blind, "never learning", "#777777"))
    axes.set(xscale="log", xlabel="users so far", ylabel="reward of a user, as a share of the best possible")
    axes.set(xlim=(max(1, curves[0].users[-1] // 128), curves[0].users[-1]), ylim=(0.0, 1.03))
    axes.yaxis.set_major_formatter("{x:.0%}")
    label_ends(axes, ends)
    return figure


def _shares(curve: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Numbers of users, [point], and the share of the best possible that users around each get, [seed, point].

    A point is the mean over all users of a stretch that doubles the number of users, because those of one batch explore
    with different policies.
    """
    wanted = curve.users[-1] / 2.0 ** np.arange(int(math.log2(curve.users[-1])), -1, -1)
    marks = np.unique(np.searchsorted(curve.users, wanted))
    users = np.append(0, curve.users[marks])
    regret = np.concatenate([np.zeros((curve.seeds, 1)), curve.regret[:, marks]], axis=1)
    places = np.sqrt(np.maximum(users[:-1], 1.0) * users[1:])
    places[-1] = users[-1]
    return places, 1.0 - np.diff(regret, axis=1) / np.diff(users) / curve.optimum


def noise_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Noise in one released sum, against users."""
    figure, axes = new_axes(title)
    for number, curve in enumerate(curves):
        noise = curve.noise.mean(axis=0)
        if noise.any():
            axes.plot(
                curve.users, np.where(noise > 0.0, noise, np.nan), label=plain_text(curve.label), **look_of(number)
            )
    axes.set(xlabel="users", ylabel="standard deviation of one released sum", xscale="log")
    if any(curve.noise.any() for curve in curves):
        axes.set_yscale("log")
        axes.legend(frameon=False, fontsize=8)
    else:
        axes.text(0.5, 0.5, "exact sums: no noise", transform=axes.transAxes, ha="center")
    return figure


def against_figure(curves: Sequence[Curve], title: str, x: str, panels: str | None = None) -> Figure:
    """Final regret against the axis ``x``, mean and range over seeds, with a panel for each value of ``panels``."""
    from matplotlib.figure import Figure

    values = sorted({curve.axes[panels] for curve in curves if panels in curve.axes}) if panels is not None else []
    figure = Figure(figsize=(max(8.0, 4.6 * len(values)), 4.6), layout="constrained")
    parts = np.atleast_1d(figure.subplots(1, max(1, len(values)), sharey=True))
    looks = {name: look_of(number) for number, name in enumerate(dict.fromkeys(_without(c, x, panels) for c in curves))}
    for axes, value in zip(parts, values or [None], strict=True):
        here = [c for c in curves if x in c.axes and (value is None or c.axes.get(str(panels), value) == value)]
        for name, look in looks.items():
            line = sorted((c for c in here if _without(c, x, panels) == name), key=lambda c: c.axes[x])
            places, last = [c.axes[x] for c in line], [c.regret[:, -1] for c in line]
            axes.plot(places, [row.mean() for row in last], marker="o", ms=4, label=plain_text(name), **look)
            lowest, highest = [row.min() for row in last], [row.max() for row in last]
            axes.fill_between(places, lowest, highest, alpha=0.15, lw=0, color=look["color"])
        blind = sorted({c.axes[x]: c.blind * c.users[-1] for c in here}.items())
        axes.plot(*zip(*blind, strict=True), ":", color="#999999", label="actions at random")
        axes.set(xscale="log", yscale="log", xlabel=x.rpartition(".")[2])
        about = title if value is None else f"{str(panels).rpartition('.')[2]} = {value:g}"
        axes.set_title(plain_text(about), fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    parts[0].set_ylabel("final regret")
    parts[-1].legend(frameon=False, fontsize=8)
    return figure


def _without(curve: Curve, *paths: str | None) -> str:
    """A curve's name without these axes."""
    return curve_name(curve.base, {path: value for path, value in curve.axes.items() if path not in paths})


def _grouped(curves: Sequence[Curve], axis: str) -> dict[str, list[Curve]]:
    """Curves that differ in nothing but this axis, by their common name."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(curve.named(without=axis), []).append(curve)
    return groups


def mistakes_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Number of users whose policy was a mistake, against epsilon, with the lower bound where there is one."""
    figure, axes = new_axes(title)
    counted = [curve for curve in curves if curve.mistakes is not None and math.isfinite(curve.epsilon)]
    for number, (name, members) in enumerate(_grouped(counted, "boundary.epsilon").items()):
        look, line = look_of(number + 1), sorted(members, key=lambda curve: curve.epsilon)
        epsilons, rows = [curve.epsilon for curve in line], [np.asarray(curve.mistakes) for curve in line]
        axes.plot(epsilons, [row.mean() for row in rows], marker="o", label=plain_text(name), **look)
        lowest, highest = [row.min() for row in rows], [row.max() for row in rows]
        axes.fill_between(epsilons, lowest, highest, alpha=0.2, lw=0, color=look["color"])
    bounds = {curve.epsilon: lower_bound(curve.config, curve.epsilon) for curve in counted}
    known = sorted((epsilon, value) for epsilon, value in bounds.items() if value is not None)
    if known:
        axes.plot(*zip(*known, strict=True), "k--", label="no private agent needs fewer (PUCB, lemma 10)")
    axes.axhline(max(int(curve.users[-1]) for curve in counted), color="#999999", ls=":", label="all users there were")
    axes.set(xscale="log", yscale="log", xlabel="true epsilon", ylabel="users without a good policy")
    axes.legend(frameon=False, fontsize=8)
    return figure


FIGURES: dict[str, Callable[[Sequence[Curve], str], Figure]] = {
    "regret": regret_figure,
    "privacy": privacy_figure,
    "noise": noise_figure,
}
"""The figures of every grid, by name."""


def of_grid(grid: Grid, curves: Sequence[Curve]) -> dict[str, Figure]:
    """All figures of a grid by name, the main figure first."""
    if grid.figure.get("main") == "frontier":  # the others would have a hundred curves each
        return {"frontier": frontier_figure(curves, grid.title)}
    figures = {}
    if grid.figure.get("main") == "share":
        figures["share"] = share_figure(curves, grid.title)
    if "x" in grid.figure:
        figures["against"] = against_figure(curves, grid.title, grid.figure["x"], grid.figure.get("panels"))
    if any(curve.mistakes is not None for curve in curves):
        figures["mistakes"] = mistakes_figure(curves, grid.title)
    return figures | {name: draw(curves, grid.title) for name, draw in FIGURES.items()}
