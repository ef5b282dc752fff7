"""RiverSwim as a mixture of three known currents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.envs.finite import RewardLaw
from private_rl_gym.envs.mixture import Mixture
from private_rl_gym.envs.rendering import RiverScene
from private_rl_gym.envs.river_swim import LEFT, RIGHT, Current, current_named, river_length, river_swim_start
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.features import LinearFeatures

__all__ = ["RiverSwimMixture"]

BACK, HOLD, FORWARD = 0, 1, 2


def _currents(current: Current, n_states: int) -> NDArray[np.float64]:  # [i, s, a, s']
    """Return the three kernels whose mixture is the river of ``current``.

    The weights are its probabilities in the middle of the river.
    """
    back, stay, forward = current.middle
    kernels = np.zeros((3, n_states, 2, n_states))
    for s in range(n_states):
        kernels[:, s, LEFT, max(s - 1, 0)] = 1.0
        kernels[BACK, s, RIGHT, max(s - 1, 0)] = 1.0
        kernels[HOLD, s, RIGHT, s] = 1.0
        kernels[FORWARD, s, RIGHT, min(s + 1, n_states - 1)] = 1.0
    # At a bank the swimmer cannot be carried on, so the current that holds has to make up for what the bank does.
    hold_first = (current.first[0] - back) / stay
    hold_last = (current.last[1] - forward) / stay
    kernels[HOLD, 0, RIGHT, :2] = [hold_first, 1.0 - hold_first]
    kernels[HOLD, -1, RIGHT, -2:] = [1.0 - hold_last, hold_last]
    return kernels


class RiverSwimMixture(TabularEnv):
    """RiverSwim as a linear mixture, on which tabular and linear learners can be compared.

    ## Description
    Transitions and rewards are those of `PrivateRL/RiverSwim-v0` with the same variant (up to rounding), and so is
    V*. Here they are a mixture of d = 3 known currents: one carries back, one holds, and one carries forward. The
    hidden weights are the probabilities of the middle of the river (0.05, 0.6, 0.35 for `"osband"`).
    `env.unwrapped.mixture` holds kernels, features and weights.

    ## Observation space
    `Discrete(n_states)`: the place in the river. With `observe_time=True`, `MultiDiscrete([horizon, n_states])`.

    ## Action space
    `Discrete(2)`: 0 swims left, 1 swims right.

    ## Rewards
    As in RiverSwim. There are two reward features, one for swimming left at the left bank and one for swimming right at
    the right bank; their hidden weights are the rewards of the banks.

    ## Start and end
    As in RiverSwim.

    ## Arguments
    - `variant="osband"`: the named river, `"osband"`, `"strehl-littman"` or `"open-banks"`.
    - `horizon=20`: steps in an episode.
    - `n_states=6`: length of the river, at least 3.
    - `reward_law="fixed"`: or `"bernoulli"`.
    - `observe_time=False`, `render_mode=None`: as in all environments.

    ## Version history
    - v0: first release.
    """

    scene_type = RiverScene

    def __init__(
        self,
        variant: str = "osband",
        horizon: int = 20,
        n_states: int = 6,
        reward_law: RewardLaw = "fixed",
        *,
        observe_time: bool = False,
        render_mode: str | None = None,
    ) -> None:
        current, n_states = current_named(variant), river_length(n_states)
        features = np.zeros((n_states, 2, 2))
        features[0, LEFT, 0] = 1.0
        features[-1, RIGHT, 1] = 1.0
        known = LinearFeatures.dense(_currents(current, n_states), features)
        self.mixture = Mixture(known, current.middle, [current.small, 1.0])
        super().__init__(
            self.mixture.model(river_swim_start(current, n_states), horizon, reward_law),
            observe_time=observe_time,
            render_mode=render_mode,
        )
        self.variant, self.title = variant, f"RiverSwimMixture ({variant})"
