"""The bound that belongs to a curve.

It is that of its agent's theorem, at its problem's sizes and its true epsilon.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.lab.figures.drawing import FAINT
from private_rl_gym.lab.grids.summary import Curve
from private_rl_gym.lab.papers import bounds
from private_rl_gym.lab.registry import ENVIRONMENTS

__all__ = ["draw_bounds", "lower_bound", "sizes_of", "upper_bound"]


def sizes_of(curve: Curve) -> tuple[int, int, int]:
    """H, S and A of a curve's environment."""
    environment = curve.cell.environment
    return _sizes(environment.name, json.dumps(environment.options))


@lru_cache(maxsize=128)
def _sizes(name: str, options: str) -> tuple[int, int, int]:
    model = ENVIRONMENTS.find(name, "environment").model(**json.loads(options))
    return model.horizon, model.n_states, model.n_actions


def upper_bound(curve: Curve) -> NDArray[np.float64] | None:  # [point]
    """Return the upper bound of the curve's agent, for each number of users.

    None if no theorem is about it.

    An order with the constant 1 and without logarithms. What is not private has epsilon = inf. It is NaN where it
    exceeds all that can be lost, H K, and so says nothing.
    """
    regret = curve.agent.bounds.get(curve.trust)
    if regret is None:
        return None
    H, S, A = sizes_of(curve)
    values = np.array([regret(H, S, A, int(users), curve.epsilon) for users in curve.users])
    return np.where(values <= H * curve.users, values, math.nan)


def lower_bound(curve: Curve) -> NDArray[np.float64]:  # [point]
    """Return the order of the lower bound for all agents.

    No agent is below it on the hardest problem of these sizes.
    """
    sizes = sizes_of(curve)
    return np.array([bounds.regret_lower_bound(*sizes, int(users)) for users in curve.users])


def draw_bounds(axes: Any, curves: Sequence[Curve], colors: Sequence[str]) -> list[tuple[float, str, str]]:
    """Draw informative bounds beside curves, in these colours.

    Return their ends with names and colours.

    Upper ones are dotted, in the colour of their curve, with one name for all; the lower one is dashed. Curves on
    several problems get no lower bound.
    """
    ends = []
    for curve, color in zip(curves, colors, strict=True):
        upper = upper_bound(curve)
        if upper is not None and np.isfinite(upper).sum() > 1 and not np.isnan(upper[-1]):
            axes.plot(curve.users, upper, ls=(0, (1, 2)), lw=1.0, color=color)
            ends.append((float(upper[-1]), f"upper bound, constant 1: {curve.label}", color))
    if len(ends) > 1:
        ends = [(max(ends)[0], "dotted: upper bounds, constant 1", FAINT)]
    if len(set(map(sizes_of, curves))) == 1:
        lower = lower_bound(curves[0])
        axes.plot(curves[0].users, lower, ls=(0, (5, 3)), lw=1.0, color=FAINT)
        ends.append((float(lower[-1]), "order of the lower bound", FAINT))
    return ends
