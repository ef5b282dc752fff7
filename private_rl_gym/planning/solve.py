"""Exact dynamic programming over dense arrays, compiled.

Axis h of ``transitions`` and ``rewards`` has length H, or length 1 where one stage stands for all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.planning.arrays import positive_integer, read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.policy import Policy

__all__ = ["Plan", "backward_induction", "evaluate_policy", "occupancy", "optimistic_backward_induction"]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The outcome of planning: values, and the policy that is greedy for them."""

    q: NDArray[np.float64]  # [h, s, a]
    v: NDArray[np.float64]  # [h, s], h = 0..H, zero at the end
    actions: NDArray[np.int64]  # [h, s], the first of the best

    @property
    def policy(self) -> Policy:
        """The greedy policy."""
        return Policy.trusted(read_only(self.actions), self.q.shape[2])

    def __repr__(self) -> str:
        horizon, n_states, n_actions = self.q.shape
        return f"Plan(H={horizon}, S={n_states}, A={n_actions})"


def backward_induction(
    transitions: NDArray[np.float64],  # [h, s, a, s']
    rewards: NDArray[np.float64],  # [h, s, a]
    horizon: int,
) -> Plan:
    """Optimal values and policy of a finite-horizon model."""
    P, r = _checked(transitions, rewards, positive_integer(horizon, "horizon", "stages"))
    return Plan(*_backward(P, r, horizon))


def optimistic_backward_induction(
    transitions: NDArray[np.float64],  # [h, s, a, s']
    rewards: NDArray[np.float64],  # [h, s, a]
    bonus: NDArray[np.float64],  # [h, s, a]
    *,
    ceiling: ArrayLike | None = None,  # [h]
    floor: float = -math.inf,
    previous: NDArray[np.float64] | None = None,  # [h, s, a]
) -> Plan:
    """Q = min(ceiling, max(floor, reward + bonus + P V), previous), from the last stage to the first.

    Args:
        transitions: Estimated transitions. Rows need not sum to one.
        rewards: Estimated rewards.
        bonus: What uncertainty adds to each entry; its first axis gives the horizon.
        ceiling: The largest value possible from each stage on; H - h by default.
        floor: The smallest value possible.
        previous: An earlier Q that the new one must not exceed, for learners whose Q never rises.
    """
    if bonus.ndim != 3:
        raise ValueError(f"The bonus has shape {bonus.shape}: it must be [h, s, a].")
    horizon = len(bonus)
    P, r = _checked(transitions, rewards, horizon)
    if bonus.shape != (horizon, *r.shape[1:]):
        raise ValueError(f"The bonus has shape {bonus.shape}: with these rewards it must be {(horizon, *r.shape[1:])}.")
    tops = np.arange(horizon, 0, -1.0) if ceiling is None else np.asarray(ceiling, dtype=np.float64)
    if tops.shape not in ((), (horizon,)) or np.isnan(bonus).any():
        raise ValueError(
            f"The ceiling has shape {tops.shape}, and {np.isnan(bonus).sum()} bonuses are not numbers: give "
            f"one ceiling, or one for each of the {horizon} stages, and a bonus without gaps."
        )
    caps = np.empty(bonus.shape)
    caps[:] = tops[..., None, None]
    if previous is not None:
        np.minimum(caps, previous, out=caps)
    return Plan(*_backward_optimistic(P, r, np.asarray(bonus, dtype=np.float64), float(floor), caps))


def evaluate_policy(
    transitions: NDArray[np.float64],  # [h, s, a, s']
    rewards: NDArray[np.float64],  # [h, s, a]
    policy: Policy,
) -> NDArray[np.float64]:  # [h, s], h = 0..H
    """The value of ``policy`` from every stage and state."""
    P, r = _checked(transitions, rewards, policy.horizon)
    _check_fit(policy, P)
    if policy.deterministic:
        return np.asarray(_evaluate_deterministic(P, r, policy.table))
    return np.asarray(_evaluate_stochastic(P, r, policy.table))


def occupancy(
    transitions: NDArray[np.float64],  # [h, s, a, s']
    initial: NDArray[np.float64],  # [s]
    policy: Policy,
) -> NDArray[np.float64]:  # [h, s, a]
    """The probability that ``policy`` is in state s and does a at stage h."""
    P, _ = _checked(transitions, None, policy.horizon)
    _check_fit(policy, P)
    if initial.shape != P.shape[1:2]:
        raise ValueError(f"initial has shape {initial.shape}: it must be one probability a state, {P.shape[1:2]}.")
    return np.asarray(_occupancy(P, np.asarray(initial, dtype=np.float64), policy.probabilities))


