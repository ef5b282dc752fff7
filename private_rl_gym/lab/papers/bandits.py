"""The setting of PUCB's lower bounds.

It has bandits inside HardMDP, and the best arm of HardBandit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.planning.policy import Policy

__all__ = ["BanditTrace", "bandit_traces", "best_arm"]


@dataclass(frozen=True, slots=True, eq=False)
class BanditTrace:
    """The view that a bandit has of an agent on HardMDP (PUCB, lemma 9).

    Attributes:
        arms: First actions of all episodes that started in the bandit's state, in order.
        final: The action that the last policy takes there.
    """

    arms: NDArray[np.int64]
    final: int


def bandit_traces(agent: Agent, tapes: NDArray[np.float64]) -> dict[int, BanditTrace]:
    """Return the trace of each start state, after an agent has learned.

    The agent learns from these users one by one, and its first actions are split by start state.

    If the agent is epsilon-JDP with public start states, each trace is the output of an epsilon-DP bandit learner.
    """
    board = agent.board
    if board is None:
        raise ValueError("The agent has no environment: give it one with set_env.")
    tables = board.unwrapped.model.tables  # type: ignore[attr-defined]
    pulls: dict[int, list[int]] = {int(state): [] for state in tables.initial_states}
    for tape in tapes:
        start = int(tables.initial_states[np.searchsorted(tables.initial_cumulative, tape[0], side="right")])
        policy = agent.policy
        pulls[start].append(_act(agent, policy, start))
        board.serve(policy, tape[None], rng=agent.rng)
    final = agent.policy
    return {s: BanditTrace(np.array(arms, dtype=np.int64), _act(agent, final, s)) for s, arms in pulls.items()}


def _act(agent: Agent, policy: Policy, start: int) -> int:
    if not policy.deterministic:
        raise ValueError(
            f"{type(agent).__name__} draws its actions: traces are for agents whose policies are deterministic."
        )
    return policy.action(0, start)


def best_arm(agent: Agent, users: int) -> int:
    """Return the arm that is best in the last release.

    Before, the agent learns from ``users`` users of HardBandit.

    This is not always the arm that the agent would try next, which may be the arm that it knows least about.
    """
    agent.learn(users * agent.horizon)
    assert agent.board is not None  # noqa: S101 - it has just learned on it
    return agent.board.private_model().model.optimal_policy().action(0, 0)
