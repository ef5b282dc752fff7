"""Gradients that users noise themselves (local model).

* ``DirectionReports`` - a random vector that points the way of hers more often than not: pure
* ``NoisyGradients`` - her vector with Gaussian noise on every entry, for a delta
* ``Cap`` - the part of space that is preferred, and how much
* ``local_gradients`` - the one of these with the least noise

Proof: docs/proofs/local-gradients.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.privacy.amplification import Looks
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.conversion import check_budget, gaussian_mu
from private_rl_gym.privacy.errors import CombinedError, ErrorLaw, GaussianError
from private_rl_gym.privacy.gradients import GRID, Gradients
from private_rl_gym.privacy.noise import Noises, NoiseSource, RandomAnswers, round_to_grid, widths_of
from private_rl_gym.privacy.randomizers import AdditiveReports
from private_rl_gym.privacy.release import Published
from private_rl_gym.privacy.statistics import Noise, Statistic, check_scale

__all__ = ["Cap", "DirectionReports", "NoisyGradients", "local_gradients"]


class NoisyGradients(AdditiveReports):
    """A user's vector of norm 1 at most, with Gaussian noise on every entry, drawn on her side.

    Privacy:
        That of ``AdditiveReports``. Proof: docs/proofs/local-gradients.md.
    """

    def __init__(self, exact: Gradients, epsilon: float, delta: float) -> None:
        super().__init__(exact, "gaussian", exact.l2 / gaussian_mu(epsilon, delta))
        self.network = exact.network

    def checked(self, ask: Ask | None) -> Ask | None:
        """A copy of the objective in plain numbers."""
        return self.exact.checked(ask)

    def collect(
        self, users: Any, sums: NDArray[np.int64], source: NoiseSource | None = None, ask: Ask | None = None
    ) -> None:
        """Add a noisy report of every user. Episodes are checked where they are differentiated."""
        self._collect(users, sums, source, ask)

    def own_noise(self, users: int) -> float:
        """Standard deviation of the noise in an entry of a sum."""
        return self.scale * math.sqrt(users)


@dataclass(frozen=True, slots=True)
class Cap:
    """Standard Gaussian vectors u, preferred by a factor e^epsilon where <u, v> is at least ``height``.

    Attributes:
        epsilon: Budget of a report.
        height: The distance of the cap from the origin.
    """

    epsilon: float
    height: float

    @classmethod
    @lru_cache(maxsize=256)
    def best(cls, epsilon: float) -> Cap:
        """The cap with the least noise. Epsilon is cut off at 30, as for random sets."""
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
        """Mean of <u, v>. Reports are divided by it, so that noise is one over it."""
        inside, outside = self.densities
        return (inside - outside) * math.exp(-0.5 * self.height**2) / math.sqrt(2.0 * math.pi)

    def noise(self, entries: int) -> float:
        """Standard deviation of an entry of a report, at most, as a root mean square over all entries."""
        along = 1.0 + self.height * self.pull  # second moment of <u, v>; 1 in all other directions
        return math.sqrt((entries - 1 + along) / entries) / self.pull

    @property
    def looks(self) -> Looks:
        """The looks of reports of opposite vectors, which are the easiest to tell apart."""
        both = max(0.0, 2.0 * self.size - 1.0)
        return Looks.of_levels(self.epsilon, self.size - both, both)

    def along(self, choice: float, high: float, low: float) -> float:
        """A draw of <u, v>, from three uniform numbers in [0, 1).

        The first says on which side of the height it lies. The others are digits of how far from it: with one of them
        alone, a double would leave gaps beyond six deviations that are wider than the grid of reports.
        """
        from scipy.special import ndtri

        rest = max(high + low * 2.0**-53, 2.0**-107)
        if choice < self.densities[0] * self.size:
            return -float(ndtri(self.size * rest))
        return float(ndtri((1.0 - self.size) * rest))


class DirectionReports(Statistic):
    """A random vector in place of a user's vector x of norm 1 at most, with mean x.

    Her direction is x over its norm r, with the probability (1 + r) / 2, or the opposite one. The report is a Gaussian
    vector that lies in the cap around this direction e^epsilon times as often as otherwise, over its mean.

    Privacy:
        The density of a report beside that of a Gaussian vector takes two values, one e^epsilon times the other,
        whatever x is: pure epsilon-LDP. Proof: docs/proofs/local-gradients.md.

    Args:
        exact: The gradients that are reported.
        epsilon: Budget of a user.
    """

    name = "gradient"

    def __init__(self, exact: Gradients, epsilon: float) -> None:
        self._exact, self.network, self.cap = exact, exact.network, Cap.best(float(epsilon))
        check_scale(1.0 / self.cap.pull, GRID)
        self.horizon, self.n_states, self.n_actions = exact.horizon, exact.n_states, exact.n_actions
        self.cells, self.title, self.asks = exact.cells, exact.title, exact.asks
        self._widths = widths_of(np.full(self.cells, 1.0 / (self.cap.pull * GRID)))
        self.l1 = self.l2 = math.inf  # reports are not bounded: no noise is made for sums of them
        self.parts = ()
        self.looks = self.cap.looks

    @property
    def exact(self) -> Statistic:
        """The gradients without noise."""
        return self._exact

    @property
    def label(self) -> str:
        """The label of the exact gradients."""
        return self._exact.label

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The grid of the exact gradients."""
        return read_only(np.full(self.cells, GRID))

    def checked(self, ask: Ask | None) -> Ask | None:
        """A copy of the objective in plain numbers."""
        return self._exact.checked(ask)

    def collect(
        self, users: Any, sums: NDArray[np.int64], source: NoiseSource | None = None, ask: Ask | None = None
    ) -> None:
        """Add a report of every user. Episodes are checked where they are differentiated."""
        self._collect(users, sums, source, ask)

    def _collect(self, users: Any, sums: NDArray[np.int64], source: NoiseSource | None, ask: Ask | None) -> None:
        added, vector = np.zeros_like(sums), np.zeros_like(sums)
        for user in range(len(users)):
            vector[:] = 0
            self._exact.collect(users.part(user, user + 1), vector, None, ask)
            added += self._report(vector.astype(np.float64) * GRID, source)
        sums += added  # all at once: no interrupt can divide it

    def absent(self, users: int, sums: NDArray[np.int64], source: NoiseSource | None = None) -> None:
        """Add reports of a vector of zeros, so that nobody can tell who left early."""
        for _ in range(users):
            sums += self._report(np.zeros(self.cells), source)

    def _report(self, vector: NDArray[np.float64], source: NoiseSource | None) -> NDArray[np.int64]:
        """The report of one user, in units of the grid."""
        assert source is not None  # noqa: S101 - reports without noise must never be made
        drawn, (sign, *along) = np.empty(self.cells), source.uniform(4)
        source.gaussian(drawn)
        norm = min(1.0, float(np.linalg.norm(vector)))
        way = vector / np.linalg.norm(vector) if norm > 0.0 else np.full(self.cells, self.cells**-0.5)
        way = way if sign < (1.0 + norm) / 2.0 else -way
        drawn += (self.cap.along(*along) - drawn @ way) * way
        told = round_to_grid(drawn / (self.cap.pull * GRID))
        if self._widths is not None:
            told += source.smooth(self._widths)
        return np.asarray(told, dtype=np.int64)

    def own_noise(self, users: int) -> float:
        """Standard deviation of an entry of a sum, at most, as a root mean square over all entries."""
        return self.cap.noise(self.cells) * math.sqrt(users)

    def sums(self, vector: NDArray[np.float64], users: int) -> dict[str, NDArray[np.float64]]:
        """The parts, by name."""
        return self._exact.sums(vector, users)

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The parts, one after the other."""
        return self._exact.vector(sums)

    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Published:
        """A release of these sums."""
        return self._exact.release(sums, **about)

    def errors(self, noise: Noise, users: int) -> dict[str, ErrorLaw]:
        """The error of a sum over users, as normal with the mean variance of all entries, and ``noise`` in addition."""

        def both(grid: float) -> ErrorLaw:
            return CombinedError.of(GaussianError(self.own_noise(users)), noise(grid)) if users else noise(grid)

        return self._exact.errors(both, users)

    def noises(self, batches: Sequence[int]) -> Noises:
        """Random answers, because vectors are drawn and not added to."""
        del batches
        return [RandomAnswers()]


def local_gradients(
    name: str | None, exact: Gradients, epsilon: float, delta: float
) -> tuple[str, Statistic, float, float]:
    """The randomizer with this name, or by default the one with the least noise; its name, epsilon and delta."""
    check_budget(epsilon, delta)
    if name not in (None, "direction", "gaussian"):
        raise ValueError(
            f"randomizer is {name!r}: gradients are sent as a 'direction', or with 'gaussian' noise where delta is "
            "above 0. Leave it out for the one with less noise."
        )
    if name is None:
        better = delta > 0.0 and exact.l2 / gaussian_mu(epsilon, delta) < Cap.best(float(epsilon)).noise(exact.cells)
        name = "gaussian" if better else "direction"
    if name == "gaussian":
        return name, NoisyGradients(exact, epsilon, delta), epsilon, delta
    return name, DirectionReports(exact, epsilon), epsilon, 0.0
