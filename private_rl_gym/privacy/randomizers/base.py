"""Noise on the user's side, and the messages that leave it.

* ``Randomizer`` - noise on the messages of a user, and its inverse in the mean
* ``UserSide`` - a statistic, a randomizer or none, and the users' own generator
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.accounting.amplification import Blanket
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.errors import CellError
from private_rl_gym.privacy.noise import Noises, NoiseSource, RandomAnswers
from private_rl_gym.privacy.release import Published
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.statistics.base import About, Alphabet, Sensitivity, Statistic

__all__ = ["Randomizer", "UserSide"]

AT_ONCE = 2**22
"""Uniforms in memory at once, for users who need some to encode what they say."""


class Randomizer(ABC):
    """Noise on the messages of a user.

    It does not know where messages are summed. A message is a vector of cells, and counters that say nothing about a
    user.

    Args:
        statistic: The statistic whose messages are randomized, in the alphabet of the randomizer.
        epsilon, delta: Budget of a user.

    Attributes:
        spent: The epsilon and delta that the messages of a user really cost.
        sensitivity: How far replacing a user moves a sum of messages, if both use the same randomness.
        blanket: What is known of messages beyond their epsilon, which amplifies shuffling; None if nothing is known.
    """

    name: ClassVar[str]
    """Its value of ``randomizer=``."""

    alphabet: ClassVar[Alphabet]
    """The kind of message that it takes."""

    counters: int = 0
    """Number of entries behind the cells, which say nothing about a user."""

    arrays: int = 0
    """Number of arrays with a number for each cell that one message needs."""

    statistic: Statistic
    spent: tuple[float, float]
    sensitivity: Sensitivity
    blanket: Blanket | None = None

    @abstractmethod
    def __init__(self, statistic: Statistic, epsilon: float, delta: float) -> None: ...

    @abstractmethod
    def send(
        self, users: Any | None, count: int, request: Request | None, source: NoiseSource, out: NDArray[np.int64]
    ) -> None:
        """Add the messages of ``count`` users to ``out``.

        Where ``users`` is None they have nothing to say, and send empty messages, as noisy as any. As many random
        numbers are drawn either way.
        """

    def unbias(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return estimates of the exact cells from published cells (in real units) and counters."""
        return vector

    @abstractmethod
    def error(self, users: int, added: CellError) -> CellError:
        """Return the error of an unbiased cell of a sum over users.

        Each cell has the error ``added`` besides.
        """

    def noises(self, batches: Sequence[int]) -> Noises:
        """Return the noise that users add in batches of these sizes, for audits."""
        return [RandomAnswers()]


@dataclass(frozen=True, eq=False)
class UserSide:
    """The users' side, all of whose output is handed to a protocol.

    Attributes:
        statistic: What users contribute, in the alphabet that is sent.
        randomizer: The noise on it; None if it is sent as it is.
        source: The users' own random numbers: choices, rounding and noise.
    """

    statistic: Statistic
    randomizer: Randomizer | None
    source: NoiseSource

    @property
    def size(self) -> int:
        """Length of a message: cells and counters."""
        return self.statistic.cells + (0 if self.randomizer is None else self.randomizer.counters)

    @property
    def loads(self) -> int:
        """The largest load of a request.

        It is 1 where a user sends one message whatever the request.
        """
        return self.statistic.loads if self.randomizer is None else 1

    @property
    def chooses(self) -> bool:
        """Whether users draw random numbers."""
        return self.randomizer is not None or self.statistic.draws > 0

    def load(self, request: Request | None) -> int:
        """Return the load of a request."""
        return self.statistic.load(request) if self.randomizer is None else 1

    def sensitivity(self, load: int = 1, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Sensitivity:
        """Return how far replacing a user moves a sum of messages."""
        if self.randomizer is None:
            return self.statistic.sensitivity(load, neighbours)
        if neighbours is not Neighbours.REPLACE_ONE:
            raise ValueError(
                "Users without data send noise here, so that neighbours are two users with data. Leave public_start "
                "and neighbours out, or put the boundary around the bare environment."
            )
        return self.randomizer.sensitivity

    def add(self, users: Any | None, count: int, request: Request | None, out: NDArray[np.int64]) -> None:
        """Add the messages of ``count`` users to ``out``.

        ``users`` is None if they have nothing to report.
        """
        if self.randomizer is not None:
            self.randomizer.send(users, count, request, self.source, out)
            return
        draws = self.statistic.draws * self.statistic.messages
        step = max(1, AT_ONCE // draws) if draws else count
        for start in range(0, count, step):
            stop = min(count, start + step)
            uniforms = self.source.uniform((stop - start) * draws).reshape(stop - start, draws) if draws else None
            if users is not None:
                self.statistic.encode(users.part(start, stop), out, request, uniforms)

    def error(self, users: int, added: CellError) -> CellError:
        """Return the error of an exact cell.

        Each cell of a sum has the error ``added``.
        """
        return added if self.randomizer is None else self.randomizer.error(users, added)

    def decode(self, vector: NDArray[np.float64], added: CellError, about: About) -> Published:
        """Return the release of published cells, in real units, and counters."""
        cells = vector if self.randomizer is None else self.randomizer.unbias(vector)
        return self.statistic.decode(cells, self.error(about.users, added), about)

    def noises(self, batches: Sequence[int]) -> Noises:
        """Return the noise that users add in batches of these sizes, for audits."""
        return [] if self.randomizer is None else self.randomizer.noises(batches)
