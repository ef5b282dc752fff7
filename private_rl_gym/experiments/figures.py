"""Figures of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.experiments.bounds import lower_bound
from private_rl_gym.experiments.config import curve_name
from private_rl_gym.experiments.drawing import FAINT, INK, finish, label_ends, new_axes, new_panels, say
from private_rl_gym.experiments.finding import (
    finding,
    finding_against,
    finding_at_equal_epsilon,
    finding_of_epsilon,
    finding_of_mistakes,
    finding_of_noise,
    finding_of_shares,
)
from private_rl_gym.experiments.frontier import frontier_figure, problem_of
from private_rl_gym.experiments.glance import glance_figure
from private_rl_gym.experiments.grid import Grid
from private_rl_gym.experiments.looks import hides, looks
from private_rl_gym.experiments.summary import Curve
from private_rl_gym.experiments.theorems import draw_bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = [
    "against_figure",
    "measured",
    "mistakes_figure",
    "noise_figure",
    "of_grid",
    "privacy_figure",
    "regret_figure",
    "return_figure",
    "share_figure",
]


def regret_figure(curves: Sequence[Curve], title: str, *, bounds: bool = False) -> Figure:
    """Regret against users, mean and 95 % confidence band over seeds; with the bounds of theorems, if wanted."""
    figure, axes = new_axes(title)
    ends = []
    for curve, look in zip(curves, looks(curves), strict=True):
        half = np.nan_to_num(curve.half_width)
        axes.plot(curve.users, curve.mean, **look)
        low = np.maximum(curve.mean - half, 0.0)
        axes.fill_between(curve.users, low, curve.mean + half, color=look["color"], alpha=0.08, lw=0)
        ends.append((float(curve.mean[-1]), curve.label, look["color"]))
    last = max(int(curve.users[-1]) for curve in curves)
    for problem, blind in _blind(curves).items():
        axes.plot([1, last], [blind, blind * last], ":", color=FAINT, lw=1.4)
        ends.append((blind * last, f"never learning{problem}", FAINT))
    if bounds:
        ends += draw_bounds(axes, curves, [look["color"] for look in looks(curves)])
    shown = [curve.mean[curve.users >= last / 1000.0] for curve in curves]
    lowest = min((part[part > 0.0].min() for part in shown if (part > 0.0).any()), default=1.0)
    axes.set(xlabel="users", ylabel=f"regret of all users, {_spread(curves)}", yscale="log", xscale="log")
    axes.set(xlim=(max(1, last / 1000), max(last, 2)), ylim=(lowest / 1.3, 1.3 * max(height for height, *_ in ends)))
    finish(axes)
    label_ends(axes, ends)
    return say(figure, finding(curves))


def _spread(curves: Sequence[Curve]) -> str:
    """The description of lines and bands."""
    return "mean and 95 % confidence" if any(curve.seeds > 1 for curve in curves) else "one run"


def _blind(curves: Sequence[Curve]) -> dict[str, float]:
    """Loss of a user under random actions, by the end of its label: the problem, if there are several."""
    found = {problem_of(curve): curve.blind for curve in curves}
    return {"" if len(found) == 1 else f" ({problem})": blind for problem, blind in found.items()}


def return_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Return of the policy that a user gets against users, mean and 95 % confidence band over seeds."""
    figure, axes = new_axes(title)
    ends = []
    for curve, look in zip(curves, looks(curves), strict=True):
        half = np.nan_to_num(curve.half_width)
        axes.plot(curve.users, curve.mean, marker="o", ms=3, **look)
        axes.fill_between(curve.users, curve.mean - half, curve.mean + half, color=look["color"], alpha=0.08, lw=0)
        ends.append((float(curve.mean[-1]), curve.label, look["color"]))
    ends += _draw_random(axes, curves)
    last = max(int(curve.users[-1]) for curve in curves)
    axes.set(xlabel="users", ylabel=f"return of a user, {_spread(curves)}", xscale="log")
    axes.set(xlim=(max(1, last / 1000), max(last, 2)))
    finish(axes)
    label_ends(axes, ends)
    return say(figure, finding(curves))


