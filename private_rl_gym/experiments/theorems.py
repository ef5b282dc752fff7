"""The bound that belongs to a curve: that of its learner's theorem, at its problem's sizes and its true epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.experiments import bounds
from private_rl_gym.experiments.drawing import FAINT
from private_rl_gym.experiments.names import ENVIRONMENTS
from private_rl_gym.experiments.summary import Curve

__all__ = ["draw_bounds", "lower_bound", "sizes_of", "upper_bound"]

Regret = Callable[[int, int, int, int, float], float]
"""A bound as a function of H, S, A, users and epsilon."""

PROVED: Mapping[str, Mapping[str, Regret]] = {
    "UCBVI": {"open": bounds.dp_ucbvi_regret},
    "DPUCBVI": {
        "open": bounds.dp_ucbvi_regret,
        "jdp": bounds.dp_ucbvi_regret,
        "ldp": partial(bounds.dp_ucbvi_regret, local=True),
    },
    "PrivateUCBVI": {
        "open": bounds.private_ucbvi_regret,
        "jdp": bounds.private_ucbvi_regret,
        "ldp": partial(bounds.private_ucbvi_regret, local=True),
    },
    "PrivateUCBPO": {
        "open": bounds.private_ucbpo_regret,
        "jdp": bounds.private_ucbpo_regret,
        "ldp": partial(bounds.private_ucbpo_regret, local=True),
    },
    "LDPOBI": {"ldp": bounds.ldp_obi_regret},
    "UBEV": {"open": bounds.pucb_regret},
    "PUCB": {"open": bounds.pucb_regret, "jdp": bounds.pucb_regret},
    "APEVE": {"open": bounds.sdp_pe_regret},
    "SDPPE": {"open": bounds.sdp_pe_regret, "sdp": bounds.sdp_pe_regret},
}
"""Bounds by agent and trust model. Linear learners have theirs in d, and are not drawn."""


def sizes_of(config: Mapping[str, Any]) -> tuple[int, int, int]:
    """H, S and A of a run's environment."""
    options = {key: value for key, value in config["environment"].items() if key != "name"}
    return _sizes(str(config["environment"]["name"]), repr(sorted(options.items())), tuple(options.items()))


@lru_cache(maxsize=128)
def _sizes(name: str, text: str, options: Any) -> tuple[int, int, int]:
    del text
    model = ENVIRONMENTS.find(name, "environment").kind(**dict(options)).model
    return model.horizon, model.n_states, model.n_actions


def upper_bound(curve: Curve) -> NDArray[np.float64] | None:  # [point]
    """The upper bound of the curve's learner, at each of its numbers of users; None if no theorem is about it.

    An order with the constant 1 and without logarithms. What is not private has epsilon = inf. It is NaN where it
    exceeds all that can be lost, H K, and so says nothing.
    """
    agent, trust = str(curve.config["agent"]["name"]), str(curve.config["boundary"]["name"])
    regret = PROVED.get(agent, {}).get(trust)
    if regret is None:
        return None
    H, S, A = sizes_of(curve.config)
    values = np.array([regret(H, S, A, int(users), curve.epsilon) for users in curve.users])
    return np.where(values <= H * curve.users, values, math.nan)


def lower_bound(curve: Curve) -> NDArray[np.float64]:  # [point]
    """The order of the lower bound for all learners: no learner is below it on the hardest problem of these sizes."""
    sizes = sizes_of(curve.config)
    return np.array([bounds.regret_lower_bound(*sizes, int(users)) for users in curve.users])


def draw_bounds(axes: Any, curves: Sequence[Curve], colors: Sequence[str]) -> list[tuple[float, str, str]]:
    """Draw the bounds that say something beside curves in these colours, and return their ends with names and colours.

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
    if len({sizes_of(curve.config) for curve in curves}) == 1:
        lower = lower_bound(curves[0])
        axes.plot(curves[0].users, lower, ls=(0, (5, 3)), lw=1.0, color=FAINT)
        ends.append((float(lower[-1]), "order of the lower bound", FAINT))
    return ends
