"""The operations that every trust boundary refuses."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

__all__ = ["Sealed"]


class Sealed(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that cannot be rendered, copied or pickled, and gives no access to attributes inside."""

    @property
    def render_mode(self) -> None:  # type: ignore[override]
        """None: see :meth:`render`."""
        return

    def render(self) -> Any:
        """Raise an error: a picture shows a user's data."""
        raise gym.error.Error(
            "A picture shows a user's data, which stays inside the trust boundary. An experimenter may render what "
            "lies inside, with env.unwrapped.render()."
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "A trust boundary is not copied or pickled: two copies would put the same noise on different data, and "
            "spend one budget twice. Build another, or carry one on with save_state and load_state."
        )

    # Attributes of wrapped environments cannot be reached through the boundary: Stable-Baselines3's Monitor has methods
    # that return rewards, and `env_method` would find them by the methods below. An experimenter can keep a reference
    # to the wrapped environment and use that.

    def get_wrapper_attr(self, name: str) -> Any:
        """An attribute of this boundary; wrapped environments are not searched."""
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
        """Set an attribute of this boundary; wrapped environments are not changed."""
        if not hasattr(self, name):
            if not force:
                return False
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}, and passes nothing on to what lies inside the trust "
                "boundary. Set it there before users come."
            )
        setattr(self, name, value)
        return True
