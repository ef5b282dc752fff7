"""PUCB: UBEV on private counters."""

from __future__ import annotations

import math

import numpy as np

from private_rl_gym.agents.optimism import NoisyOptimist
from private_rl_gym.planning.hoeffding import optimistic_plan
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.solve import Plan
from private_rl_gym.privacy.release import Release

__all__ = ["PUCB", "UBEV"]


class PUCB(NoisyOptimist):
    """Optimistic planning from private counters that allows for their error.

    Vietri, Balle, Krishnamurthy, Wu: Private Reinforcement Learning with PAC and Regret Guarantees, 2020, algorithms 2
    and 3 (PrivQ), theorems 3 and 4. With exact counts it is ``UBEV``.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``JDPBillboard``, or any other board.
        constants: ``"theory"`` for PrivQ as printed, where E is the release's error bound at beta / 4; ``"practical"``
            for ``bonus_scale`` times the sampling term, with counts below twice their noise treated as unknown, and a
            margin of ``noise_scale`` times the noise's standard deviation.
        bonus_scale: The multiplier of a practical bonus.
        noise_scale: The multiplier of a practical margin for noise.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    def plan(self, release: Release) -> Policy:
        """Return the policy that is greedy for PrivQ."""
        return self.priv_q(release).policy

    def priv_q(self, release: Release) -> Plan:
        """Return optimistic values by algorithm 3."""
        n, H, S = release.n, self.horizon, release.n.shape[1]
        T, beta = self.expected_users, self.beta / 4.0
        theory = self.constants == "theory"
        spread = release.noise_std["n"]
        E = release.error_bound(beta) if theory else 0.0
        known = n >= max(2.0 * (E if theory else spread), 1.0)
        visits = np.where(known, n, 1.0)
        phi = np.sqrt(2.0 * math.log(T / beta) / np.maximum(visits - E, 1.0))
        if theory:
            psi = (1.0 + S * H) * (3.0 * E / visits + 2.0 * E**2 / visits**2)
            conf = (H + 1.0) * phi + psi
        else:
            conf = self.bonus_scale * (H + 1.0) * phi + self.noise_scale * H * spread / visits
        return optimistic_plan(release.m / visits[..., None], release.r / visits, conf, known, staged=not theory)


class UBEV(PUCB):
    """The non-private algorithm behind PUCB: the same planning, for exact counts.

    Dann, Lattimore, Brunskill: Unifying PAC and Regret, 2017, with the sampling term of PUCB.
    """

    private = False
