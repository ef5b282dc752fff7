"""Releases: all that may be published.

* ``Published`` - the common part: the number of users, and bounds on the error
* ``Release`` - sums of visits, transitions and rewards
* ``ReportRelease`` - sums of reports
* ``GradientRelease`` - sums of gradients
* ``DynamicsRelease`` - sums of answers about dynamics
* ``LinearRelease`` - sums of linear moments, with bounds on the norms of their noise
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.privacy.errors import CombinedError, ErrorDistribution, GaussianError, NoError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "CERTAIN",
    "GRID",
    "DynamicsRelease",
    "GradientRelease",
    "LinearRelease",
    "Published",
    "Release",
    "ReportRelease",
]

GRID = 2.0**-26
"""The grid of moments and gradients: each user's are divided by their sensitivity, and rounded to it."""

CERTAIN = 2.0**40
"""A count so large that a probability estimated from it is treated as known."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Published:
    """Sums over users, with their noise and bounds on their error.

    Everything in it may be published.

    Attributes:
        version: Number of the release; it changes only when something new is published.
        users: Number of users that it is about.
        absorbing: The state in which episodes that ended early stay; None if episodes cannot end early.
        waiting_reward: The reward of each step there: that of nothing, on the scale of all rewards.
    """

    families: ClassVar[tuple[str, ...]] = ()
    """Names of the sums."""

    headline: ClassVar[str]
    """Name of the sums whose noise is logged."""

    version: int
    users: int
    errors: Mapping[str, ErrorDistribution]
    events: int  # entries times releases: what a bound has to hold for at once
    absorbing: int | None = None
    waiting_reward: float = 0.0

    def sums(self) -> dict[str, NDArray[np.float64]]:
        """Return the sums, by name."""
        return {family: getattr(self, family) for family in self.families}

    @property
    def noise_std(self) -> dict[str, float]:
        """Standard deviation of the noise in one entry of each family.

        Where entries differ, the largest.
        """
        return {family: error.std for family, error in self.errors.items()}

    def error_bound(self, beta: float, of: str | None = None) -> float:
        """Return a bound on the error of every entry.

        It holds at once for this release and all others of its boundary. It holds with probability at least 1 - beta
        over the whole run, if each release is compared with its own bound.

        Args:
            beta: Probability of failure, in (0, 1).
            of: Name of a family, for a bound on it alone; by default the bound covers all families.
        """
        if not 0.0 < beta < 1.0:
            raise ValueError(f"beta is {beta}: a probability of failure lies in (0, 1).")
        families = self.errors if of is None else [of]
        if of is not None and of not in self.errors:
            raise ValueError(f"There is no family {of!r}: choose one of {', '.join(self.errors)}.")
        return max(self.errors[family].bound(beta / self.events) for family in families)

    def with_certain_rows(self) -> Self:
        """Return the same release, with rows that are certain without data filled in."""
        return self

    def _described(self) -> str:
        """Return the sizes of the problem as words."""
        raise NotImplementedError

    def __repr__(self) -> str:  # arrays of thousands of numbers tell a reader nothing
        noise = ", ".join(f"{family}: {std:.3g}" for family, std in self.noise_std.items())
        about = f"version={self.version}, users={self.users}, {self._described()}"
        return f"{type(self).__name__}({about}, noise_std={{{noise}}})"


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Release(Published):
    """The sums of tabular counts.

    Attributes:
        n: ``[h, s, a]``, visits.
        m: ``[h, s, a, s']``, transitions.
        r: ``[h, s, a]``, sums of rewards, each rounded to a grid of about a millionth. Where users send bits, each is
            rounded to a bit at random, without bias, and ``errors`` are those of the sums of rounded rewards.
        pooled: Whether every stage has the same counts, those of all stages together. Stage 0 then says nothing about
            where users start.
    """

    families: ClassVar[tuple[str, ...]] = ("n", "m", "r")
    headline: ClassVar[str] = "m"

    n: NDArray[np.float64]
    m: NDArray[np.float64]
    r: NDArray[np.float64]
    pooled: bool = False

    def with_certain_rows(self) -> Release:
        """Return the release with rows that keep every action in the absorbing state.

        Without them an optimistic agent would explore that state. Post-processing: docs/proofs/post-processing.md.
        """
        if self.absorbing is None:
            return self
        n, m, r = self.n.copy(), self.m.copy(), self.r.copy()
        n[:, self.absorbing], m[:, self.absorbing] = CERTAIN, 0.0
        r[:, self.absorbing] = CERTAIN * self.waiting_reward
        m[:, self.absorbing, :, self.absorbing] = CERTAIN
        return replace(self, n=read_only(n), m=read_only(m), r=read_only(r))

    def _described(self) -> str:
        horizon, n_states, n_actions = self.n.shape
        return f"H={horizon}, S={n_states}, A={n_actions}"


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class ReportRelease(Published):
    """The sums of reports.

    Attributes:
        starts: ``[s]``, users who reported that they started there.
        reports: ``[s, a, s', bit]``, reported steps, with rewards rounded to bits; of staged reports
            ``[h, s, a, s', bit]``, where those that do not say their stage stand at the first.
    """

    families: ClassVar[tuple[str, ...]] = ("starts", "reports")
    headline: ClassVar[str] = "reports"

    starts: NDArray[np.float64]
    reports: NDArray[np.float64]

    def with_certain_rows(self) -> ReportRelease:
        """Return the release with rows that keep every action in the absorbing state."""
        if self.absorbing is None:
            return self
        reports = self.reports.copy()
        reports[..., self.absorbing, :, :, :] = 0.0
        rewards = np.array([1.0 - self.waiting_reward, self.waiting_reward])  # as bits
        reports[..., self.absorbing, :, self.absorbing, :] = CERTAIN * rewards
        return replace(self, reports=read_only(reports))

    def _described(self) -> str:
        n_states, n_actions = self.reports.shape[-4:-2]
        return f"S={n_states}, A={n_actions}"


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class GradientRelease(Published):
    """Sums of users' reports about their episodes, each part times its share.

    See ``Objective``.

    Attributes:
        gradient: ``[parameter]``, sums of clipped gradients, in units of the clip.
        critic: ``[parameter]``, the same for the value network.
        rewards: ``[segment]``, discounted sums of rewards from one of the ``stages`` to the next, over the reach.
        ends: ``[segment]``, users whose episode ended in this segment.
        ranges: ``[class]``, users whose largest return lies in this class.
        stages: ``[segment]``, the stages at which segments begin.
    """

    families: ClassVar[tuple[str, ...]] = ("gradient", "critic", "rewards", "ends", "ranges")
    headline: ClassVar[str] = "gradient"

    gradient: NDArray[np.float64]
    critic: NDArray[np.float64]
    rewards: NDArray[np.float64]
    ends: NDArray[np.float64]
    ranges: NDArray[np.float64]
    stages: NDArray[np.int64]

    def _described(self) -> str:
        return f"parameters={len(self.gradient)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class DynamicsRelease(Published):
    """Sums of users' answers to a question about dynamics.

    See ``Refinement``. What an entry means depends on the question: ``Dynamics`` takes answers apart.

    Attributes:
        answers: ``[entry]``.
    """

    families: ClassVar[tuple[str, ...]] = ("answers",)
    headline: ClassVar[str] = "answers"

    answers: NDArray[np.float64]

    def _described(self) -> str:
        return f"entries={len(self.answers)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class LinearRelease(Published):
    """Released sums of linear moments at each stage h.

    V is the value function that each user was sent. Rows longer than the features' stated bound are scaled down to it,
    phi and V alike; see ``LinearMoments``.

    Attributes:
        gram_p: ``[h, i, i]``, sums of phi phi^T.
        vector_p: ``[h, i]``, sums of phi V(next state).
        gram_r: ``[h, j, j]``, sums of varphi varphi^T.
        vector_r: ``[h, j]``, sums of varphi times the reward.
        features: The known features of the model.
        units: For each family, ``[h]``: the unit of the noise in one entry. ``errors`` are for the largest unit.
        isometric: Whether noise off the diagonal is smaller by a factor sqrt(2), as in a Gaussian orthogonal ensemble.
    """

    families: ClassVar[tuple[str, ...]] = ("gram_p", "vector_p", "gram_r", "vector_r")
    headline: ClassVar[str] = "vector_p"

    gram_p: NDArray[np.float64]
    vector_p: NDArray[np.float64]
    gram_r: NDArray[np.float64]
    vector_r: NDArray[np.float64]
    features: LinearFeatures
    units: Mapping[str, NDArray[np.float64]]
    isometric: bool

    @property
    def releases(self) -> int:
        """Number of releases that a bound has to hold for at once."""
        return max(1, self.events // sum(array.size for array in self.sums().values()))

    def typical_norm(self, family: str) -> NDArray[np.float64]:  # [h]
        """Return the approximate operator norm of one stage's noise in a Gram matrix."""
        largest = float(self.units[family].max())
        size = int(getattr(self, family).shape[-1])
        spread = self.errors[family].std * math.sqrt(2.0 * size)
        return self.units[family] * (spread / largest if largest else 0.0)

    def noise_norm(self, family: str, failure: float) -> NDArray[np.float64]:  # [h]
        """Return a bound on the norm of one stage's error.

        The norm exceeds it with probability at most ``failure``. It is the operator norm for Gram
        matrices, and the Euclidean norm for vectors. The error includes the rounding of users' moments to a grid.
        Proof: docs/proofs/linear-confidence.md.
        """
        if family not in self.families:
            raise ValueError(f"There is no family {family!r}: choose one of {', '.join(self.families)}.")
        if not 0.0 < failure < 1.0:
            raise ValueError(f"failure is {failure}: it is a probability, in (0, 1).")
        size = int(getattr(self, family).shape[-1])
        unit, largest = self.units[family], float(self.units[family].max())
        rounding = self.users * (size if family.startswith("gram") else math.sqrt(size)) * GRID / 2.0
        error = self.errors[family]
        if isinstance(error, NoError) or largest == 0.0:
            return unit * rounding
        if family.startswith("gram"):
            norm = _matrix_norm(error, size, failure, isometric=self.isometric)
        else:
            norm = _vector_norm(error, size, failure)
        return unit * (norm / largest + rounding)

    def _described(self) -> str:
        return f"H={len(self.gram_p)}, d={self.features.d}, {self.features.reward_d} reward features"


def _matrix_norm(error: ErrorDistribution, size: int, failure: float, *, isometric: bool) -> float:
    if isinstance(error, CombinedError):
        halves = (_matrix_norm(part, size, failure / 2.0, isometric=isometric) for part in (error.first, error.second))
        return sum(halves)
    if isinstance(error, GaussianError):
        deviation = math.sqrt(2.0 * math.log(2.0 / failure))
        width = math.sqrt(2.0 * size) + deviation if isometric else 4.0 * math.sqrt(size) + 2.0 * deviation
        return error.std * width + size * error.grid / 2.0
    return size * error.bound(2.0 * failure / (size * (size + 1)))


def _vector_norm(error: ErrorDistribution, size: int, failure: float) -> float:
    if isinstance(error, CombinedError):
        return sum(_vector_norm(part, size, failure / 2.0) for part in (error.first, error.second))
    if isinstance(error, GaussianError):
        return (
            error.std * (math.sqrt(size) + math.sqrt(2.0 * math.log(1.0 / failure)))
            + math.sqrt(size) * error.grid / 2.0
        )
    return math.sqrt(size) * error.bound(failure / size)
