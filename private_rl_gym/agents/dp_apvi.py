"""DP-APVI: pessimistic value iteration on noisy counts of users who have come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.dp_ucbvi import DPUCBVI
from private_rl_gym.agents.offline import pooled
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.solve import Plan, greedy
from private_rl_gym.privacy.projection import project_counts
from private_rl_gym.privacy.release import Release

__all__ = ["DPAPVI", "apvi_plan"]


class DPAPVI(DPUCBVI):
    """Learns offline: values are lowered by a Bernstein penalty for sampling and by one for the noise of counts.

    Qiao, Wang: Offline Reinforcement Learning with Differential Privacy, 2022, algorithm 1. Bring users in with
    ``board.ingest``, and call ``learn_offline``. Users who are served run the same pessimistic policy: it does not
    explore, and ``DPUCBVI`` does.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``JDPBillboard``, or any other board.
        constants: ``"theory"`` for algorithm 1 as printed, with a penalty for learned rewards; ``"practical"`` for
            ``bonus_scale`` times the terms for sampling, and a margin of ``noise_scale`` times the noise's deviation,
            as in ``DPUCBVI.learn_offline``.
        bonus_scale: The multiplier of a practical penalty.
        noise_scale: The multiplier of a practical margin for noise.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    def plan(self, release: Release) -> Policy:
        """The pessimistic policy, for users who are served all the same."""
        return self.plan_offline(release, stationary=False)

    def plan_offline(self, release: Release, *, stationary: bool) -> Policy:
        """Lines 3 to 8 of algorithm 1; with ``stationary`` on counts that are pooled over stages."""
        if self.constants == "practical":
            return super().plan_offline(release, stationary=stationary)
        m, r = pooled(release)[:2] if stationary else (release.m, release.r)
        E = self._error(release) * (len(release.n) if stationary and not release.pooled else 1)
        m, n = project_counts(m, m.sum(axis=-1), E)
        self._plan = apvi_plan(n, m, r, self.horizon, self.iota, E)
        return self._plan.policy


def apvi_plan(
    n: NDArray[np.float64],  # [h, s, a], or one stage for all
    m: NDArray[np.float64],  # [h, s, a, s'], the same
    r: NDArray[np.float64],  # [h, s, a], the same
    horizon: int,
    iota: float,
    E: float,
) -> Plan:
    """Algorithm 1's values, for counts whose error is at most E; with E = 0 those of APVI.

    The penalty is 2 sqrt(Var_P(V) iota / (n - E)) + 16 S H E iota / n where n > E, and sqrt(2 iota / (n - E)) for
    rewards, which the paper knows; elsewhere Q is 0.
    """
    return Plan(*_algorithm_1(n, m, r, horizon, iota, E))


@compiled
def _algorithm_1(n: Any, m: Any, r: Any, H: int, iota: float, E: float) -> Any:
    stages, S, A = n.shape
    q, v, actions = np.zeros((H, S, A)), np.zeros((H + 1, S)), np.empty((H, S), dtype=np.int64)
    for h in range(H - 1, -1, -1):
        known = h % stages
        for s in range(S):
            for a in range(A):
                N = n[known, s, a]
                if not (N > E and N > 0.0):
                    continue
                PV, square = 0.0, 0.0
                for successor in range(S):
                    p = m[known, s, a, successor] / N
                    PV += p * v[h + 1, successor]
                    square += p * v[h + 1, successor] ** 2
                variance = max(square - PV * PV, 0.0)
                sampling = 2.0 * np.sqrt(variance * iota / (N - E)) + np.sqrt(2.0 * iota / (N - E))
                value = min(max(r[known, s, a] / N, 0.0), 1.0) + PV - sampling - 16.0 * S * H * E * iota / N
                q[h, s, a] = min(max(value, 0.0), float(H - h))
        greedy(q[h], v[h], actions[h])
    return q, v, actions
