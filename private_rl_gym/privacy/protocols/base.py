"""Protocols: how sums of users' messages are published.

* ``Protocol`` - publishes sums of batches; it sees a ``UserSide``, and never the kind of its statistic
* ``ProtocolPlan`` - what a protocol will do and guarantee, before anything is drawn or allocated
* ``ClosedBatch`` - what is public about the batch that is published
* ``Options`` - what a boundary was built with
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.accounting.guarantee import Guarantee, Neighbours
from private_rl_gym.privacy.errors import CellError
from private_rl_gym.privacy.noise import Noises, NoiseSource
from private_rl_gym.privacy.randomizers.base import UserSide
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.privacy.statistics.base import Alphabet

__all__ = ["ClosedBatch", "Options", "Protocol", "ProtocolPlan"]


class ClosedBatch(NamedTuple):
    """The public facts about a batch.

    Attributes:
        users: Number of users in it.
        sent: Number of users whose messages arrived.
        load: The largest load of a request to its users.
    """

    users: int
    sent: int
    load: int


@dataclass(frozen=True)
class Options:
    """The options of all protocols.

    Attributes:
        users: The number of users that may come; None for any number.
        schedule: When there are releases.
        neighbours: The users between which the guarantee holds.
        visits: The number of batches that a user may be in.
    """

    users: int | None
    schedule: Schedule
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    visits: int = 1


@dataclass(frozen=True)
class ProtocolPlan:
    """The plan of a protocol, made without drawing or allocating anything.

    Attributes:
        guarantee: The guarantee to every user.
        apart: Whether every batch is published by itself; else releases are of all users so far.
        releases: The number of releases that noise is calibrated for; None if it is not limited.
        least: The smallest number of users whose sums are ever published together.
        arrays: Number of arrays with a number for each cell that noise takes.
        terms: The numbers that noise is calibrated to: a saved state is continued under the same.
        chosen: The protocol's own choice, such as a mechanism and its scale.
    """

    guarantee: Guarantee
    apart: bool = True
    releases: int | None = None
    least: int = 1
    arrays: int = 0
    terms: Mapping[str, Any] = field(default_factory=dict)
    chosen: Any = None


class Protocol(ABC):
    """The interface of protocols, which publish sums of batches.

    A protocol is complete when its constructor returns.

    Args:
        side: What leaves the users' side.
        options: What the boundary was built with.
        plan: The plan for them.
    """

    alphabets: ClassVar[tuple[Alphabet, ...]] = (Alphabet.SUMS,)
    """The kinds of messages that it takes from users without a randomizer."""

    merges: ClassVar[bool] = True
    """Whether several releases that are due at once may be made as one."""

    last_joins: ClassVar[bool] = False
    """Whether users who would be left over join the last batch."""

    hides_among: ClassVar[bool] = False
    """Whether messages are protected by the other messages of their batch, so that a smaller one protects less."""

    more_releases: ClassVar[str] = "This kind of boundary has no option for that."
    """The end of errors about a release that is not there."""

    def __init__(self, side: UserSide, options: Any, plan: ProtocolPlan) -> None:
        self.side, self.options, self.plan = side, options, plan

    @classmethod
    @abstractmethod
    def stated(cls, options: Any) -> Guarantee:
        """Return the guarantee for every statistic that may still be chosen.

        Its epsilon and delta are at least those of any plan.
        """

    @classmethod
    @abstractmethod
    def planned(cls, side: UserSide, options: Any, *, apart: bool) -> ProtocolPlan:
        """Return the plan for this users' side.

        The result depends on the arguments alone.

        Args:
            side: What leaves the users' side.
            options: What the boundary was built with.
            apart: Whether every batch has to be published by itself.

        Raises:
            ValueError: If no mechanism fits.
        """

    def receive(self, users: Any | None, count: int, request: Request | None, sums: NDArray[np.int64]) -> None:
        """Add the messages of users to ``sums``.

        ``users`` is None if they have nothing to report.
        """
        self.side.add(users, count, request, sums)

    def needed(self, users: int) -> int:
        """Return the number of messages that a batch of so many users needs."""
        return 0

    refusal: str = ""
    """The end of errors about a batch with fewer messages than that."""

    def discard(self) -> None:  # noqa: B027 - most hold no messages
        """Forget the messages of the current batch."""

    def check(self) -> None:  # noqa: B027 - most have nothing to check
        """Raise RuntimeError if noise that later releases build on was interrupted."""

    @abstractmethod
    def publish(self, sums: NDArray[np.int64], batch: ClosedBatch, releases: int) -> NDArray[np.float64]:
        """Return the published cells of these sums, in real units.

        The sums are those of one batch, or of all users if batches are not published apart. If several releases are due
        at once, noise is drawn for each of them, and only the newest is returned (or the sum of that many batches).
        """

    @abstractmethod
    def error(self, releases: int, load: int, *, newest: bool) -> CellError:
        """Return the error that ``publish`` adds to a cell.

        Args:
            releases: Number of releases.
            load: The largest load of a request in the newest batch.
            newest: Whether it is that of the ``releases`` newest batches, or of all releases so far.
        """

    @abstractmethod
    def batch_error(self, users: int, load: int) -> CellError:
        """Return the error that ``publish`` adds to a cell of one batch.

        It is known before the users of the batch come.
        """

    def noises(self, batches: Sequence[int], load: int) -> Noises:
        """Return the additive noise in releases after batches of these sizes, for audits."""
        return []

    @classmethod
    def sources(cls, side: UserSide, options: Any) -> dict[str, NoiseSource]:
        """Return the sources of the noise that the guarantee rests on, by role.

        There are none if nothing is guaranteed.
        """
        return {}

    def numbers(self) -> dict[str, int]:
        """Return the whole numbers that are needed to continue."""
        return {}

    def restore(self, numbers: Mapping[str, int]) -> None:  # noqa: B027 - most have none
        """Continue from saved numbers."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that are needed to continue.

        They are saved, and restored in place. They are secret.
        """
        return {}
