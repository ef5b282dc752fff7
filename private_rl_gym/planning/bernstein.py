"""Value iteration with a bonus or a penalty for the variance of the next value.

* ``bernstein_induction`` - both, for counts by stage or pooled over stages
* ``moments`` - the mean and the variance of the next value by counts, compiled
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.solve import Plan, greedy

__all__ = ["bernstein_induction", "moments"]


def bernstein_induction(
    n: NDArray[np.float64],  # [p, s, a]
    m: NDArray[np.float64],  # [p, s, a, s']
    r: NDArray[np.float64],  # [p, s, a]
    unknown: NDArray[np.float64],  # [p, a]
    noise: NDArray[np.float64],  # [p, a]
    *,
    horizon: int,
    iota: float,
    scale: float,
    usual: bool = False,
) -> Plan:
    """Plan by value iteration with a Bernstein bonus, or with a penalty of this form.

    The plan has Q = r / n + P V + scale (2 sqrt(Var(V) iota / n) + sqrt(2 iota / n)) + noise (H - h) / n,
    cut to at most H - h.

    With a negative scale, and negative noise, the bonus is a penalty, and Q is at least 0. Axis p is a phase: stage h
    is described by phase max(0, h - (H - phases)).

    Args:
        n: Visits, the sums of ``m`` over next states.
        m: Transitions, none negative.
        r: Sums of rewards.
        unknown: Visits up to which Q is H - h, or 0 where the bonus is a penalty, whatever was observed.
        noise: The margin for noise.
        horizon: Number of stages.
        iota: The logarithm in both terms for sampling.
        scale: Their multiplier.
        usual: Whether the last action is no action, but the users' own ones together. Its value is that of states in
            which the value of all others is 0.
    """
    q, v, actions = _induction(n, m, r, unknown, noise, horizon, iota, scale, usual)
    return Plan(q, v, actions)


@compiled
def _induction(n: Any, m: Any, r: Any, unknown: Any, noise: Any, H: int, iota: float, scale: float, usual: bool) -> Any:
    phases, S, choices = n.shape
    A = choices - 1 if usual else choices
    q, v, actions = np.zeros((H, S, choices)), np.zeros((H + 1, S)), np.empty((H, S), dtype=np.int64)
    nothing, optimistic = np.zeros(S), scale > 0.0
    for h in range(H - 1, -1, -1):
        p, most = max(0, h - (H - phases)), float(H - h)
        for s in range(S):
            for a in range(choices):
                N, value = n[p, s, a], most if optimistic else 0.0
                if unknown[p, a] < N and N > 0.0:
                    PV, variance, _ = moments(m[p, s, a], N, v[h + 1], nothing)
                    bonus = scale * (2.0 * np.sqrt(variance * iota / N) + np.sqrt(2.0 * iota / N))
                    bonus += noise[p, a] * (H - h) / N
                    value = min(max(r[p, s, a] / N, 0.0), 1.0) + PV + bonus
                    value = min(most, value) if optimistic else max(0.0, value)
                q[h, s, a] = value
        greedy(q[h, :, :A], v[h], actions[h])
        for s in range(S):
            if usual and v[h, s] <= 0.0:
                v[h, s] = q[h, s, A]
    return q, v, actions


@compiled
def moments(m: Any, N: float, v: Any, slack: Any) -> Any:
    """Return mean and variance of the next value, and the mean of its slack.

    All are under the estimated transitions m / N.
    """
    mean, square, spread = 0.0, 0.0, 0.0
    for successor in range(len(m)):
        p = m[successor] / N
        mean += p * v[successor]
        square += p * v[successor] ** 2
        spread += p * slack[successor]
    return mean, max(square - mean * mean, 0.0), spread
