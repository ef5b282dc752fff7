"""DP-APVI: pessimistic value iteration on noisy counts of earlier users."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.offline.pessimism import OfflinePlan, Sums, with_usual_care
from private_rl_gym.agents.tabular.dp_ucbvi import DPUCBVI
from private_rl_gym.planning.bernstein import moments
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.projection import project_counts
from private_rl_gym.planning.solve import Plan, greedy
from private_rl_gym.privacy.release import Release

__all__ = ["DPAPVI", "apvi_plan"]


class DPAPVI(DPUCBVI):
    """An offline learner whose values are lowered by two penalties.

    One is a Bernstein penalty for sampling. The other is for the noise of counts.

    Qiao, Wang: Offline Reinforcement Learning with Differential Privacy, 2022, algorithm 1. Bring users in with
    ``board.ingest``, and call ``learn_offline``. Users who are served run the same pessimistic policy, which does not
    explore. ``DPUCBVI`` does.

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
        """Return the pessimistic policy, which users who are served run too."""
        return self.plan_offline(release, stationary=False).policy

    def plan_offline(self, release: Release, *, stationary: bool) -> OfflinePlan:
        """Plan by lines 3 to 8 of algorithm 1.

        With ``stationary``, counts are pooled over stages.
        """
        if self.constants == "practical":
            return super().plan_offline(release, stationary=stationary)
        sums = Sums.of(release, stationary=stationary)
        E = self._error(release) * (len(release.n) if stationary and not release.pooled else 1)
        m, n = project_counts(sums.m, sums.visits, E)
        self._plan = apvi_plan(n, m, sums.r, self.horizon, self.iota, E)
        return with_usual_care(self._plan, sums)


def apvi_plan(
    n: NDArray[np.float64],  # [p, s, a], by phase: see Sums
    m: NDArray[np.float64],  # [p, s, a, s']
    r: NDArray[np.float64],  # [p, s, a]
    horizon: int,
    iota: float,
    E: float,
) -> Plan:
    """Return algorithm 1's values, for counts whose error is at most E.

    With E = 0 they are those of APVI. Where n > E, the penalty is 2 sqrt(Var_P(V) iota / (n - E)) + 16 S H E iota / n,
    and sqrt(2 iota / (n - E)) for the rewards, which are known in the paper. Elsewhere Q is 0.
    """
    return Plan(*_algorithm_1(n, m, r, horizon, iota, E))


@compiled
def _algorithm_1(n: Any, m: Any, r: Any, H: int, iota: float, E: float) -> Any:
    phases, S, A = n.shape
    q, v, actions = np.zeros((H, S, A)), np.zeros((H + 1, S)), np.empty((H, S), dtype=np.int64)
    nothing = np.zeros(S)
    for h in range(H - 1, -1, -1):
        known = max(0, h - (H - phases))
        for s in range(S):
            for a in range(A):
                N = n[known, s, a]
                if not (N > E and N > 0.0):
                    continue
                PV, variance, _ = moments(m[known, s, a], N, v[h + 1], nothing)
                sampling = 2.0 * np.sqrt(variance * iota / (N - E)) + np.sqrt(2.0 * iota / (N - E))
                value = min(max(r[known, s, a] / N, 0.0), 1.0) + PV - sampling - 16.0 * S * H * E * iota / N
                q[h, s, a] = min(max(value, 0.0), float(H - h))
        greedy(q[h], v[h], actions[h])
    return q, v, actions
