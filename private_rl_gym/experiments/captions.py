"""Captions of figures: what they show, and, beside a paper's figure, what that one said and what this one says."""

from __future__ import annotations

import math
from collections.abc import Sequence

from private_rl_gym.experiments.grid import Grid
from private_rl_gym.experiments.summary import Curve

__all__ = ["CAPTIONS", "caption_of", "findings"]

CAPTIONS = {
    "regret": "Regret against the number of users: mean over seeds, with a 95 % confidence band.",
    "privacy": "Final regret against the epsilon that is really promised, against replacing one user. A cross marks "
    "the epsilon that was asked for, where printed constants cost another.",
    "return": "Return of the policy that a user gets, in episodes of others, against the number of users: mean over "
    "seeds, with a 95 % confidence band.",
    "privacy-of-return": "Final return against the epsilon that is really promised, against replacing one user.",
    "against": "Final regret, or return where nobody knows the true model, against what varies: mean over seeds, with "
    "the range.",
    "share": "Reward of a user as a share of the best possible, against users: mean over seeds, with the range.",
    "frontier": "Final regret against the epsilon that is really promised, a panel for each problem and trust model. "
    "Bars are one standard error; the table says how many seeds each has.",
    "glance": "Reward of all users as a share of the best possible, on one problem. Of other agents the best at each "
    "epsilon is drawn; those told that steps are alike count them together.",
    "mistakes": "Users whose policy was a mistake, against the epsilon that is really promised.",
    "noise": "Standard deviation of the noise in one released sum, over time.",
}


def caption_of(grid: Grid, name: str, curves: Sequence[Curve]) -> str:
    """The caption of a figure; one of regret goes on with the paper's finding, if the grid has it, and with ours."""
    caption = CAPTIONS[name]
    if name == "regret" and grid.figure.get("bounds"):
        caption += " Dotted: upper bounds, orders with the constant 1, where they are below what can be lost at all."
    if name in ("regret", "privacy", "share") and "paper" in grid.figure:
        caption += f" In the paper: {grid.figure['paper']} Here: {findings(curves)}"
    return caption


def findings(curves: Sequence[Curve]) -> str:
    """The final regret of all curves as sentences, from the least to the largest, as shares of never learning."""
    ranked = sorted(curves, key=lambda curve: curve.mean[-1] / (curve.blind * curve.users[-1]))
    parts, before = [], None
    for curve in ranked:
        final, half = float(curve.mean[-1]), float(curve.half_width[-1])
        share = final / (curve.blind * float(curve.users[-1]))
        text = f"{curve.label} {final:,.0f}"
        text += f" +/- {half:,.0f}" if math.isfinite(half) else ""
        text += f" ({share:.0%} of never learning"
        text += f", truly epsilon = {curve.epsilon:,.3g}" if _differs(curve) else ""
        same = before is not None and _overlap(before, curve)
        parts.append(f"{text}{', not told apart from the one before' if same else ''})")
        before = curve
    return "From the least regret, " + "; ".join(parts) + "."


def _differs(curve: Curve) -> bool:
    return curve.asked is not None and abs(curve.asked - curve.epsilon) > 1e-6 * curve.epsilon


def _overlap(first: Curve, second: Curve) -> bool:
    """Whether the confidence intervals of two final regrets on one problem meet."""
    if first.config["environment"] != second.config["environment"]:
        return False
    reach = float(first.half_width[-1]) + float(second.half_width[-1])
    return abs(float(second.mean[-1] - first.mean[-1])) <= reach
