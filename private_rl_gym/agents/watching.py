"""Stable-Baselines3's callbacks, called for every step that a user has taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from private_rl_gym.lazy import install
from private_rl_gym.planning.arrays import shown
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.sources import layers, refused

if TYPE_CHECKING:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.type_aliases import MaybeCallback

    from private_rl_gym.agents.base import Agent

__all__ = ["took_a_step", "watching"]


def watching(
    agent: Agent, callback: MaybeCallback, total: int, name: str, *, progress_bar: bool
) -> BaseCallback | None:
    """Return the requested callbacks as one that is started; None if there are none."""
    if callback is None and not progress_bar:
        return None
    from stable_baselines3.common import callbacks

    _ = agent.logger  # callbacks expect one
    if not isinstance(callback, callbacks.BaseCallback):
        several = callback if isinstance(callback, list) else []
        if not all(isinstance(one, callbacks.BaseCallback) for one in several) or not (
            callback is None or isinstance(callback, list) or callable(callback)
        ):
            raise TypeError(f"callback is {shown(callback)}: give a callback of Stable-Baselines3, or a list of them.")
        if isinstance(callback, list):
            callback = callbacks.CallbackList(callback)
        elif callback is not None:
            callback = callbacks.ConvertCallback(callback)
    if progress_bar:
        try:
            bar = callbacks.ProgressBarCallback()
        except ImportError as error:
            raise ImportError(f"A progress bar needs tqdm and rich: run {install('train')}.") from error
        callback = bar if callback is None else callbacks.CallbackList([callback, bar])
    assert callback is not None  # noqa: S101 - one of them was asked for
    _refuse_boards(callback)
    callback.init_callback(agent)  # type: ignore[arg-type] # callbacks use only what an agent has
    callback.on_training_start({"self": agent, "total_timesteps": total, "tb_log_name": name}, globals())
    callback.on_rollout_start()
    return callback


def _refuse_boards(callback: BaseCallback) -> None:
    """Raise ValueError if a callback, or one inside it, evaluates on a boundary.

    The error is raised before any user has come.
    """
    parts = vars(callback)
    evaluates: Any = parts.get("eval_env")
    while "venv" in getattr(evaluates, "__dict__", {}):
        evaluates = evaluates.venv
    for env in getattr(evaluates, "envs", ()):
        board = next((layer for layer in layers(env) if isinstance(layer, Boundary)), None)
        if board is not None:
            raise ValueError(refused(type(callback).__name__, type(board).__name__))
    for name in ("callbacks", "callback", "callback_on_new_best"):
        inner: Any = parts.get(name)
        for one in inner if isinstance(inner, list) else [inner]:
            if hasattr(one, "on_step"):
                _refuse_boards(one)


def took_a_step(callback: BaseCallback, policy: Any, *, done: bool) -> bool:
    """Call the callback for one step of a user who runs this policy.

    Returns whether the callback wants to continue.
    """
    callback.update_locals({"dones": np.array([done]), "policy": policy})
    return callback.on_step()
