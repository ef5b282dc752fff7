"""LDP-UCRL-VTR: optimistic value iteration on moments to which users add noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.linear.linopt import LinearOptimist
from private_rl_gym.agents.optimism import Constants
from private_rl_gym.planning.linear import Regression
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.release import LinearRelease

__all__ = ["LDPUCRLVTR"]


class LDPUCRLVTR(LinearOptimist):
    """Value-targeted regression under local privacy, with the paper's bonus.

    The bonus grows with the number of users.

    Liao, He, Gu: Locally Differentially Private Reinforcement Learning for Linear Mixture Markov Decision Processes,
    2021, algorithm 1. Its neighbour ``PrivateLinOptVI`` takes the bonus from the noise in the release instead.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``LDPUserSide`` with ``statistic="linear"``, or any other board with it; around exact moments it is
            UCRL-VTR with the paper's bonus.
        constants: ``"theory"`` for constants with which values are optimistic with probability 1 - beta, those of
            ``PrivateLinOptVI``; ``"practical"`` for ``bonus_scale`` times the paper's d^(3/4) (H - h)^(3/2) k^(1/4)
            sqrt(log(k + 1) / epsilon) after k users.
        bonus_scale: The multiplier of the bonus; the paper's experiment has 3.
        shift_scale: The regularizer that hides noise, in bounds on its norm; the paper's is two.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        constants: Constants = "practical",
        bonus_scale: float = 3.0,
        shift_scale: float = 2.0,
        **options: Any,
    ) -> None:
        super().__init__(policy, env, constants=constants, bonus_scale=bonus_scale, shift_scale=shift_scale, **options)

    def plan(self, release: LinearRelease) -> Policy:
        """Return the policy that is greedy for the optimistic values.

        Users receive the values with it.
        """
        return self._evaluate(release).policy

    def _regression(
        self,
        release: LinearRelease,
        which: str,
        bounds: NDArray[np.float64],  # [h]
        tops: NDArray[np.float64],  # [h]
    ) -> Regression:
        if self.constants == "theory":
            return super()._regression(release, which, bounds, tops)
        gram, vector = getattr(release, f"gram_{which}"), getattr(release, f"vector_{which}")
        horizon, d = vector.shape
        failure = self.beta / (4.0 * horizon * release.releases)
        shift = 1.0 + self.shift_scale * release.noise_norm(f"gram_{which}", failure)
        k, epsilon = release.users, self.board_guarantee.epsilon
        growth = math.pow(d, 0.75) * math.pow(k, 0.25) * math.sqrt(math.log1p(k))
        growth /= math.sqrt(epsilon) if math.isfinite(epsilon) else 1.0  # without privacy the paper leaves it out
        reach = tops + 1.0 if which == "p" else np.ones(horizon)  # H - h, or the largest reward
        width = self.bonus_scale * growth * np.power(reach, 1.5)
        return Regression(gram, vector, shift, width)
