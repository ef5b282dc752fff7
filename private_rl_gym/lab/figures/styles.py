"""Colours and line styles of curves, the same in every figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from private_rl_gym.lab.figures.drawing import INK
from private_rl_gym.lab.grids.summary import Curve
from private_rl_gym.lab.references import Reference
from private_rl_gym.lab.registry import AGENTS, BOUNDARIES, EXACT

__all__ = ["looks", "own_colors", "own_parts"]


_HUES = (
    "#8a5a00 #b0006d #00807a #5a3fc0 #c03020 #3f7d20 #a040a0 #2a6f97 #8f6b3a #c0457a #4f5fd0 #6b7a12 #946050 #00788f"
)
OTHERS = tuple(color for color in _HUES.split() if color not in {entry.color for entry in AGENTS.values()})
"""Colours of agents that the package does not know: no agent of the package has one of them."""


def looks(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Return the colour, style and strength of each curve.

    The colour is the agent's; the trust model's, where one private agent is seen under several; that of the user's own
    parts; and that of learning without privacy, where a curve guarantees nothing and others do. The style is the trust
    model's. Dashes are printed constants. Of the curves on one problem that share a colour and a style, the most
    private one is the strongest.
    """
    private = [curve for curve in curves if curve.private] or list(curves)
    agents, trusts = {curve.cell.agent.name for curve in private}, {curve.cell.boundary.name for curve in private}
    by_trust = len(agents) == 1 and len(trusts) > 1
    usual = [BOUNDARIES[curve.trust].color if by_trust else curve.agent.color for curve in curves]
    own = own_colors(private, {color for curve, color in zip(curves, usual, strict=True) if not curve.cell.own})
    groups: dict[tuple[str, Any, str], list[int]] = {}
    for number, (curve, color) in enumerate(zip(curves, usual, strict=True)):
        color, style = own.get(own_parts(curve), color), "-" if by_trust else BOUNDARIES[curve.trust].style
        if curve not in private:
            color, style = EXACT, "-"
        if curve.printed:
            style = "--"
        groups.setdefault((color or INK, style, curve.problem), []).append(number)
    found: list[dict[str, Any]] = [{}] * len(curves)
    for (color, style, _), numbers in groups.items():
        for place, number in enumerate(sorted(numbers, key=lambda number: curves[number].epsilon)):
            strength = 1.0 - 0.5 * place / max(1, len(numbers) - 1)
            found[number] = {"color": color, "linestyle": style, "alpha": strength, "linewidth": 1.8}
    return found


def own_parts(curve: Curve) -> tuple[str, ...]:
    """Return a curve's agent and code of the user's own, or nothing."""
    return (curve.agent.name, *curve.cell.own) if curve.cell.own else ()


def own_colors(curves: Iterable[Curve], taken: Iterable[str | None]) -> Mapping[tuple[str, ...], str]:
    """Return the colours of curves with code of the user's own, by their parts.

    A curve has the ``color`` of one of its classes, if no other curve of the figure has it; or the next of ``OTHERS``.
    """
    found: dict[tuple[str, ...], str] = {}
    for parts in dict.fromkeys(own_parts(curve) for curve in curves if curve.cell.own):
        stated = (getattr(part.load(), "color", None) for part in parts if isinstance(part, Reference))
        unusable = {EXACT, *taken, *found.values()}
        found[parts] = next((color for color in (*stated, *OTHERS) if color and color not in unusable), INK)
    return found
