"""PSRL: planning in a model that is drawn from the posterior."""

from __future__ import annotations

from typing import Any

import numpy as np

from private_rl_gym.agents.base import Agent
from private_rl_gym.agents.optimism import check_multiplier
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.solve import backward_induction
from private_rl_gym.privacy.release import Release

__all__ = ["PSRL"]


class PSRL(Agent):
    """Posterior sampling, with a new model drawn for every plan.

    The posterior is Dirichlet for transitions and Beta for rewards.

    Osband, Russo, Van Roy: (More) Efficient Reinforcement Learning via Posterior Sampling, 2013. It treats counts
    as exact. The guarantee is the board's: the agent's own draws protect no user.

    Args:
        policy: ``"TabularPolicy"``.
        env: A board of any kind that sums counts, or an environment.
        prior: Weight of the prior in each next state, and in each of reward 0 and 1.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    private = False

    def __init__(
        self, policy: str | None = "TabularPolicy", env: Any = None, *, prior: float = 1.0, **options: Any
    ) -> None:
        self.prior = check_multiplier("prior", prior, "the prior's weight")
        super().__init__(policy, env, **options)

    def plan(self, release: Release) -> Policy:
        """Draw a model, and solve it."""
        successes = np.clip(release.r, 0.0, np.maximum(release.n, 0.0))
        failures = np.maximum(release.n, 0.0) - successes
        weights = self.rng.standard_gamma(np.maximum(release.m, 0.0) + self.prior / release.m.shape[-1])
        weights += 1e-300  # a tiny shape may draw zeros only
        P = weights / weights.sum(axis=-1, keepdims=True)
        R = self.rng.beta(successes + self.prior, failures + self.prior)
        return backward_induction(P, R, self.horizon).policy
