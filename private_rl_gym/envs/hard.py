"""Instances of the lower bounds: parallel bandits in one Markov decision process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from private_rl_gym.envs.generation import check_model
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.rendering import HardScene
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import positive_integer, real, shown

__all__ = ["HardBandit", "HardMDP", "hard_model"]


def hard_model(n: int, m: int, alpha: float, instance: Sequence[int], horizon: int) -> TabularModel:
    """Return the model of PUCB, section 6.2.

    Episodes start in states 0..n-1. Then come ``plus`` (n) and ``minus`` (n + 1).
    """
    n, m = checked_sizes(n, m)
    if not 0.0 < real(alpha, "alpha") <= 0.5:
        raise ValueError(
            f"alpha is {shown(alpha)}: the gap must lie in (0, 1/2], because 1/2 + alpha is a probability."
        )
    best = tuple(instance) if isinstance(instance, Sequence | np.ndarray) else ()
    if len(best) != n or not all(isinstance(arm, int | np.integer) and 0 <= arm <= m for arm in best):
        raise ValueError(
            f"instance is {shown(instance)}: it must name the best action, one of 0..{m}, of each of the {n} start "
            "states."
        )
    plus, minus = n, n + 1
    success = np.full((n, m + 1), 0.5)
    success[:, 0] += alpha / 2
    for s, action in enumerate(best):
        if action != 0:
            success[s, action] += alpha
    P = np.zeros((n + 2, m + 1, n + 2))
    P[:n, :, plus] = success
    P[:n, :, minus] = 1.0 - success
    P[plus, :, plus] = 1.0
    P[minus, :, minus] = 1.0
    pays = np.zeros_like(P)
    pays[:, :, plus] = 1.0
    start = np.append(np.full(n, 1.0 / n), [0.0, 0.0])
    return TabularModel(P, initial=start, horizon=horizon, reward_law="fixed", outcome_rewards=pays)


def checked_sizes(n: int, m: int) -> tuple[int, int]:
    """Return n and m, the numbers of start states and of other actions.

    Raises an error if a model of that size does not fit into memory. ``m`` is the number of actions besides action 0.
    """
    n, m = positive_integer(n, "n", "start states"), positive_integer(m, "m", "actions besides action 0")
    check_model(n + 2, m + 1)
    return n, m


class HardMDP(TabularEnv):
    """Parallel bandits: the first action decides whether all rewards are 1 or 0.

    ## Description
    The class of instances in the lower bound of Vietri, Balle, Krishnamurthy and Wu (PUCB, section 6.2). An
    episode starts in one of `n` states, drawn uniformly. The action chosen there leads to `+` or to `-`, where it
    stays. Action 0 reaches `+` with probability 1/2 + alpha/2, the best action of that start state (if it is
    another one) with 1/2 + alpha, all others with 1/2. To learn this problem is to solve `n` separate
    bandits, and privacy increases the number of users that each of them needs.

    ## Observation space
    `Discrete(n + 2)`: the start states 0..n-1, then `+` (n) and `-` (n + 1). With `observe_time=True`,
    `MultiDiscrete([horizon, n + 2])`.

    ## Action space
    `Discrete(m + 1)`. In `+` and `-` all actions do the same.

    ## Rewards
    1 for every step that ends in `+`, 0 for every step that ends in `-`: the return is H or 0. The optimal value
    is H times the mean, over start states, of 1/2 + alpha/2 (where the best action is 0) or 1/2 + alpha.

    ## Start and end
    A uniform start state. An episode terminates after `horizon` steps.

    ## Arguments
    - `n=4`: start states, each a bandit.
    - `m=3`: actions besides action 0.
    - `alpha=0.2`: the gap, in (0, 1/2].
    - `instance=None`: the best action of each start state, `I = (I_1, ..., I_n)`; by default 1, 2, ..., m, 0, 1, ...
    - `horizon=10`: steps in an episode.
    - `observe_time=False`, `render_mode=None`: as in all environments.

    ## Version history
    - v0: first release.
    """

    scene_type = HardScene

    def __init__(
        self,
        n: int = 4,
        m: int = 3,
        alpha: float = 0.2,
        instance: Sequence[int] | None = None,
        horizon: int = 10,
        *,
        observe_time: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.instance = _default_instance(n, m) if instance is None else instance
        model = hard_model(n, m, alpha, self.instance, horizon)
        super().__init__(model, observe_time=observe_time, render_mode=render_mode)


class HardBandit(TabularEnv):
    """A bandit with one pull for each user: private best-arm identification.

    ## Description
    The instance of the hard class (PUCB, section 6.1) with one start state and one step: each user pulls one of
    `m + 1` arms. The question is how many users a private learner needs to name the best arm.

    ## Observation space
    `Discrete(3)`: before the pull (0), after a success (1), after a failure (2). With `observe_time=True`,
    `MultiDiscrete([1, 3])`.

    ## Action space
    `Discrete(m + 1)`: the arms.

    ## Rewards
    A bit. Its mean is 1/2 + alpha/2 for arm 0, 1/2 + alpha for the best arm (if it is another one), 1/2 for the
    others. The optimal value is the best arm's mean.

    ## Start and end
    State 0; the episode terminates after one step.

    ## Arguments
    - `m=3`: arms besides arm 0.
    - `alpha=0.2`: the gap, in (0, 1/2].
    - `instance=1`: the best arm.
    - `observe_time=False`, `render_mode=None`: as in all environments.

    ## Version history
    - v0: first release.
    """

    scene_type = HardScene

    def __init__(
        self,
        m: int = 3,
        alpha: float = 0.2,
        instance: int = 1,
        *,
        observe_time: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.instance = (instance,)
        model = hard_model(1, m, alpha, self.instance, horizon=1)
        super().__init__(model, observe_time=observe_time, render_mode=render_mode)


def _default_instance(n: int, m: int) -> tuple[int, ...]:
    n, m = checked_sizes(n, m)
    return tuple((s + 1) % (m + 1) for s in range(n))
