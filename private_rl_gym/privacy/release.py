"""Releases: all that may be published.

* ``Published`` - the common part: the number of users, and bounds on the error
* ``Release`` - sums of visits, transitions and rewards
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.privacy.errors import ErrorLaw

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Published", "Release"]

CERTAIN = 2.0**40
"""A count so large that a probability estimated from it is treated as known."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Published:
    """Sums over users, the noise that they carry, and a bound on their error. Everything in it may be published.

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
    errors: Mapping[str, ErrorLaw] = field(repr=False)
    events: int = field(repr=False)  # entries times releases: what a bound has to hold for at once
    absorbing: int | None = field(default=None, repr=False)
    waiting_reward: float = field(default=0.0, repr=False)

    def sums(self) -> dict[str, NDArray[np.float64]]:
        """The sums, by name."""
        return {family: getattr(self, family) for family in self.families}

    @property
    def noise_std(self) -> dict[str, float]:
        """Standard deviation of the noise in one entry of each family.

        Where entries differ, the largest.
        """
        return {family: law.std for family, law in self.errors.items()}

    def error_bound(self, beta: float, of: str | None = None) -> float:
        """A bound on the error of every entry, in this release and in all others of its boundary at once.

        It holds with probability at least 1 - beta over the whole run, if each release is compared with its own bound.

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
        """The same release, with the rows that are known without data filled in."""
        return self


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Release(Published):
    """The sums of tabular counts.

    Attributes:
        n: ``[h, s, a]``, visits.
        m: ``[h, s, a, s']``, transitions.
        r: ``[h, s, a]``, sums of rewards, each rounded to a grid of about a millionth.
        pooled: Whether every stage has the same counts, those of all stages together. Stage 0 then says nothing about
            where users start.
    """

    families: ClassVar[tuple[str, ...]] = ("n", "m", "r")
    headline: ClassVar[str] = "m"

    n: NDArray[np.float64]
    m: NDArray[np.float64]
    r: NDArray[np.float64]
    pooled: bool = field(default=False, repr=False)

    def with_certain_rows(self) -> Release:
        """The same release, with rows which state that no action leaves the absorbing state.

        Without them an optimistic agent would explore that state. Post-processing: docs/proofs/post-processing.md.
        """
        if self.absorbing is None:
            return self
        n, m, r = self.n.copy(), self.m.copy(), self.r.copy()
        n[:, self.absorbing], m[:, self.absorbing] = CERTAIN, 0.0
        r[:, self.absorbing] = CERTAIN * self.waiting_reward
        m[:, self.absorbing, :, self.absorbing] = CERTAIN
        return replace(self, n=read_only(n), m=read_only(m), r=read_only(r))

    def __repr__(self) -> str:  # arrays of thousands of numbers tell a reader nothing
        horizon, n_states, n_actions = self.n.shape
        noise = ", ".join(f"{family}: {std:.3g}" for family, std in self.noise_std.items())
        sizes = f"H={horizon}, S={n_states}, A={n_actions}"
        return f"Release(version={self.version}, users={self.users}, {sizes}, noise_std={{{noise}}})"
