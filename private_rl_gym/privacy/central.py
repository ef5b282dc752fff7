"""Noise that a trusted party adds to sums, release after release, calibrated to a budget."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.privacy.counting import ContinualNoise
from private_rl_gym.privacy.errors import CombinedError, ErrorLaw, GaussianError, LaplaceError, NoError
from private_rl_gym.privacy.noise import AdditiveNoise, Noises, NoiseSource, widths_of
from private_rl_gym.privacy.statistics import Noise, check_scale

__all__ = ["CentralNoise", "exact", "law_of", "sum_of"]


def exact(_grid: float) -> NoError:
    """The error of one cell where there is no noise."""
    return NoError()


def law_of(counting: ContinualNoise, scale: float, step: int) -> Noise:
    """The error of one cell, given its grid, in release ``step`` or in the sum of ``step`` batches."""
    if step == 0:
        return exact
    if counting.law == "laplace":
        return partial(LaplaceError, scale, counting.weights(step))
    if counting.apart:  # every batch is rounded by itself
        return lambda grid: GaussianError(scale, grid).summed(step)
    return partial(GaussianError, scale * counting.spread(step))


def sum_of(laws: Sequence[Noise]) -> Noise:
    """The error of a sum of cells with these errors."""

    def together(grid: float) -> ErrorLaw:
        total: ErrorLaw = NoError()
        for law in laws:
            total = CombinedError.of(total, law(grid))
        return total

    return together


class CentralNoise:
    """Noise on sums, drawn for every cell at every release, even where no user has contributed.

    Args:
        counting: The counting mechanism, which relates the noise of one release to that of the others.
        scale: Scale of one standard noise in real units, from the calibration.
        grid: ``[cell]``, the unit of each cell.
        source: The source of all draws.
    """

    def __init__(self, counting: ContinualNoise, scale: float, grid: NDArray[np.float64], source: NoiseSource) -> None:
        check_scale(scale, float(grid.min()))
        self.counting, self.scale, self.grid, self.source = counting, scale, grid, source
        self._units, self._ones = scale / grid, np.ones(len(grid))
        self._widths = widths_of(self._units) if counting.law == "gaussian" else None
        self._whole = True

    def check(self) -> None:
        """Raise if noise was interrupted while it was drawn, because later releases build on it."""
        if not self._whole:
            raise RuntimeError(
                "Privacy noise was interrupted while it was drawn, and later noise builds on it: nothing more is "
                "published here. What was published keeps its promise. Build the boundary anew, with a budget of its "
                "own."
            )

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """The sums in real units, with the noise of the last of ``releases`` further releases.

        Where batches are published apart: the sum of ``releases`` further batches, with the noise of each of them.
        """
        counting = self.counting
        if not counting.apart and counting.step + releases > counting.steps:
            raise RuntimeError(
                f"Noise is calibrated for {counting.steps} releases, and a publication was interrupted after its noise "
                "was drawn: nothing more is published here. What was published keeps its promise."
            )
        self.check()
        self._whole = counting.apart  # where batches are apart, none builds on another
        out = sums.astype(np.float64)
        for number in range(releases):
            noise = counting.advance(self.source, self._units)
            spread = 0.0 if self._widths is None else self.source.smooth(self._widths)
            if counting.apart or number == releases - 1:  # every batch is rounded by itself
                _add_rounded(noise, self._units if counting.law == "gaussian" else self._ones, out)
                out += spread
        out *= self.grid
        self._whole = True
        return out

    def law(self, step: int) -> Noise:
        """The error of one cell, given its grid, in release ``step`` or in the sum of ``step`` batches."""
        return law_of(self.counting, self.scale, step)

    def noises(self, releases: int) -> Noises:
        """The noise of the first ``releases`` releases, computed by running the code that draws it."""
        return [AdditiveNoise(self.counting.matrix(releases), self.scale, self.counting.law)]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The noise that later releases build on. Secret."""
        return self.counting.arrays()


@compiled
def _add_rounded(noise: Any, units: Any, out: Any) -> None:
    """Add noise in units of the grid, rounded to whole ones, halves upwards."""
    for cell in range(len(out)):
        out[cell] += np.floor(noise[cell] * units[cell] + 0.5)
