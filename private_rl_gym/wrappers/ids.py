"""Boundaries by Gymnasium ids, such as ``PrivateRL/RiverSwim-JDP-v0``."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from private_rl_gym import wrappers

__all__ = ["boarded"]


def boarded(*, kind: str, inside: str, **options: Any) -> gym.Env[Any, Any]:
    """Return a boundary around an environment of this package.

    Ids with a boundary's name in them are made by this function. Options that the boundary takes are its own, except
    ``horizon``; all others are the environment's. ``stationary`` is for both, where the environment takes it.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> board = gym.make("PrivateRL/RiverSwim-JDP-v0", horizon=10, epsilon=1.0, delta=1e-6, users=500)
        >>> print(board.ledger)
        (1.0, 1e-06)-JDP, replace one user, 500 users

    Args:
        kind: The class of the boundary.
        inside: The id of the environment.
        options: Their options.
    """
    boundary = getattr(wrappers, kind)
    taken = set(inspect.signature(boundary).parameters) - {"env", "horizon"}
    own = {name: value for name, value in options.items() if name in taken}
    entry = gym.spec(inside).entry_point
    make = load_env_creator(entry) if isinstance(entry, str) else entry
    assert make is not None  # noqa: S101 - it is registered with one
    shared = {"stationary"} & set(inspect.signature(make).parameters)
    env = make(**{name: value for name, value in options.items() if name not in taken - shared})
    return boundary(env, **own)  # type: ignore[no-any-return]
