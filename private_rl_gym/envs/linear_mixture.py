"""Random linear mixtures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.envs.finite import RewardLaw
from private_rl_gym.envs.generation import instance_generator, sparse_rows
from private_rl_gym.envs.mixture import Mixture
from private_rl_gym.envs.sparse import SparseModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import flag, positive_integer, real, shown
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.memory import check_room

__all__ = ["LinearMixture"]


class LinearMixture(TabularEnv):
    """A random model that mixes d known kernels with hidden weights.

    ## Description
    A linear mixture model (assumption 1 of LinOpt): P_h(s' | s, a) is a weighted sum of `d` base kernels, which the
    learner knows, with weights that it does not know. It has to learn only `d` numbers for each stage, for any number
    of states. Base kernels are random and sparse; weights are uniform on the simplex. Rewards are linear in `d` known
    features with hidden weights of their own. `env.unwrapped.mixture.features` holds all that a learner may know,
    `env.unwrapped.mixture` holds the weights too; `instance_seed` fixes the instance. Kernels are sparse: 10,000 states
    take about one second to make, and about ten megabytes.

    With `misspecification` above 0 the truth is not a mixture of the known kernels: with that probability a step
    follows a hidden kernel and pays a hidden mean reward, which no feature describes. Every row of P is within that
    total variation distance of the mixture, and every mean reward within that distance of its linear value.

    ## Observation space
    `Discrete(n_states)`. With `observe_time=True`, `MultiDiscrete([horizon, n_states])`. With
    `observe_features=True`, for learners that need vectors, a `Box`: the reward features of every action in this
    state, and with `observe_time=True` the share of the episode that is over.

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
    - `misspecification=0.0`: the distance of the truth from the mixture, below 1.
    - `observe_features=False`: observe a vector.
    - `observe_time=False`, `render_mode=None`: as in all environments.

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
        misspecification: float = 0.0,
        *,
        observe_features: bool = False,
        observe_time: bool = False,
        render_mode: str | None = None,
    ) -> None:
        S = positive_integer(n_states, "n_states", "states")
        A = positive_integer(n_actions, "n_actions", "actions")
        H = positive_integer(horizon, "horizon", "steps in an episode")
        d = positive_integer(d, "d", "base kernels")
        stages = 1 if flag(stationary, "stationary") else H
        observe_features = flag(observe_features, "observe_features")
        if not 0.0 <= real(misspecification, "misspecification") < 1.0:
            raise ValueError(
                f"misspecification is {shown(misspecification)}: a distance from every mixture, in [0, 1)."
            )
        rng = instance_generator("linear-mixture", instance_seed)
        successors, psi = sparse_rows(rng, (d, S, A), S, branching)
        check_room(8 * d * (S * A + 2 * stages), f"{d:,} weights of every state and action", "Take fewer kernels.")
        theta, varphi = rng.dirichlet(np.ones(d), size=stages), rng.dirichlet(np.ones(d), size=(S, A))
        eta = rng.random((stages, d))
        self.mixture = Mixture(LinearFeatures.sparse(successors, psi, varphi), theta, eta)
        model = self.mixture.model(0, H, reward_law)
        if misspecification:  # one more kernel, and rewards, which no feature describes
            hidden, chances = sparse_rows(rng, (1, S, A), S, branching)
            share = float(misspecification)
            everything = LinearFeatures.sparse(
                np.concatenate([successors, hidden]), np.concatenate([psi, chances]), varphi
            )
            packed = everything.mixed(np.hstack([(1.0 - share) * theta, np.full((stages, 1), share)]))
            rewards = (1.0 - share) * model.rewards + share * rng.random((S, A))
            model = SparseModel(*packed, rewards, 0, H, reward_law)
        super().__init__(
            model,
            observe_time=observe_time,
            features=_vectors(self.mixture.features) if observe_features else None,
            render_mode=render_mode,
        )


def _vectors(features: LinearFeatures) -> NDArray[np.float32]:  # [s, action and feature]
    """Return vector observations of states: the reward features of all actions."""
    return features.reward_features.reshape(features.n_states, -1).astype(np.float32)
