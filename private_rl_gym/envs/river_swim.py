"""RiverSwim: a small reward nearby, and a large one against the current."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.envs.generation import check_model
from private_rl_gym.envs.model import RewardLaw, TabularModel
from private_rl_gym.envs.rendering import RiverScene
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import positive_integer

__all__ = ["VARIANTS", "Current", "RiverSwim", "current_named", "river_swim_rewards"]

LEFT, RIGHT = 0, 1


@dataclass(frozen=True, slots=True)
class Current:
    """A variant of the river.

    Its fields are the outcomes of swimming right, the small reward, and the start states.
    """

    first: tuple[float, float]  # at the left bank: stay, forward
    middle: tuple[float, float, float]  # in between: back, stay, forward
    last: tuple[float, float]  # at the right bank: back, stay
    small: float  # reward for swimming left at the left bank
    start: tuple[int, ...]  # start states, equally likely
    source: str


VARIANTS: dict[str, Current] = {
    "osband": Current(
        (0.4, 0.6),
        (0.05, 0.6, 0.35),
        (0.4, 0.6),
        small=0.005,
        start=(0,),
        source="Osband, Russo, Van Roy: (More) Efficient Reinforcement Learning via Posterior Sampling, 2013",
    ),
    "strehl-littman": Current(
        (0.7, 0.3),
        (0.1, 0.6, 0.3),
        (0.7, 0.3),
        small=0.0005,
        start=(1, 2),
        source="Strehl, Littman: An Analysis of Model-Based Interval Estimation for MDPs, 2008",
    ),
    "open-banks": Current(
        (0.65, 0.35),
        (0.05, 0.6, 0.35),
        (0.05, 0.95),
        small=0.005,
        start=(0,),
        source="this project: osband's river without walls, where being carried into a bank is staying there",
    ),
}
"""The variants by name."""


def current_named(variant: str) -> Current:
    """Return the variant with this name.

    Raises ``ValueError`` with all names if there is none.
    """
    if not isinstance(variant, str) or variant not in VARIANTS:
        raise ValueError(f"There is no RiverSwim variant {variant!r}: choose one of {', '.join(sorted(VARIANTS))}.")
    return VARIANTS[variant]


def river_swim_rewards(current: Current, n_states: int) -> NDArray[np.float64]:  # [s, a]
    """Return the small reward at the left bank, and 1 at the right one."""
    rewards = np.zeros((n_states, 2))
    rewards[0, LEFT] = current.small
    rewards[-1, RIGHT] = 1.0
    return rewards


def river_swim_start(current: Current, n_states: int) -> NDArray[np.float64]:  # [s]
    """Return the distribution of start states, which is uniform."""
    start = np.zeros(n_states)
    start[list(current.start)] = 1.0 / len(current.start)
    return start


def river_length(n_states: int) -> int:
    """Return ``n_states``; raise an error if it is less than 3.

    A river has two banks and water in between.
    """
    length = positive_integer(n_states, "n_states", "states")
    if length < 3:
        raise ValueError(f"n_states is {length}: a river needs at least 3 states, two banks and water in between.")
    check_model(length, 2)
    return length


def _transitions(current: Current, n_states: int) -> NDArray[np.float64]:  # [s, a, s']
    P = np.zeros((n_states, 2, n_states))
    for s in range(n_states):
        P[s, LEFT, max(s - 1, 0)] = 1.0
    P[0, RIGHT, :2] = current.first
    for s in range(1, n_states - 1):
        P[s, RIGHT, s - 1 : s + 2] = current.middle
    P[-1, RIGHT, -2:] = current.last
    return P


class RiverSwim(TabularEnv):
    """A river, where users drift left or swim right against the current.

    ## Description
    States are places along the river, from the left bank (0) to the right bank. Swimming left always succeeds.
    Swimming right works against the current: most steps leave the swimmer in place. The left bank pays a very
    small reward at once; the right bank pays 1, after a long way without rewards. A learner that does not explore
    enough never reaches it, which makes RiverSwim the benchmark of the papers on private reinforcement learning.

    ## Observation space
    `Discrete(n_states)`: the place in the river. With `observe_time=True`, `MultiDiscrete([horizon, n_states])`:
    the stage and the place.

    ## Action space
    `Discrete(2)`: 0 swims left, 1 swims right.

    ## Rewards
    The variant's small reward for swimming left at the left bank (0.005 for `"osband"`), 1 for swimming right at
    the right bank, and 0 elsewhere. By default a reward is paid as it is; with `reward_law="bernoulli"` it is a
    bit with that mean.

    ## Start and end
    `"osband"` starts at the left bank, `"strehl-littman"` at state 1 or 2 with equal probability. An episode
    terminates after `horizon` steps.

    ## Arguments
    - `variant="osband"`: the named river. `"osband"` (swimming right in the middle: back 0.05, stay 0.6, forward
      0.35), `"strehl-littman"` (0.1, 0.6, 0.3, and harder banks), `"open-banks"` (as `"osband"`, but a
      swimmer who is carried into a bank stays there, so that the right bank is easy to hold).
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
        model = TabularModel(
            _transitions(current, n_states),
            river_swim_rewards(current, n_states),
            river_swim_start(current, n_states),
            horizon,
            reward_law,
        )
        super().__init__(model, observe_time=observe_time, render_mode=render_mode)
        self.variant, self.title = variant, f"RiverSwim ({variant})"
