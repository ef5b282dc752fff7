"""A graph of any model: states on a circle, and outcomes as arrows."""

from __future__ import annotations

import math

from private_rl_gym.envs.rendering.canvas import ACCENT, ACTIONS, FAINT, INK, PAPER, Canvas, Point
from private_rl_gym.envs.rendering.scene import Path, Scene

__all__ = ["GraphScene"]

CIRCLE = 32  # more states than this are laid out as a grid of dots
LISTED = 6  # actions that fit in the list, and successors that get an arrow
SAID = 3  # successors that fit in a line of the list


class GraphScene(Scene):
    """States as dots, and likely outcomes of each action as arrows.

    The current state is highlighted.
    """

    def line(self, path: Path) -> str:
        """Return the states as a row, or the number of the current one."""
        S = self.model.n_states
        if S > CIRCLE:
            return f"state {path.state} of 0..{S - 1}"
        return " ".join(f"[{s}]" if s == path.state else str(s) for s in range(S))

    def paint(self, canvas: Canvas, path: Path) -> None:
        """Paint the states, the possible outcomes, the last step, and a list of the actions."""
        model = self.model
        S, here = model.n_states, path.state
        dot = 13.0 if S <= CIRCLE else max(1.5, min(6.0, 110 / math.sqrt(S)))
        for s in range(S):
            canvas.circle(self._place(canvas, s), dot, FAINT)
        if path.stage < model.horizon:
            self._paint_outcomes(canvas, path, dot)
        if path.actions:
            self._edge(canvas, path.states[-2], here, INK, 3.5, dot)
        for s in range(S):
            if S <= CIRCLE:
                place = self._place(canvas, s)
                canvas.circle(place, dot, ACCENT if s == here else FAINT)
                canvas.write(str(s), place, size=13, color=PAPER if s == here else INK, align="center")
        if S > CIRCLE:
            canvas.circle(self._place(canvas, here), dot + 4, ACCENT, outline=PAPER)

    def _paint_outcomes(self, canvas: Canvas, path: Path, dot: float) -> None:
        """Paint the outcomes in the current state: arrows, and a list.

        Each action has a colour. Likelier outcomes have thicker arrows.
        """
        model = self.model
        P = model.outcomes(path.stage, path.state)
        r = model.rewards[path.stage % len(model.rewards), path.state]
        for a in range(min(model.n_actions, LISTED)):
            color = ACTIONS[a]
            likely = [int(s) for s in P[a].argsort()[::-1][:LISTED] if P[a, s] > 0]
            for s in likely:
                self._edge(canvas, path.state, s, color, 1 + 4 * float(P[a, s]), dot, bend=(a + 1) * 7)
            y = canvas.top + 16 + a * 38
            canvas.rectangle(452, y - 7, 14, 14, color, round_by=3)
            canvas.write(f"{self.action_name(a)}: reward {r[a]:.2f}", (474, y), size=14)
            outcomes = ", ".join(f"{s} ({P[a, s]:.2f})" for s in likely[:SAID])
            canvas.write(f"to {outcomes}{' ...' if len(likely) > SAID else ''}", (474, y + 15), size=12)
        if model.n_actions > LISTED:
            canvas.write(f"and {model.n_actions - LISTED} more", (474, canvas.bottom - 8), size=12)

    def _place(self, canvas: Canvas, state: int) -> Point:
        S = self.model.n_states
        middle = (canvas.top + canvas.bottom) / 2
        if S <= CIRCLE:
            angle = 2 * math.pi * state / S - math.pi / 2
            return 230 + 185 * math.cos(angle), middle + 102 * math.sin(angle)
        columns = math.ceil(math.sqrt(S * 1.7))
        rows = math.ceil(S / columns)
        column, row = state % columns, state // columns
        return 40 + 390 * (column + 0.5) / columns, canvas.top + 8 + (canvas.bottom - canvas.top - 16) * (
            row + 0.5
        ) / rows

    def _edge(
        self,
        canvas: Canvas,
        start: int,
        end: int,
        color: tuple[int, int, int],
        thickness: float,
        dot: float,
        bend: float = 0,
    ) -> None:
        """Paint an arrow from one state to another.

        It is bent a little, so that actions do not hide each other.
        """
        (x0, y0), (x1, y1) = self._place(canvas, start), self._place(canvas, end)
        length = math.hypot(x1 - x0, y1 - y0)
        if length == 0:
            canvas.circle((x0, y0), dot + 2 + bend * 0.3, color)
            canvas.circle((x0, y0), dot + 2 + bend * 0.3 - thickness, PAPER)
            return
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        middle = ((x0 + x1) / 2 - uy * bend, (y0 + y1) / 2 + ux * bend)
        canvas.line((x0, y0), middle, color, thickness)
        canvas.arrow(middle, (x1 - ux * (dot + 2), y1 - uy * (dot + 2)), color, thickness)
