"""The scene of a river: two banks, the water in between, and the swimmer."""

from __future__ import annotations

from private_rl_gym.envs.rendering.canvas import ACCENT, Canvas, Color
from private_rl_gym.envs.rendering.scene import Path, Scene

__all__ = ["RiverScene"]

WATER: Color = (126, 188, 224)
DEEP: Color = (92, 160, 205)
WAVE: Color = (190, 223, 243)
GRASS: Color = (146, 180, 112)
SAND: Color = (231, 211, 160)
SKIN: Color = (250, 224, 196)
WOOD: Color = (120, 84, 50)
WHITE: Color = (255, 255, 255)

BANK = 96  # width of a bank


class RiverScene(Scene):
    """A river seen from above, flowing from right to left."""

    def action_name(self, action: int) -> str:
        """Return the action of the swimmer, as a phrase."""
        return "swims right" if action else "swims left"

    def line(self, path: Path) -> str:
        """Return the river as a line of places."""
        swimmer = ">o" if path.actions and path.actions[-1] else "o<" if path.actions else "o "
        places = "|".join(f" {swimmer} " if s == path.state else " ~~ " for s in range(self.model.n_states))
        left, right = self._pay()
        return f"[left bank pays {left:g}] {places} [right bank pays {right:g}]"

    def paint(self, canvas: Canvas, path: Path) -> None:
        """Paint banks, water, places, current and swimmer."""
        S = self.model.n_states
        top, height = canvas.top, canvas.bottom - canvas.top
        right_edge = canvas.width - BANK
        canvas.rectangle(0, top, canvas.width, height, WATER)
        place = (right_edge - BANK) / S
        for s in range(0, S, 2):
            canvas.rectangle(BANK + s * place, top, place, height, DEEP)
        self._paint_waves(canvas, place)
        for x, sand in ((0, BANK), (right_edge, 0)):
            canvas.rectangle(x, top, BANK, height, GRASS)
            canvas.rectangle(x + (sand - 12 if sand else 0), top, 12, height, SAND)
        for s in range(S):
            if place > 16:
                canvas.write(str(s), (BANK + (s + 0.5) * place, canvas.bottom - 16), color=WHITE, align="center")
        left, right = self._pay()
        self._paint_sign(canvas, (BANK - 12) / 2, f"{left:g}", path, bank=0)
        self._paint_sign(canvas, canvas.width - (BANK - 12) / 2, f"{right:g}", path, bank=S - 1)
        heading = 0 if not path.actions else (1 if path.actions[-1] else -1)
        self._paint_swimmer(canvas, BANK + (path.state + 0.5) * place, min(1.0, place / 60), heading)

    def _pay(self) -> tuple[float, float]:
        return float(self.model.rewards[0, 0, 0]), float(self.model.rewards[0, -1, 1])

    def _paint_waves(self, canvas: Canvas, place: float) -> None:
        """Paint the current, as arrows against the swimmer."""
        reach = min(30.0, place * 0.6)
        for row, y in enumerate(range(canvas.top + 26, canvas.bottom - 34, 44)):
            for s in range(self.model.n_states):
                x = BANK + (s + 0.5 + (0.22 if row % 2 else -0.22)) * place
                canvas.arrow((x + reach / 2, y), (x - reach / 2, y), WAVE, thickness=1.5)

    def _paint_sign(self, canvas: Canvas, x: float, words: str, path: Path, bank: int) -> None:
        """Paint a sign with the reward of the bank, lit after a payment."""
        y = canvas.top + 70
        paid = bool(path.rewards and path.rewards[-1] > 0 and path.states[-2] == bank)
        canvas.rectangle(x - 3, y, 6, 78, WOOD)
        canvas.rectangle(x - 36, y - 24, 72, 40, ACCENT if paid else WOOD, round_by=4)
        canvas.write(f"+{words}", (x, y - 4), size=18, color=WHITE, align="center")

    def _paint_swimmer(self, canvas: Canvas, x: float, size: float, heading: int) -> None:
        """Paint a swimmer with a cap, two arms and legs.

        The heading is left (-1), right (1) or none yet (0).
        """
        y = (canvas.top + canvas.bottom) / 2
        ahead = heading or 1
        body, arm = 26 * size, 17 * size
        if heading:
            for kick in (-5 * size, 5 * size):
                canvas.line((x, y), (x - ahead * body, y + kick), SKIN, 5 * size)
            canvas.line((x, y), (x + ahead * arm, y - arm), SKIN, 5 * size)
            canvas.line((x, y), (x - ahead * 4 * size, y + arm), SKIN, 5 * size)
        else:
            canvas.circle((x, y), 22 * size, WAVE)
        canvas.line((x, y), (x - ahead * 14 * size, y), ACCENT, 12 * size)
        canvas.circle((x + ahead * 8 * size, y), 10 * size, ACCENT, outline=SKIN)
