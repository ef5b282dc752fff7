"""Random vectors whose direction is more often a user's than its opposite.

* ``Direction`` - such a vector in place of one of norm 1 at most
* ``Cap`` - the part of space that is preferred, and how much

Proof: docs/proofs/local-gradients.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.accounting.amplification import Blanket
from private_rl_gym.privacy.errors import CellError, CombinedError, GaussianError
from private_rl_gym.privacy.noise import NoiseSource, round_to_grid, widths_of
from private_rl_gym.privacy.randomizers.base import Randomizer
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.statistics.base import UNBOUNDED, Alphabet, Statistic, check_scale

__all__ = ["Cap", "Direction"]


@dataclass(frozen=True, slots=True)
class Cap:
    """Standard Gaussian vectors u, with a preferred cap around a direction v.

    Where <u, v> is at least ``height``, their density is larger by a factor e^epsilon.

    Attributes:
        epsilon: Budget of a report.
        height: The distance of the cap from the origin.
    """

    epsilon: float
    height: float

    @classmethod
    @lru_cache(maxsize=256)
    def best(cls, epsilon: float) -> Cap:
        """Return the cap with the least noise.

        Epsilon is cut off at 30, as for random sets.
        """
        epsilon = min(epsilon, 30.0)
        return max((cls(epsilon, height) for height in np.linspace(0.0, 8.0, 1601).tolist()), key=lambda cap: cap.pull)

    @property
    def size(self) -> float:
        """Probability of the cap without preference."""
        return 0.5 * math.erfc(self.height / math.sqrt(2.0))

    @property
    def densities(self) -> tuple[float, float]:
        """Factors on the density inside and outside."""
        outside = 1.0 / (1.0 + math.expm1(self.epsilon) * self.size)
        return math.exp(self.epsilon) * outside, outside

    @property
    def pull(self) -> float:
        """Mean of <u, v>.

        Reports are divided by it, so that noise is proportional to its inverse.
        """
        inside, outside = self.densities
        return (inside - outside) * math.exp(-0.5 * self.height**2) / math.sqrt(2.0 * math.pi)

    def noise(self, entries: int) -> float:
        """Return a bound on the standard deviation of an entry of a report.

        It is a root mean square over all entries.
        """
        along = 1.0 + self.height * self.pull  # second moment of <u, v>; 1 in all other directions
        return math.sqrt((entries - 1 + along) / entries) / self.pull

    @property
    def blanket(self) -> Blanket:
        """The blanket of reports of opposite vectors, the easiest to tell apart."""
        both = max(0.0, 2.0 * self.size - 1.0)
        return Blanket.of_levels(self.epsilon, self.size - both, both)

    def along(self, choice: float, high: float, low: float) -> float:
        """Return a draw of <u, v>, from three uniform numbers in [0, 1).

        The first says on which side of the height it lies. The others are digits of how far from it: with one of them
        alone, a double would leave gaps beyond six deviations that are wider than the grid of reports.
        """
        from scipy.special import ndtri

        rest = max(high + low * 2.0**-53, 2.0**-107)
        if choice < self.densities[0] * self.size:
            return -float(ndtri(self.size * rest))
        return float(ndtri((1.0 - self.size) * rest))


class Direction(Randomizer):
    """A random vector with mean x in place of a user's vector x.

    The norm of x is at most 1. Its direction is x over its norm r, with the probability (1 + r) / 2, or the opposite
    one. The message is a Gaussian vector that lies in the cap around this direction e^epsilon times as often as
    otherwise, over its mean.

    Privacy:
        The density of a message beside that of a Gaussian vector takes two values, one e^epsilon times the other,
        whatever x is: pure epsilon-LDP.
    """

    name = "direction"
    alphabet = Alphabet.UNIT_VECTOR
    sensitivity = UNBOUNDED

    def __init__(self, statistic: Statistic, epsilon: float, delta: float) -> None:
        self.statistic, self.cap, self.spent = statistic, Cap.best(float(epsilon)), (epsilon, 0.0)
        unit = statistic.sensitivity().units[0]
        check_scale(1.0 / self.cap.pull, unit)
        self._unit, self.blanket = unit, self.cap.blanket
        self._widths = widths_of(np.full(statistic.cells, 1.0 / (self.cap.pull * unit)))

    def send(
        self, users: Any | None, count: int, request: Request | None, source: NoiseSource, out: NDArray[np.int64]
    ) -> None:
        """Add the randomized vector of every user.

        Users who have nothing to report send the message of a vector of zeros.
        """
        vector = np.zeros_like(out)
        for user in range(count):
            vector[:] = 0
            if users is not None:
                self.statistic.encode(users.part(user, user + 1), vector, request)
            out += self.drawn(vector.astype(np.float64) * self._unit, source)

    def drawn(self, vector: NDArray[np.float64], source: NoiseSource) -> NDArray[np.int64]:
        """Return the message of one user, in units of the grid."""
        cells = len(vector)
        drawn, (sign, *along) = np.empty(cells), source.uniform(4)
        source.gaussian(drawn)
        norm = min(1.0, float(np.linalg.norm(vector)))
        way = vector / np.linalg.norm(vector) if norm > 0.0 else np.full(cells, cells**-0.5)
        way = way if sign < (1.0 + norm) / 2.0 else -way
        drawn += (self.cap.along(*along) - drawn @ way) * way
        told = round_to_grid(drawn / (self.cap.pull * self._unit))
        if self._widths is not None:
            told += source.smooth(self._widths)
        return np.asarray(told, dtype=np.int64)

    def error(self, users: int, added: CellError) -> CellError:
        """Return the error of a sum over users, plus ``added``.

        It is taken as normal, with the mean variance of all entries.
        """
        own = self.cap.noise(self.statistic.cells) * math.sqrt(users)
        return lambda grid: CombinedError.of(GaussianError(own), added(grid)) if users else added(grid)
