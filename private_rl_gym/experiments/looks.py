"""One table of colours for agents and trust models: the same thing has the same colour in every figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from private_rl_gym.experiments.drawing import INK
from private_rl_gym.experiments.summary import Curve

__all__ = ["AGENT_COLORS", "EXACT", "TRUST_COLORS", "hides", "looks"]

EXACT = "#009e73"
"""Learning without privacy, beside learning with it."""

AGENT_COLORS = {
    "FrugalUCBVI": INK,
    "DPUCBVI": "#1f77c0",
    "PrivateUCBVI": "#d55e00",
    "PrivateUCBPO": "#a8791c",
    "PUCB": "#c2569b",
    "PSRL": "#8b6ad8",
    "RLSVI": "#b0503c",
    "SDPPE": "#0f95a8",
    "APEVE": EXACT,
    "PrivateLinOptVI": "#5b8c1f",
    "PrivateLinOptPO": "#7d6b5d",
    "LDPOBI": "#6f8400",
    "LDPUCRLVTR": "#4a7fb0",
    "DPSE": "#9a6a2f",
    "DPAPVI": "#6f7fd0",
    "UCBVI": EXACT,
    "UBEV": EXACT,
    "UCRLVTR": EXACT,
    "OPPO": EXACT,
}
TRUST_COLORS = {"open": EXACT, "jdp": "#1f77c0", "sdp": "#8b6ad8", "ldp": "#d55e00"}
TRUST_STYLES: dict[str, Any] = {"sdp": "-.", "ldp": (0, (6, 1.5, 1, 1.5, 1, 1.5))}  # dotted is never learning


def hides(curve: Curve) -> bool:
    """Whether a curve promises anything."""
    return math.isfinite(curve.epsilon)


def looks(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Colour, style and strength of each curve.

    The colour is the agent's; the trust model's, where one private agent is seen under several; and that of learning
    without privacy, where a curve promises nothing and others do. Dashes are printed constants. Of the curves that
    share a colour and a style, the most private one is the strongest.
    """
    private = [curve for curve in curves if hides(curve)] or list(curves)
    agents = {_agent(curve) for curve in private}
    trusts = {_trust(curve) for curve in private}
    by_trust = len(agents) == 1 and len(trusts) > 1
    groups: dict[tuple[str, Any], list[int]] = {}
    for number, curve in enumerate(curves):
        if by_trust:
            color, style = TRUST_COLORS.get(_trust(curve), INK), "-"
        else:
            color, style = AGENT_COLORS.get(_agent(curve), INK), TRUST_STYLES.get(_trust(curve), "-")
        if curve not in private:
            color, style = EXACT, "-"
        if curve.config["boundary"].get("calibration") in ("paper", "released"):
            style = "--"
        groups.setdefault((color, style), []).append(number)
    found: list[dict[str, Any]] = [{}] * len(curves)
    for (color, style), numbers in groups.items():
        for place, number in enumerate(sorted(numbers, key=lambda number: curves[number].epsilon)):
            strength = 1.0 - 0.5 * place / max(1, len(numbers) - 1)
            found[number] = {"color": color, "linestyle": style, "alpha": strength, "linewidth": 1.8}
    return found


def _agent(curve: Curve) -> str:
    return str(curve.config["agent"]["name"])


def _trust(curve: Curve) -> str:
    return str(curve.config["boundary"]["name"])
