"""Figures of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.lab.figures.drawing import (
    EPSILON,
    FAINT,
    RANDOM,
    finish,
    label_ends,
    new_axes,
    new_panels,
    plain_text,
    say,
)
from private_rl_gym.lab.figures.findings import (
    finding,
    finding_against,
    finding_of_epsilon,
    finding_of_mistakes,
    finding_of_noise,
    finding_of_shares,
)
from private_rl_gym.lab.figures.styles import looks
from private_rl_gym.lab.figures.theorems import draw_bounds
from private_rl_gym.lab.grids.summary import Curve
from private_rl_gym.lab.papers.bounds import lower_bound
from private_rl_gym.lab.registry import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = [
    "about",
    "against_figure",
    "mistakes_figure",
    "neighbours",
    "noise_figure",
    "privacy_figure",
    "regret_figure",
    "return_figure",
    "share_figure",
]


CONFIDENCE_BANDS = "bands: 95 % confidence interval of the mean"
RANGE_BANDS = "bands: range over seeds"


def about(curves: Sequence[Curve], bands: str = "") -> str:
    """Return the line below a figure.

    It states the problem, the numbers of users and of seeds, and the meaning of bands.
    """
    problems, users = {curve.problem for curve in curves}, {int(curve.users[-1]) for curve in curves}
    seeds = sorted({curve.seeds for curve in curves})
    parts = list(problems) if len(problems) == 1 else []
    parts += [f"{max(users):,} users"] if len(users) == 1 else []
    if seeds == [1]:
        return "; ".join([*parts, "a single seed"])
    counted = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
    return "; ".join([*parts, f"mean over {counted} seeds", *([bands] if bands else [])])


Drawn = list[tuple[Curve, dict[str, Any]]]
"""Curves with their looks."""


def _panels(curves: Sequence[Curve], title: str) -> tuple[Figure, list[tuple[Any, Drawn]]]:
    """Return a figure, and for each problem its axes and the curves on it."""
    problems: dict[str, Drawn] = {}
    for curve, look in zip(curves, looks(curves), strict=True):
        problems.setdefault(curve.problem, []).append((curve, look))
    if len(problems) == 1:
        figure, axes = new_axes(title)
        return figure, list(zip([axes], problems.values(), strict=True))
    figure, panels = new_panels(list(problems), 2, (7.2, 4.0))
    figure.suptitle(plain_text(title), fontsize=11)
    return figure, list(zip(panels, problems.values(), strict=True))


def _name(curve: Curve, *without: str) -> str:
    """Return the name of a curve on a panel, without some of the axes."""
    return curve.named(*without, *(path for path in curve.axes if path.startswith("environment.")))


def regret_figure(curves: Sequence[Curve], title: str = "", *, bounds: bool = False) -> Figure:
    """Draw regret against users, with 95 % bands over seeds.

    Bounds of theorems are drawn if they are wanted.
    """
    figure, panels = _panels(curves, title)
    for axes, drawn in panels:
        ends, here = [], [curve for curve, _ in drawn]
        for curve, look in drawn:
            half = np.nan_to_num(curve.half_width)
            axes.plot(curve.users, curve.mean, **look)
            low = np.maximum(curve.mean - half, 0.0)
            axes.fill_between(curve.users, low, curve.mean + half, color=look["color"], alpha=0.15, lw=0)
            ends.append((float(curve.mean[-1]), _name(curve), look["color"]))
        last, blind = max(int(curve.users[-1]) for curve in here), here[0].blind
        axes.plot([1, last], [blind, blind * last], ":", color=FAINT, lw=1.4)
        ends.append((blind * last, RANDOM, FAINT))
        if bounds:
            ends += draw_bounds(axes, here, [look["color"] for _, look in drawn])
        shown = [curve.mean[curve.users >= last / 1000.0] for curve in here]
        lowest = min((part[part > 0.0].min() for part in shown if (part > 0.0).any()), default=1.0)
        axes.set(xlabel="users (episodes)", ylabel="cumulative regret", yscale="log", xscale="log")
        highest = max(height for height, *_ in ends)
        axes.set(xlim=(max(1, last / 1000), max(last, 2)), ylim=(lowest / 1.3, 1.3 * highest))
        finish(axes)
        label_ends(axes, ends)
    return say(figure, finding(curves), about(curves, CONFIDENCE_BANDS))


def return_figure(curves: Sequence[Curve], title: str = "") -> Figure:
    """Draw the return of each user's policy against users, with 95 % bands over seeds."""
    figure, panels = _panels(curves, title)
    for axes, drawn in panels:
        ends = []
        for curve, look in drawn:
            half = np.nan_to_num(curve.half_width)
            axes.plot(curve.users, curve.mean, marker="o", ms=3, **look)
            axes.fill_between(curve.users, curve.mean - half, curve.mean + half, color=look["color"], alpha=0.15, lw=0)
            ends.append((float(curve.mean[-1]), _name(curve), look["color"]))
        ends.append(_draw_random(axes, drawn))
        last = max(int(curve.users[-1]) for curve, _ in drawn)
        axes.set(xlabel="users (episodes)", ylabel="return per episode", xscale="log")
        axes.set(xlim=(max(1, last / 1000), max(last, 2)))
        finish(axes)
        label_ends(axes, ends)
    return say(figure, finding(curves), about(curves, CONFIDENCE_BANDS))


