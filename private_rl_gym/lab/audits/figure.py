"""The figure of an audit: both error rates of an attacker."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from private_rl_gym.lab.audits.report import Report
from private_rl_gym.lab.figures.drawing import FAINT, INK, look_of, new_axes, plain_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["tradeoff", "tradeoff_figure"]


def tradeoff_figure(report: Report) -> Figure:
    """Return a figure of both error rates of an attacker.

    The attacker tells two users apart. Two curves show the error rates that the claim allows, and those that were
    reached.
    """
    figure, axes = new_axes(f"Audit: {report.claim}")
    tradeoff(axes, report)
    return figure


def tradeoff(axes: Any, report: Report) -> None:
    """Draw both error rates on given axes."""
    from scipy.special import ndtr, ndtri

    from private_rl_gym.privacy.accounting.conversion import gaussian_mu

    claim = report.claim
    alarms = np.unique(np.concatenate([np.linspace(0.0, 1.0, 400), np.geomspace(1e-4, 1.0, 200)]))
    if math.isfinite(claim.epsilon):
        grown = math.exp(claim.epsilon)
        least = np.maximum(1.0 - claim.delta - grown * alarms, (1.0 - claim.delta - alarms) / grown)
        least = np.clip(least, 0.0, 1.0)
        axes.fill_between(alarms, 0.0, least, color=FAINT, alpha=0.25, lw=0, label="ruled out by the claim")
        if claim.delta > 0.0 and any(result.gaussian is not None for result in report.results):
            curve = ndtr(ndtri(1.0 - alarms) - gaussian_mu(claim.epsilon, claim.delta))
            axes.plot(alarms, curve, ":", color=INK, lw=1.2, label="Gaussian noise as stated")
    axes.plot([0.0, 1.0], [1.0, 0.0], color=FAINT, lw=0.8, label="guessing")
    for number, result in enumerate(report.results):
        look, finding = look_of(number + 1), result.finding
        if finding is None:
            continue
        axes.plot(finding.curve[:, 0], finding.curve[:, 1], lw=1.2, label=plain_text(result.title), **look)
        alarm, miss, most_alarms, most_misses = (finding.event if result.proved else finding.best).rates
        axes.plot([alarm, most_alarms], [miss, miss], color=look["color"], lw=2.5)
        axes.plot([alarm, alarm], [miss, most_misses], color=look["color"], lw=2.5)
        axes.plot(alarm, miss, "o", color=look["color"], ms=5)
    axes.set(xlabel="false alarms: one user taken for the other", ylabel="misses", xlim=(-0.01, 1.0), ylim=(-0.01, 1.0))
    axes.legend(frameon=False, fontsize=8, loc="upper right")