def _checked(transitions: Any, rewards: Any, horizon: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Arrays that the compiled functions can walk through without leaving them."""
    P = np.ascontiguousarray(transitions, dtype=np.float64)
    if P.ndim != 4 or P.shape[1] != P.shape[3] or len(P) not in (1, horizon):
        raise ValueError(f"transitions have shape {P.shape}: they must be [h, s, a, s'], with one h, or {horizon}.")
    r = np.zeros((1, *P.shape[1:3])) if rewards is None else np.ascontiguousarray(rewards, dtype=np.float64)
    if r.shape not in ((1, *P.shape[1:3]), (horizon, *P.shape[1:3])):
        raise ValueError(
            f"rewards have shape {r.shape}: with these transitions they must be {(horizon, *P.shape[1:3])}, or the "
            "same with one h."
        )
    return P, r


def _check_fit(policy: Policy, transitions: NDArray[np.float64]) -> None:
    if (policy.n_states, policy.n_actions) != transitions.shape[1:3]:
        raise ValueError(
            f"{policy} does not fit the transitions: they have S={transitions.shape[1]}, A={transitions.shape[2]}."
        )


@compiled
def _expected(row: Any, values: Any) -> float:
    total = 0.0
    for successor in range(len(row)):
        total += row[successor] * values[successor]
    return total


@compiled
def _greedy(q: Any, v: Any, actions: Any) -> None:
    """Fill the values and the first best action of one stage from its Q."""
    for s in range(q.shape[0]):
        best = 0
        for a in range(1, q.shape[1]):
            if q[s, a] > q[s, best]:
                best = a
        v[s] = q[s, best]
        actions[s] = best


@compiled
def _backward(transitions: Any, rewards: Any, horizon: int) -> Any:
    _, n_states, n_actions, _ = transitions.shape
    q = np.empty((horizon, n_states, n_actions))
    v = np.zeros((horizon + 1, n_states))
    actions = np.empty((horizon, n_states), dtype=np.int64)
    for h in range(horizon - 1, -1, -1):
        P = transitions[h % transitions.shape[0]]
        r = rewards[h % rewards.shape[0]]
        for s in range(n_states):
            for a in range(n_actions):
                q[h, s, a] = r[s, a] + _expected(P[s, a], v[h + 1])
        _greedy(q[h], v[h], actions[h])
    return q, v, actions


@compiled
def _backward_optimistic(transitions: Any, rewards: Any, bonus: Any, floor: float, caps: Any) -> Any:
    horizon, n_states, n_actions = bonus.shape
    q = np.empty((horizon, n_states, n_actions))
    v = np.zeros((horizon + 1, n_states))
    actions = np.empty((horizon, n_states), dtype=np.int64)
    for h in range(horizon - 1, -1, -1):
        P = transitions[h % transitions.shape[0]]
        r = rewards[h % rewards.shape[0]]
        for s in range(n_states):
            for a in range(n_actions):
                value = r[s, a] + bonus[h, s, a] + _expected(P[s, a], v[h + 1])
                q[h, s, a] = min(caps[h, s, a], max(floor, value))
        _greedy(q[h], v[h], actions[h])
    return q, v, actions


@compiled
def _evaluate_deterministic(transitions: Any, rewards: Any, table: Any) -> Any:
    horizon, n_states = table.shape
    v = np.zeros((horizon + 1, n_states))
    for h in range(horizon - 1, -1, -1):
        P = transitions[h % transitions.shape[0]]
        r = rewards[h % rewards.shape[0]]
        for s in range(n_states):
            a = table[h, s]
            v[h, s] = r[s, a] + _expected(P[s, a], v[h + 1])
    return v


@compiled
def _evaluate_stochastic(transitions: Any, rewards: Any, probabilities: Any) -> Any:
    horizon, n_states, n_actions = probabilities.shape
    v = np.zeros((horizon + 1, n_states))
    for h in range(horizon - 1, -1, -1):
        P = transitions[h % transitions.shape[0]]
        r = rewards[h % rewards.shape[0]]
        for s in range(n_states):
            for a in range(n_actions):
                if probabilities[h, s, a] > 0.0:
                    v[h, s] += probabilities[h, s, a] * (r[s, a] + _expected(P[s, a], v[h + 1]))
    return v


@compiled
def _occupancy(transitions: Any, initial: Any, probabilities: Any) -> Any:
    horizon, n_states, n_actions = probabilities.shape
    reached = initial.copy()
    visits = np.zeros((horizon, n_states, n_actions))
    for h in range(horizon):
        P = transitions[h % transitions.shape[0]]
        following = np.zeros(n_states)
        for s in range(n_states):
            for a in range(n_actions):
                mass = reached[s] * probabilities[h, s, a]
                visits[h, s, a] = mass
                if mass > 0.0:
                    for successor in range(n_states):
                        following[successor] += mass * P[s, a, successor]
        reached = following
    return visits
