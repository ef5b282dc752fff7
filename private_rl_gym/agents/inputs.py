"""Checks and conversions of the arguments that agents are given."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

__all__ = ["single_env", "users_of"]

WATCHING = ("VecMonitor", "VecCheckNan")
"""Stable-Baselines3's wrappers of a ``VecEnv`` that change neither observations nor rewards."""


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
    _refuse_changes(env)
    inside = getattr(env, "envs", None)
    if callable(env):
        what = f"The class {env.__name__}" if isinstance(env, type) else "A function"
        raise TypeError(f"{what} is not one environment: call it, and give what it returns.")
    if inside is None or len(inside) != 1:
        raise TypeError(
            f"{_counted(env, inside)} is not one environment: give the agent a Gymnasium environment, the id of one, "
            "or a DummyVecEnv with one in it. Many users at a time are served by the boundary."
        )
    single: gym.Env[Any, Any] = inside[0]
    return single


def _refuse_changes(env: Any) -> None:
    """Raise if Stable-Baselines3's wrappers around a ``VecEnv`` change what is seen there: users are met inside."""
    while "venv" in getattr(env, "__dict__", {}):
        kind = type(env).__name__
        if kind == "VecNormalize":
            raise ValueError(
                "VecNormalize scales by what it learned from users, outside any promise: give the environment inside "
                "it. Bring observations to scale by numbers that are publicly known, with "
                "gymnasium.wrappers.TransformObservation around the environment; rewards need no scale for gradients, "
                "and reward_range= where they are counted. (NormalizeObservation learns from users too.)"
            )
        if kind not in WATCHING:
            raise ValueError(
                f"{kind} would see nothing and change nothing: agents meet users inside it. Give the environment "
                "itself, with one of gymnasium.wrappers around it that does the same."
            )
        env = env.venv
