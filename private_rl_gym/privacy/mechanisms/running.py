"""Mechanisms in use: noise on sums, release after release, calibrated to a budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.privacy.errors import CellError
from private_rl_gym.privacy.mechanisms.base import Mechanism
from private_rl_gym.privacy.noise import AdditiveNoise, Noises, NoiseSource, widths_of
from private_rl_gym.privacy.statistics.base import check_scale

__all__ = ["RunningMechanism"]


class RunningMechanism:
    """Noise on sums, drawn for every cell at every release.

    Cells to which no user has contributed get noise too.

    Args:
        mechanism: The mechanism, which relates the noise of one release to that of the others.
        scale: Scale of one standard noise in real units, from the calibration.
        grid: ``[cell]``, the unit of each cell.
        source: The source of all draws.
    """

    def __init__(self, mechanism: Mechanism, scale: float, grid: NDArray[np.float64], source: NoiseSource) -> None:
        check_scale(scale, float(grid.min()))
        self.mechanism, self.scale, self.grid, self.source = mechanism, scale, grid, source
        self._units, self._ones = scale / grid, np.ones(len(grid))
        self._widths = widths_of(self._units) if mechanism.law == "gaussian" else None
        self._whole = True

    def check(self) -> None:
        """Raise RuntimeError if noise was interrupted while it was drawn.

        Later releases build on that noise.
        """
        if not self._whole:
            raise RuntimeError(
                "Privacy noise was interrupted while it was drawn, and later noise depends on it: this boundary "
                "publishes nothing more. The guarantee of earlier releases holds. Build a new boundary, with a new "
                "budget."
            )

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """Return the sums in real units, with the noise of a release.

        It is the last of ``releases`` further releases. Where batches are published apart, the sums are those of
        ``releases`` further batches, with the noise of each of them.
        """
        mechanism = self.mechanism
        if not mechanism.apart and mechanism.step + releases > mechanism.steps:
            raise RuntimeError(
                f"Noise is calibrated for {mechanism.steps} releases, and a publication was interrupted after its "
                "noise was drawn: this boundary publishes nothing more. The guarantee of earlier releases holds."
            )
        self.check()
        self._whole = mechanism.apart  # where batches are apart, none builds on another
        out = sums.astype(np.float64)
        for number in range(releases):
            noise = mechanism.advance(self.source, self._units)
            spread = 0.0 if self._widths is None else self.source.smooth(self._widths)
            if mechanism.apart or number == releases - 1:  # every batch is rounded by itself
                _add_rounded(noise, self._units if mechanism.law == "gaussian" else self._ones, out)
                out += spread
        out *= self.grid
        self._whole = True
        return out

    def error(self, step: int) -> CellError:
        """Return the error of one cell in release ``step``.

        Where batches are apart, it is that of the sum of ``step`` batches.
        """
        return self.mechanism.error(self.scale, step)

    def noises(self, releases: int) -> Noises:
        """Return the noise of the first ``releases`` releases, for audits.

        It is computed by running the code that draws it.
        """
        return [AdditiveNoise(self.mechanism.matrix(releases), self.scale, self.mechanism.law)]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the secret noise that later releases build on."""
        return self.mechanism.arrays()


@compiled
def _add_rounded(noise: Any, units: Any, out: Any) -> None:
    """Add noise in units of the grid, rounded to whole numbers.

    Halves are rounded upwards.
    """
    for cell in range(len(out)):
        out[cell] += np.floor(noise[cell] * units[cell] + 0.5)
