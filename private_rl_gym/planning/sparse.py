"""Exact dynamic programming over packed outcomes, compiled: what ``solve`` does for dense arrays.

Row (h * S + s) * A + a, with h = 0 where one stage stands for all, owns the entries from ``offsets[row]`` to
``offsets[row + 1]``. Rewards are ``[h, s, a]``, the first axis of length H or 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.solve import Plan

__all__ = ["Packed", "sparse_backward_induction", "sparse_occupancy", "sparse_values"]

Packed = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # offsets, successors, probabilities


def sparse_backward_induction(packed: Packed, rewards: NDArray[np.float64], horizon: int) -> Plan:
    """Optimal values and policy."""
    return Plan(*_backward(*packed, rewards, horizon))


def sparse_values(packed: Packed, rewards: NDArray[np.float64], policy: Policy) -> NDArray[np.float64]:  # [h, s]
    """The value of a policy from every stage and state, h = 0..H."""
    if policy.deterministic:
        return np.asarray(_evaluate_deterministic(*packed, rewards, policy.table))
    return np.asarray(_evaluate_stochastic(*packed, rewards, policy.table))


def sparse_occupancy(packed: Packed, initial: NDArray[np.float64], policy: Policy) -> NDArray[np.float64]:  # [h, s, a]
    """The probability that a policy is in state s and does a at stage h."""
    return np.asarray(_occupancy(*packed, initial, policy.probabilities))


@compiled
def _expected(successors: Any, probabilities: Any, start: int, stop: int, values: Any) -> float:
    total = 0.0
    for entry in range(start, stop):
        total += probabilities[entry] * values[successors[entry]]
    return total


@compiled
def _backward(offsets: Any, successors: Any, probabilities: Any, rewards: Any, horizon: int) -> Any:
    _, n_states, n_actions = rewards.shape
    pairs = n_states * n_actions
    staged = len(offsets) - 1 > pairs
    q = np.empty((horizon, n_states, n_actions))
    v = np.zeros((horizon + 1, n_states))
    actions = np.empty((horizon, n_states), dtype=np.int64)
    for h in range(horizon - 1, -1, -1):
        r, first = rewards[h % rewards.shape[0]], (h * pairs if staged else 0)
        for s in range(n_states):
            best = 0
            for a in range(n_actions):
                row = first + s * n_actions + a
                value = r[s, a] + _expected(successors, probabilities, offsets[row], offsets[row + 1], v[h + 1])
                q[h, s, a] = value
                if value > q[h, s, best]:
                    best = a
            v[h, s] = q[h, s, best]
            actions[h, s] = best
    return q, v, actions


@compiled
def _evaluate_deterministic(offsets: Any, successors: Any, probabilities: Any, rewards: Any, table: Any) -> Any:
    horizon, n_states = table.shape
    n_actions = rewards.shape[2]
    pairs = n_states * n_actions
    staged = len(offsets) - 1 > pairs
    v = np.zeros((horizon + 1, n_states))
    for h in range(horizon - 1, -1, -1):
        r, first = rewards[h % rewards.shape[0]], (h * pairs if staged else 0)
        for s in range(n_states):
            row = first + s * n_actions + table[h, s]
            ahead = _expected(successors, probabilities, offsets[row], offsets[row + 1], v[h + 1])
            v[h, s] = r[s, table[h, s]] + ahead
    return v


@compiled
def _evaluate_stochastic(offsets: Any, successors: Any, probabilities: Any, rewards: Any, chances: Any) -> Any:
    horizon, n_states, n_actions = chances.shape
    pairs = n_states * n_actions
    staged = len(offsets) - 1 > pairs
    v = np.zeros((horizon + 1, n_states))
    for h in range(horizon - 1, -1, -1):
        r, first = rewards[h % rewards.shape[0]], (h * pairs if staged else 0)
        for s in range(n_states):
            for a in range(n_actions):
                if chances[h, s, a] > 0.0:
                    row = first + s * n_actions + a
                    ahead = _expected(successors, probabilities, offsets[row], offsets[row + 1], v[h + 1])
                    v[h, s] += chances[h, s, a] * (r[s, a] + ahead)
    return v


@compiled
def _occupancy(offsets: Any, successors: Any, probabilities: Any, initial: Any, chances: Any) -> Any:
    horizon, n_states, n_actions = chances.shape
    pairs = n_states * n_actions
    staged = len(offsets) - 1 > pairs
    reached = initial.copy()
    visits = np.zeros((horizon, n_states, n_actions))
    for h in range(horizon):
        following = np.zeros(n_states)
        first = h * pairs if staged else 0
        for s in range(n_states):
            for a in range(n_actions):
                mass = reached[s] * chances[h, s, a]
                visits[h, s, a] = mass
                if mass > 0.0:
                    row = first + s * n_actions + a
                    for entry in range(offsets[row], offsets[row + 1]):
                        following[successors[entry]] += mass * probabilities[entry]
        reached = following
    return visits
