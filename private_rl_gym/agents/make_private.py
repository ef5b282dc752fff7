"""The function that makes a private agent from an agent and an environment."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from private_rl_gym.agents.base import Agent
from private_rl_gym.agents.deep.dp_policy_gradient import DPPolicyGradient
from private_rl_gym.agents.deep.dp_ppo import DPPPO
from private_rl_gym.agents.inputs import single_env
from private_rl_gym.agents.world.world_model import LEARNERS, WorldModelAgent
from private_rl_gym.caller import warn
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.jdp_billboard import JDPBillboard
from private_rl_gym.wrappers.sources import layers

__all__ = ["make_private"]

GIVEN = ("env", "epsilon", "delta", "users", "horizon")
"""Arguments of the boundary that ``make_private`` has itself."""

ONCE = "Leave it out: each user is in one batch, and their episode is used once."
ABSENT = {
    "policy": "Leave it out: each agent has one kind of policy; layers are given by policy_kwargs={'net_arch': [32]}.",
    "env": "It is the second argument.",
    "n_envs": "Leave it out: the boundary meets many users at a time by itself.",
    "n_steps": "Leave it out: steps are counted in users here, and batch_size is the number of users in a batch.",
    "device": "Leave it out: gradients are computed by the boundary, by compiled code on the processor.",
    "n_epochs": "Leave it out, or give DPPPO, whose users climb so many steps: this agent makes one step a batch.",
    "max_grad_norm": "Its counterpart is clip, the norm to which what a user reports is clipped.",
    "vf_coef": "Leave it out: DPPPO has a value network by policy_kwargs={'net_arch': {'pi': [32], 'vf': [16]}}.",
    "normalize_advantage": "Leave it out: returns are divided by their range, which users report under the guarantee.",
    "target_kl": ONCE,
    "buffer_size": ONCE,
    "replay_buffer_class": ONCE,
    "rollout_buffer_class": ONCE,
    "gradient_steps": ONCE,
    "train_freq": ONCE,
    "learning_starts": ONCE,
    "use_sde": "Leave it out: actions are drawn by users themselves, each by itself.",
    "stats_window_size": "Leave it out: returns of users are not shown.",
}
"""Arguments of Stable-Baselines3's agents that have no counterpart of their name, and why."""

GRADIENTS: dict[str, type[Agent]] = {"PPO": DPPPO, "A2C": DPPolicyGradient}
"""Stable-Baselines3's agents that climb gradients, and those of this package that do so on users' own gradients."""

KNOWN = ("terminated", "reward", "degree", "timesteps", "learner_kwargs")
"""Arguments that ask for a world model."""


def make_private(
    agent: Any,
    env: Any,
    *,
    epsilon: float,
    delta: float = 1e-6,
    users: int,
    horizon: int | None = None,
    **options: Any,
) -> Agent:
    """Return a private agent: see :func:`private_rl_gym.make_private`."""
    inside = single_env(env)
    if any(isinstance(layer, Boundary) for layer in layers(inside)):
        raise ValueError("The environment lies behind a trust boundary already: give it to an agent as it is.")
    kind, known = _counterpart(agent, options)
    own, boards = _shared_out(kind, options)
    _warn_of_what_is_left(agent, kind)
    board = JDPBillboard(_without_monitors(inside), epsilon, delta, users=users, horizon=horizon, **boards)
    return kind(kind.policies[0], board, **{**known, **own})


def _shared_out(kind: type[Agent], options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the agent, and those of the boundary.

    Options that both take are the agent's.
    """
    own = (*kind.saved_arguments, *kind.functions, "seed", "verbose", "tensorboard_log")
    named = inspect.signature(JDPBillboard).parameters
    boards = [name for name in named if name not in (*own, *GIVEN)]
    for name in options:
        if name not in own and name not in boards:
            near = difflib.get_close_matches(name, [*own, *boards], n=1, cutoff=0.7)
            both = f"It takes {', '.join(own)}, and JDPBillboard {', '.join(boards)}."
            why = ABSENT.get(name) or (f"Did you mean {near[0]}?" if near else both)
            raise TypeError(f"{name} is no argument of {kind.__name__}, nor of its boundary. {why}")
    return (
        {name: value for name, value in options.items() if name in own},
        {name: value for name, value in options.items() if name in boards},
    )


def _counterpart(agent: Any, options: Mapping[str, Any]) -> tuple[type[Agent], dict[str, Any]]:
    """Return the class of the private agent, and the arguments that it takes over."""
    kind = agent if isinstance(agent, type) else type(agent)
    if issubclass(kind, Agent):
        if kind is agent:
            return kind, {}
        kept = {name: getattr(agent, name) for name in kind.saved_arguments}
        return kind, {**kept, "seed": agent.seed, "verbose": agent.verbose}
    if kind.__name__ not in LEARNERS or not kind.__module__.startswith("stable_baselines3."):
        raise TypeError(
            f"{kind.__name__} has no private counterpart: give an agent of private_rl_gym.agents or its class, or "
            f"Stable-Baselines3's {', '.join(LEARNERS[:-1])} or {LEARNERS[-1]}."
        )
    private = _chosen(kind.__name__, options)
    if private is WorldModelAgent:
        own: dict[str, Any] = {"learner": kind.__name__}
        if kind is agent:
            return private, own
        return private, {**own, "learner_kwargs": _kept_arguments(agent), "seed": agent.seed, "verbose": agent.verbose}
    if kind is agent:
        return private, {}
    asked = {name: value for name, value in agent.policy_kwargs.items() if name in ("net_arch", "activation_fn")}
    taken = {"gamma": agent.gamma, "seed": agent.seed, "verbose": agent.verbose}
    return private, {**taken, "policy_kwargs": asked} if asked else taken


def _chosen(name: str, options: Mapping[str, Any]) -> type[Agent]:
    """Return the private agent for this learner.

    A world model needs far fewer users than gradients, where states are numbers that change smoothly. It cannot learn
    when episodes end, so that learners of gradients are trained in one only if this is said.
    """
    asked = any(option in options for option in KNOWN)
    return WorldModelAgent if asked or name not in GRADIENTS else GRADIENTS[name]


def _kept_arguments(agent: Any) -> dict[str, Any]:
    """Return the arguments of a learner that it is built anew with."""
    kept = {"gamma": agent.gamma}
    arch = agent.policy_kwargs.get("net_arch")
    return {**kept, "policy_kwargs": {"net_arch": arch}} if arch is not None else kept


def _warn_of_what_is_left(agent: Any, private: type[Agent]) -> None:
    """Warn if the agent has learned something, because the new agent does not know it."""
    if isinstance(agent, type) or not agent.num_timesteps:
        return
    kind = type(agent).__name__
    if isinstance(agent, Agent):
        last = (
            f"To go on from there, save it, and load it around a board: {kind}.load(path, JDPBillboard(env, epsilon, "
            "delta, users)). Its guarantee is then the weaker of both."
        )
    else:
        last = (
            "Its parameters were learned without privacy, and would carry that into every policy of this agent. Where "
            f"that is no matter, because no real user was met, use {kind} as it is; else give the class, {kind}."
        )
    warn(
        f"This {kind} has learned for {agent.num_timesteps:,} steps, and the private {private.__name__} begins anew: "
        f"what was learned is not taken over, but for the agent's arguments. {last}"
    )


def _without_monitors(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return the environment inside the ``Monitor`` of Stable-Baselines3.

    A monitor keeps users' returns.
    """
    while type(env).__name__ == "Monitor" and isinstance(env, gym.Wrapper):
        env = env.env
    return env