def _draw_random(axes: Any, drawn: Drawn) -> tuple[float, str, str]:
    """Draw the regret or return of random actions.

    Return the curve's end, its name and its colour.
    """
    curve = drawn[0][0]
    last = max(int(curve.users[-1]) for curve, _ in drawn)
    height = curve.blind * (last if curve.measure == "regret" else 1)
    axes.axhline(height, ls=":", color=FAINT, lw=1.4)
    return height, RANDOM, FAINT


def privacy_figure(curves: Sequence[Curve], title: str = "") -> Figure:
    """Draw final regret or return against the true epsilon.

    A cross marks the requested epsilon where it differs.
    """
    figure, panels = _panels(curves, title)
    measure = curves[0].measure
    for axes, drawn in panels:
        ends, lines = [], dict[str, Drawn]()
        for curve, look in drawn:
            lines.setdefault(_name(curve, "boundary.epsilon"), []).append((curve, look))
        for name, group in lines.items():
            look = group[0][1] | {"alpha": 1.0}
            private = sorted((curve for curve, _ in group if curve.private), key=lambda curve: curve.epsilon)
            if not private:
                for curve, _ in group:
                    axes.axhline(curve.mean[-1], **look)
                    ends.append((float(curve.mean[-1]), f"{_name(curve)}, no guarantee", look["color"]))
                continue
            epsilons, regret = [curve.epsilon for curve in private], [curve.mean[-1] for curve in private]
            errors = [float(np.nan_to_num(curve.half_width[-1])) for curve in private]
            axes.errorbar(epsilons, regret, yerr=errors, marker="o", ms=5, capsize=2, elinewidth=0.8, **look)
            ends.append((float(regret[-1]), name, look["color"]))
            for curve in private:
                if curve.asked is not None and curve.dearer:
                    axes.plot([curve.asked, curve.epsilon], [curve.mean[-1]] * 2, ":", color=look["color"], lw=1)
                    axes.plot(curve.asked, curve.mean[-1], "x", color=look["color"], ms=6)
        ends.append(_draw_random(axes, drawn))
        last = "cumulative regret" if measure == "regret" else "return per episode"
        axes.set(xlabel=EPSILON, ylabel=f"{last} after all users")
        if measure == "regret":
            axes.set_yscale("log")
        epsilons_here = {curve.epsilon for curve, _ in drawn if curve.private}
        if epsilons_here:
            axes.set_xscale("log")
        else:
            axes.set_xticks([])
        finish(axes)
        _tick(axes, epsilons_here)
        label_ends(axes, ends)
    bars = f"bars: 95 % confidence interval; neighbours: {neighbours(curves)}"
    crosses = "; crosses: the epsilon that is printed" if any(c.asked is not None and c.dearer for c in curves) else ""
    note = about(curves, bars) + crosses
    return say(figure, finding_of_epsilon(curves, _grouped(curves, "boundary.epsilon")), note)


def neighbours(curves: Sequence[Curve]) -> str:
    """Return the neighbouring relations of private curves."""
    return ", ".join(sorted({curve.neighbours for curve in curves if curve.private and curve.neighbours})) or "none"


