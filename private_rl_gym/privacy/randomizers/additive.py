"""Noise on every entry of a user's vector.

* ``Laplace`` - scale L1 / epsilon, or less where losses compose to a delta
* ``Gaussian`` - sigma = L2 / mu(epsilon, delta)

Proof: docs/proofs/local-additive.md; of gradients, docs/proofs/local-gradients.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.accounting.amplification import LARGEST_LOCAL, Blanket
from private_rl_gym.privacy.accounting.conversion import gaussian_mu, laplace_scale, pure_delta
from private_rl_gym.privacy.errors import (
    BoundedError,
    CellError,
    CombinedError,
    ErrorDistribution,
    GaussianError,
    LaplaceError,
)
from private_rl_gym.privacy.mechanisms.printed import printed_scale
from private_rl_gym.privacy.noise import AdditiveNoise, Noises, NoiseSource, round_to_grid, widths_of
from private_rl_gym.privacy.randomizers.base import Randomizer
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.statistics.base import Alphabet, Statistic, check_scale

__all__ = ["Additive", "Gaussian", "Laplace"]


class Additive(Randomizer):
    """A user's vector with fresh noise on every entry."""

    alphabet = Alphabet.SUMS
    arrays = 2

    scale: float
    """Scale of the noise in one entry, in real units."""

    def __init__(self, statistic: Statistic, scale: float, spent: tuple[float, float]) -> None:
        self.statistic, self.sensitivity = statistic, statistic.sensitivity()
        self.scale, self.spent = scale, spent
        check_scale(scale, self.sensitivity.units[0])

    @abstractmethod
    def _draw(self, source: NoiseSource, noise: NDArray[np.float64], spare: NDArray[np.float64]) -> None:
        """Fill ``noise`` with the noise of one user, in whole units.

        ``spare`` is overwritten.
        """

    @abstractmethod
    def _error(self, users: int, grid: float) -> ErrorDistribution:
        """Return the error of the noise of some users in one cell."""

    @cached_property
    def _units(self) -> NDArray[np.float64]:
        return self.scale / self.statistic.grid

    def send(
        self, users: Any | None, count: int, request: Request | None, source: NoiseSource, out: NDArray[np.int64]
    ) -> None:
        """Add the vectors of users, with noise for every user."""
        noise, spare = np.empty(len(out)), np.empty(len(out))
        for _ in range(count):
            self._draw(source, noise, spare)
            out += noise.astype(np.int64)
        if users is not None:
            self.statistic.encode(users, out, request)

    def error(self, users: int, added: CellError) -> CellError:
        """Return the summed error of the noise of every user and of ``added``."""
        return lambda grid: CombinedError.of(self._error(users, grid), added(grid)) if users else added(grid)

    def noises(self, batches: Sequence[int]) -> Noises:
        """Return one draw for every user, for audits.

        It is in all releases from the user's own on.
        """
        arrived = np.cumsum(batches)[:, None] > np.arange(sum(batches))
        return [AdditiveNoise(arrived.astype(np.float64), self.scale, self.name)]


class Laplace(Additive):
    """Laplace noise, drawn as two-sided geometric noise on the grid of the statistic.

    Args:
        statistic: The statistic whose vectors are sent.
        epsilon, delta: Budget of a user.
        printed: Whether the scale is the one that the papers print.
    """

    name = "laplace"

    def __init__(self, statistic: Statistic, epsilon: float, delta: float, *, printed: bool = False) -> None:
        known = statistic.sensitivity()
        if printed:
            if statistic.name != "tabular":
                raise ValueError(
                    "calibration='paper' is for counts: LinOpt prints no constants for reports of moments."
                )
            scale = printed_scale(statistic, 1.0, epsilon, delta)
            epsilon, delta = known.l1 / scale, 0.0
        else:
            scale, epsilon, delta = laplace_scale(known.parts, known.l1, 1, epsilon, delta, known.units[1])
        super().__init__(statistic, scale, (epsilon, delta))
        l1 = self.sensitivity.l1 / self.scale
        if l1 <= LARGEST_LOCAL:  # pure, and two users' messages are less far apart than their epsilon allows
            apart = pure_delta(0.0, [(count, far / self.scale) for count, far in self.sensitivity.parts])
            self.blanket = Blanket.of_variation(l1, apart)

    def _draw(self, source: NoiseSource, noise: NDArray[np.float64], spare: NDArray[np.float64]) -> None:
        source.geometric(self._units, noise, spare)

    def _error(self, users: int, grid: float) -> ErrorDistribution:
        return LaplaceError(self.scale, ((float(users), 1.0),), grid)


class Gaussian(Additive):
    """Gaussian noise, rounded to the grid of the statistic."""

    name = "gaussian"

    def __init__(self, statistic: Statistic, epsilon: float, delta: float) -> None:
        if delta == 0.0:
            raise ValueError(
                "delta is 0: Gaussian noise needs a delta above 0. Write delta=1e-6, or take another randomizer."
            )
        super().__init__(statistic, statistic.sensitivity().l2 / gaussian_mu(epsilon, delta), (epsilon, delta))

    @cached_property
    def _widths(self) -> NDArray[np.float64] | None:
        return widths_of(self._units)

    def _draw(self, source: NoiseSource, noise: NDArray[np.float64], spare: NDArray[np.float64]) -> None:
        source.gaussian(noise)
        noise[:] = round_to_grid(noise * self._units)
        if self._widths is not None:
            noise += source.smooth(self._widths)

    def _error(self, users: int, grid: float) -> ErrorDistribution:
        rounding = BoundedError(users * grid**2 / 12.0, grid / 2.0)  # of every message, without bias
        return CombinedError.of(GaussianError(self.scale * math.sqrt(users)), rounding)
