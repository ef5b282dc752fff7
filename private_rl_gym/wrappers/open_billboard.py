"""Exact sums, without privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym

from private_rl_gym.privacy.protocols import Exact, Options
from private_rl_gym.privacy.randomizers.base import UserSide
from private_rl_gym.wrappers.arguments import CommonArguments, CommonOptions
from private_rl_gym.wrappers.boundary import Boundary
from private_rl_gym.wrappers.options import statistic_of
from private_rl_gym.wrappers.sources import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["OpenBillboard"]


class OpenBillboard(Boundary):
    """The exact sums of all users, without privacy: the baseline of every comparison.

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
        visits: The number of tables that a user may be in, where users are brought in with ``ingest``.
        **common: The options of all boundaries: ``statistic``, ``schedule``, ``stationary``, ``horizon``,
            ``reward_range`` and ``rng``. See ``CommonOptions``.
    """

    short = "open"
    differentiates = True
    protocol = Exact

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        users: int | None = None,
        visits: int = 1,
        **common: Unpack[CommonArguments],
    ) -> None:
        super().__init__(env, CommonOptions.of(type(self), common, users=users, visits=visits))
        self._choices = self._options.source("choices")
        self._ready()

    def _side(self, source: Source, statistic: Any) -> UserSide:
        """Return the exact statistic."""
        return UserSide(statistic_of(source, statistic, stationary=self._options.stationary), None, self._choices)

    def _protocol_options(self) -> Options:
        """Return the number of users and the schedule."""
        return Options(self.users, self._options.schedule, visits=self._options.visits)
