"""Smooth drawing with pygame.

Everything is painted at twice its size and scaled down.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

from private_rl_gym.lazy import install

if TYPE_CHECKING:
    from private_rl_gym.envs.rendering.scene import Path, Scene

__all__ = ["ACTIONS", "Canvas", "Color", "Window", "picture"]

Color = tuple[int, int, int]
Point = tuple[float, float]

WIDTH, HEIGHT, SCALE = 720, 360, 2

PAPER: Color = (250, 249, 246)
INK: Color = (38, 43, 51)
FAINT: Color = (205, 207, 210)
ACCENT: Color = (213, 94, 0)
GOOD: Color = (0, 128, 96)
BAD: Color = (150, 60, 110)
ACTIONS: tuple[Color, ...] = ((0, 114, 178), (213, 94, 0), (0, 128, 96), (190, 110, 160), (178, 140, 0), (70, 160, 220))
"""Colours of the actions, which colour-blind people can distinguish too."""


def _pygame() -> Any:
    try:
        import pygame
    except ImportError as error:
        raise DependencyNotInstalled(
            f"Pictures of environments need pygame: run {install('rendering')}, or use render_mode='ansi'."
        ) from error
    return pygame


class Canvas:
    """An area of 720 x 360 units to paint on.

    Scenes use the part from ``top`` to ``bottom``.
    """

    width, height = WIDTH, HEIGHT
    top, bottom = 72, HEIGHT - 44

    def __init__(self) -> None:
        self._pygame = _pygame()
        self._pygame.font.init()
        self._surface = self._pygame.Surface((WIDTH * SCALE, HEIGHT * SCALE))
        self._surface.fill(PAPER)

    def rectangle(self, x: float, y: float, width: float, height: float, color: Color, round_by: float = 0) -> None:
        """Paint a filled rectangle with its upper left corner at (x, y)."""
        box = self._pygame.Rect(*(round(value * SCALE) for value in (x, y, width, height)))
        self._pygame.draw.rect(self._surface, color, box, border_radius=round(round_by * SCALE))

    def circle(self, center: Point, radius: float, color: Color, outline: Color | None = None) -> None:
        """Paint a filled circle."""
        place = (round(center[0] * SCALE), round(center[1] * SCALE))
        if outline is not None:
            self._pygame.draw.circle(self._surface, outline, place, round((radius + 2) * SCALE))
        self._pygame.draw.circle(self._surface, color, place, round(radius * SCALE))

    def line(self, start: Point, end: Point, color: Color, thickness: float = 2) -> None:
        """Paint a straight line with round ends."""
        (x0, y0), (x1, y1) = start, end
        length = math.hypot(x1 - x0, y1 - y0)
        if length == 0:
            return
        dx, dy = -(y1 - y0) / length * thickness / 2, (x1 - x0) / length * thickness / 2
        self.polygon([(x0 + dx, y0 + dy), (x1 + dx, y1 + dy), (x1 - dx, y1 - dy), (x0 - dx, y0 - dy)], color)
        self.circle(start, thickness / 2, color)
        self.circle(end, thickness / 2, color)

    def arrow(self, start: Point, end: Point, color: Color, thickness: float = 2) -> None:
        """Paint a line with a head at its end."""
        (x0, y0), (x1, y1) = start, end
        length = math.hypot(x1 - x0, y1 - y0)
        if length == 0:
            return
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        size = 5 + 2 * thickness
        neck = (x1 - ux * size, y1 - uy * size)
        self.line(start, neck, color, thickness)
        wing = size * 0.5
        corners = [end, (neck[0] - uy * wing, neck[1] + ux * wing), (neck[0] + uy * wing, neck[1] - ux * wing)]
        self.polygon(corners, color)

    def polygon(self, corners: list[Point], color: Color) -> None:
        """Paint a filled polygon."""
        self._pygame.draw.polygon(self._surface, color, [(x * SCALE, y * SCALE) for x, y in corners])

    def write(self, words: str, place: Point, size: int = 16, color: Color = INK, align: str = "left") -> None:
        """Write words beside ``place``, at middle height.

        By ``align``, the left end, the center or the right end of the words is at this place.
        """
        font = self._pygame.font.Font(None, round(size * 1.4) * SCALE)
        image = font.render(words, True, color)
        anchor = {"left": "midleft", "center": "center", "right": "midright"}[align]
        box = image.get_rect(**{anchor: (round(place[0] * SCALE), round(place[1] * SCALE))})
        self._surface.blit(image, box)

    def finished(self) -> Any:
        """Return the painting at its real size, as a pygame surface."""
        return self._pygame.transform.smoothscale(self._surface, (WIDTH, HEIGHT))


def _paint(scene: Scene, path: Path) -> Any:
    canvas = Canvas()
    horizon = scene.model.horizon
    canvas.write(scene.title, (24, 26), size=20)
    canvas.write(f"step {path.stage} of {horizon}", (WIDTH - 24, 26), align="right")
    _paint_time(canvas, path.stage, horizon)
    scene.paint(canvas, path)
    color = GOOD if path.rewards and path.rewards[-1] > 0 else INK
    canvas.write(scene.story(path), (24, HEIGHT - 22), color=color)
    return canvas.finished()


def _paint_time(canvas: Canvas, stage: int, horizon: int) -> None:
    """Paint a bar of H parts: past steps dark, the other steps grey."""
    left, width, gap = 24.0, WIDTH - 48.0, 2.0 if horizon <= 80 else 0.0
    part = width / horizon
    for h in range(horizon):
        canvas.rectangle(left + h * part, 46, part - gap, 8, INK if h < stage else FAINT)


def picture(scene: Scene, path: Path) -> NDArray[np.uint8]:  # [y, x, color]
    """Return the scene as pixels."""
    pixels = _pygame().surfarray.array3d(_paint(scene, path))  # [x, y, color]
    return np.ascontiguousarray(np.transpose(pixels, (1, 0, 2)))


class Window:
    """A window on the screen."""

    def __init__(self, title: str, fps: int) -> None:
        self._pygame = _pygame()
        self._title = title
        self._clock = self._pygame.time.Clock()
        self._fps = fps
        self._surface: Any = None

    def show(self, scene: Scene, path: Path) -> None:
        """Show a scene, and wait for the time of one frame."""
        display = self._pygame.display
        if not display.get_init() or display.get_surface() is not self._surface:  # not open, or closed by another env
            display.init()
            display.set_caption(self._title)
            self._surface = display.set_mode((WIDTH, HEIGHT))
        self._surface.blit(_paint(scene, path), (0, 0))
        self._pygame.event.pump()
        self._pygame.display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        """Close the window."""
        self._pygame.display.quit()
