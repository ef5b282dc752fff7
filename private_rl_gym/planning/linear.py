"""Optimistic planning for linear mixtures, compiled.

Each stage has a least-squares regression, and a bonus for its error.

No array of S x A x d entries is made: the features of a state and action are computed where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.solve import Plan, greedy

__all__ = ["Optimism", "Regression", "linear_induction"]


HUGE = 1e150
"""A shift beyond which nothing can be learned."""


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """A regression at each stage, with a width for the bonus.

    Lambda = gram + shift I, weights = Lambda^-1 vector, bonus = width |x|_{Lambda^-1}. The shift is raised where Lambda
    is not positive definite, and so is the part of the width that depends on it.
    """

    gram: NDArray[np.float64]  # [h, i, i]
    vector: NDArray[np.float64]  # [h, i]
    shift: NDArray[np.float64]  # [h], above 0 where there is anything to learn
    width: NDArray[np.float64]  # [h]
    width_by_shift: float = 0.0  # what is added to the width for each unit of the shift's root

    def packed(self) -> tuple[Any, ...]:
        """Return all fields as a tuple, for compiled functions."""
        return self.gram, self.vector, self.shift, self.width, self.width_by_shift


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Optimism(Plan):
    """A plan, with counts of the problems that it met.

    Attributes:
        scaled: Number of rows of the table phi(h, s, a) that are longer than the stated bound.
        raised: Number of regressions in which noise was larger than the shift, which was raised.
    """

    scaled: int
    raised: int


def linear_induction(
    features: LinearFeatures,
    transitions: Regression,
    rewards: Regression,
    *,
    staged: bool,
    policy: NDArray[np.float64] | None = None,
    absorbing: int | None = None,
    waiting_reward: float = 0.0,
) -> Optimism:
    """Plan optimistically from the last stage to the first, or evaluate a policy so.

    Q = reward + bonus + <phi, theta> + bonus, cut to the possible range.

    Args:
        features: Psi and varphi.
        transitions: Regression of the next value on phi.
        rewards: Regression of the reward on varphi.
        staged: Cut the reward to [0, 1], and the next value to the range of values of possible next states; if
            False, cut only their sum, to [0, H - h].
        policy: ``[h, s, a]``, the policy to evaluate; None for the greedy one.
        absorbing: A state that no action leaves, or None.
        waiting_reward: The reward of each step there.
    """
    horizon = len(transitions.gram)
    shape = (horizon, features.n_states, features.n_actions)
    q, v = np.empty(shape), np.zeros((horizon + 1, features.n_states))
    actions = np.zeros(shape[:2], dtype=np.int64)
    scaled, raised = _induction(
        features.arrays,
        transitions.packed(),
        rewards.packed(),
        (features.bound, staged, -1 if absorbing is None else absorbing, waiting_reward),
        np.empty((0, 0, 0)) if policy is None else policy,
        q,
        v,
        actions,
    )
    return Optimism(read_only(q), read_only(v), read_only(actions), int(scaled), int(raised))


@compiled
def _induction(
    known: Any, transitions: Any, rewards: Any, options: Any, policy: Any, q: Any, v: Any, actions: Any
) -> Any:
    offsets, kernels, successors, weights, varphi = known
    bound, staged, absorbing, waiting_reward = options
    horizon, n_states, n_actions = q.shape
    d, j = transitions[0].shape[1], varphi.shape[1]
    factor_p, factor_r = np.zeros((d, d)), np.zeros((j, j))
    theta, eta, phi, spare = np.zeros(d), np.zeros(j), np.zeros(d), np.zeros(max(d, j))
    scaled, raised = 0, 0
    for h in range(horizon - 1, -1, -1):
        top = float(horizon - h)
        used = _regress(rewards[0][h], rewards[1][h], rewards[2][h], factor_r, eta)
        raised += used > rewards[2][h]
        width_r, width_p = rewards[3][h] + rewards[4] * np.sqrt(used), 0.0
        last = h == horizon - 1  # no value follows
        if not last:
            used = _regress(transitions[0][h], transitions[1][h], transitions[2][h], factor_p, theta)
            raised += used > transitions[2][h]
            width_p = transitions[3][h] + transitions[4] * np.sqrt(used)
        for s in range(n_states):
            for a in range(n_actions):
                row = s * n_actions + a
                reward = _dot(varphi[row], eta) + width_r * _length(factor_r, varphi[row], spare)
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
                    ahead = _dot(phi, theta) + width_p * _length(factor_p, phi, spare)
                    if staged and low <= high:
                        ahead = min(high, max(low, ahead))
                if staged:
                    reward = min(1.0, max(0.0, reward))
                q[h, s, a] = top * waiting_reward if s == absorbing else min(top, max(0.0, reward + ahead))
        greedy(q[h], v[h], actions[h])
        if policy.size > 0:
            for s in range(n_states):
                v[h, s] = 0.0
                for a in range(n_actions):
                    v[h, s] += policy[h, s, a] * q[h, s, a]
    return scaled, raised


@compiled
def _regress(gram: Any, vector: Any, shift: float, factor: Any, solution: Any) -> float:
    """Factor gram + shift I, solve, and return the shift that was used.

    The shift is doubled until the matrix is positive definite.
    """
    while not _cholesky(gram, shift, factor):
        shift = 2.0 * shift + 1e-12
        if not shift < HUGE:  # nothing can be learned from what is no number
            factor[:], solution[:] = np.eye(len(vector)) * HUGE, 0.0
            return HUGE
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
    return shift


@compiled
def _cholesky(gram: Any, shift: float, factor: Any) -> bool:
    """Fill the lower triangle with L, where L L^T = gram + shift I.

    Returns False if that is not positive definite.
    """
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
    """Return the norm of L^-1 x."""
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
