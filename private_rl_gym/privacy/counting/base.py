"""What all ways of releasing a sum again and again have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.noise import NoiseSource

__all__ = ["ContinualNoise", "Law", "Weights"]

Law = Literal["laplace", "gaussian"]
Weights = tuple[tuple[float, float], ...]  # pairs (how many independent noises, weight of each)


class ContinualNoise(ABC):
    """The noise that is added to a vector of running sums, release after release.

    At release t the public sees sums(t) + noise(t). The noise depends on nothing but its source. Noise is in standard
    units: for Gaussian noise it is multiplied by sigma, in units of each cell's grid, when it is added; for Laplace
    noise the scale has to be known when it is drawn (``scale``, in units of each cell's grid), because it is whole.

    Attributes:
        steps: The largest number of releases.
        cells: Length of the vector.
        law: ``"laplace"`` or ``"gaussian"``.
        step: Releases so far.
    """

    name: str

    composes: ClassVar[bool] = True
    """Whether a user's sums are published one after the other, each with noise of its own, so that losses compose."""

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
        """By how much one user's norm grows: L1 for Laplace noise, L2 for Gaussian noise."""

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

    def spread(self, step: int) -> float:
        """Standard deviation of release ``step``, relative to that of one standard noise."""
        return float(np.sqrt(sum(count * weight**2 for count, weight in self.weights(step))))

    def _draw(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """A fresh independent noise for every cell, whatever its sum."""
        if self.law == "laplace":
            source.geometric(scale, self._fresh, self._spare)
        else:
            source.gaussian(self._fresh)
        return self._fresh
