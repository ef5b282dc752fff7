"""What every trust boundary refuses, whatever else it does."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

__all__ = ["Sealed"]


class Sealed(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that shows no pictures of users, and is never copied."""

    @property
    def render_mode(self) -> None:  # type: ignore[override]
        """None: see :meth:`render`."""
        return

    def render(self) -> Any:
        """Refused: a picture shows a user's data."""
        raise gym.error.Error(
            "A picture shows a user's data, which stays inside the trust boundary. An experimenter may render what "
            "lies inside, with env.unwrapped.render()."
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "A trust boundary is not copied or pickled: two copies would put the same noise on different data, and "
            "spend one budget twice. Build another, or carry one on with save_state and load_state."
        )
