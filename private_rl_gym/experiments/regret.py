"""Exact regret while users are served: the loop that all experiments share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.planning.policy import Policy

__all__ = ["Stretch", "learn_with_regret", "served", "stretches"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive users who ran the same policy.

    Attributes:
        start, stop: Numbers of the first of them, and of the first user after them.
        policy: The policy that they ran.
        gap: Difference between the optimal value and the value of this policy.
    """

    start: int
    stop: int
    policy: Policy
    gap: float


def served(agent: Agent, users: int) -> Iterator[tuple[int, int, Policy]]:
    """Let an agent learn from ``users`` users, and yield each policy with the numbers of its users: from, and up to."""
    count = 0
    while count < users:
        policy = agent.policy
        group = agent.meet(users - count)
        yield count, count + group, policy
        count += group


def stretches(agent: Agent, users: int, truth: FiniteModel | None = None) -> Iterator[Stretch]:
    """Let an agent learn from ``users`` users, and yield one stretch for each policy.

    Args:
        agent: An agent with a boundary, whose environment must know its model unless ``truth`` is given.
        users: Number of users.
        truth: The true model.
    """
    if agent.board is None:
        raise ValueError("The agent has no environment: give it one with set_env.")
    model = truth if truth is not None else agent.board.unwrapped.model  # type: ignore[attr-defined]
    best = model.optimal_value()
    for start, stop, policy in served(agent, users):
        yield Stretch(start, stop, policy, best - model.value_of(policy))


def learn_with_regret(agent: Agent, users: int) -> NDArray[np.float64]:  # [user]
    """Let an agent learn from ``users`` users, and return the regret after each.

    Users come in groups that run one policy, not one by one. The numbers are those of ``RegretCallback``, but faster.
    """
    gaps = np.empty(users)
    for stretch in stretches(agent, users):
        gaps[stretch.start : stretch.stop] = stretch.gap
    return np.cumsum(gaps)
