"""Random linear mixtures."""

from __future__ import annotations

import numpy as np

from private_rl_gym.envs.generation import instance_generator, sparse_distributions
from private_rl_gym.envs.mixture import Mixture
from private_rl_gym.envs.model import RewardLaw
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.envs.vector import vector_entry_point
from private_rl_gym.planning.arrays import positive_integer

__all__ = ["LinearMixture", "LinearMixtureVector"]


class LinearMixture(TabularEnv):
    """A random model that mixes d known kernels with hidden weights.

    ## Description
    A linear mixture model (assumption 1 of LinOpt): P_h(s' | s, a) is a weighted sum of `d` base kernels, which
    the learner knows, with weights that it does not. What there is to learn is `d` numbers a stage, however many
    states there are. Base kernels are random and sparse; weights are uniform on the simplex. Rewards are linear
    in `d` known features with hidden weights of their own. `env.unwrapped.mixture` holds kernels, features and
    weights; `instance_seed` fixes the instance.

    ## Observation space
    `Discrete(n_states)`. With `observe_time=True`, `MultiDiscrete([horizon, n_states])`.

    ## Action space
    `Discrete(n_actions)`.

    ## Rewards
    A bit with mean <varphi(s, a), eta_h>, where varphi(s, a) is a point of the simplex and eta_h has entries in
    [0, 1]; with `reward_law="fixed"` the mean itself.

    ## Start and end
    State 0. An episode terminates after `horizon` steps.

    ## Arguments
    - `n_states=20`, `n_actions=4`, `horizon=6`: the sizes.
    - `d=4`: base kernels, and reward features.
    - `branching=3`: next states of every (state, action) under one base kernel.
    - `instance_seed=0`: which instance.
    - `stationary=True`: with False, every stage has weights of its own.
    - `reward_law="bernoulli"`: or `"fixed"`.
    - `observe_time=False`, `render_mode=None`: as everywhere.

    ## Version history
    - v0: first release.
    """

    def __init__(
        self,
        n_states: int = 20,
        n_actions: int = 4,
        horizon: int = 6,
        d: int = 4,
        branching: int = 3,
        instance_seed: int = 0,
        stationary: bool = True,
        reward_law: RewardLaw = "bernoulli",
        *,
        observe_time: bool = False,
        render_mode: str | None = None,
    ) -> None:
        S = positive_integer(n_states, "n_states", "states")
        A = positive_integer(n_actions, "n_actions", "actions")
        H = positive_integer(horizon, "horizon", "steps in an episode")
        d = positive_integer(d, "d", "base kernels")
        stages = 1 if stationary else H
        rng = instance_generator("linear-mixture", instance_seed)
        self.mixture = Mixture(
            kernels=sparse_distributions(rng, (d, S, A), S, branching),
            weights=rng.dirichlet(np.ones(d), size=stages),
            reward_features=rng.dirichlet(np.ones(d), size=(S, A)),
            reward_weights=rng.random((stages, d)),
        )
        model = self.mixture.tabular(0, H, reward_law)
        super().__init__(model, observe_time=observe_time, render_mode=render_mode)


LinearMixtureVector = vector_entry_point(LinearMixture)
