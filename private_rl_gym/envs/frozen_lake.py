"""FrozenLake: Gymnasium's lake, with tapes and exact values."""

from __future__ import annotations

from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import among, flag, shown

__all__ = ["FrozenLake"]


class FrozenLake(TabularEnv):
    """A walk over slippery ice, where only the goal pays and holes end the episode.

    ## Description
    The exact model of Gymnasium's `FrozenLake-v1`, cut at the horizon: tapes, compiled rollouts and exact regret, and
    the same distributions. A random walk seldom reaches the goal, which makes it hard to find under noise.
    `FrozenLake-v1` itself trains inside a boundary too.

    ## Observation space
    `Discrete(17)` on the 4x4 map: its places, row by row, and one more state, in which those wait who fell into a hole
    or reached the goal. With `observe_time=True`, `MultiDiscrete([horizon, 17])`.

    ## Action space
    `Discrete(4)`: left, down, right, up. On slippery ice, a step goes in the direction that was meant or in one of
    both at right angles to it, each with probability 1/3.

    ## Rewards
    1 for the step that reaches the goal.

    ## Start and end
    The top left corner. An episode terminates after `horizon` steps.

    ## Arguments
    - `horizon=20`: steps in an episode. (Gymnasium's own limit on the 4x4 map is 100.)
    - `map_name="4x4"`: or `"8x8"`.
    - `is_slippery=True`: with False, steps go where they are meant to.
    - `observe_time=False`, `render_mode=None`: as in all environments.

    ## Version history
    - v0: first release.
    """

    def __init__(
        self,
        horizon: int = 20,
        map_name: str = "4x4",
        is_slippery: bool = True,
        *,
        observe_time: bool = False,
        render_mode: str | None = None,
    ) -> None:
        is_slippery = flag(is_slippery, "is_slippery")
        if not among(map_name, ("4x4", "8x8")):
            raise ValueError(f"map_name is {shown(map_name)}: there are maps '4x4' and '8x8'.")
        lake = FrozenLakeEnv(map_name=map_name, is_slippery=is_slippery)
        super().__init__(TabularModel.from_gym(lake, horizon), observe_time=observe_time, render_mode=render_mode)
