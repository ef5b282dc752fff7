"""The interface of mechanisms that release running sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.noise import NoiseSource

__all__ = ["ContinualNoise", "Law", "Weights"]

Law = Literal["laplace", "gaussian"]
Weights = tuple[tuple[float, float], ...]  # pairs (number of independent noises, weight of each)


class ContinualNoise(ABC):
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
        self.steps = steps
        self.cells = cells
        self.law: Law = law
        self.step = 0
        self._fresh = np.empty(cells)
        self._spare = np.empty(cells if law == "laplace" else 0)

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Factor by which the norm of one user's vector grows: L1 for Laplace noise, L2 for Gaussian noise."""

    def returning(self, visits: int) -> float:
        """The same factor for a user who is in at most ``visits`` batches. Proof: docs/proofs/returning.md.

        For Laplace noise L1 distances add up. Gaussian noise needs a bound of the mechanism's own.
        """
        if visits == 1 or self.law == "laplace":
            return visits * self.sensitivity
        raise ValueError(
            f"visits is {visits}: counting={self.name!r} with Gaussian noise has no proof for users who come back. "
            "Leave visits out, or take counting='matrix-factorization'."
        )

    @property
    @abstractmethod
    def worst_step(self) -> int:
        """The release with the most noise, or one of them."""

    @abstractmethod
    def weights(self, step: int) -> Weights:
        """The noise of release ``step`` (1, 2, ...) as a weighted sum of independent standard noises."""

    @abstractmethod
    def advance(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """The noise of the next release, in an array that belongs to this object."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The state, to be saved and restored in place. Secret."""

    @property
    def held(self) -> int:
        """Number of arrays with a number for each cell that are in memory."""
        state = sum(array.size for array in self.arrays().values())
        return -(-(state + len(self._fresh) + len(self._spare)) // self.cells)

    def matrix(self, releases: int) -> NDArray[np.float64]:  # [release, draw]
        """The matrix from draws to the noise of the first releases, computed by running the code that streams it."""
        counted = _Unit(0)
        again = type(self)(self.steps, 1, self.law)
        for _ in range(releases):
            again.advance(counted, np.ones(1))  # type: ignore[arg-type]
        draws = counted.draws
        again, unit = type(self)(self.steps, draws, self.law), _Unit(draws)
        rows = np.array([np.array(again.advance(unit, np.ones(draws))) for _ in range(releases)])  # type: ignore[arg-type]
        return np.cumsum(rows, axis=0) if self.apart else rows

    def mean_spread(self) -> float:
        """Standard deviation of a release relative to that of one standard noise, averaged over all releases."""
        sample = np.unique(np.linspace(1, self.steps, min(self.steps, 64)).astype(np.int64))
        return float(np.mean([self.spread(int(step)) for step in sample]))

    def spread(self, step: int) -> float:
        """Standard deviation of release ``step``, relative to that of one standard noise."""
        return float(np.sqrt(sum(count * weight**2 for count, weight in self.weights(step))))

    def _draw(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fresh independent noise for every cell, whatever its sum."""
        if self.law == "laplace":
            source.geometric(scale, self._fresh, self._spare)
        else:
            source.gaussian(self._fresh)
        return self._fresh


class _Unit:
    """A source without randomness: draw number k sets cell k to one, and all others to zero."""

    def __init__(self, cells: int) -> None:
        self.cells, self.draws = cells, 0

    def gaussian(self, out: NDArray[np.float64]) -> None:
        out[:] = 0.0
        if self.draws < self.cells:
            out[self.draws] = 1.0
        self.draws += 1

    def geometric(self, _scale: object, out: NDArray[np.float64], _spare: object) -> None:
        self.gaussian(out)
