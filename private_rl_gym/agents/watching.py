"""Stable-Baselines3's callbacks, called for every step that a user has taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_rl_gym.lazy import install

if TYPE_CHECKING:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.type_aliases import MaybeCallback

    from private_rl_gym.agents.base import Agent

__all__ = ["tell", "watching"]


def watching(
    agent: Agent, callback: MaybeCallback, total: int, name: str, *, progress_bar: bool
) -> BaseCallback | None:
    """The requested callbacks as one that has been started; None if there are none."""
    if callback is None and not progress_bar:
        return None
    from stable_baselines3.common import callbacks

    if not isinstance(callback, callbacks.BaseCallback):
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
    callback.init_callback(agent)  # type: ignore[arg-type] # callbacks use only what an agent has
    callback.on_training_start({"self": agent, "total_timesteps": total, "tb_log_name": name}, globals())
    callback.on_rollout_start()
    return callback


def tell(agent: Agent, callback: BaseCallback) -> bool:
    """Call the callback for each step of a user. Returns False at the end if it wants to stop."""
    going, horizon, policy = True, agent.horizon, agent._policy  # a callback may plan anew; she ran this one
    try:
        for h in range(horizon):
            agent.num_timesteps += 1
            agent._in_episode = h < horizon - 1  # until she is done, no plan from her data is shown
            if going:
                callback.update_locals({"dones": np.array([h == horizon - 1]), "policy": policy})
                going = callback.on_step()
    finally:
        agent._in_episode = False
    return going
