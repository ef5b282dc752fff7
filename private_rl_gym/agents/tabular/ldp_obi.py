"""LDP-OBI: optimistic backward induction on counts that users randomize themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from private_rl_gym.agents.optimism import NoisyOptimist
from private_rl_gym.agents.tabular.private_ucbvi import Model
from private_rl_gym.planning.arrays import real, shown
from private_rl_gym.planning.hoeffding import optimistic_plan
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.release import Release

__all__ = ["LDPOBI"]


class LDPOBI(NoisyOptimist):
    """Optimistic planning with denominators that are raised by more than the noise.

    A bonus allows for the error that this causes.

    After Garcelon, Perchet, Pike-Burke, Pirotta: Local Differential Privacy for Regret Minimization in Reinforcement
    Learning, 2021, algorithm 2, for stages that differ. Their randomizers are those of ``LDPUserSide``.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``LDPUserSide``, or any other board.
        alpha: The multiple of the noise, above 1, by which denominators are raised.
        constants: ``"theory"``, with values that are optimistic with probability 1 - beta (derived in the code).
            ``"practical"``, with ``bonus_scale`` times the sampling terms, and a margin of ``noise_scale`` times the
            noise's standard deviation; counts below twice their noise are treated as unknown.
        bonus_scale: The multiplier of a practical bonus.
        noise_scale: The multiplier of a practical margin for noise.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    def __init__(
        self, policy: str | None = "TabularPolicy", env: Any = None, *, alpha: float = 2.0, **options: Any
    ) -> None:
        if not 1.0 < real(alpha, "alpha") < math.inf:
            raise ValueError(
                f"alpha is {shown(alpha)}: it must be above 1, so that denominators are raised by more than the noise."
            )
        self.alpha = float(alpha)
        super().__init__(policy, env, **options)

    def plan(self, release: Release) -> Policy:
        """Return the policy that is greedy for the optimistic values."""
        return optimistic_plan(*self._model(release), staged=True).policy

    def _model(self, release: Release) -> Model:
        """Return transitions, rewards, bonus and known entries.

        Transitions are m~ / N and rewards r~ / N, with N = n~ + alpha c_n. The bonus is that of both together.

        Theory. Let counts be off by at most c_n, c_m and c_r. Then N >= n, as alpha > 1. r~ / N is within c_r / N of
        n / N times a mean of n rewards; this is within sqrt(L / 2N) of n / N times the true one, by Hoeffding; and
        n / N is within (alpha + 1) c_n / N of one. The same for P V with V at most H: S c_m in place of c_r, and by
        Weissman's inequality, as the policy depends on the data, H sqrt(2 (S ln 2 + L) / N) for sampling.
        """
        n, H, S = release.n, self.horizon, release.n.shape[1]
        L = math.log(8.0 * n.size * self.expected_users / self.beta)
        if self.constants == "theory":
            c_n, c_m, c_r = (release.error_bound(self.beta / 6.0, of=family) for family in ("n", "m", "r"))
            N = n + self.alpha * c_n
            known = N >= 1.0  # less, and the bonus is above any value
            N = np.maximum(N, 1.0)
            raised = (self.alpha + 1.0) * c_n
            width = np.sqrt(L / (2.0 * N)) + (raised + c_r) / N
            width += H * (np.sqrt(2.0 * (S * math.log(2.0) + L) / N) + (raised + S * c_m) / N)
        else:
            spread = release.noise_std["n"]
            N = np.maximum(n + self.alpha * spread, 1.0)
            known = n >= max(2.0 * spread, 1.0)
            sampling = math.sqrt(L / 2.0) + H * math.sqrt(2.0 * (S * math.log(2.0) + L))
            width = self.bonus_scale * sampling / np.sqrt(N) + self.noise_scale * H * spread / N
        return release.m / N[..., None], release.r / N, width, known
