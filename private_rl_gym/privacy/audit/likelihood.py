"""The log-likelihood ratio of everything that a boundary of this package published.

White box: the noise is read off the very objects that draw it, so that a mechanism that is not what it says is attacked
as what it is.

* ``AdditiveNoise`` - noise of counting mechanisms, of reports, or of both
* ``NoiseBitsOfABatch`` - binomial noise of a shuffler
* ``likelihood`` - the one that fits a boundary, if there is one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.batches import ShuffledSums
from private_rl_gym.privacy.counting import ContinualNoise
from private_rl_gym.privacy.publishing import PublicSums
from private_rl_gym.privacy.randomizers import AdditiveReports, SubsetReports

__all__ = ["AdditiveNoise", "NoiseBitsOfABatch", "Stream", "likelihood", "noise_matrix"]


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """What is released if there is no noise.

    Attributes:
        base: ``[release, cell]``, in world 0.
        moved: ``[release, cell]``, what is added to it in world 1.
        users: Users in each release's batch.
    """

    base: NDArray[np.float64]
    moved: NDArray[np.float64]
    users: tuple[int, ...]


class _UnitSource:
    """In place of random noise: the k-th draw sets cell k to one, and all others to zero."""

    def __init__(self) -> None:
        self.draws = 0

    def gaussian(self, out: NDArray[np.float64]) -> None:
        out[:] = 0.0
        if len(out) > self.draws:
            out[self.draws] = 1.0
        self.draws += 1

    def geometric(self, _scale: Any, out: NDArray[np.float64], _spare: Any) -> None:
        self.gaussian(out)


def noise_matrix(counting: ContinualNoise, releases: int) -> NDArray[np.float64]:
    """A counting mechanism as ``[release, draw]``, read off its streaming code by feeding it unit noise.

    Release t carries the t-th row times independent standard noises.
    """
    kind: Any = type(counting)
    counted: Any = _UnitSource()
    noise = kind(counting.steps, 1, counting.law)
    for _ in range(releases):
        noise.advance(counted, np.ones(1))
    source: Any = _UnitSource()
    noise = kind(counting.steps, counted.draws, counting.law)
    return np.array([np.array(noise.advance(source, np.ones(counted.draws))) for _ in range(releases)])


class AdditiveNoise:
    """The likelihood ratio of a stream with noise on every cell.

    Exact for Gaussian noise, and for Laplace noise that releases determine: one for each release. Otherwise the
    sharpest linear score.

    Args:
        stream: What is released without noise.
        noises: For each independent kind: ``[release, draw]``, scale, and law.
    """

    name = "likelihood ratio"
    learns = False

    def __init__(self, stream: Stream, noises: Sequence[tuple[NDArray[np.float64], float, str]]) -> None:
        self._stream = stream
        self._laplace: tuple[NDArray[Any], float] | None = None
        matrix, scale, law = noises[0]
        square = matrix.shape[0] == matrix.shape[1]
        if len(noises) == 1 and law == "laplace" and square and np.linalg.matrix_rank(matrix) == len(matrix):
            self._laplace = np.linalg.inv(matrix), scale
        covariance = sum(
            (2.0 if kind == "laplace" else 1.0) * width**2 * found @ found.T for found, width, kind in noises
        )
        self._weights = np.linalg.pinv(np.asarray(covariance), hermitian=True) @ stream.moved

    def fit(self, zero: NDArray[np.float64], one: NDArray[np.float64]) -> None:
        """Nothing is learned: the law is known."""

    def __call__(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log-likelihood ratios, up to a constant."""
        stream = self._stream
        errors = _releases(runs, stream.base) - stream.base
        if self._laplace is None:
            return np.asarray(np.einsum("ktc,tc->k", errors, self._weights))
        inverse, scale = self._laplace
        cells = np.flatnonzero(stream.moved.any(axis=0))
        noise = np.einsum("st,ktc->ksc", inverse, errors[:, :, cells])
        moved = inverse @ stream.moved[:, cells]
        return np.asarray((np.abs(noise) - np.abs(noise - moved)).sum(axis=(1, 2)) / scale)


