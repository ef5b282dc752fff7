"""Pessimistic planning from users who have come, where nobody will come to correct a mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.solve import Plan, greedy
from private_rl_gym.privacy.projection import project_counts
from private_rl_gym.privacy.release import Release

__all__ = ["pessimistic_plan", "pooled"]


def pooled(release: Release) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Transitions ``[1, s, a, s']`` and rewards ``[1, s, a]`` of all stages, and the noise of visits in them."""
    if release.pooled:
        return release.m[:1], release.r[:1], release.noise_std["n"]
    horizon = len(release.n)
    return release.m.sum(axis=0)[None], release.r.sum(axis=0)[None], release.noise_std["n"] * horizon**0.5


def pessimistic_plan(
    m: NDArray[np.float64],  # [h, s, a, s'], or one stage for all
    r: NDArray[np.float64],  # [h, s, a], or one stage for all
    horizon: int,
    iota: float,
    scale: float,
    noise: float,
    unknown_below: float,
) -> Plan:
    """Value iteration in which what is uncertain is worth less: the bonus of DP-UCBVI, subtracted.

    As in DP-APVI (Qiao, Wang: Offline Reinforcement Learning with Differential Privacy, 2022, algorithm 1), the penalty
    has a term for sampling and one for noise. Cells that are not known are worth nothing.

    Args:
        m: Transitions, with noise.
        r: Sums of rewards, with noise.
        horizon: Number of stages.
        iota: The logarithm in the terms for sampling.
        scale: Their multiplier.
        noise: The margin for noise is noise (H - h) / N.
        unknown_below: Visits up to which a cell is not known.
    """
    m, n = project_counts(m, m.sum(axis=-1), 0.0)
    return Plan(*_pessimistic(n, m, r, horizon, iota, scale, noise, unknown_below))


@compiled
def _pessimistic(n: Any, m: Any, r: Any, H: int, iota: float, scale: float, noise: float, unknown_below: float) -> Any:
    stages, S, A = n.shape
    q, v, actions = np.zeros((H, S, A)), np.zeros((H + 1, S)), np.empty((H, S), dtype=np.int64)
    for h in range(H - 1, -1, -1):
        known = h % stages
        for s in range(S):
            for a in range(A):
                N = n[known, s, a]
                if not (unknown_below < N and N > 0.0):
                    continue
                PV, square = 0.0, 0.0
                for successor in range(S):
                    p = m[known, s, a, successor] / N
                    PV += p * v[h + 1, successor]
                    square += p * v[h + 1, successor] ** 2
                variance = max(square - PV * PV, 0.0)
                penalty = scale * (2.0 * np.sqrt(variance * iota / N) + np.sqrt(2.0 * iota / N)) + noise * (H - h) / N
                q[h, s, a] = max(0.0, min(max(r[known, s, a] / N, 0.0), 1.0) + PV - penalty)
        greedy(q[h], v[h], actions[h])
    return q, v, actions
