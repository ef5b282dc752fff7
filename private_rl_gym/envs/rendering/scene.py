"""The content of pictures, and the text around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from private_rl_gym.envs.finite import FiniteModel

if TYPE_CHECKING:
    from private_rl_gym.envs.rendering.canvas import Canvas

__all__ = ["Path", "Scene", "text"]


@dataclass(frozen=True, slots=True, repr=False)
class Path:
    """The steps of a user so far.

    This is raw user data, so it has no ``repr``.
    """

    states: tuple[int, ...]  # [h], one more than actions
    actions: tuple[int, ...]  # [h]
    rewards: tuple[float, ...]  # [h]

    @classmethod
    def start(cls, state: int) -> Path:
        """Return the path of a new user."""
        return cls((state,), (), ())

    def then(self, action: int, reward: float, state: int) -> Path:
        """Return this path with one more step."""
        return Path((*self.states, state), (*self.actions, action), (*self.rewards, reward))

    @property
    def state(self) -> int:
        """The current state of the user."""
        return self.states[-1]

    @property
    def stage(self) -> int:
        """Number of steps so far."""
        return len(self.actions)

    @property
    def total(self) -> float:
        """Sum of rewards so far."""
        return sum(self.rewards)


class Scene(ABC):
    """The drawing of a family of models.

    It is the part below the title and the bar of the time left.
    """

    def __init__(self, model: FiniteModel, title: str) -> None:
        self.model = model
        self.title = title

    def action_name(self, action: int) -> str:
        """Return the action of the user, as a phrase."""
        return f"action {action}"

    @abstractmethod
    def line(self, path: Path) -> str:
        """Return the scene as a line of text."""

    @abstractmethod
    def paint(self, canvas: Canvas, path: Path) -> None:
        """Paint the scene between ``canvas.top`` and ``canvas.bottom``."""

    def story(self, path: Path) -> str:
        """Return the last step in words."""
        if not path.actions:
            return "a user arrives"
        return f"{self.action_name(path.actions[-1])}, reward {path.rewards[-1]:g}, total {path.total:g}"


def text(scene: Scene, path: Path) -> str:
    """Return the scene as text, with title, time left and last step."""
    horizon = scene.model.horizon
    done = min(40, horizon) * path.stage // horizon
    bar = "#" * done + "." * (min(40, horizon) - done)
    return f"{scene.title}   step {path.stage} of {horizon} [{bar}]\n{scene.line(path)}\n{scene.story(path)}\n"
