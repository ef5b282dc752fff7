"""Private-UCB-VI: value iteration with a Hoeffding bonus on private counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.optimism import NoisyOptimist
from private_rl_gym.planning.hoeffding import optimistic_plan
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.release import Release

__all__ = ["PrivateUCBVI", "hoeffding_bonus"]


class PrivateUCBVI(NoisyOptimist):
    """Value iteration in the private model, with a Hoeffding bonus.

    The bonus has a margin for the error of counts.

    After Chowdhury, Zhou: Differentially Private Regret Minimization in Episodic Markov Decision Processes, 2022.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``JDPBillboard``, ``LDPUserSide``, or any other board.
        constants: ``"theory"``, with values that are optimistic with probability 1 - beta (derived in the code).
            ``"practical"``, with ``bonus_scale`` times the sampling term, and a margin of ``noise_scale`` times the
            noise's standard deviation; counts below twice their noise are treated as unknown.
        bonus_scale: The multiplier of a practical bonus.
        noise_scale: The multiplier of a practical margin for noise.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    def plan(self, release: Release) -> Policy:
        """Return the policy that is greedy for the optimistic values."""
        P, R, width, known = hoeffding_bonus(self, release)
        return optimistic_plan(P, R, width, known, staged=True).policy


Model = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]


def hoeffding_bonus(agent: Any, release: Release, *, uniform: bool = False) -> Model:
    """Return transitions, rewards, bonus and known entries.

    They are for private value iteration and policy optimisation.

    Theory. Let every count be off by at most E, and N = max(n~ + E, 1), which is at least n. The estimate r~ / N is
    n / N times the mean of n rewards, plus (r~ - r) / N. The first is within L / sqrt(N) of n / N times the true mean,
    by Hoeffding, as sqrt(n) / N <= 1 / sqrt(N); n / N is within 2 E / N of one; the last is within E / N. Together
    L / sqrt(N) + 3 E / N. The same for P V with values up to H: H L / sqrt(N) + (S + 2) H E / N. Where N has no such
    bound (n below one), the bonus exceeds H anyway or the entry is unknown. With ``uniform`` the bound holds
    for all V at once, such as values of a policy that depends on the data: Weissman's inequality puts S ln 2 into L.
    """
    n, H, S = release.n, agent.horizon, release.n.shape[1]
    T = agent.expected_users * H
    half = agent.beta / 2.0
    L = math.sqrt(((S * math.log(2.0) if uniform else 0.0) + math.log(4.0 * n.size * T / half)) / 2.0)
    if agent.constants == "theory":
        E = release.error_bound(half)
        N = np.maximum(n + E, 1.0)
        width = (H + 1.0) * L / np.sqrt(N) + (3.0 + (S + 2.0) * H) * E / N
        known = n + E >= 1.0
    else:
        spread = release.noise_std["n"]
        N = np.maximum(n, 1.0)
        width = agent.bonus_scale * (H + 1.0) * L / np.sqrt(N) + agent.noise_scale * H * spread / N
        known = n >= max(2.0 * spread, 1.0)
    return release.m / N[..., None], release.r / N, width, known
