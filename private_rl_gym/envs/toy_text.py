"""Gymnasium's toy-text environments as exact models."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.rewards import RewardRange

__all__ = ["read_toy_text"]


def read_toy_text(
    env: gym.Env[Any, Any], horizon: int | None, reward_range: tuple[float, float] | None
) -> dict[str, Any]:
    """Return the arguments of the model behind ``env.unwrapped.P``.

    See :meth:`TabularModel.from_gym`.
    """
    if not isinstance(env, gym.Env):
        raise TypeError(f"from_gym reads an environment, not {env!r}: make it first, with gym.make.")
    bare = env.unwrapped
    if getattr(bare, "fickle_passenger", False):
        raise ValueError(
            "from_gym reads the transition table, which has no fickle passenger. Make the environment with "
            "fickle_passenger=False."
        )
    table = getattr(bare, "P", None)
    initial = getattr(bare, "initial_state_distrib", None)
    if table is None or initial is None:
        raise TypeError(
            f"{type(bare).__name__} has no transition table: from_gym reads environments with a `P` and an "
            "`initial_state_distrib`, such as FrozenLake, CliffWalking and Taxi."
        )
    H = positive_integer(_horizon(env) if horizon is None else horizon, "horizon", "steps in an episode")
    S, A = len(table), len(table[0])
    every = [outcomes for by_action in table.values() for outcomes in by_action.values()]
    mapping = _reward_range([entry[2] for outcomes in every for entry in outcomes], reward_range, type(bare).__name__)
    ends = _end_states(S, [{entry[2] for entry in outcomes if entry[3]} for outcomes in every])
    P = np.zeros((S + len(set(ends.values())), A, S + len(set(ends.values()))))
    weighted = np.zeros_like(P)  # reward times probability
    for end in range(S, len(P)):
        P[end, :, end] = 1.0
        weighted[end, :, end] = mapping.zero
    for s, actions in table.items():
        for a, outcomes in actions.items():
            for probability, successor, reward, terminated in outcomes:
                target = ends[reward] if terminated else successor
                P[s, a, target] += probability
                weighted[s, a, target] += probability * mapping.mapped(reward)
    rewards = np.divide(weighted, P, out=np.zeros_like(P), where=P > 0)
    return {
        "transitions": P,
        "initial": np.append(initial, np.zeros(len(P) - S)),
        "horizon": H,
        "reward_law": "fixed",
        "outcome_rewards": np.clip(rewards, 0.0, 1.0),  # rounding only: the range was checked
    }


def _end_states(n_states: int, ends: list[set[float]]) -> dict[float, int]:
    """Return the state of episodes that ended early, for each final reward.

    Such an episode stays in this state until the horizon. All rewards share one state, unless one action can end an
    episode with different rewards. In a shared state these would be averaged.

    Args:
        n_states: Number of other states.
        ends: The rewards with which an episode may end, for each state and action.
    """
    mixed = any(len(rewards) > 1 for rewards in ends)
    return {reward: n_states + (place if mixed else 0) for place, reward in enumerate(sorted(set().union(*ends)))}


def _horizon(env: gym.Env[Any, Any]) -> int:
    limit = None if env.spec is None else env.spec.max_episode_steps
    if limit is None:
        raise ValueError(f"{env} has no step limit of its own: give the number of steps in an episode, with horizon=.")
    return limit


def _reward_range(rewards: list[float], given: tuple[float, float] | None, name: str) -> RewardRange:
    least, most = float(min(0.0, *rewards)), float(max(0.0, *rewards))
    mapping = RewardRange.of(given)
    if least < mapping.low or most > mapping.high:
        hint = f"reward_range=({least:g}, {most:g})"
        raise ValueError(
            f"{name} pays rewards from {least:g} to {most:g} (0 after the end), outside {mapping}: "
            f"pass {hint} to map them to [0, 1]."
        )
    return mapping
