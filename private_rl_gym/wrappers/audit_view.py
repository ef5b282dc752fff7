"""The inside of a boundary, for auditors who are trusted with raw data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from private_rl_gym.planning.arrays import positive_integer, shown
from private_rl_gym.privacy.aggregator import Observer
from private_rl_gym.privacy.noise import Noises
from private_rl_gym.privacy.protocols import ProtocolPlan
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.statistics import Statistic

if TYPE_CHECKING:
    from private_rl_gym.wrappers.pipeline import Bound

__all__ = ["AuditView"]


class AuditView:
    """The view of an auditor into a boundary.

    Args:
        bound: Its pipeline.
        observers: The observers, which receive all users and messages.
        request: The request to the next users.
    """

    def __init__(self, bound: Bound, observers: list[Observer], request: Request | None) -> None:
        self._bound, self._observers, self._request = bound, observers, request

    @property
    def exact(self) -> Statistic:
        """The exact statistic of users' contributions, without their randomness."""
        return self._bound.side.statistic.exact

    @property
    def size(self) -> int:
        """Length of the vector that is summed."""
        return self._bound.side.size

    @property
    def plan(self) -> ProtocolPlan:
        """The plan of the protocol."""
        return self._bound.plan

    @property
    def pipeline(self) -> Any:
        """All objects of the pipeline."""
        return self._bound

    def observe(self, observer: Observer) -> None:
        """Show an auditor all further users and messages."""
        self._observers.append(observer)

    def noises(self, batches: Sequence[int]) -> Noises:
        """Return the additive noise in releases after batches of these sizes.

        Noise of other kinds is left out.
        """
        side, protocol, sizes = self._bound.side, self._bound.protocol, _sizes_of(batches)
        return [*side.noises(sizes), *protocol.noises(sizes, side.load(self._request))]


def _sizes_of(batches: Sequence[int]) -> list[int]:
    """Return the numbers of users in some batches; raise if they are invalid."""
    if not isinstance(batches, list | tuple | range) and np.ndim(batches) != 1:
        raise TypeError(f"batches is {shown(batches)}: give a list of numbers of users.")
    return [positive_integer(size, "A batch", "users") for size in batches]
