"""Private PPO: each user climbs the clipped objective on her own episode, and reports how far she came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.dp_policy_gradient import DPPolicyGradient
from private_rl_gym.agents.networks import Schedule
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.privacy.asks import Objective

__all__ = ["DPPPO"]


class DPPPO(DPPolicyGradient):
    """PPO as in federated averaging: several local steps on a user's own episode, one clipped difference a user.

    In place of a gradient a user reports the distance that she climbed, in ``n_epochs`` steps up PPO's clipped
    objective. With a value network, users report its gradient too, in a share of the same report, and advantages are
    those of generalized advantage estimation. All else is as in ``DPPolicyGradient``.

    Privacy:
        That of the board: the difference and the gradient of the value network are two parts of one report, whose norm
        is bounded as a whole. Proof: docs/proofs/gradients.md.

    Example:
        >>> from private_rl_gym.wrappers import JDPBillboard
        >>> board = JDPBillboard(gym.make("CartPole-v1"), epsilon=1.0, delta=1e-6, users=30_000)
        >>> agent = DPPPO("MlpPolicy", board, seed=0, policy_kwargs={"net_arch": {"pi": [32], "vf": [16]}})
        >>> agent.network.size, agent.network.critic_size
        (226, 97)

    Args:
        policy: ``"MlpPolicy"``.
        env: A boundary, an environment, the id of one, or a ``VecEnv`` of one of these.
        learning_rate: Length of a step where users agree, as in ``DPPolicyGradient``.
        batch_size: Users in a batch; by default what noise and the number of parameters ask for.
        n_epochs: Local steps of each user.
        gamma: Factor on rewards for each further step.
        gae_lambda: Lambda of generalized advantage estimation.
        clip_range: The ratio by which the probability of an action may move, as in PPO.
        clip: Norm to which the distance is clipped; a user climbs as far, if she climbs straight. It is small enough
            for most users to come so far.
        momentum: Weight of earlier batches in a step.
        ent_coef: Weight of the policy's entropy in each user's objective.
        policy_kwargs: ``net_arch`` (a list, or a dictionary with ``pi`` and ``vf``, the layers of a value network) and
            ``activation_fn``.
        options: ``verbose``, ``tensorboard_log`` and ``seed``, as in every agent.
    """

    takes_critic = True

    saved_arguments: ClassVar[tuple[str, ...]] = (
        *DPPolicyGradient.saved_arguments,
        "n_epochs",
        "gae_lambda",
        "clip_range",
    )

    def __init__(
        self,
        policy: str | None = "MlpPolicy",
        env: gym.Env[Any, Any] | Any = None,
        *,
        learning_rate: Schedule = 3.0,
        batch_size: int | None = None,
        n_epochs: int = 4,
        gamma: float = 1.0,
        gae_lambda: float = 1.0,
        clip_range: float = 0.2,
        clip: float = 0.1,
        momentum: float = 0.8,
        ent_coef: float = 0.0,
        policy_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.n_epochs = positive_integer(n_epochs, "n_epochs", "local steps")
        for name, value in (("gae_lambda", gae_lambda), ("clip_range", clip_range)):
            if not 0.0 < value <= 1.0:
                raise ValueError(f"{name} is {value}: it lies above 0 and is at most 1.")
        self.gae_lambda, self.clip_range = float(gae_lambda), float(clip_range)
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            batch_size=batch_size,
            gamma=gamma,
            clip=clip,
            momentum=momentum,
            ent_coef=ent_coef,
            policy_kwargs=policy_kwargs,
            **options,
        )

    def objective(
        self, baseline: NDArray[np.float64], reach: float, shares: tuple[float, ...], critic: NDArray[np.float64]
    ) -> Objective:
        """PPO's clipped objective, with the value network beside the baseline."""
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
