"""What every trust boundary hides, whatever else it does."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

__all__ = ["HiddenPictures"]


class HiddenPictures(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that shows no pictures: they show a user's data."""

    @property
    def render_mode(self) -> None:  # type: ignore[override]
        """None: see :meth:`render`."""
        return

    def render(self) -> Any:
        """Refused."""
        raise gym.error.Error(
            "A picture shows a user's data, which stays inside the trust boundary. An experimenter may render what "
            "lies inside, with env.unwrapped.render()."
        )
