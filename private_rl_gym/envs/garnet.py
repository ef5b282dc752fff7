"""Garnets: random sparse models, the usual test problems."""

from __future__ import annotations

from private_rl_gym.envs.generation import instance_generator, sparse_distributions
from private_rl_gym.envs.model import RewardLaw, TabularModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import flag, positive_integer

__all__ = ["Garnet"]


class Garnet(TabularEnv):
    """A random model in which every action leads to a few random states.

    ## Description
    Generic average-case problems after Archibald, McKinnon and Thomas (1995): every (state, action) leads to
    `branching` states, chosen at random, with probabilities uniform on the simplex, and pays a mean reward
    uniform in [0, 1]. `instance_seed` fixes the instance; the seed of `reset` draws users, and never changes it.

    ## Observation space
    `Discrete(n_states)`. With `observe_time=True`, `MultiDiscrete([horizon, n_states])`.

    ## Action space
    `Discrete(n_actions)`.

    ## Rewards
    A bit with the mean of its (state, action); with `reward_law="fixed"` the mean itself.

    ## Start and end
    State 0. An episode terminates after `horizon` steps.

    ## Arguments
    - `n_states=10`, `n_actions=3`, `horizon=10`: the sizes.
    - `branching=3`: next states of every (state, action).
    - `instance_seed=0`: which instance.
    - `stationary=True`: with False, every stage has transitions and rewards of its own.
    - `reward_law="bernoulli"`: or `"fixed"`.
    - `observe_time=False`, `render_mode=None`: as in all environments.

    ## Version history
    - v0: first release.
    """

    def __init__(
        self,
        n_states: int = 10,
        n_actions: int = 3,
        horizon: int = 10,
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
        stages = 1 if flag(stationary, "stationary") else H
        rng = instance_generator("garnet", instance_seed)
        P = sparse_distributions(rng, (stages, S, A), S, branching)
        model = TabularModel(P, rng.random((stages, S, A)), 0, H, reward_law)
        super().__init__(model, observe_time=observe_time, render_mode=render_mode)
