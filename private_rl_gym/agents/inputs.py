"""Checks and conversions of the arguments that agents are given."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

__all__ = ["single_env", "users_of"]


def users_of(total_timesteps: Any, horizon: int) -> int:
    """The number of users who take this number of steps, rounded up."""
    number = total_timesteps if isinstance(total_timesteps, int | float | np.number) else math.nan
    if not (math.isfinite(number) and number > 0) or isinstance(total_timesteps, bool):
        raise ValueError(
            f"total_timesteps is {total_timesteps!r}: give a number of steps above 0. A user alone takes {horizon}."
        )
    return math.ceil(number / horizon)


def _counted(thing: Any, inside: Any) -> str:
    kind = type(thing).__name__
    return f"A {kind}" if inside is None else f"A {kind} with {len(inside)} environments in it"


def single_env(env: gym.Env[Any, Any] | VecEnv | str) -> gym.Env[Any, Any]:
    """The environment that was given by itself, by its id, or alone in a ``VecEnv``."""
    if isinstance(env, str):
        return gym.make(env)
    if isinstance(env, gym.Env):
        return env
    inside = getattr(env, "envs", None)
    if inside is None or len(inside) != 1:
        raise TypeError(
            f"{_counted(env, inside)} is not one environment: give the agent a Gymnasium environment, the id of one, "
            "or a DummyVecEnv with one in it. Many users at a time are served by the boundary."
        )
    single: gym.Env[Any, Any] = inside[0]
    return single
