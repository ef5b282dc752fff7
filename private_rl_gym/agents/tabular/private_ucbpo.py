"""Private-UCB-PO: policy optimisation with a Hoeffding bonus on private counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.mirror import MirrorDescent
from private_rl_gym.agents.optimism import Constants
from private_rl_gym.agents.tabular.private_ucbvi import PrivateUCBVI, hoeffding_bonus
from private_rl_gym.planning.arrays import among
from private_rl_gym.planning.hoeffding import optimistic_evaluation
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.release import Release

__all__ = ["PrivateUCBPO"]


class PrivateUCBPO(PrivateUCBVI):
    """Policy optimisation in the private model, with a Hoeffding bonus.

    It evaluates the current policy, and moves it towards the actions with larger values.

    After Chowdhury, Zhou: Differentially Private Regret Minimization in Episodic Markov Decision Processes, 2022. The
    policy starts uniform and stays stochastic. A step replaces pi by pi exp(eta Q), normalised, in logarithms. A policy
    is evaluated late: with a release that includes its own users. Chowdhury and Zhou evaluate it before its users come,
    and their regret bound is for that order.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``JDPBillboard``, ``LDPUserSide``, or any other board.
        eta: The step size; by default sqrt(2 log A / (H^2 K)) times ``eta_scale``. K is the number of releases that the
            board was built for; where any number of users may come, it is that of a million users, and it is better to
            give ``users=`` or ``eta=``.
        eta_scale: Multiplies the default step size. That of theory is 1, which learns slowly.
        constants: As in ``PrivateUCBVI``; theory's is wider by S ln 2, because a policy's value depends on the data.
        bonus_scale: As in ``PrivateUCBVI``.
        noise_scale: As in ``PrivateUCBVI``.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.
    """

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        eta: float | None = None,
        eta_scale: float | None = None,
        constants: Constants = "practical",
        bonus_scale: float = 0.02,
        noise_scale: float = 0.1,
        **options: Any,
    ) -> None:
        self.eta = eta
        self.eta_scale = (1.0 if among(constants, ("theory",)) else 20.0) if eta_scale is None else eta_scale
        self._mirror = MirrorDescent(self, eta, self.eta_scale)
        super().__init__(policy, env, constants=constants, bonus_scale=bonus_scale, noise_scale=noise_scale, **options)

    def prepare(self) -> None:
        """Begin with the uniform policy."""
        self._mirror.logits = None

    @property
    def step_size(self) -> float:
        """The step size eta."""
        return self._mirror.step_size

    def plan(self, release: Release) -> Policy:
        """Take one mirror step.

        The policy before any release is uniform.
        """
        mirror = self._mirror
        if mirror.logits is None:
            mirror.begin()
            return mirror.policy()
        P, R, width, known = hoeffding_bonus(self, release, uniform=self.constants == "theory")
        width = np.where(known, width, float(self.horizon))
        mirror.improve(optimistic_evaluation(P * known[..., None], R * known, width, mirror.policy()))
        return mirror.policy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the logarithms of the policy."""
        return self._mirror.state()

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore a saved policy."""
        self._mirror.set_state(arrays)