def _draw_random(axes: Any, curves: Sequence[Curve]) -> list[tuple[float, str, str]]:
    """Draw the loss or return of actions at random, a line for each problem; return ends, names and colours."""
    lost = curves[0].measure == "regret"
    last = max(int(curve.users[-1]) for curve in curves)
    ends = []
    for problem, blind in _blind(curves).items():
        height = blind * last if lost else blind
        axes.axhline(height, ls=":", color=FAINT, lw=1.4)
        ends.append((height, f"{'never learning' if lost else 'actions at random'}{problem}", FAINT))
    return ends


def privacy_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Final regret or return against the true epsilon; a cross marks the requested epsilon where it differs."""
    figure, axes = new_axes(title)
    groups, ends = _grouped(curves, "boundary.epsilon"), []
    look_by_label = {curve.label: look for curve, look in zip(curves, looks(curves), strict=True)}
    for name, members in groups.items():
        look = look_by_label[members[0].label] | {"alpha": 1.0}
        private = sorted((curve for curve in members if hides(curve)), key=lambda curve: curve.epsilon)
        if not private:
            for curve in members:
                axes.axhline(curve.mean[-1], **look)
                ends.append((float(curve.mean[-1]), f"{curve.label}, no promise", look["color"]))
            continue
        epsilons, regret = [curve.epsilon for curve in private], [curve.mean[-1] for curve in private]
        errors = [float(np.nan_to_num(curve.half_width[-1])) for curve in private]
        axes.errorbar(epsilons, regret, yerr=errors, marker="o", ms=5, capsize=2, elinewidth=0.8, **look)
        ends.append((float(regret[-1]), name, look["color"]))
        for curve in private:
            if curve.asked is not None and abs(curve.asked - curve.epsilon) > 1e-6 * curve.epsilon:
                axes.plot([curve.asked, curve.epsilon], [curve.mean[-1]] * 2, ":", color=look["color"], lw=1)
                axes.plot(curve.asked, curve.mean[-1], "x", color=look["color"], ms=6)
    ends += _draw_random(axes, curves)
    measure = curves[0].measure
    crosses = " (x: as printed)" if any(line.get_marker() == "x" for line in axes.lines) else ""
    axes.set(xlabel=f"true epsilon, against replacing one user{crosses}", ylabel=f"final {measure}")
    if measure == "regret":
        axes.set_yscale("log")
    if any(map(hides, curves)):
        axes.set_xscale("log")
    else:
        axes.set_xticks([])
    finish(axes)
    _tick(axes, {curve.epsilon for curve in curves if hides(curve)})
    label_ends(axes, ends)
    return say(figure, finding_of_epsilon(curves, groups))


def _tick(axes: Any, epsilons: AbstractSet[float]) -> None:
    """Ticks at the values of epsilon themselves, where they are few."""
    rounded = sorted({float(f"{epsilon:.2g}") for epsilon in epsilons})
    apart = [second / first for first, second in pairwise(rounded)]
    if 1 <= len(rounded) <= 10 and min(apart, default=2.0) > 1.2:
        axes.set_xticks(rounded, [f"{epsilon:,g}" for epsilon in rounded])


def share_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Reward of a user as a share of the best possible, against users: mean over seeds, with the range."""
    figure, axes = new_axes(title)
    ends: list[tuple[float, str, str]] = []
    for curve, look in zip(curves, looks(curves), strict=True):
        places, shares = _shares(curve)
        axes.plot(places, shares.mean(axis=0), **look)
        axes.fill_between(places, shares.min(axis=0), shares.max(axis=0), color=look["color"], alpha=0.08, lw=0)
        ends.append((float(shares[:, -1].mean()), curve.label, look["color"]))
    text = finding_of_shares(curves, [share for share, *_ in ends])
    for problem, blind in {_of(c, curves): 1.0 - c.blind / c.optimum for c in curves}.items():
        axes.axhline(blind, color=FAINT, ls=":", lw=1.4)
        ends.append((blind, f"never learning{problem}", FAINT))
    last = max(int(curve.users[-1]) for curve in curves)
    axes.set(xscale="log", xlabel="users so far", ylabel="reward of a user, as a share of the best possible")
    axes.set(xlim=(max(1, last // 128), max(last, 2)), ylim=(min(0.0, *(end[0] for end in ends)), 1.03))
    finish(axes)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100.0 * share:.0f} %")
    label_ends(axes, ends)
    return say(figure, text)


def _of(curve: Curve, curves: Sequence[Curve]) -> str:
    """The end of a label that names a curve's problem, where there are several."""
    return f" ({problem_of(curve)})" if len({problem_of(other) for other in curves}) > 1 else ""


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
    ends = []
    for curve, look in zip(curves, looks(curves), strict=True):
        noise = curve.noise.mean(axis=0)
        if noise.any():
            axes.plot(curve.users, np.where(noise > 0.0, noise, np.nan), **look)
            ends.append((float(noise[-1]), curve.label, look["color"]))
    axes.set(xlabel="users", ylabel="standard deviation of one released sum", xscale="log")
    noisy = [curve.users[curve.noise.mean(axis=0) > 0.0] for curve in curves]
    start = min((int(users[0]) for users in noisy if len(users)), default=1)
    axes.set_xlim(start, max(start + 1, *(int(curve.users[-1]) for curve in curves)))
    if ends:
        axes.set_yscale("log")
    else:
        axes.set_yticks([])
    finish(axes)
    label_ends(axes, ends)
    return say(figure, finding_of_noise(curves))


def against_figure(curves: Sequence[Curve], title: str, x: str, panels: str | None = None) -> Figure:
    """Final regret or return against the axis ``x``, mean and range over seeds, in a panel for each of ``panels``."""
    lost = curves[0].measure == "regret"
    values = sorted({curve.axes[panels] for curve in curves if panels in curve.axes}) if panels is not None else []
    titles = [f"{str(panels).rpartition('.')[2]} = {value:g}" for value in values] or [title]
    figure, parts = new_panels(titles, len(titles), (max(4.6, 8.6 / len(titles)), 4.8))
    look_by_name: dict[str, dict[str, Any]] = {}
    for curve, look in zip(curves, looks(curves), strict=True):
        look_by_name.setdefault(_without(curve, x, panels), look | {"alpha": 1.0})
    counts: dict[tuple[str, tuple[Any, Any]], float] = {}
    ends: list[tuple[float, str, str]] = []
    for axes, value in zip(parts, values or [None], strict=True):
        here = [c for c in curves if x in c.axes and (value is None or c.axes.get(str(panels), value) == value)]
        ends = []
        for name, look in look_by_name.items():
            line = sorted((c for c in here if _without(c, x, panels) == name), key=lambda c: c.axes[x])
            if not line:
                continue
            places, last = [c.axes[x] for c in line], [c.values[:, -1] for c in line]
            axes.plot(places, [row.mean() for row in last], marker="o", ms=4, **look)
            lowest, highest = [row.min() for row in last], [row.max() for row in last]
            axes.fill_between(places, lowest, highest, alpha=0.12, lw=0, color=look["color"])
            ends.append((float(last[-1].mean()), name, look["color"]))
            compared = [c for c in line if hides(c) or not any(map(hides, here))]
            counts |= {(name, (value, c.axes[x])): float(c.mean[-1]) * (1 if lost else -1) for c in compared}
        blind = sorted({c.axes[x]: c.blind * (c.users[-1] if lost else 1) for c in here}.items())
        axes.plot(*zip(*blind, strict=True), ":", color=FAINT)
        ends.append((blind[-1][1], "never learning" if lost else "actions at random", FAINT))
        axes.set(xscale="log", yscale="log" if lost else "linear", xlabel=x.rpartition(".")[2])
    lows, highs = zip(*(axes.get_ylim() for axes in parts), strict=True)
    for axes in parts:
        axes.set_ylim(min(lows), max(highs))
        finish(axes)
    label_ends(parts[-1], ends)
    parts[0].set_ylabel(f"final {curves[0].measure}, mean and range")
    return say(figure, finding_against(counts, x.rpartition(".")[2], "loses least" if lost else "gets most"))


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
    counted = [curve for curve in curves if curve.mistakes is not None and hides(curve)]
    groups, ends = _grouped(counted, "boundary.epsilon"), []
    look_by_label = {curve.label: look for curve, look in zip(counted, looks(counted), strict=True)}
    for name, members in groups.items():
        look, line = look_by_label[members[0].label] | {"alpha": 1.0}, sorted(members, key=lambda curve: curve.epsilon)
        epsilons, rows = [curve.epsilon for curve in line], [np.asarray(curve.mistakes) for curve in line]
        axes.plot(epsilons, [row.mean() for row in rows], marker="o", **look)
        lowest, highest = [row.min() for row in rows], [row.max() for row in rows]
        axes.fill_between(epsilons, lowest, highest, alpha=0.12, lw=0, color=look["color"])
        ends.append((float(rows[-1].mean()), name, look["color"]))
    bounds = {curve.epsilon: lower_bound(curve.config, curve.epsilon) for curve in counted}
    known = sorted((epsilon, value) for epsilon, value in bounds.items() if value is not None)
    if known:
        axes.plot(*zip(*known, strict=True), "--", color=INK)
        ends.append((known[-1][1], "no private agent needs fewer (PUCB, lemma 10)", INK))
    everyone = max(int(curve.users[-1]) for curve in counted)
    axes.axhline(everyone, color=FAINT, ls=":")
    ends.append((everyone, "all users there were: never learning", FAINT))
    axes.set(xscale="log", yscale="log", xlabel="true epsilon", ylabel="users without a good policy")
    finish(axes)
    _tick(axes, {curve.epsilon for curve in counted})
    label_ends(axes, ends)
    return say(figure, finding_of_mistakes(groups, bounds))


def _subtitle(grid: Grid, curves: Sequence[Curve]) -> str:
    """The title of a grid with the numbers of users and seeds, where they are the same for all curves."""
    users, seeds = {int(curve.users[-1]) for curve in curves}, {curve.seeds for curve in curves}
    text = grid.title + (f"; {min(users):,} users" if len(users) == 1 else "")
    return text + (f", seeds: {min(seeds)}" if len(seeds) == 1 and len(users) == 1 else "")


def of_grid(grid: Grid, curves: Sequence[Curve]) -> dict[str, Figure]:
    """All figures of a grid by name, the main figure first."""
    title = _subtitle(grid, curves)
    if grid.figure.get("main") == "frontier":  # the others would have a hundred curves each
        frontier = say(frontier_figure(curves, title), finding_at_equal_epsilon(curves))
        return {"frontier": frontier, "glance": glance_figure(curves)}
    lost, returned = _by_measure(curves)
    figures = {}
    if lost and grid.figure.get("main") == "share":
        figures["share"] = share_figure(lost, title)
    if lost and grid.figure.get("main") == "privacy":
        figures["privacy"] = privacy_figure(lost, title)
    if "x" in grid.figure:
        figures["against"] = against_figure(lost or returned, title, grid.figure["x"], grid.figure.get("panels"))
    if any(curve.mistakes is not None for curve in lost):
        figures["mistakes"] = mistakes_figure(lost, title)
    if lost:
        figures["regret"] = regret_figure(lost, title, bounds=bool(grid.figure.get("bounds")))
        figures.setdefault("privacy", privacy_figure(lost, title))
    if returned:
        figures["return"] = return_figure(returned, title)
        figures["privacy-of-return"] = privacy_figure(returned, title)
    figures["noise"] = noise_figure(curves, title)
    if lost and "share" not in figures and len({problem_of(curve) for curve in lost}) == 1:
        figures["share"] = share_figure(lost, title)
    return figures


def _by_measure(curves: Sequence[Curve]) -> tuple[list[Curve], list[Curve]]:
    """Curves of regret, and those of returns."""
    return [c for c in curves if c.measure == "regret"], [c for c in curves if c.measure == "return"]


def measured(curves: Sequence[Curve]) -> list[Curve]:
    """Curves that can be compared: those of regret, or, where there are none, those of returns."""
    lost, returned = _by_measure(curves)
    return lost or returned
