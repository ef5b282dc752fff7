"""The learner of a published experiment, as its code is.

It shows the epsilon that the code prints, and the privacy that it delivers.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.solve import optimistic_backward_induction
from private_rl_gym.privacy.accounting.conversion import check_budget
from private_rl_gym.privacy.accounting.guarantee import TrustModel
from private_rl_gym.privacy.release import Release

__all__ = ["PrivateTabularRL"]

CONFIDENCE = 2.0 * math.log(3.0)
"""The constant in the experiment's bonuses, in place of a logarithm that grows."""


class PrivateTabularRL(Agent):
    """UCBVI with the noise of a published experiment; it protects no user.

    The experiment is the one that DP-UCBVI's figure 1 follows.

    The code is https://github.com/XingyuZhou989/PrivateTabularRL (``src/agent.py``), by the authors of *Differentially
    Private Regret Minimization in Episodic Markov Decision Processes* (Chowdhury, Zhou, 2022). This class follows that
    code, not a theorem:

    - Counts are pooled over stages, and all counts start at 1. The next state of the last step is not counted.
    - There is a plan for every user, with Hoeffding bonuses of the experiment's own, and no upper bound on values.
    - ``noise="joint"`` adds to all counts, before plan t, a new sum of floor(ln t) + 1 Laplace draws of scale
      1 / epsilon. One sum serves for the number of visits and for that of transitions.
    - ``noise="local"`` adds the sum of t such draws, one a user, and the same number to all (s, a).

    The noise delivers no finite epsilon for the sums: some differences of noisy sums have no noise at all
    (docs/proofs/refreshed.md). So the agent takes an ``OpenBillboard``, whose ledger states no guarantee.

    Args:
        policy: ``"TabularPolicy"``.
        env: An ``OpenBillboard`` with ``batch_size=1``, or an environment.
        noise: ``"joint"``, ``"local"``, or ``"none"`` for the experiment's UCBVI.
        epsilon: The epsilon that the experiment prints.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    private = False

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        noise: Literal["joint", "local", "none"] = "joint",
        epsilon: float = 1.0,
        **options: Any,
    ) -> None:
        if noise not in ("joint", "local", "none"):
            raise ValueError(f"noise is {noise!r}: choose 'joint', 'local' or 'none'.")
        check_budget(epsilon, 0.0)
        self.noise, self.epsilon = noise, float(epsilon)
        super().__init__(policy, env, **options)

    def prepare(self) -> None:
        """Reset the noise for a new board.

        Raise ValueError unless the board publishes exact sums.
        """
        if self._board.ledger.outside.model is not TrustModel.NONE:
            raise ValueError(
                f"PrivateTabularRL adds noise of its own, and the {type(self._board).__name__} has added some already: "
                "use OpenBillboard(env, schedule=1)."
            )
        self._users, self._sums = 0, np.zeros(2 + self._board.sizes[1])  # of local noise

    def plan(self, release: Release) -> Policy:
        """Return the plan for the next user.

        The steps are exact sums, noise, bonuses and value iteration.
        """
        horizon, S, A = self._board.sizes
        user = release.users + 1
        # SUMS over stages, with one visit, one reward and one transition to each state before the first user
        visits, rewards = 1.0 + release.n.sum(axis=0), 1.0 + release.r.sum(axis=0)  # [s, a]
        transitions = 1.0 + release.m[:-1].sum(axis=0)  # [s, a, s']
        # NOISE, and the margin that the experiment allows for it
        on_visits, on_rewards, on_transitions, spread = self._drawn(user, S, A)
        # ESTIMATES
        n = np.maximum(1.0, visits + on_visits + spread)
        n_next = np.maximum(1.0, transitions.sum(axis=-1) + on_visits + spread)
        P, r = (transitions + on_transitions) / n_next[..., None], (rewards + on_rewards) / n
        # BONUSES; that of transitions is per step that is left
        margin, margin_next = S * spread / n, S * spread / n_next if self.noise == "joint" else 0.0
        bonus = np.sqrt(CONFIDENCE / n) + margin
        bonus_next = np.sqrt(CONFIDENCE / n_next) + margin_next
        left = np.arange(horizon - 1.0, -1.0, -1.0)[:, None, None]  # [h, 1, 1]
        return optimistic_backward_induction(P[None], r[None], bonus + left * bonus_next, ceiling=math.inf).policy

    def _drawn(self, user: int, S: int, A: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], float]:
        """Return the noise on visits, rewards and transitions, and its bonus scale.

        The scale is the square root of the number of draws, divided by epsilon.
        """
        scale = 1.0 / self.epsilon
        if self.noise == "none":
            return np.zeros((S, A)), np.zeros((S, A)), np.zeros((S, A, S)), 0.0
        if self.noise == "local":
            self._sums += self.rng.laplace(0.0, scale, (user - self._users, 2 + S)).sum(axis=0)
            self._users = user
            one, two, rest = self._sums[0], self._sums[1], self._sums[2:]
            return np.full((S, A), one), np.full((S, A), two), np.broadcast_to(rest, (S, A, S)), scale * math.sqrt(user)
        draws = math.floor(math.log(user)) + 1
        sums = self.rng.laplace(0.0, scale, (draws, S, A, 2 + S)).sum(axis=0)
        return sums[..., 0], sums[..., 1], sums[..., 2:], scale * math.sqrt(draws)
