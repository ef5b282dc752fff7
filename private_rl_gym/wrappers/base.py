"""The operations that every trust boundary refuses."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym

from private_rl_gym.wrappers.arguments import bound_arguments, signature_of
from private_rl_gym.wrappers.sources import TRANSPARENT, frameless, layers, quietly

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Sealed"]


class Sealed(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """A wrapper that cannot be rendered, copied or pickled.

    It gives no access to attributes inside. Its arguments are checked against the whole signature of its class, and
    kept for ``spec``.
    """

    usual_batch: ClassVar[int] = 1
    """The number of users in a batch, unless ``schedule=`` says another one."""

    def __init_subclass__(cls, **about: Any) -> None:
        super().__init_subclass__(**about)
        cls.__signature__ = signature_of(cls)  # type: ignore[attr-defined] # read by inspect, help and grids

    def __new__(cls, *positional: Any, **named: Any) -> Self:
        """Check the arguments before anything is built."""
        self = super().__new__(cls)
        arguments = bound_arguments(cls, positional, named)
        gym.utils.RecordConstructorArgs.__init__(self, **{k: v for k, v in arguments.items() if k != "env"})
        return self

    def _wrap(self, env: Any) -> None:
        """Wrap an environment; raise TypeError for anything else.

        The error contains the line to write.
        """
        if not isinstance(env, gym.Env):
            raise TypeError(
                f"A boundary goes around one environment, and was given a {type(env).__name__}: write "
                f"{type(self).__name__}(gym.make('PrivateRL/RiverSwim-v0'), ...)."
            )
        gym.Wrapper.__init__(self, env)

    def __str__(self) -> str:
        # Classes by their names: the text of an environment is its own, and may show the user who is in it.
        kind = type(self).__name__
        try:
            inside = [type(layer).__name__ for layer in layers(self.env) if not isinstance(layer, TRANSPARENT)]
            return f"<{kind} around {' around '.join(inside)}: {'; '.join(self.in_short())}>"
        except (AttributeError, TypeError):  # half built, or refused by its own guarantee: a text is never an error
            return f"<{kind}>"

    def in_short(self) -> list[str]:
        """Return the guarantee of this boundary and public facts, for its text."""
        return []

    @property
    def render_mode(self) -> None:  # type: ignore[override]
        """None, because a boundary has no pictures: see :meth:`render`.

        It warns if pictures were asked for inside, because they stay there.
        """
        asked = getattr(self.env, "render_mode", None)
        if asked not in (None, "ansi"):
            warnings.warn(f"render_mode={asked!r} stays inside. {self._no_pictures}", stacklevel=3)

    def render(self) -> Any:
        """Raise an error, because a picture shows a user's data."""
        raise gym.error.Error(self._no_pictures)

    @property
    def _no_pictures(self) -> str:
        return (
            "A picture shows a user's data, which stays inside the trust boundary. An experimenter may render what "
            "lies inside, with env.unwrapped.render(), or record it there: "
            f"{type(self).__name__}(RecordVideo(env, folder), ...)."
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "A trust boundary is not copied or pickled: two copies would put the same noise on different data, and "
            "spend one budget twice. Build a new boundary, or continue this one with save_state and load_state."
        )

    @frameless
    def close(self) -> None:
        """Close the environment."""
        _, problem = quietly(super().close)
        if problem is not None:
            raise problem

    # Attributes of wrapped environments cannot be reached through the boundary: Stable-Baselines3's Monitor has methods
    # that return rewards, and `env_method` would find them by the methods below. An experimenter can keep a reference
    # to the wrapped environment and use that.

    def get_wrapper_attr(self, name: str) -> Any:
        """Return an attribute of this boundary; wrapped environments are not searched."""
        if name == "render_mode":
            return None  # without a warning: a VecEnv asks each environment, whether or not a picture is wanted
        try:
            return getattr(self, name)
        except AttributeError:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}, and does not read attributes from inside the trust "
                "boundary. In experiments, use env.unwrapped, or keep a reference to the environment."
            ) from None

    def has_wrapper_attr(self, name: str) -> bool:
        """Return whether this boundary has such an attribute."""
        return hasattr(self, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute of this boundary; wrapped environments are not changed."""
        if not hasattr(self, name):
            if not force:
                return False
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}, and does not set attributes inside the trust "
                "boundary. Set it on the environment, before the boundary is built."
            )
        setattr(self, name, value)
        return True
