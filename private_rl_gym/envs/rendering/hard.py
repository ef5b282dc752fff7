"""Scenes of the hard instances: start states, arms, and the two end states."""

from __future__ import annotations

from private_rl_gym.envs.rendering.canvas import BAD, FAINT, GOOD, INK, PAPER, Canvas
from private_rl_gym.envs.rendering.scene import Path, Scene

__all__ = ["HardScene"]

MOST = 8  # start states, and arms, that fit on the sheet


class HardScene(Scene):
    """The hard instance from left to right: start states, arms, end states.

    The arms are those of the user's start state. The end states are plus and minus.
    """

    def action_name(self, action: int) -> str:
        """Return the action of the user, as a phrase."""
        return f"arm {action}"

    def line(self, path: Path) -> str:
        """Return the start state, the arm and the end state."""
        n = self.model.n_states - 2
        if not path.actions:
            return f"start state {path.states[0]} of 0..{n - 1} -> which of {self.model.n_actions} arms?"
        end = "(+)" if path.state == n else "(-)"
        return f"start state {path.states[0]} of 0..{n - 1} -> arm {path.actions[0]} -> {end}"

    def paint(self, canvas: Canvas, path: Path) -> None:
        """Paint columns from left to right: start states, arms, end states."""
        n, arms = self.model.n_states - 2, self.model.n_actions
        start, chosen = path.states[0], path.actions[0] if path.actions else None
        column = _window(n, start)
        starts = dict(zip(column, self._heights(canvas, len(column)), strict=True))
        for s, y in starts.items():
            here = s == start
            canvas.circle((90, y), 17, INK if here else FAINT)
            canvas.write(str(s), (90, y), color=PAPER if here else INK, align="center")
        ends = {n: (620.0, canvas.top + 60.0), n + 1: (620.0, canvas.bottom - 60.0)}
        shown = _window(arms, chosen or 0)
        for arm, y in zip(shown, self._heights(canvas, len(shown)), strict=True):
            canvas.line((112, starts[start]), (268, y), INK if arm == chosen else FAINT, 3 if arm == chosen else 1.5)
            self._paint_arm(canvas, y, arm, start, taken=arm == chosen)
            if arm == chosen:
                end = ends[path.states[1]]
                canvas.arrow((462, y), (end[0] - 42, end[1]), GOOD if path.states[1] == n else BAD, 3)
        for state, sign, color in ((n, "+", GOOD), (n + 1, "-", BAD)):
            here = path.state == state
            canvas.circle(ends[state], 32, color if here else PAPER, outline=color)
            canvas.write(sign, ends[state], size=30, color=PAPER if here else color, align="center")
        for words, x in (("start states", 90), ("arms: chance of +", 365), ("ends", 620)):
            canvas.write(words, (x, canvas.top + 6), size=13, align="center")

    def _paint_arm(self, canvas: Canvas, y: float, arm: int, start: int, *, taken: bool) -> None:
        """Paint a bar as long as the arm's chance of reaching plus.

        The bar of the best arm is green.
        """
        n = self.model.n_states - 2
        chances = self.model.outcomes(0, start)[:, n]
        best = chances[arm] == chances.max()
        canvas.rectangle(268, y - 11, 194, 22, INK if taken else FAINT, round_by=4)
        canvas.rectangle(270, y - 9, 190, 18, PAPER, round_by=3)
        canvas.rectangle(270, y - 9, 190 * float(chances[arm]), 18, GOOD if best else FAINT, round_by=3)
        canvas.write(f"arm {arm}: {chances[arm]:.3g}", (278, y), size=13, color=PAPER if best else INK)

    @staticmethod
    def _heights(canvas: Canvas, rows: int) -> list[float]:
        space = (canvas.bottom - canvas.top - 24) / rows
        return [canvas.top + 20 + space * (row + 0.5) for row in range(rows)]


def _window(size: int, around: int) -> list[int]:
    """Return at most MOST neighbouring numbers below ``size``, with ``around`` among them."""
    first = max(0, min(around - MOST // 2, size - MOST))
    return list(range(first, min(size, first + MOST)))
