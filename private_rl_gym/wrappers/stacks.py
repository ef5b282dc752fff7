"""Which boundary may be put around which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym

from private_rl_gym.wrappers.inside import layers

if TYPE_CHECKING:
    from private_rl_gym.wrappers.boundary import Boundary

__all__ = ["find_inner"]


def find_inner(board: Boundary, env: gym.Env[Any, Any]) -> Boundary | None:
    """The boundary that ``board`` is put around, or None; or a sentence, if that makes no sense."""
    from private_rl_gym.wrappers.boundary import Boundary

    name = type(board).__name__
    for layer in layers(env):
        kind = type(layer).__name__
        if getattr(layer, "randomizes_steps", False):
            raise ValueError(
                f"{name} around {kind} makes no sense: its rewards are noisy, and sums need rewards in [0, 1]. Use "
                "LDPUserSide, whose reports are made to be summed."
            )
        if not isinstance(layer, Boundary):
            continue
        if layer._outer is not None:
            raise ValueError(f"{kind} lies inside a {type(layer._outer).__name__} already: build another one.")
        if layer._arrived:
            raise ValueError(f"{kind} has met users already: build the whole stack first.")
        if kind not in board.may_enclose:
            allowed = " or ".join(board.may_enclose) or "no other boundary"
            raise ValueError(
                f"{name} around {kind} makes no sense: users' data has left their trust there already. {name} may be "
                f"put around a bare environment, or {allowed}."
            )
        return layer
    return None
