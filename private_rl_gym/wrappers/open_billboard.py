"""A billboard without privacy: exact sums."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from private_rl_gym.privacy.central import exact
from private_rl_gym.privacy.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.statistics import Noise
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.summing import StatisticChoice, exact_statistic

__all__ = ["OpenBillboard"]


class OpenBillboard(Boundary):
    """Publishes the exact sums of all users, without privacy: the baseline of every comparison.

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
        env: An environment with a horizon, and Discrete spaces unless gradients are summed.
        users: The number of users that may come; by default any number.
        statistic: The kind of sums: ``"tabular"`` counts; ``"reports"`` of single steps, or ``"staged-reports"`` with
            their stages; ``"linear"`` moments, for linear learners, with the features that the environment knows or
            with ``LinearFeatures`` of your own; or the ``"gradient"`` of a policy network, with ``Layers`` for others
            than the usual ones. By default the kind that the agent needs.
        batch_size: Number of users in a batch; there is a release after every batch. The last batch may be smaller.
        growth: Makes later batches larger: each has this share of the users before it, or ``batch_size`` if that is
            more. A tenth to a quarter needs few releases, which cost less noise.
        stationary: Says that the problem is the same at every stage. Then a user counts once in each (s, a), all stages
            are pooled, and every stage of a release has the same counts.
        visits: The number of tables that a user may be in, where users are brought in with ``ingest``.
        seed: For choices of users who report single steps.
        horizon: Largest number of steps in an episode, if the environment does not define it.
        reward_range: The least and the largest reward, which are mapped to 0 and 1; they must contain 0, which an
            episode that ended early earns while it waits. By default rewards are in [0, 1] already.
    """

    short = "open"
    differentiates = True

    def __init__(
        self,
        env: gym.Env[Any, Any],
        users: int | None = None,
        *,
        statistic: StatisticChoice | None = None,
        batch_size: int = 1,
        growth: float = 0.0,
        stationary: bool = False,
        visits: int = 1,
        seed: int | None = None,
        horizon: int | None = None,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self,
            users=users,
            statistic=statistic,
            batch_size=batch_size,
            growth=growth,
            stationary=stationary,
            visits=visits,
            seed=seed,
            horizon=horizon,
            reward_range=reward_range,
        )
        super().__init__(
            env,
            statistic=statistic,
            horizon=horizon,
            users=users,
            batch_size=batch_size,
            reward_range=reward_range,
            growth=growth,
            stationary=stationary,
            visits=visits,
            seed=seed,
        )
        self._choices = NoiseSource(seed, role="choices")
        self.design(self.population.statistic if statistic is None else statistic, apart=True)

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Choose exact sums, with no guarantee."""
        del apart
        self.statistic = exact_statistic(self.population, statistic, stationary=self._stationary)
        self._promised = Guarantee(TrustModel.NONE, float("inf"), 1.0, self.users, "exact sums are published")

    def law(self, releases: int, *, newest: bool) -> Noise:
        """The law of the noise in a release: there is none."""
        del releases, newest
        return exact

    def sources(self) -> dict[str, NoiseSource]:
        """No sources, because nothing is promised."""
        return {}
