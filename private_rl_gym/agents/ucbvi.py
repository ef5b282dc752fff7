"""UCBVI: optimistic value iteration, the non-private reference."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.agents.optimism import Bonus, check_bonus, log_factor
from private_rl_gym.planning.bernstein import BernsteinBonus, bernstein_induction
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.solve import Plan, optimistic_backward_induction
from private_rl_gym.privacy.release import Release

__all__ = ["UCBVI"]


class UCBVI(Agent):
    """Plan in the model that the counts suggest, with a bonus for what is uncertain.

    Azar, Osband, Munos: Minimax Regret Bounds for Reinforcement Learning, 2017; with stage-dependent counts, as in the
    papers on private learning. ``variant="bernstein"`` has the bonus of DP-UCBVI's algorithm 1 at E = 0 (bonus 2),
    ``"hoeffding"`` the simpler H sqrt(2 iota / N) (bonus 1).

    It reads counts as exact. On a noisy board it runs, but nothing is promised of it; use ``DPUCBVI`` there.

    Args:
        policy: ``"TabularPolicy"``.
        env: A boundary or an environment; see :class:`~private_rl_gym.agents.base.Agent`.
        variant: ``"bernstein"`` or ``"hoeffding"``.
        bonus: ``"theory"`` for the theorem's constants, with which values are optimistic with probability 1 - beta and
            nothing is learned in any number of users that there are; ``"practical"`` for ``bonus_scale`` times the main
            terms alone.
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
    saved_arguments: ClassVar[tuple[str, ...]] = ("beta", "variant", "bonus", "bonus_scale")

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        variant: Literal["bernstein", "hoeffding"] = "bernstein",
        bonus: Bonus = "practical",
        bonus_scale: float | None = None,
        **options: Any,
    ) -> None:
        if variant not in ("bernstein", "hoeffding"):
            raise ValueError(f"variant is {variant!r}: choose 'bernstein' or 'hoeffding'.")
        if bonus_scale is None:
            bonus_scale = 0.3 if variant == "bernstein" else 0.02
        check_bonus(bonus, bonus_scale)
        self.variant, self.bonus, self.bonus_scale = variant, bonus, bonus_scale
        self._plan: Plan | None = None
        super().__init__(policy, env, **options)

    def prepare(self) -> None:
        """Forget the Q of another environment."""
        self._plan = None

    @property
    def iota(self) -> float:
        """log(30 H S A T / beta), T being all steps of all users."""
        return log_factor(self)

    def plan(self, release: Release) -> Policy:
        """Backward induction with the bonus; theory's Q never rises from one release to the next."""
        theory = self.bonus == "theory"
        previous = self._plan.q if theory and self._plan is not None else None
        scale = 1.0 if theory else self.bonus_scale
        if self.variant == "bernstein":
            terms = BernsteinBonus(
                self.iota, sampling=scale, privacy=float(theory), correction=float(theory), staged=not theory
            )
            self._plan = bernstein_induction(release.n, release.m, release.r, terms, previous)
        else:
            n = np.maximum(release.n, 1.0)
            width = scale * self.horizon * np.sqrt(2.0 * self.iota / n)
            width[release.n < 1.0] = self.horizon
            P, r = release.m / n[..., None], np.clip(release.r / n, 0.0, 1.0)
            ceiling = float(self.horizon) if theory else None
            self._plan = optimistic_backward_induction(P, r, width, ceiling=ceiling, previous=previous)
        return self._plan.policy

    @property
    def q(self) -> NDArray[np.float64]:  # [h, s, a]
        """The optimistic values of the current plan."""
        _ = self.policy
        assert self._plan is not None  # noqa: S101 - planned just now
        return self._plan.q

    def progress(self) -> dict[str, float]:
        """How large the optimistic values still are."""
        return {} if self._plan is None else {"plan/largest_value": float(self._plan.v[0].max())}

    def state(self) -> dict[str, NDArray[Any]]:
        """The Q that must not rise."""
        return {} if self._plan is None else {"q": self._plan.q, "v": self._plan.v, "actions": self._plan.actions}

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take up a saved Q."""
        if arrays:
            H, S, _ = arrays["q"].shape
            if arrays["v"].shape != (H + 1, S) or arrays["actions"].shape != (H, S):
                raise ValueError("The saved plan is damaged: its arrays do not fit each other.")
            self._plan = Plan(arrays["q"], arrays["v"], arrays["actions"])
