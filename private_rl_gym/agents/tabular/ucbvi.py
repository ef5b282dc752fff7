"""UCBVI: optimistic value iteration, the non-private reference."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from private_rl_gym.agents.optimism import Constants, Optimist, check_constants, check_multiplier
from private_rl_gym.agents.tabular.dp_ucbvi import practical_plan, theorem_plan
from private_rl_gym.planning.arrays import among, shown
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.solve import Plan, optimistic_backward_induction
from private_rl_gym.privacy.release import Release

__all__ = ["UCBVI"]


class UCBVI(Optimist):
    """Optimistic value iteration in the model that is estimated from counts.

    Azar, Osband, Munos: Minimax Regret Bounds for Reinforcement Learning, 2017; with stage-dependent counts, as in the
    papers on private learning. ``variant="bernstein"`` has the bonus of DP-UCBVI's algorithm 1 at E = 0 (bonus 2),
    ``"hoeffding"`` the simpler H sqrt(2 iota / N) (bonus 1).

    It treats counts as exact. On a noisy board it runs, but its theorem does not hold; use ``DPUCBVI`` there.

    Args:
        policy: ``"TabularPolicy"``.
        env: A boundary or an environment; see :class:`~private_rl_gym.agents.base.Agent`.
        variant: ``"bernstein"`` or ``"hoeffding"``.
        constants: ``"theory"`` for the theorem's constants, with which values are optimistic with probability 1 - beta
            and nothing is learned with any realistic number of users; ``"practical"`` for ``bonus_scale`` times the
            main terms alone.
        bonus_scale: The multiplier of a practical bonus; by default 0.3, or 0.02 for ``"hoeffding"``.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.

    Example:
        >>> from private_rl_gym.agents import UCBVI
        >>> agent = UCBVI("TabularPolicy", "private_rl_gym:PrivateRL/RiverSwim-v0", seed=0).learn(20 * 5000)
        >>> agent.num_timesteps
        100000
        >>> action, state = agent.predict(0)
    """

    private = False

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        variant: Literal["bernstein", "hoeffding"] = "bernstein",
        constants: Constants = "practical",
        bonus_scale: float | None = None,
        **options: Any,
    ) -> None:
        if not among(variant, ("bernstein", "hoeffding")):
            raise ValueError(f"variant is {shown(variant)}: choose 'bernstein' or 'hoeffding'.")
        self.variant = variant
        usual = 0.3 if variant == "bernstein" else 0.02
        bonus_scale = usual if bonus_scale is None else bonus_scale
        self.constants = check_constants(constants)
        self.bonus_scale = check_multiplier("bonus_scale", bonus_scale, "the bonus")
        super().__init__(policy, env, **options)

    def plan(self, release: Release) -> Policy:
        """Plan by backward induction with the bonus.

        Theory's Q never rises from one release to the next.
        """
        theory = self.constants == "theory"
        if self.variant == "hoeffding":
            self._plan = self._hoeffding(release, 1.0 if theory else self.bonus_scale, theory=theory)
        elif theory:
            self._plan = theorem_plan(release.n, release.m, release.r, self.iota, 0.0, self._plan)
        else:
            self._plan = practical_plan(release.n, release.m, release.r, self.iota, self.bonus_scale)
        return self._plan.policy

    def _hoeffding(self, release: Release, scale: float, *, theory: bool) -> Plan:
        """Plan with the Hoeffding bonus (bonus 1).

        Q = min(H - h, r + P V + H sqrt(2 iota / N)).
        """
        N = np.maximum(release.n, 1.0)
        bonus = scale * self.horizon * np.sqrt(2.0 * self.iota / N)
        bonus[release.n < 1.0] = self.horizon
        P, r = release.m / N[..., None], np.clip(release.r / N, 0.0, 1.0)
        return optimistic_backward_induction(
            P,
            r,
            bonus,
            ceiling=float(self.horizon) if theory else None,
            previous=self._plan.q if theory and self._plan is not None else None,
        )
