"""Callbacks for experiments: exact regret against the true model.

They are Stable-Baselines3 callbacks that read ``env.unwrapped.model``. The learner gets nothing from them; their log
entries are named ``oracle/...``.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback

from private_rl_gym.envs.finite import FiniteModel
from private_rl_gym.planning.policy import Policy

__all__ = ["PACCallback", "RegretCallback"]


class _Oracle(BaseCallback):
    """The gap between the optimal value and the value of the policy that each user ran."""

    def __init__(self, truth: FiniteModel | None = None) -> None:
        super().__init__()
        self.truth = self._given = truth
        self._agent: object = None
        self._policy: Policy | None = None
        self._gap = 0.0

    def _init_callback(self) -> None:
        if self._agent is not None and self._agent is not self.model and not self.model.num_timesteps:
            self._begin()
        self._agent, self._policy, self.truth = self.model, None, self._given
        if self.truth is None:
            model = getattr(self.model.board.unwrapped, "model", None)  # type: ignore[attr-defined]
            if model is None:
                raise ValueError(
                    "The environment does not know its own model: hand the truth to the callback, for instance "
                    "TabularModel.from_gym(env, horizon)."
                )
            self.truth = model

    def _on_step(self) -> bool:
        if self.locals["dones"][0]:
            policy = self.locals["policy"]
            if policy is not self._policy:  # values are computed once a policy
                assert self.truth is not None  # noqa: S101 - found at the start
                self._policy = policy
                self._gap = self.truth.optimal_value() - self.truth.value_of(policy)
            self._count(self._gap)
        return True

    def _count(self, gap: float) -> None:
        raise NotImplementedError  # pragma: no cover - abstract

    def _begin(self) -> None:
        """Reset the counts, because another agent begins to learn."""
        raise NotImplementedError  # pragma: no cover - abstract


class RegretCallback(_Oracle):
    """Cumulative regret after every user, at full precision.

    Example:
        >>> from private_rl_gym.agents import UCBVI
        >>> from private_rl_gym.experiments.oracle import RegretCallback
        >>> regret = RegretCallback()
        >>> agent = UCBVI("TabularPolicy", "private_rl_gym:PrivateRL/RiverSwim-v0", seed=0).learn(2000, callback=regret)
        >>> len(regret.curve)
        100
        >>> bool(regret.curve[0] > 0)
        True
    """

    def __init__(self, truth: FiniteModel | None = None) -> None:
        super().__init__(truth)
        self._curve = array("d")

    def _begin(self) -> None:
        self._curve = array("d")

    @property
    def curve(self) -> NDArray[np.float64]:  # [user]
        """Regret after each user."""
        return np.array(self._curve)

    def _count(self, gap: float) -> None:
        self._curve.append((self._curve[-1] if self._curve else 0.0) + gap)
        self.logger.record("oracle/regret", self._curve[-1])


class PACCallback(_Oracle):
    """Number of users who ran a policy that is not ``alpha``-optimal."""

    def __init__(self, alpha: float, truth: FiniteModel | None = None) -> None:
        if not alpha > 0.0:
            raise ValueError(f"alpha is {alpha}: it is how far from optimal a policy may be, and must be above 0.")
        super().__init__(truth)
        self.alpha = alpha
        self.mistakes = 0

    def _begin(self) -> None:
        self.mistakes = 0

    def _count(self, gap: float) -> None:
        self.mistakes += gap > self.alpha
        self.logger.record("oracle/mistakes", self.mistakes)
