"""Optimistic planning for linear mixtures, compiled: least squares at every stage, and a bonus for its error.

No array of S x A x d entries is made: the features of a state and action are computed where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.solve import Plan

__all__ = ["Regression", "linear_induction"]


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """One regression a stage: Lambda = gram + shift I, weights = Lambda^-1 vector, bonus = width |x|_{Lambda^-1}."""

    gram: NDArray[np.float64]  # [h, i, i]
    vector: NDArray[np.float64]  # [h, i]
    shift: NDArray[np.float64]  # [h], above 0 where there is anything to learn
    width: NDArray[np.float64]  # [h]


def linear_induction(
    features: LinearFeatures,
    transitions: Regression,
    rewards: Regression,
    *,
    staged: bool,
    policy: NDArray[np.float64] | None = None,
    absorbing: int | None = None,
) -> tuple[Plan, int, int]:
    """Q = reward + bonus + <phi, theta> + bonus from the last stage to the first, cut to what is possible.

    Args:
        features: Psi and varphi.
        transitions: Of the next value on phi.
        rewards: Of the reward on varphi.
        staged: Cut the reward to [0, 1], and the next value to the range of values of states that may follow; else
            only their sum, to [0, H - h].
        policy: ``[h, s, a]``, to evaluate; None for the greedy one.
        absorbing: A state in which nothing is earned any more, if there is one.

    Returns:
        The plan; how many rows are longer than the stated bound; and in how many stages noise was larger than the
        shift, which was raised until the matrix was positive definite.
    """
    horizon = len(transitions.gram)
    shape = (horizon, features.n_states, features.n_actions)
    q, v = np.empty(shape), np.zeros((horizon + 1, features.n_states))
    actions = np.zeros(shape[:2], dtype=np.int64)
    scaled, raised = _induction(
        features.arrays,
        (transitions.gram, transitions.vector, transitions.shift, transitions.width),
        (rewards.gram, rewards.vector, rewards.shift, rewards.width),
        (features.bound, staged, -1 if absorbing is None else absorbing),
        np.empty((0, 0, 0)) if policy is None else policy,
        q,
        v,
        actions,
    )
    return Plan(q, v, actions), int(scaled), int(raised)


@compiled
def _induction(
    known: Any, transitions: Any, rewards: Any, options: Any, policy: Any, q: Any, v: Any, actions: Any
) -> Any:
    offsets, kernels, successors, weights, varphi = known
    bound, staged, absorbing = options
    horizon, n_states, n_actions = q.shape
    d, j = transitions[0].shape[1], varphi.shape[1]
    factor_p, factor_r = np.zeros((d, d)), np.zeros((j, j))
    theta, eta, phi, spare = np.zeros(d), np.zeros(j), np.zeros(d), np.zeros(max(d, j))
    scaled, raised = 0, 0
    for h in range(horizon - 1, -1, -1):
        top = float(horizon - h)
        raised += _regress(rewards[0][h], rewards[1][h], rewards[2][h], factor_r, eta)
        last = h == horizon - 1  # no value follows
        if not last:
            raised += _regress(transitions[0][h], transitions[1][h], transitions[2][h], factor_p, theta)
        for s in range(n_states):
            for a in range(n_actions):
                row = s * n_actions + a
                reward = _dot(varphi[row], eta) + rewards[3][h] * _length(factor_r, varphi[row], spare)
                ahead = 0.0
                if not last:
                    phi[:] = 0.0
                    low, high = np.inf, -np.inf
                    for entry in range(offsets[row], offsets[row + 1]):
                        value = v[h + 1, successors[entry]]
                        phi[kernels[entry]] += weights[entry] * value
                        low, high = min(low, value), max(high, value)
                    if _dot(phi, phi) > (bound * (top - 1.0)) ** 2 * (1.0 + 1e-9):
                        scaled += 1
                    ahead = _dot(phi, theta) + transitions[3][h] * _length(factor_p, phi, spare)
                    if staged and low <= high:
                        ahead = min(high, max(low, ahead))
                if staged:
                    reward = min(1.0, max(0.0, reward))
                q[h, s, a] = 0.0 if s == absorbing else min(top, max(0.0, reward + ahead))
            if policy.size > 0:
                for a in range(n_actions):
                    v[h, s] += policy[h, s, a] * q[h, s, a]
            else:
                best = 0
                for a in range(1, n_actions):
                    if q[h, s, a] > q[h, s, best]:
                        best = a
                v[h, s], actions[h, s] = q[h, s, best], best
    return scaled, raised


@compiled
def _regress(gram: Any, vector: Any, shift: float, factor: Any, solution: Any) -> int:
    """Factor gram + shift I, and solve; 1 if the shift had to be raised."""
    raised = 0
    while not _cholesky(gram, shift, factor):
        shift, raised = 2.0 * shift + 1e-12, 1
    size = len(vector)
    for i in range(size):
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * solution[k]
        solution[i] = total / factor[i, i]
    for i in range(size - 1, -1, -1):
        total = solution[i]
        for k in range(i + 1, size):
            total -= factor[k, i] * solution[k]
        solution[i] = total / factor[i, i]
    return raised


@compiled
def _cholesky(gram: Any, shift: float, factor: Any) -> bool:
    """Fill the lower triangle with L, L L^T = gram + shift I; False if that is not positive definite."""
    for i in range(len(gram)):
        for k in range(i + 1):
            total = gram[i, k]
            if i == k:
                total += shift
            for m in range(k):
                total -= factor[i, m] * factor[k, m]
            if i > k:
                factor[i, k] = total / factor[k, k]
            elif total > 1e-13 * (abs(gram[i, i]) + shift):
                factor[i, i] = np.sqrt(total)
            else:
                return False
    return True


@compiled
def _dot(x: Any, y: Any) -> float:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@compiled
def _length(factor: Any, x: Any, spare: Any) -> float:
    """The norm of L^-1 x."""
    size, first = len(x), 0
    while first < size and x[first] == 0.0:
        first += 1
    total = 0.0
    for i in range(first, size):
        value = x[i]
        for k in range(first, i):
            value -= factor[i, k] * spare[k]
        spare[i] = value / factor[i, i]
        total += spare[i] * spare[i]
    return float(np.sqrt(total))
