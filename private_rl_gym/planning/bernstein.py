"""Optimistic value iteration with a bonus that knows the variance of the next value, compiled.

The bonus of UCBVI (Azar, Osband and Munos, bonus 2) in the form of DP-UCBVI (Qiao and Wang, algorithm 1), which is the
same where counts are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.solve import Plan

__all__ = ["BernsteinBonus", "bernstein_induction"]


@dataclass(frozen=True, slots=True)
class BernsteinBonus:
    """How wide the bonus is.

    Attributes:
        iota: The logarithm in every term.
        error: E, a bound on the error of counts.
        sampling: Multiplier of the first two terms, for the variance of next values and rewards.
        privacy: Multiplier of the third, 20 H S E iota / N.
        correction: Multiplier of the last, for using the variance of an estimated value.
        unknown_below: Visits below which an entry is given the largest value, whatever was seen.
        noise: Added as noise * (largest value) / N: a practical stand-in for the third term.
        staged: Whether values from stage h on are capped at H - h, or at H as the papers print it.
    """

    iota: float
    error: float = 0.0
    sampling: float = 1.0
    privacy: float = 1.0
    correction: float = 1.0
    unknown_below: float = 0.0
    noise: float = 0.0
    staged: bool = False


def bernstein_induction(
    n: NDArray[np.float64],  # [h, s, a]
    m: NDArray[np.float64],  # [h, s, a, s']
    r: NDArray[np.float64],  # [h, s, a]
    bonus: BernsteinBonus,
    previous: NDArray[np.float64] | None = None,  # [h, s, a]
) -> Plan:
    """Q = min(previous, H, r / n + P V + bonus), from the last stage to the first.

    Args:
        n: Visits, the sums of ``m`` over next states. Where they are zero or less, Q is as large as it can be.
        m: Transitions, none negative.
        r: Sums of rewards.
        bonus: How wide the bonus is.
        previous: An earlier Q, which the new one does not exceed.
    """
    top = np.full(n.shape, np.inf) if previous is None else previous
    b = bonus
    multipliers = (b.iota, b.error, b.sampling, b.privacy, b.correction, b.unknown_below, b.noise)
    return Plan(*_induction(n, m, r, multipliers, b.staged, top))


@compiled
def _induction(n: Any, m: Any, r: Any, multipliers: Any, staged: bool, top: Any) -> Any:
    iota, error, sampling, privacy, correction, unknown_below, noise = multipliers
    H, S, A = n.shape
    q = np.empty((H, S, A))
    v = np.zeros((H + 1, S))
    actions = np.empty((H, S), dtype=np.int64)
    slack = np.zeros((H + 1, S))  # what the variance of a state's estimated value may be off by; none at the end
    for h in range(H - 1, -1, -1):
        largest = float(H - h) if staged else float(H)
        for s in range(S):
            for a in range(A):
                N = n[h, s, a]
                value = largest
                if unknown_below < N and N > 0.0:
                    mean, square, spread = 0.0, 0.0, 0.0
                    for successor in range(S):
                        p = m[h, s, a, successor] / N
                        mean += p * v[h + 1, successor]
                        square += p * v[h + 1, successor] ** 2
                        spread += p * slack[h + 1, successor]
                    variance = max(square - mean * mean, 0.0)
                    width = sampling * (2.0 * np.sqrt(variance * iota / N) + np.sqrt(2.0 * iota / N))
                    width += privacy * 20.0 * H * S * error * iota / N + noise * largest / N
                    if correction > 0.0:
                        width += correction * 4.0 * np.sqrt(iota) * np.sqrt(spread / N)
                    value = min(largest, min(max(r[h, s, a] / N, 0.0), 1.0) + mean + width)
                q[h, s, a] = min(value, top[h, s, a])
            best = 0
            for a in range(1, A):
                if q[h, s, a] > q[h, s, best]:
                    best = a
            v[h, s] = q[h, s, best]
            actions[h, s] = best
            if correction > 0.0:
                reached = 0.0
                for a in range(A):
                    reached += n[h, s, a]
                slack[h, s] = _slack(reached, H, S, A, error, iota)
    return q, v, actions


@compiled
def _slack(reached: float, H: int, S: int, A: int, error: float, iota: float) -> float:
    """min(1000^2 (H^3 S A iota^2 / N + (H^4 E^2 + H^6) S^4 A^2 iota^4 / N^2), H^2), N being visits of a state."""
    most = float(H) * H
    if reached <= 0.0:
        return most
    first = float(H) ** 3 * S * A * iota**2 / reached
    second = (float(H) ** 4 * error**2 + float(H) ** 6) * float(S) ** 4 * A**2 * iota**4 / reached**2
    return min(1e6 * (first + second), most)
