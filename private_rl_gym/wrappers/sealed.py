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

    # What lies inside is not asked through the boundary: Stable-Baselines3's Monitor there has methods that answer with
    # rewards, and `env_method` finds them by these doors. An experimenter keeps what lies inside, and asks that.

    def get_wrapper_attr(self, name: str) -> Any:
        """An attribute of this boundary; what lies inside is not asked."""
        try:
            return getattr(self, name)
        except AttributeError:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}, and does not ask what lies inside the trust "
                "boundary. An experimenter may ask that, with env.unwrapped or by keeping it at hand."
            ) from None

    def has_wrapper_attr(self, name: str) -> bool:
        """Whether this boundary has such an attribute."""
        return hasattr(self, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute of this boundary; what lies inside is not touched."""
        if not hasattr(self, name):
            if not force:
                return False
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}, and passes nothing on to what lies inside the trust "
                "boundary. Set it there before users come."
            )
        setattr(self, name, value)
        return True
