"""A billboard without privacy: exact sums."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from private_rl_gym.privacy.guarantee import Guarantee
from private_rl_gym.privacy.publishing import PublicSums
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.summing import Summed, exact_statistic

__all__ = ["OpenBillboard"]


class OpenBillboard(Boundary):
    """Publishes the exact sums of all users: no privacy, said plainly. The baseline of every comparison.

    Example:
        >>> import gymnasium as gym, private_rl_gym
        >>> from private_rl_gym.wrappers import OpenBillboard
        >>> board = OpenBillboard(gym.make("PrivateRL/RiverSwim-v0", horizon=20))
        >>> board.serve([1] * 6, users=1000)
        1000
        >>> board.release
        Release(version=1000, users=1000, H=20, S=6, A=2, noise_std={n: 0, m: 0, r: 0})
        >>> print(board.ledger)
        no privacy (epsilon = inf)

    Args:
        env: Discrete spaces and a horizon.
        users: The number of users that may come; by default any number.
        statistic: What is summed: ``"tabular"`` counts; or ``"linear"`` moments, for linear learners, with the features
            that the environment knows or with ``LinearFeatures`` that are handed over.
        publish_every: Users in a batch. The last batch may be smaller.
        horizon: Largest number of steps, where the environment does not know it.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        users: int | None = None,
        *,
        statistic: Summed = "tabular",
        publish_every: int = 1,
        horizon: int | None = None,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self, users=users, statistic=statistic, publish_every=publish_every, horizon=horizon
        )
        super().__init__(env, horizon=horizon, users=users, publish_every=publish_every)
        inside = self._inside
        self._board = PublicSums(
            exact_statistic(inside, statistic),
            users=self.users,
            publish_every=self.publish_every,
            absorbing=inside.absorbing,
        )

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        return Guarantee("none", float("inf"), 1.0, self.users, "exact sums are published")