def _tick(axes: Any, epsilons: AbstractSet[float]) -> None:
    """Ticks at the values of epsilon themselves, where they are few."""
    rounded = sorted({float(f"{epsilon:.2g}") for epsilon in epsilons})
    apart = [second / first for first, second in pairwise(rounded)]
    if 1 <= len(rounded) <= 10 and min(apart, default=2.0) > 1.2:
        axes.set_xticks(rounded, [f"{epsilon:,g}" for epsilon in rounded])


def share_figure(curves: Sequence[Curve], title: str = "") -> Figure:
    """Draw each user's reward as a share of the best possible.

    The mean over seeds, with the range.
    """
    figure, panels = _panels(curves, title)
    final: dict[str, float] = {}
    for axes, drawn in panels:
        ends: list[tuple[float, str, str]] = []
        for curve, look in drawn:
            places, shares = _shares(curve)
            axes.plot(places, shares.mean(axis=0), **look)
            axes.fill_between(places, shares.min(axis=0), shares.max(axis=0), color=look["color"], alpha=0.15, lw=0)
            final[curve.label] = float(shares[:, -1].mean())
            ends.append((final[curve.label], _name(curve), look["color"]))
        blind = 1.0 - drawn[0][0].blind / drawn[0][0].optimum
        axes.axhline(blind, color=FAINT, ls=":", lw=1.4)
        ends.append((blind, RANDOM, FAINT))
        last = max(int(curve.users[-1]) for curve, _ in drawn)
        axes.set(xscale="log", xlabel="users (episodes)", ylabel="return per episode, share of optimal")
        axes.set(xlim=(max(1, last // 128), max(last, 2)), ylim=(min(0.0, *(end[0] for end in ends)), 1.03))
        finish(axes)
        axes.yaxis.set_major_formatter(lambda share, _: f"{100.0 * share:.0f} %")
        label_ends(axes, ends)
    text = finding_of_shares(curves, [final[curve.label] for curve in curves])
    return say(figure, text, about(curves, RANGE_BANDS))


def _shares(curve: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers of users, and the share of the best possible around each.

    Users are ``[point]``, shares ``[seed, point]``.

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


def noise_figure(curves: Sequence[Curve], title: str = "") -> Figure:
    """Noise in one released sum, against users."""
    figure, panels = _panels(curves, title)
    for axes, drawn in panels:
        ends, starts = [], []
        for curve, look in drawn:
            noise = curve.noise.mean(axis=0)
            if noise.any():
                axes.plot(curve.users, np.where(noise > 0.0, noise, np.nan), **look)
                ends.append((float(noise[-1]), _name(curve), look["color"]))
                starts.append(int(curve.users[noise > 0.0][0]))
        axes.set(xlabel="users (episodes)", ylabel="noise per released sum (standard deviation)", xscale="log")
        start = min(starts, default=1)
        axes.set_xlim(start, max(start + 1, *(int(curve.users[-1]) for curve, _ in drawn)))
        if ends:
            axes.set_yscale("log")
        else:
            axes.set_yticks([])
        finish(axes)
        label_ends(axes, ends)
    return say(figure, finding_of_noise(curves), about(curves))


def against_figure(curves: Sequence[Curve], title: str, x: str, panels: str | None = None) -> Figure:
    """Return final regret or return against the axis ``x``, mean and range over seeds.

    There is a panel for each value of the axis ``panels``; without it, for each environment.
    """
    lost = curves[0].measure == "regret"

    def panel(curve: Curve, other: Any) -> Any:
        return curve.environment.title if panels is None else curve.axes.get(panels, other)

    values = sorted({panel(curve, None) for curve in curves} - {None})
    titles = [str(value) if panels is None else f"{panels.rpartition('.')[2]} = {value:g}" for value in values]
    titles = titles if len(titles) > 1 else [""]
    figure, parts = new_panels(titles, len(titles), (max(4.6, 8.6 / len(titles)), 4.8))
    figure.suptitle(plain_text(title), fontsize=11)
    look_by_name: dict[str, dict[str, Any]] = {}
    for curve, look in zip(curves, looks(curves), strict=True):
        look_by_name.setdefault(curve.named(x, panels), look | {"alpha": 1.0})
    counts: dict[tuple[str, tuple[Any, Any]], float] = {}
    ends: list[tuple[float, str, str]] = []
    for axes, value in zip(parts, values, strict=True):
        here = [c for c in curves if x in c.axes and panel(c, value) == value]
        ends = []
        for name, look in look_by_name.items():
            line = sorted((c for c in here if c.named(x, panels) == name), key=lambda c: c.axes[x])
            if not line:
                continue
            places, last = [c.axes[x] for c in line], [c.values[:, -1] for c in line]
            axes.plot(places, [row.mean() for row in last], marker="o", ms=4, **look)
            lowest, highest = [row.min() for row in last], [row.max() for row in last]
            axes.fill_between(places, lowest, highest, alpha=0.15, lw=0, color=look["color"])
            ends.append((float(last[-1].mean()), name, look["color"]))
            compared = [c for c in line if c.private or not any(curve.private for curve in here)]
            counts |= {(name, (value, c.axes[x])): float(c.mean[-1]) * (1 if lost else -1) for c in compared}
        blind = sorted({c.axes[x]: c.blind * (c.users[-1] if lost else 1) for c in here}.items())
        axes.plot(*zip(*blind, strict=True), ":", color=FAINT)
        ends.append((blind[-1][1], RANDOM, FAINT))
        axes.set(xscale="log", yscale="log" if lost else "linear", xlabel=x.rpartition(".")[2])
    lows, highs = zip(*(axes.get_ylim() for axes in parts), strict=True)
    for axes in parts:
        axes.set_ylim(min(lows), max(highs))
        finish(axes)
    label_ends(parts[-1], ends)
    parts[0].set_ylabel("cumulative regret after all users" if lost else "return per episode after all users")
    text = finding_against(counts, x.rpartition(".")[2], "has the least regret" if lost else "has the largest return")
    return say(figure, text, about(curves, RANGE_BANDS))


def _grouped(curves: Sequence[Curve], axis: str) -> dict[str, list[Curve]]:
    """Curves that differ in nothing but this axis, by their common name."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(curve.named(axis), []).append(curve)
    return groups


def mistakes_figure(curves: Sequence[Curve], title: str = "") -> Figure:
    """Draw the number of mistaken policies against epsilon.

    With the lower bound where there is one.
    """
    counted = [curve for curve in curves if curve.mistakes is not None and curve.private]
    figure, panels = _panels(counted, title)
    bounds = {curve.label: lower_bound(curve.cell.to_dict(), curve.epsilon) for curve in counted}
    for axes, drawn in panels:
        ends, lines = [], dict[str, Drawn]()
        for pair in sorted(drawn, key=lambda pair: pair[0].epsilon):
            lines.setdefault(_name(pair[0], "boundary.epsilon"), []).append(pair)
        for name, line in lines.items():
            look, rows = line[0][1] | {"alpha": 1.0}, [np.asarray(curve.mistakes) for curve, _ in line]
            epsilons = [curve.epsilon for curve, _ in line]
            axes.plot(epsilons, [row.mean() for row in rows], marker="o", **look)
            lowest, highest = [row.min() for row in rows], [row.max() for row in rows]
            axes.fill_between(epsilons, lowest, highest, alpha=0.15, lw=0, color=look["color"])
            ends.append((float(rows[-1].mean()), name, look["color"]))
        known = sorted({(c.epsilon, value) for c, _ in drawn if (value := bounds[c.label]) is not None})
        if known:
            axes.plot(*zip(*known, strict=True), "--", color=INK)
            ends.append((known[-1][1], "lower bound (PUCB, lemma 10)", INK))
        everyone = max(int(curve.users[-1]) for curve, _ in drawn)
        axes.axhline(everyone, color=FAINT, ls=":")
        ends.append((everyone, f"all users ({RANDOM})", FAINT))
        axes.set(xscale="log", yscale="log", xlabel=EPSILON, ylabel="episodes with a suboptimal policy")
        finish(axes)
        _tick(axes, {curve.epsilon for curve, _ in drawn})
        label_ends(axes, ends)
    alphas = ", ".join(f"{alpha:g}" for alpha in sorted({curve.cell.alpha or 0.0 for curve in counted}))
    note = f"suboptimal: a value more than {alphas} below the best; neighbours: {neighbours(counted)}"
    text = finding_of_mistakes(_grouped(counted, "boundary.epsilon"), {c.epsilon: bounds[c.label] for c in counted})
    return say(figure, text, f"{about(counted, RANGE_BANDS)}; {note}")
