"""The interface of statistics: users' contributions to sums, and how far they move sums.

* ``Statistic`` - a map from trajectories to vectors of whole numbers
* ``Sensitivity`` - how far replacing one user moves a sum of such vectors
* ``Alphabet`` - the kinds of messages that randomizers and protocols take
* ``About`` - what is public about a release besides its sums
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.errors import CellError, ErrorDistribution
from private_rl_gym.privacy.release import Published
from private_rl_gym.privacy.requests import Request

__all__ = ["About", "Alphabet", "Sensitivity", "Statistic", "check_scale"]

FAITHFUL = 2.0**45
"""Largest scale of noise in units of its grid. Beyond it doubles round away the last digits, and with them privacy."""


def check_scale(scale: float, grid: float) -> None:
    """Raise ValueError if this noise cannot be drawn in double precision.

    It has to be drawn to the last unit of its grid.
    """
    if not scale / grid <= FAITHFUL:
        raise ValueError(
            f"The noise would have scale {scale:.3g}, too large to be drawn faithfully on a grid of {grid:.3g}: "
            "ask for a larger epsilon, or for fewer users or releases."
        )


class Alphabet(Enum):
    """The kinds of messages that randomizers and protocols take from a user."""

    SUMS = "vectors of whole numbers"
    BITS = "bits, one for each counter"
    LEVELS = "numbers of levels, each of them some bits"
    STEP = "one outcome of many"
    STEPS = "one outcome of many at each stage"
    UNIT_VECTOR = "vectors of norm 1 at most"


class Sensitivity(NamedTuple):
    """The distance by which replacing one user moves a sum, in real units.

    Bounds are rounded up.

    Attributes:
        l1: Largest L1 distance; infinite if there is no bound.
        l2: Largest L2 distance.
        parts: Pairs (number of sets of cells, L1): a user moves at most so many sets, each by at most that distance.
        units: The smallest and the largest unit of a cell.
        linf: Largest distance in one cell, in units.
    """

    l1: float
    l2: float
    parts: tuple[tuple[int, float], ...]
    units: tuple[float, float] = (1.0, 1.0)
    linf: int = 1

    @classmethod
    def of_ones(cls, ones: int) -> Sensitivity:
        """Return the sensitivity of sums of which a user moves ``ones`` cells by one."""
        return cls(float(ones), math.sqrt(ones), ((ones, 1.0),))

    @property
    def bounded(self) -> bool:
        """Whether noise on sums can give a guarantee."""
        return math.isfinite(self.l1)


UNBOUNDED = Sensitivity(math.inf, math.inf, ())
"""The sensitivity of messages without a largest size."""


class About(NamedTuple):
    """The public facts about a release, besides its sums.

    Attributes:
        version: Number of the release.
        users: Number of users that it is about.
        releases: Number of releases that an error bound has to hold for at once.
        absorbing: The state in which episodes wait that ended early; None if they cannot end early.
        waiting_reward: The reward of each step there.
    """

    version: int
    users: int
    releases: int
    absorbing: int | None
    waiting_reward: float


class Statistic(ABC):
    """A map from trajectories to vectors of whole numbers, whose sum is published.

    Vectors are in units of ``grid``. A statistic draws nothing: the uniforms that its encoding needs are handed to it.
    Where sensitivity depends on what users are asked, it grows with a public number, the ``load`` of the request.

    Attributes:
        horizon, n_states, n_actions: Sizes of the problem.
        cells: Length of the vector.
    """

    name: str
    """Its value of ``statistic=``, the argument of boundaries and agents, such as ``"tabular"``."""

    title: str
    """Its name in descriptions of guarantees."""

    request_type: ClassVar[type[Request] | None] = None
    """The kind of request that users can answer; None for none."""

    randomizers: ClassVar[tuple[str, ...]] = ("laplace", "gaussian")
    """Names of the randomizers that may be chosen for it."""

    one_batch: ClassVar[bool] = False
    """Whether sums of two batches may answer different requests, so that batches are published apart."""

    replays: ClassVar[bool] = False
    """Whether users of a table can contribute, who ran no policy of the learner."""

    waits: ClassVar[bool] = False
    """Whether a user without usable rows may wait in the absorbing state, as any other user may."""

    release_type: type[Published]
    """The class of releases; randomizers are compared by the error of its headline family."""

    public: Mapping[str, Any] = MappingProxyType({})
    """What releases state besides sums, which is known without data."""

    dilution: float | None = None
    """The factor by which a user says less here than in the statistic that this one stands for; None for all of it."""

    choice: Any = None
    """The value of ``statistic=`` that asks for just this one, where the name alone does not."""

    draws: int = 0
    """Number of uniforms that the encoding of one user needs, or of one stage where all stages are sent apart."""

    loads: int = 1
    """The largest load of a request."""

    horizon: int
    n_states: int
    n_actions: int
    cells: int

    @property
    def label(self) -> str:
        """Identity of these sums, besides sizes and guarantee.

        Saved sums are continued only under the same label.
        """
        return type(self).__name__

    @property
    def exact(self) -> Statistic:
        """The statistic of the same vector without the randomness of users.

        It is this one, if users draw nothing.
        """
        return self

    unit: float = 1.0
    """The unit of a cell, where all cells have the same."""

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The unit of each cell."""
        return read_only(np.full(self.cells, self.unit))

    @abstractmethod
    def sensitivity(self, load: int = 1, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Sensitivity:
        """Return how far one user moves a sum.

        Args:
            load: The load of the largest request.
            neighbours: The users that are compared.

        Raises:
            ValueError: If there is no bound for these neighbours.
        """

    def coded(self, alphabet: Alphabet) -> Statistic:
        """Return the statistic of the same sums whose messages are of this kind.

        Raises:
            ValueError: If there is none.
        """
        if alphabet is Alphabet.SUMS:
            return self
        raise ValueError(f"{self.title} cannot be sent as {alphabet.value}.")

    def checked(self, request: Request | None) -> Request | None:
        """Return a plain copy of the request; raise if users cannot answer it."""
        if request is None:
            return None
        if self.request_type is None or type(request) is not self.request_type:
            understood = "nothing" if self.request_type is None else f"a request of type {self.request_type.__name__}"
            raise TypeError(
                f"Users were sent a request of type {type(request).__name__}: those who report {self.name} sums "
                f"understand {understood}."
            )
        return request.checked(self.horizon, self.n_states, self.n_actions)

    def load(self, request: Request | None) -> int:
        """Return how much a request asks for, which is public."""
        return 1

    def in_range(self, users: Any) -> Any:
        """Return the same users in plain arrays.

        Raise ValueError, without their data, if they are out of range. Sensitivity is bounded only for users whose
        states, actions and rewards are in range.
        """
        horizon, n_states, n_actions = self.horizon, self.n_states, self.n_actions
        states, actions = (np.asarray(array) for array in (users.states, users.actions))
        rewards = np.asarray(users.rewards, dtype=np.float64)
        shaped = states.shape == (len(actions), horizon + 1) and actions.shape == rewards.shape == (
            len(actions),
            horizon,
        )
        whole = states.dtype.kind in "iu" and actions.dtype.kind in "iu"
        if not (shaped and whole and _within(states, actions, rewards, n_states, n_actions)):
            raise ValueError(
                f"A user's states, actions or rewards are outside H={horizon}, S={n_states}, A={n_actions} and [0, 1], "
                "for which sensitivity is bounded: nothing of them is counted."
            )
        return Trajectories(states, actions, rewards)

    def encode(
        self,
        users: Any,
        sums: NDArray[np.int64],
        request: Request | None = None,
        uniforms: NDArray[np.float64] | None = None,
    ) -> None:
        """Check some users and their request, and add their vectors to ``sums``.

        Args:
            users: Their trajectories.
            sums: ``[cell]``.
            request: The request that they answer.
            uniforms: ``[user, draw]``, where ``draws`` is above 0.

        Raises:
            ValueError: If users, the request or an array are not of the right sizes. Nothing is added then.
        """
        plain = self.in_range(users)
        shape = (len(plain), self.draws * self.messages)
        drawn = np.zeros(shape) if uniforms is None and not self.draws else np.asarray(uniforms, dtype=np.float64)
        if sums.shape != (self.cells,) or sums.dtype != np.int64 or drawn.shape != shape:
            raise ValueError(
                f"{self.title} of {len(plain)} users need {self.cells} sums of int64 and uniforms of shape {shape}: "
                f"they have sums of shape {sums.shape} and {sums.dtype}, and uniforms of shape {drawn.shape}."
            )
        self._add(plain, sums, self.checked(request), drawn)

    @abstractmethod
    def _add(self, users: Any, sums: NDArray[np.int64], request: Request | None, uniforms: NDArray[np.float64]) -> None:
        """Add the vectors of users who are in range to ``sums``.

        Sizes have been checked.
        """

    def outcomes(
        self, users: Any, request: Request | None, uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the block and the place of every message, where messages are outcomes.

        The place is that within the block of cells.

        Args:
            users: Their trajectories; None for users without any.
            request: The request that they answer.
            uniforms: ``[user, message, draw]``.

        Returns:
            Two arrays ``[user, message]``; the place is -1 where a user has nothing to say.
        """
        raise TypeError(f"{self.title} are no outcomes.")

    own_bits: int = 1
    """Number of bits in which a user says one entry, where messages are bits or levels."""

    blocks: int = 1
    """Number of blocks of cells, where messages are outcomes: a message is about one of them."""

    messages: int = 1
    """Number of messages of a user, where messages are outcomes."""

    times: int = 1
    """How often a message counts, where messages are outcomes."""

    rounds: bool = False
    """Whether the rounding of rewards is an error of it, where messages are outcomes; else sums are of rounded ones."""

    @property
    def headline(self) -> str:
        """Name of the family by whose error randomizers are compared."""
        return self.release_type.headline

    shapes: Mapping[str, tuple[int, ...]]
    """The shapes of families, which stand one after the other in a vector; others override the methods below."""

    def sums(self, cells: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return the families of sums in the cells of a vector, in real units."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])
        blocks = zip(self.shapes.items(), np.split(cells, ends[:-1]), strict=True)
        return {family: block.reshape(shape).copy() for (family, shape), block in blocks}

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the vector of cells that has these families, without redundant entries."""
        return np.concatenate([sums[family].ravel() for family in self.shapes])

    def errors(self, error: CellError, users: int) -> dict[str, ErrorDistribution]:
        """Return the error of each family, if every cell has this one.

        Args:
            error: The error of a cell.
            users: Number of users in the sum.
        """
        return dict.fromkeys(self.shapes, error(self.unit))

    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Published:
        """Return a release of these sums."""
        content: dict[str, Any] = {**sums, **self.public, **about}
        return self.release_type(**content)

    def decode(self, cells: NDArray[np.float64], error: CellError, about: About) -> Published:
        """Return the release of noisy cells, each of which has this error.

        Cells are in real units.
        """
        sums = self.sums(cells)
        entries = sum(read_only(array).size for array in sums.values())
        return self.release(
            sums,
            version=about.version,
            users=about.users,
            errors=self.errors(error, about.users),
            events=entries * about.releases,
            absorbing=about.absorbing,
            waiting_reward=about.waiting_reward,
        )


@compiled
def _within(states: Any, actions: Any, rewards: Any, n_states: int, n_actions: int) -> bool:
    users, horizon = actions.shape
    for user in range(users):
        for h in range(horizon):
            if not (0 <= actions[user, h] < n_actions and 0.0 <= rewards[user, h] <= 1.0):
                return False
        for h in range(horizon + 1):
            if not 0 <= states[user, h] < n_states:
                return False
    return True
