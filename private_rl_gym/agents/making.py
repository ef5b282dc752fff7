"""One line from an agent and an environment to a private run."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from private_rl_gym.agents.base import Agent
from private_rl_gym.agents.dp_policy_gradient import DPPolicyGradient
from private_rl_gym.agents.dp_ppo import DPPPO
from private_rl_gym.agents.inputs import single_env, warn
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.jdp_billboard import JDPBillboard
from private_rl_gym.wrappers.population import layers

__all__ = ["make_private"]

COUNTERPARTS: dict[str, type[Agent]] = {"PPO": DPPPO, "A2C": DPPolicyGradient}
"""Stable-Baselines3's agents, by name, and those of this package that learn in their way."""


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
    """See :func:`private_rl_gym.make_private`."""
    inside = single_env(env)
    if any(isinstance(layer, Boundary) for layer in layers(inside)):
        raise ValueError("The environment lies behind a trust boundary already: give it to an agent as it is.")
    kind, known = _counterpart(agent)
    taken = (*kind.saved_arguments, "seed", "verbose", "tensorboard_log")
    for name in options:
        if name not in taken:
            raise TypeError(
                f"{name} is no argument of {kind.__name__}, which takes {', '.join(taken)}. Stable-Baselines3's other "
                "arguments have no counterpart: every user's episode is used once."
            )
    _warn_of_what_is_left(agent, kind)
    board = JDPBillboard(_without_monitors(inside), epsilon, delta, users=users, horizon=horizon)
    return kind(kind.policies[0], board, **{**known, **options})


def _counterpart(agent: Any) -> tuple[type[Agent], dict[str, Any]]:
    """The class of the private agent, and the arguments that it takes over."""
    kind = agent if isinstance(agent, type) else type(agent)
    if issubclass(kind, Agent):
        if kind is agent:
            return kind, {}
        kept = {name: getattr(agent, name) for name in kind.saved_arguments}
        return kind, {**kept, "seed": agent.seed, "verbose": agent.verbose}
    if kind.__name__ not in COUNTERPARTS or not kind.__module__.startswith("stable_baselines3."):
        raise TypeError(
            f"{kind.__name__} has no private counterpart: give an agent of private_rl_gym.agents or its class, or "
            f"Stable-Baselines3's {' or '.join(COUNTERPARTS)}."
        )
    private = COUNTERPARTS[kind.__name__]
    if kind is agent:
        return private, {}
    asked = {name: value for name, value in agent.policy_kwargs.items() if name in ("net_arch", "activation_fn")}
    taken = {"gamma": agent.gamma, "seed": agent.seed, "verbose": agent.verbose}
    return private, {**taken, "policy_kwargs": asked} if asked else taken


def _warn_of_what_is_left(agent: Any, private: type[Agent]) -> None:
    """Say so if the agent has learned something, which a new agent does not know."""
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
            f"that is no matter, because nobody real was met, use {kind} as it is; else give the class, {kind}."
        )
    warn(
        f"This {kind} has learned for {agent.num_timesteps:,} steps, and the private {private.__name__} begins anew: "
        f"what was learned is not taken over, but for the agent's arguments. {last}"
    )


def _without_monitors(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The environment inside the ``Monitor`` that Stable-Baselines3 puts around it, which keeps users' returns."""
    while type(env).__name__ == "Monitor" and isinstance(env, gym.Wrapper):
        env = env.env
    return env
