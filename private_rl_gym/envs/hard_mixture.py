"""The instance of the lower bounds for linear mixtures.

It is a chain. Every step may leave it for a state that pays.
"""

from __future__ import annotations

import math

import numpy as np

from private_rl_gym.envs.generation import check_model, instance_generator
from private_rl_gym.envs.mixture import Mixture
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import positive_integer, real
from private_rl_gym.planning.features import LinearFeatures

__all__ = ["HardLinearMixture"]


class HardLinearMixture(TabularEnv):
    """A chain of H states with hidden chances to leave it for a reward.

    ## Description
    The instance on which lower bounds for linear mixtures are proved (Zhou, Gu, Szepesvari, 2021), and on which
    LDP-UCRL-VTR (Liao, He, Gu, 2021) is tested. Actions are vectors a of `d - 1` signs. From state h of the chain, a
    step leads to the rewarding state with probability 1/H + <mu_h, a>, and otherwise to the next state of the chain.
    The end of the chain has no reward. Every mu_h is a hidden vector of `d - 1` entries +gap or -gap, so that the best
    action is its signs. In features it is a mixture with `d` weights a stage. With a smaller gap there is less to
    learn, and more users are needed.

    ## Observation space
    `Discrete(horizon + 2)`: the chain 0..H-1, its end (H), and the state that pays (H + 1). With `observe_time=True`,
    `MultiDiscrete([horizon, horizon + 2])`.

    ## Action space
    `Discrete(2 ** (d - 1))`: bit i of the number is sign i.

    ## Rewards
    1 for every step that begins in the state that pays, else 0.

    ## Start and end
    State 0. An episode terminates after `horizon` steps.

    ## Arguments
    - `horizon=6`: steps in an episode; there are two states more.
    - `d=5`: weights of a stage; at most 11.
    - `episodes=10_000`: the number of users K for which the gap is hardest, sqrt(1 / (32 H K)).
    - `gap=None`: the gap itself, in place of `episodes`; at most 1 / (2 H (d - 1)).
    - `instance_seed=0`: which signs.
    - `observe_time=False`, `render_mode=None`: as in all environments.

    ## Version history
    - v0: first release.
    """

    def __init__(
        self,
        horizon: int = 6,
        d: int = 5,
        episodes: int = 10_000,
        gap: float | None = None,
        instance_seed: int = 0,
        *,
        observe_time: bool = False,
        render_mode: str | None = None,
    ) -> None:
        H = positive_integer(horizon, "horizon", "steps in an episode")
        d = positive_integer(d, "d", "weights of a stage")
        K = positive_integer(episodes, "episodes", "users")
        if not 2 <= d <= 11:
            raise ValueError(f"d is {d}: it must be from 2 to 11, because there are 2^(d - 1) actions.")
        self.gap = math.sqrt(1.0 / (32.0 * H * K)) if gap is None else real(gap, "gap")
        if not 0.0 < self.gap <= 0.5 / (H * (d - 1)):
            raise ValueError(
                f"The gap is {self.gap:g}: it must be above 0 and at most {0.5 / (H * (d - 1)):g}, which is 1 / (2 H "
                "(d - 1)), so that probabilities stay in [0, 1]. Give more episodes=, or another gap=."
            )
        check_model(H + 2, 2 ** (d - 1), d)
        signs = instance_generator("hard-linear-mixture", instance_seed).choice([-1.0, 1.0], size=(H, d - 1))
        # psi = (first (1 - 1/H), -others a) along the chain, (first / H, others a) into the state that pays
        first, others = math.sqrt(1.0 / (1.0 + self.gap * (d - 1))), math.sqrt(self.gap / (1.0 + self.gap * (d - 1)))
        actions = 2.0 * (np.arange(2 ** (d - 1))[:, None] >> np.arange(d - 1) & 1) - 1.0  # [a, sign]
        end, pays = H, H + 1
        kernels = np.zeros((d, H + 2, len(actions), H + 2))
        for s in range(H):
            kernels[0, s, :, s + 1] = first * (1.0 - 1.0 / H)
            kernels[0, s, :, pays] = first / H
            kernels[1:, s, :, s + 1] = -others * actions.T
            kernels[1:, s, :, pays] = others * actions.T
        kernels[0, end, :, end] = kernels[0, pays, :, pays] = first
        rewards = np.zeros((H + 2, len(actions), 1))
        rewards[pays] = 1.0
        weights = np.hstack([np.full((H, 1), 1.0 / first), self.gap / others * signs])
        self.mixture = Mixture(LinearFeatures.dense(kernels, rewards), weights, [1.0])
        super().__init__(self.mixture.model(0, H, "fixed"), observe_time=observe_time, render_mode=render_mode)
