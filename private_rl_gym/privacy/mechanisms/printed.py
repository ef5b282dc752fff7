"""Scales of noise that the papers print, and their exact costs.

* ``PRINTED`` - a table by statistic: the noise, and the formula of its scale
* ``printed`` - the mechanism and the scale for a statistic, with its exact cost
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from private_rl_gym.privacy.accounting.conversion import LARGEST_RATE, gaussian_epsilon
from private_rl_gym.privacy.mechanisms.base import Law, Mechanism
from private_rl_gym.privacy.mechanisms.trees import BinaryTree
from private_rl_gym.privacy.statistics.base import Sensitivity, Statistic

__all__ = ["PRINTED", "Printed", "printed", "printed_scale"]


class Printed(NamedTuple):
    """The noise that a paper prints for a statistic.

    Attributes:
        law: The law of the noise.
        scale: Its scale, from the horizon, the mechanism's sensitivity, epsilon and delta.
    """

    law: Law
    scale: Callable[[int, float, float, float], float]


def _of_linopt(horizon: int, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the sigma that LinOpt prints in section 6.3.

    It is (H / epsilon) sqrt(32 m ln(4 H / delta)) times the sensitivity of a block.
    """
    return horizon / epsilon * math.sqrt(32.0 * math.log(4.0 * horizon / delta)) * sensitivity


def _of_pucb(horizon: int, sensitivity: float, epsilon: float, _delta: float) -> float:
    """Return the scale 3 H log(T) / epsilon of PUCB.

    The paper gives no base of the logarithm. Here log(T) is the number of levels.
    """
    return 3.0 * horizon * sensitivity / epsilon


PRINTED: dict[str, Printed] = {"tabular": Printed("laplace", _of_pucb), "linear": Printed("gaussian", _of_linopt)}
"""The noise that papers print, by the name of the statistic."""


def printed_scale(statistic: Statistic, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the papers' scale for a mechanism of this sensitivity.

    It is at least the smallest scale that can be drawn.

    Raises:
        ValueError: If no paper prints one.
    """
    if statistic.name not in PRINTED:
        raise ValueError(f"calibration='paper': no paper prints constants for {statistic.name} sums.")
    law, formula = PRINTED[statistic.name]
    scale = formula(statistic.horizon, sensitivity, epsilon, delta)
    return max(scale, statistic.sensitivity().units[1] / LARGEST_RATE) if law == "laplace" else scale


def printed(
    counting: str | type[Mechanism] | None,
    noise: str | None,
    statistic: Statistic,
    known: Sensitivity,
    releases: int,
    epsilon: float,
    delta: float,
) -> tuple[type[Mechanism], Law, float, float, float]:
    """Return the papers' mechanism, law and scale, and the budget that they cost.

    The budget is an epsilon and a delta.
    """
    law: Law = PRINTED[statistic.name].law if statistic.name in PRINTED else "gaussian"
    if counting not in (None, "binary-tree") or noise not in (None, law):
        raise ValueError(f"calibration='paper' is counting='binary-tree' with noise={law!r}, as the papers print it.")
    if law == "gaussian" and delta == 0.0:
        raise ValueError("delta is 0: the papers print Gaussian noise, which needs delta above 0. Give a small one.")
    sums = BinaryTree(releases, 1, law).sensitivity
    scale = printed_scale(statistic, sums, epsilon, delta)
    if law == "gaussian":
        return BinaryTree, law, scale, gaussian_epsilon(delta, known.l2 * sums / scale), delta
    return BinaryTree, law, scale, known.l1 * sums / scale, 0.0
