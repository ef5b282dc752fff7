"""The interface of mechanisms that release running sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import among, positive_integer, shown
from private_rl_gym.planning.memory import check_room
from private_rl_gym.privacy.errors import CellError, GaussianError, LaplaceError, no_error
from private_rl_gym.privacy.noise import NoiseSource

__all__ = ["Law", "Mechanism", "Weights"]

Law = Literal["laplace", "gaussian"]
Weights = tuple[tuple[float, float], ...]  # pairs (number of independent noises, weight of each)


class Mechanism(ABC):
    """The noise that is added to a vector of running sums, release after release.

    At release t the public sees sums(t) + noise(t). The noise depends on nothing but its source. Gaussian noise is in
    standard units, and is multiplied by sigma, in units of each cell's grid, when it is added. Laplace noise consists
    of whole numbers, so its scale has to be known when it is drawn (``scale``, in units of each cell's grid).

    Attributes:
        steps: The largest number of releases.
        cells: Length of the vector.
        law: ``"laplace"`` or ``"gaussian"``.
        step: Releases so far.
    """

    name: ClassVar[str]
    """Its value of the argument ``counting=``."""

    laws: ClassVar[tuple[Law, ...]] = ("laplace", "gaussian")
    """The laws of noise that its proof is for."""

    composes: ClassVar[bool] = True
    """Whether a user's sums are published one after the other, each with noise of its own, so that losses compose."""

    apart: ClassVar[bool] = False
    """Whether every batch is published by itself: then ``advance`` gives the noise of one batch alone."""

    def __init__(self, steps: int, cells: int, law: Law) -> None:
        self.steps = steps = positive_integer(steps, "steps", "releases")
        self.cells = cells = positive_integer(cells, "cells", "numbers in a release")
        if not among(law, self.laws):
            known = " and ".join(name.capitalize() for name in self.laws)
            raise ValueError(f"law is {shown(law)}: counting={self.name!r} is for {known} noise.")
        check_room(8 * cells, f"Noise on {cells:,} numbers", "Publish fewer numbers.")
        self.law: Law = law
        self.step = 0
        self._fresh = np.empty(cells)
        self._spare = np.empty(cells if law == "laplace" else 0)

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Factor by which the norm of one user's vector grows.

        The norm is L1 for Laplace noise, and L2 for Gaussian noise. For Laplace noise it is a whole number: the number
        of sums that the user moves.
        """

    def returning(self, visits: int) -> float:
        """Return ``sensitivity`` for a user who is in at most ``visits`` batches.

        For Laplace noise L1 distances add up. Gaussian noise needs a bound of the mechanism's own.
        Proof: docs/proofs/returning.md.
        """
        if visits == 1 or self.law == "laplace":
            return visits * self.sensitivity
        raise ValueError(
            f"visits is {visits}: counting={self.name!r} with Gaussian noise has no proof for repeated visits. Leave "
            "visits out, or use counting='matrix-factorization'."
        )

    @classmethod
    def bounds_returning(cls) -> bool:
        """Return whether the mechanism has its own bound for repeated visits."""
        return cls.returning is not Mechanism.returning

    @property
    @abstractmethod
    def worst_step(self) -> int:
        """The release with the most noise; any of them if there are several."""

    @abstractmethod
    def weights(self, step: int) -> Weights:
        """Return the noise of release ``step`` as a weighted sum of standard noises.

        Steps count from 1. The noises are independent.
        """

    @abstractmethod
    def advance(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the noise of the next release, in an array owned by this object."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the secret state, to be saved and restored in place."""

    @property
    def held(self) -> int:
        """Number of arrays in memory that hold a number for each cell."""
        state = sum(array.size for array in self.arrays().values())
        return -(-(state + len(self._fresh) + len(self._spare)) // self.cells)

    def matrix(self, releases: int) -> NDArray[np.float64]:  # [release, draw]
        """Return the matrix from draws to the noise of the first releases.

        It is computed by running the code that streams the noise.
        """
        counted = _Unit(0)
        again = type(self)(self.steps, 1, self.law)
        for _ in range(releases):
            again.advance(counted, np.ones(1))  # type: ignore[arg-type]
        draws = counted.draws
        again, unit = type(self)(self.steps, draws, self.law), _Unit(draws)
        rows = np.array([np.array(again.advance(unit, np.ones(draws))) for _ in range(releases)])  # type: ignore[arg-type]
        return np.cumsum(rows, axis=0) if self.apart else rows

    def mean_spread(self) -> float:
        """Return the standard deviation of a release, as a mean over all releases.

        It is relative to that of one standard noise.
        """
        sample = np.unique(np.linspace(1, self.steps, min(self.steps, 64)).astype(np.int64))
        return float(np.mean([self.spread(int(step)) for step in sample]))

    def spread(self, step: int) -> float:
        """Return the standard deviation of release ``step``, relative to that of one standard noise."""
        return float(np.sqrt(sum(count * weight**2 for count, weight in self.weights(step))))

    def error(self, scale: float, step: int) -> CellError:
        """Return the error of one cell in release ``step``, at this scale.

        Where batches are apart, it is that of the sum of ``step`` batches.
        """
        if step == 0:
            return no_error
        if self.law == "laplace":
            return partial(LaplaceError, scale, self.weights(step))
        if self.apart:  # every batch is rounded by itself
            return lambda grid: GaussianError(scale, grid).summed(step)
        return partial(GaussianError, scale * self.spread(step))

    def _draw(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return fresh independent noise for every cell, whatever its sum."""
        if self.law == "laplace":
            source.geometric(scale, self._fresh, self._spare)
        else:
            source.gaussian(self._fresh)
        return self._fresh


class _Unit:
    """A source without randomness: draw k sets cell k to one.

    All other cells are zero.
    """

    def __init__(self, cells: int) -> None:
        self.cells, self.draws = cells, 0

    def gaussian(self, out: NDArray[np.float64]) -> None:
        out[:] = 0.0
        if self.draws < self.cells:
            out[self.draws] = 1.0
        self.draws += 1

    def geometric(self, _scale: object, out: NDArray[np.float64], _spare: object) -> None:
        self.gaussian(out)
