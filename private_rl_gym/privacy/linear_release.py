"""Releases of linear moments, with bounds on the norms of their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.privacy.errors import CombinedError, ErrorLaw, GaussianError, NoError
from private_rl_gym.privacy.release import Published

__all__ = ["GRID", "LinearRelease"]

GRID = 2.0**-26
"""The grid of moments: they are divided by their sensitivity, and rounded to this grid before they are summed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class LinearRelease(Published):
    """Released sums of linear moments at each stage h; V is the value function that each user was sent.

    Rows longer than the features' stated bound are scaled down to it, phi and V alike; see ``LinearMoments``.

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
    units: Mapping[str, NDArray[np.float64]] = field(repr=False)
    isometric: bool = field(repr=False)

    @property
    def releases(self) -> int:
        """Number of releases that a bound has to hold for at once."""
        return max(1, self.events // sum(array.size for array in self.sums().values()))

    def typical_norm(self, family: str) -> NDArray[np.float64]:  # [h]
        """Approximate operator norm of one stage's noise in a Gram matrix."""
        largest = float(self.units[family].max())
        size = int(getattr(self, family).shape[-1])
        spread = self.errors[family].std * math.sqrt(2.0 * size)
        return self.units[family] * (spread / largest if largest else 0.0)

    def noise_norm(self, family: str, failure: float) -> NDArray[np.float64]:  # [h]
        """A bound that the norm of one stage's error exceeds with probability at most ``failure``.

        The norm is the operator norm for Gram matrices, and the Euclidean norm for vectors. The error includes the
        rounding of users' moments to a grid. Proof: docs/proofs/linear-confidence.md.
        """
        if family not in self.families:
            raise ValueError(f"There is no family {family!r}: choose one of {', '.join(self.families)}.")
        if not 0.0 < failure < 1.0:
            raise ValueError(f"failure is {failure}: it is a probability, in (0, 1).")
        size = int(getattr(self, family).shape[-1])
        unit, largest = self.units[family], float(self.units[family].max())
        rounding = self.users * (size if family.startswith("gram") else math.sqrt(size)) * GRID / 2.0
        law = self.errors[family]
        if isinstance(law, NoError) or largest == 0.0:
            return unit * rounding
        if family.startswith("gram"):
            norm = _matrix_norm(law, size, failure, isometric=self.isometric)
        else:
            norm = _vector_norm(law, size, failure)
        return unit * (norm / largest + rounding)

    def __repr__(self) -> str:
        noise = ", ".join(f"{family}: {std:.3g}" for family, std in self.noise_std.items())
        sizes = f"H={len(self.gram_p)}, d={self.features.d}, {self.features.reward_d} reward features"
        return f"LinearRelease(version={self.version}, users={self.users}, {sizes}, noise_std={{{noise}}})"


def _matrix_norm(law: ErrorLaw, size: int, failure: float, *, isometric: bool) -> float:
    if isinstance(law, CombinedError):
        halves = (_matrix_norm(part, size, failure / 2.0, isometric=isometric) for part in (law.first, law.second))
        return sum(halves)
    if isinstance(law, GaussianError):
        deviation = math.sqrt(2.0 * math.log(2.0 / failure))
        width = math.sqrt(2.0 * size) + deviation if isometric else 4.0 * math.sqrt(size) + 2.0 * deviation
        return law.std * width + size * law.grid / 2.0
    return size * law.bound(2.0 * failure / (size * (size + 1)))


def _vector_norm(law: ErrorLaw, size: int, failure: float) -> float:
    if isinstance(law, CombinedError):
        return sum(_vector_norm(part, size, failure / 2.0) for part in (law.first, law.second))
    if isinstance(law, GaussianError):
        return law.std * (math.sqrt(size) + math.sqrt(2.0 * math.log(1.0 / failure))) + math.sqrt(size) * law.grid / 2.0
    return math.sqrt(size) * law.bound(failure / size)
