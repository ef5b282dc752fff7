"""Sums without noise: without privacy, or of messages that are private already."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.accounting.guarantee import Guarantee, TrustModel
from private_rl_gym.privacy.errors import CellError, no_error
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.protocols.base import ClosedBatch, Options, Protocol, ProtocolPlan
from private_rl_gym.privacy.randomizers.base import UserSide

__all__ = ["Exact"]


class Exact(Protocol):
    """Sums without noise of the protocol's own.

    The guarantee is that of the users' own noise.
    """

    @classmethod
    def stated(cls, options: Options) -> Guarantee:
        """Return no privacy: a boundary whose users add noise states its own guarantee."""
        return Guarantee(TrustModel.NONE, math.inf, 1.0, options.users, "exact sums are published")

    @classmethod
    def planned(cls, side: UserSide, options: Options, *, apart: bool) -> ProtocolPlan:
        """Return the guarantee of the users' own noise, if there is any."""
        if side.randomizer is None:
            return ProtocolPlan(cls.stated(options))
        epsilon, delta = side.randomizer.spent
        kind = f"each user sends their {side.statistic.exact.title} by the {side.randomizer.name!r} randomizer"
        return ProtocolPlan(Guarantee(TrustModel.LDP, epsilon, delta, options.users, kind))

    def publish(self, sums: NDArray[np.int64], batch: ClosedBatch, releases: int) -> NDArray[np.float64]:
        """Return the sums in real units."""
        return np.asarray(sums * self.side.statistic.grid)

    def error(self, releases: int, load: int, *, newest: bool) -> CellError:
        """Return no error."""
        return no_error

    def batch_error(self, users: int, load: int) -> CellError:
        """Return no error."""
        return no_error

    @classmethod
    def sources(cls, side: UserSide, options: Options) -> dict[str, NoiseSource]:
        """Return the users' own source, if they add noise."""
        return {} if side.randomizer is None else {"users": side.source}
