"""Releases: all that the outside may see.

* ``Published`` - the common part: how many users a release is about, and how far off it may be
* ``Release`` - visits, transitions and rewards
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
"""A count as of so many users that nothing is left to learn."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Published:
    """Sums over users, the noise that they carry, and a bound on their error. Everything in it may be published.

    Attributes:
        version: Number of the release; it moves only when something new was published.
        users: How many users it is about.
        absorbing: The state in which episodes wait that ended early, if they may.
    """

    families: ClassVar[tuple[str, ...]] = ()
    """Names of the sums."""

    headline: ClassVar[str]
    """The sums whose noise says most."""

    version: int
    users: int
    errors: Mapping[str, ErrorLaw] = field(repr=False)
    events: int = field(repr=False)  # entries times releases: what a bound has to hold for at once
    absorbing: int | None = field(default=None, repr=False)

    def sums(self) -> dict[str, NDArray[np.float64]]:
        """The sums, by name."""
        return {family: getattr(self, family) for family in self.families}

    @property
    def noise_std(self) -> dict[str, float]:
        """Standard deviation of the noise in one entry of each family.

        Where it is not the same for all of them, the largest.
        """
        return {family: law.std for family, law in self.errors.items()}

    def error_bound(self, beta: float, of: str | None = None) -> float:
        """A bound on the error of every entry, of this release and of all others of its board at once.

        Holds with probability at least 1 - beta over the whole run, when each release is held against its own bound.

        Args:
            beta: Probability of failure, in (0, 1).
            of: The name of a family, for that alone; by default the largest of all.
        """
        if not 0.0 < beta < 1.0:
            raise ValueError(f"beta is {beta}: a probability of failure lies in (0, 1).")
        families = self.errors if of is None else [of]
        if of is not None and of not in self.errors:
            raise ValueError(f"There is no family {of!r}: choose one of {', '.join(self.errors)}.")
        return max(self.errors[family].bound(beta / self.events) for family in families)

    def with_certain_rows(self) -> Self:
        """The same, with what needs no data to be known."""
        return self


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Release(Published):
    """The sums of tabular counts.

    Attributes:
        n: ``[h, s, a]``, visits.
        m: ``[h, s, a, s']``, transitions.
        r: ``[h, s, a]``, sums of rewards, each rounded to a grid of about a millionth.
    """

    families: ClassVar[tuple[str, ...]] = ("n", "m", "r")
    headline: ClassVar[str] = "m"

    n: NDArray[np.float64]
    m: NDArray[np.float64]
    r: NDArray[np.float64]

    def with_certain_rows(self) -> Release:
        """The same, with what needs no data to be known: whatever is done in the absorbing state, one stays there.

        Without it an optimist would go there to find out. Post-processing: docs/proofs/post-processing.md.
        """
        if self.absorbing is None:
            return self
        n, m, r = self.n.copy(), self.m.copy(), self.r.copy()
        n[:, self.absorbing], m[:, self.absorbing], r[:, self.absorbing] = CERTAIN, 0.0, 0.0
        m[:, self.absorbing, :, self.absorbing] = CERTAIN
        return replace(self, n=read_only(n), m=read_only(m), r=read_only(r))

    def __repr__(self) -> str:  # arrays of thousands of numbers tell a reader nothing
        horizon, n_states, n_actions = self.n.shape
        noise = ", ".join(f"{family}: {std:.3g}" for family, std in self.noise_std.items())
        sizes = f"H={horizon}, S={n_states}, A={n_actions}"
        return f"Release(version={self.version}, users={self.users}, {sizes}, noise_std={{{noise}}})"
