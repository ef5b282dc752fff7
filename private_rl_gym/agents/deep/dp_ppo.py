"""Private PPO: users optimise the clipped objective locally and report the difference."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.deep.dp_policy_gradient import DPPolicyGradient
from private_rl_gym.planning.arrays import positive_integer, real, shown
from private_rl_gym.privacy.requests import Objective

__all__ = ["DPPPO"]


class DPPPO(DPPolicyGradient):
    """PPO as in federated averaging: several local steps, one clipped difference a user.

    Local steps are on the user's own episode. In place of a gradient a user reports the distance that they climbed, in
    ``n_epochs`` steps up PPO's clipped objective. With a value network, users report its gradient too, in a share of
    the same report, and advantages are those of generalized advantage estimation. All else is as in
    ``DPPolicyGradient``.

    Privacy:
        That of the board: the difference and the gradient of the value network are two parts of one report, whose norm
        is bounded as a whole. Proof: docs/proofs/gradients.md.

    Example:
        >>> import gymnasium as gym
        >>> from private_rl_gym.wrappers import JDPBillboard
        >>> board = JDPBillboard(gym.make("CartPole-v1"), epsilon=1.0, delta=1e-6, users=30_000)
        >>> agent = DPPPO("MlpPolicy", board, seed=0, policy_kwargs={"net_arch": {"pi": [32], "vf": [16]}})
        >>> agent.network.size, agent.network.critic_size
        (226, 97)

    Args:
        policy: ``"MlpPolicy"``.
        env: A boundary, an environment, the id of one, or a ``VecEnv`` of one of these.
        n_epochs: Local steps of each user.
        gae_lambda: Lambda of generalized advantage estimation.
        clip_range: The ratio by which the probability of an action may move, as in PPO.
        clip: Norm to which the distance is clipped. The lengths of a user's steps add up to it. It is small enough for
            most users to come that far.
        options: As in ``DPPolicyGradient``. ``net_arch`` of ``policy_kwargs`` may be a dictionary with ``pi`` and
            ``vf``, the layers of a value network.
    """

    takes_critic = True

    def __init__(
        self,
        policy: str | None = "MlpPolicy",
        env: Any = None,
        *,
        n_epochs: int = 4,
        gae_lambda: float = 1.0,
        clip_range: float = 0.2,
        clip: float = 0.1,
        **options: Any,
    ) -> None:
        self.n_epochs = positive_integer(n_epochs, "n_epochs", "local steps")
        for name, value in (("gae_lambda", gae_lambda), ("clip_range", clip_range)):
            if not 0.0 < real(value, name) <= 1.0:
                raise ValueError(f"{name} is {shown(value)}: it lies above 0 and is at most 1.")
        self.gae_lambda, self.clip_range = float(gae_lambda), float(clip_range)
        super().__init__(policy, env, clip=clip, **options)

    def objective(
        self, baseline: NDArray[np.float64], reach: float, shares: tuple[float, ...], critic: NDArray[np.float64]
    ) -> Objective:
        """Return PPO's clipped objective, with the value network beside the baseline."""
        return Objective(
            baseline,
            reach=reach,
            clip=self.clip,
            discount=self.gamma,
            shares=shares,
            local_steps=self.n_epochs,
            local_rate=self.clip / self.n_epochs,
            ratio=self.clip_range,
            critic=critic,
            mixing=self.gae_lambda,
            entropy=self.ent_coef,
        )
