"""Optimistic value iteration with a bonus that depends on visits alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.solve import Plan, optimistic_backward_induction

__all__ = ["estimates", "optimistic_evaluation", "optimistic_plan"]


def estimates(
    n: NDArray[np.float64],  # [h, s, a]
    m: NDArray[np.float64],  # [h, s, a, s']
    r: NDArray[np.float64],  # [h, s, a]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return estimated transitions m / n and rewards r / n.

    Rewards are cut to [0, 1]. Visits below one count as one.
    """
    visits = np.maximum(n, 1.0)
    return m / visits[..., None], np.clip(r / visits, 0.0, 1.0)


def optimistic_plan(
    transitions: NDArray[np.float64],  # [h, s, a, s']
    rewards: NDArray[np.float64],  # [h, s, a]
    bonus: NDArray[np.float64],  # [h, s, a]
    known: NDArray[np.bool_],  # [h, s, a]
    *,
    staged: bool,
) -> Plan:
    """Plan by value iteration with a given bonus, from the last stage to the first.

    Q = min(largest, r + P V + bonus) where ``known``, else the largest value: H - h if ``staged``, or H.
    """
    horizon = len(bonus)
    largest = np.arange(horizon, 0, -1.0) if staged else np.full(horizon, float(horizon))
    width = np.where(known, bonus, largest[:, None, None])
    return optimistic_backward_induction(transitions * known[..., None], rewards * known, width, ceiling=largest)


def optimistic_evaluation(
    transitions: NDArray[np.float64],  # [h, s, a, s']
    rewards: NDArray[np.float64],  # [h, s, a]
    bonus: NDArray[np.float64],  # [h, s, a]
    policy: Policy,
) -> NDArray[np.float64]:  # [h, s, a]
    """Return the optimistic Q of ``policy``, from the last stage to the first.

    Q = min(H - h, r + P V + bonus), where V is the mean of Q under the policy.
    """
    return np.asarray(_evaluate(transitions, rewards, bonus, policy.probabilities))


@compiled
def _evaluate(transitions: Any, rewards: Any, bonus: Any, probabilities: Any) -> Any:
    H, S, A = bonus.shape
    q = np.empty((H, S, A))
    v = np.zeros(S)
    for h in range(H - 1, -1, -1):
        following = v
        v = np.zeros(S)
        for s in range(S):
            for a in range(A):
                value = rewards[h, s, a] + bonus[h, s, a]
                for successor in range(S):
                    value += transitions[h, s, a, successor] * following[successor]
                q[h, s, a] = min(max(value, 0.0), float(H - h))
                v[s] += probabilities[h, s, a] * q[h, s, a]
    return q