class NoiseBitsOfABatch:
    """The likelihood ratio of shuffled batches: counters with binomial noise.

    Args:
        stream: What is released without noise.
        bits: For each release, the number of noise bits in a counter of its batch, and their bias.
    """

    name = "likelihood ratio"
    learns = False

    def __init__(self, stream: Stream, bits: Sequence[tuple[int, float]]) -> None:
        from scipy.stats import binom

        self._base = np.diff(stream.base, axis=0, prepend=0.0)
        self._moved = np.diff(stream.moved, axis=0, prepend=0.0)
        self._means = np.array([number * bias for number, bias in bits])
        self._logs = []
        for number, bias in bits:
            reach = 12.0 * np.sqrt(number * bias * (1.0 - bias)) + 60.0
            low, high = int(max(-2, number * bias - reach)), int(min(number + 2, number * bias + reach))
            with np.errstate(divide="ignore"):
                self._logs.append((low, np.maximum(binom.logpmf(np.arange(low, high + 1), number, bias), -200.0)))

    def fit(self, zero: NDArray[np.float64], one: NDArray[np.float64]) -> None:
        """Nothing is learned: the law is known."""

    def __call__(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log-likelihood ratios."""
        batches = np.diff(_releases(runs, self._base), axis=1, prepend=0.0)
        total = np.zeros(len(runs))
        for place, (low, logs) in enumerate(self._logs):
            cells = np.flatnonzero(self._moved[place])
            noise = np.rint(batches[:, place, cells] + self._means[place] - self._base[place, cells]).astype(int) - low
            for shift, sign in ((self._moved[place, cells], 1.0), (0.0, -1.0)):
                at = np.clip(noise - np.rint(shift).astype(int), 0, len(logs) - 1)
                total += sign * logs[at].sum(axis=1)
        return total


def _releases(runs: NDArray[np.float64], like: NDArray[np.float64]) -> NDArray[np.float64]:
    """The releases at the beginning of each run, ``[run, release, cell]``; what follows is for others to look at."""
    return runs[:, : like.size].reshape(len(runs), *like.shape)


def likelihood(sums: PublicSums, stream: Stream) -> AdditiveNoise | NoiseBitsOfABatch | None:
    """The likelihood ratio of what this boundary publishes, where it is known; else an attacker has to learn."""
    if isinstance(sums, ShuffledSums):
        if sums.protocol is None:
            return None
        of_batches = [(size, sums.protocol.noise_bits(size)) for size in stream.users]
        return NoiseBitsOfABatch(stream, [(size * bits.each, bits.bias) for size, bits in of_batches])
    if isinstance(sums.statistic, SubsetReports):
        return None
    releases = len(stream.users)
    noises: list[tuple[NDArray[np.float64], float, str]] = []
    if isinstance(sums.statistic, AdditiveReports):
        arrived = np.cumsum(stream.users)
        reports = (np.arange(arrived[-1]) < arrived[:, None]).astype(float)
        noises.append((reports, sums.statistic.scale, sums.statistic.law))
    if sums.noise is not None:
        counting = sums.noise.counting
        noises.append((noise_matrix(counting, releases), sums.noise.scale, counting.law))
    return AdditiveNoise(stream, noises) if noises else None


def says_gaussian(sums: PublicSums) -> bool:
    """Whether all noise of a boundary is said to be Gaussian; bits never are, however many."""
    if isinstance(sums, ShuffledSums):
        return False
    laws = [] if sums.noise is None else [sums.noise.counting.law]
    if isinstance(sums.statistic, AdditiveReports):
        laws.append(sums.statistic.law)
    return bool(laws) and set(laws) == {"gaussian"} and not isinstance(sums.statistic, SubsetReports)
