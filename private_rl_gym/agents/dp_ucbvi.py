"""DP-UCBVI: the private Bernstein bonus, on projected counts."""

from __future__ import annotations

from typing import Any, ClassVar

from private_rl_gym.agents.optimism import Bonus, check_multiplier
from private_rl_gym.agents.ucbvi import UCBVI
from private_rl_gym.planning.bernstein import BernsteinBonus, bernstein_induction
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.projection import project_counts
from private_rl_gym.privacy.release import Release

__all__ = ["DPUCBVI"]


class DPUCBVI(UCBVI):
    """UCBVI for noisy counts: counts are projected to valid ones, and the bonus knows how noisy they are.

    Qiao, Wang: Near-Optimal Differentially Private Reinforcement Learning, 2023, algorithm 1 and theorem 4.1. Around
    exact counts it is ``UCBVI(variant="bernstein")``, number for number.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``JDPBillboard`` (the central privatizer), ``LDPUserSide`` (the local one), or any other board.
        bonus: ``"theory"`` for algorithm 1 as printed, where E is four times the release's error bound at beta / 3;
            ``"practical"`` for ``bonus_scale`` times the first two terms, with counts below twice their noise taken for
            unknown, and a margin of ``noise_scale`` times the noise's standard deviation.
        bonus_scale: The multiplier of a practical bonus.
        noise_scale: The multiplier of its margin for noise.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    private = True
    saved_arguments: ClassVar[tuple[str, ...]] = ("beta", "bonus", "bonus_scale", "noise_scale")

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        bonus: Bonus = "practical",
        bonus_scale: float = 0.3,
        noise_scale: float = 0.3,
        **options: Any,
    ) -> None:
        check_multiplier("noise_scale", noise_scale, "a margin for noise", zero=True)
        self.noise_scale = noise_scale
        super().__init__(policy, env, bonus=bonus, bonus_scale=bonus_scale, **options)

    def plan(self, release: Release) -> Policy:
        """Lines 4 to 14 of algorithm 1."""
        if self.bonus == "theory":
            # The projection assumes that counts are within E / 4: lemma 5.4.
            E = 4.0 * release.error_bound(self.beta / 3.0)
            terms = BernsteinBonus(self.iota, error=E)
            previous = None if self._plan is None else self._plan.q
        else:
            E, spread, previous = 0.0, release.noise_std["n"], None
            terms = BernsteinBonus(
                self.iota,
                sampling=self.bonus_scale,
                privacy=0.0,
                correction=0.0,
                unknown_below=2.0 * spread,
                noise=self.noise_scale * spread,
                staged=True,
            )
        m, n = project_counts(release.m, release.n, E)
        self._plan = bernstein_induction(n, m, release.r, terms, previous)
        return self._plan.policy
