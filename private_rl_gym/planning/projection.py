"""Projection of noisy counts onto consistent ones (DP-UCBVI 5.1.1, SDP-PE eq. 4).

Computed from a release alone, so it costs no privacy. Proof of the closed form: docs/proofs/projection.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import as_array, real, shown
from private_rl_gym.planning.compiled import compiled

__all__ = ["project_counts"]


def project_counts(
    m: NDArray[np.float64],  # [h, s, a, s']
    n: NDArray[np.float64],  # [h, s, a]
    error: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the counts of transitions nearest to ``m`` that agree with noisy visits.

    For each (h, s, a) this is the x >= 0 with abs(sum x - n) <= error / 4 that is nearest to m in the maximum norm.
    Then all entries are raised.

    The papers solve a linear program. Its solution is x = max(0, m + c), with one shift c that is zero if the sum
    then lies within the bounds, and otherwise puts it on the nearer bound; if no x >= 0 fits, x = 0. Afterwards
    error / (2 S) is added to every entry, so that a visit count that is off by error / 4 is never underestimated.

    Returns:
        The counts of transitions, ``[h, s, a, s']``, and of visits, ``[h, s, a]``, their sums.
    """
    m, n = as_array(m, "m"), as_array(n, "n")
    if not 0.0 <= real(error, "error") < math.inf:
        raise ValueError(f"The error is {shown(error)}: a bound on it is a number, and cannot be negative.")
    if m.ndim == 0 or m.shape[:-1] != n.shape or m.shape[-1] == 0:
        raise ValueError(f"m has shape {m.shape} and n {n.shape}: n has one entry for each row of m.")
    x = np.empty_like(m, order="C")
    visits = np.empty_like(n, order="C")
    flat = np.ascontiguousarray(m).reshape(-1, m.shape[-1])
    _project(flat, np.ascontiguousarray(n).reshape(-1), float(error), x.reshape(flat.shape), visits.reshape(-1))
    return x, visits


@compiled
def _project(m: Any, n: Any, error: float, x: Any, visits: Any) -> None:
    rows, size = m.shape
    for row in range(rows):
        low, high = n[row] - error / 4.0, n[row] + error / 4.0
        total = 0.0
        for i in range(size):
            total += max(0.0, m[row, i])
        shift = 0.0
        if total > high:
            shift = _shift(m[row], max(high, 0.0))
        elif total < low:
            shift = _shift(m[row], low)
        total = 0.0
        for i in range(size):
            x[row, i] = max(0.0, m[row, i] + shift) + error / (2.0 * size)
            total += x[row, i]
        visits[row] = total


@compiled
def _shift(values: Any, target: float) -> float:
    """Return the c for which max(0, values + c) adds up to ``target`` >= 0.

    The sum is convex in c. So Newton's method from the right, which starts with all entries positive, decreases to c
    without overshooting, and ends once no further entry becomes zero. Rounding must not make an entry positive again:
    every iteration has fewer positive entries than the one before, so there are at most as many as entries.
    """
    above, head = len(values), 0.0
    for value in values:
        head += value
    shift = (target - head) / above
    while True:
        head, count = 0.0, 0
        for value in values:
            if value + shift > 0.0:
                head += value
                count += 1
        if count == 0 or count >= above:
            return float(shift)
        above, shift = count, min(shift, (target - head) / count)
