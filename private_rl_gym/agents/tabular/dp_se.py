"""DP-SE: successive elimination of arms in batches, each with noise of its own."""

from __future__ import annotations

import math
import warnings
from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.batched import Batch, BatchedAgent
from private_rl_gym.agents.optimism import Constants, check_constants, check_multiplier
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.release import Release

__all__ = ["DPSE"]


class DPSE(BatchedAgent):
    """A bandit's learner, which eliminates arms in epochs.

    Every epoch pulls all remaining arms equally often, and drops the arms that are worse.

    Sajed, Sheffet: An Optimal Private Stochastic-MAB Algorithm Based on an Optimal Private Stopping Rule, 2019,
    algorithm 2. An arm is an action that a user takes at all their steps, and its reward is their return over H: on
    ``PrivateRL/HardBandit-v0``, where H = 1, that is the paper's bandit; elsewhere it finds the best constant action.

    Args:
        policy: ``"TabularPolicy"``.
        env: ``JDPBillboard``, or any other board whose batches close early. Its ``batch_size`` may be all users: the
            agent closes batches itself.
        constants: ``"theory"`` for the paper's widths, with which the best arm survives with probability 1 - beta;
            ``"practical"`` for ``width_scale`` times these widths, and as many pulls as they ask for.
        width_scale: The multiplier of practical widths.
        options: ``beta``, ``verbose``, ``tensorboard_log``, ``seed``; see the base class.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> from private_rl_gym.agents import DPSE
        >>> from private_rl_gym.wrappers import JDPBillboard
        >>> env = gym.make("PrivateRL/HardBandit-v0", alpha=0.3, instance=2)
        >>> board = JDPBillboard(env, epsilon=1.0, delta=0.0, users=20_000, schedule=20_000, rng=0)
        >>> agent = DPSE("TabularPolicy", board, seed=0).learn(20_000)
        >>> int(agent.predict(0)[0])
        2
    """

    def __init__(
        self,
        policy: str | None = "TabularPolicy",
        env: Any = None,
        *,
        constants: Constants = "practical",
        width_scale: float = 0.25,
        **options: Any,
    ) -> None:
        self.constants = check_constants(constants)
        self.width_scale = check_multiplier("width_scale", width_scale, "a practical width")
        super().__init__(policy, env, **options)

    def batches(self) -> Generator[Batch, Release, Policy]:
        """Yield the batches of algorithm 2.

        Epoch e = 1, 2, ... looks for gaps of 2^-e.
        """
        horizon, n_states, n_actions = self._board.sizes
        arms = [Policy(np.full((horizon, n_states), a, dtype=np.int64), n_actions) for a in range(n_actions)]
        active, best, epoch, left = list(range(n_actions)), 0, 0, self.known_users
        self.active = active
        while len(active) > 1:
            epoch += 1
            pulls = self._pulls(len(active), epoch)
            if left is not None and left < pulls * len(active):
                if epoch == 1:
                    warnings.warn(
                        f"A first epoch takes {pulls} users for each of {len(active)} arms, and {left} users are left: "
                        "nothing will be learned. Serve more users, or give a smaller width_scale=.",
                        stacklevel=2,
                    )
                break
            release = yield Batch([(arms[a], pulls) for a in active], deploy=arms[best])
            left = None if left is None else left - pulls * len(active)
            means = self._returns(release, pulls)[active] / pulls
            noise = release.errors["r"].summed(horizon * n_states).bound(self._failure(len(active), epoch))
            width = self._scale * (self._sampling(len(active), epoch, pulls) + noise / (horizon * pulls))
            best = active[int(means.argmax())]
            active = [a for a, mean in zip(active, means, strict=True) if mean >= means.max() - 2.0 * width]
            self.active = active
        return arms[best]

    @property
    def _scale(self) -> float:
        return self.width_scale if self.constants == "practical" else 1.0

    def _failure(self, arms: int, epoch: int) -> float:
        """Return the share of beta for the noise of an arm in an epoch.

        The share for sampling errors is as large.
        """
        return self.beta / (4.0 * arms * epoch**2)

    def _sampling(self, arms: int, epoch: int, pulls: int) -> float:
        """Return the paper's h: Hoeffding's bound on the error of a mean."""
        return math.sqrt(math.log(2.0 / self._failure(arms, epoch)) / (2.0 * pulls))

    def _pulls(self, arms: int, epoch: int) -> int:
        """Return the paper's R, the number of pulls of each arm.

        With R pulls, both widths, h and c, are at most an eighth of the gap 2^-e.
        """
        board, (horizon, n_states, _) = self._board, self._board.sizes
        eighth = 2.0**-epoch / 8.0 / self._scale
        logarithm = math.log(2.0 / self._failure(arms, epoch))
        pulls = math.ceil(logarithm / (2.0 * eighth**2)) + 1
        cells = math.sqrt(horizon * n_states / 2.0)  # the scale of Laplace noise is its deviation over sqrt(2)
        while logarithm * cells * board.expected_noise(pulls * arms) / (horizon * pulls) > eighth:
            pulls = math.ceil(1.2 * pulls)
        return pulls

    def _returns(self, release: Release, pulls: int) -> NDArray[np.float64]:  # [arm]
        """Return the sums of returns over H.

        They are rewards in all states, and those of ended episodes until the horizon.
        """
        rewards, n = release.r.copy(), release.n.copy()
        waited = 0.0
        if release.absorbing is not None:  # its rows are not counts
            rewards[:, release.absorbing] = n[:, release.absorbing] = 0.0
            waited = release.waiting_reward * (self.horizon * pulls - n.sum(axis=(0, 1)))
        return np.asarray((rewards.sum(axis=(0, 1)) + waited) / self.horizon)

    def progress(self) -> dict[str, float]:
        """Return the number of remaining arms."""
        return {"plan/active": float(len(self.active))}
