"""The log-likelihood ratio of everything that was published, from noise whose distribution is known.

White box: the distribution is computed from the code that draws the noise, so that a mechanism that differs from its
description is attacked as it really is.

* ``LinearRatio`` - for noise that is added to sums: of counting mechanisms, of reports, or of both
* ``BinomialRatio`` - for noise bits of a shuffler
* ``likelihood`` - the ratio that fits some noise, if there is one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.noise import AdditiveNoise, NoiseBitsOfBatches, Noises

__all__ = ["BinomialRatio", "LinearRatio", "Stream", "likelihood", "says_gaussian"]


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Releases without noise.

    Attributes:
        base: ``[release, cell]``, the releases in world 0.
        moved: ``[release, cell]``, the releases in world 1 minus those in world 0.
        users: Users in each release's batch.
    """

    base: NDArray[np.float64]
    moved: NDArray[np.float64]
    users: tuple[int, ...]


class LinearRatio:
    """The likelihood ratio of a stream with noise on every cell.

    Exact for Gaussian noise, and for Laplace noise that releases determine, which has one draw for each release.
    Otherwise the best linear score.

    Args:
        stream: The releases without noise.
        noises: The independent kinds of noise.
    """

    name = "likelihood ratio"
    learns = False

    def __init__(self, stream: Stream, noises: Sequence[AdditiveNoise]) -> None:
        self._stream = stream
        self._laplace: tuple[NDArray[Any], float] | None = None
        matrix = noises[0].matrix
        square = matrix.shape[0] == matrix.shape[1]
        alone = len(noises) == 1 and noises[0].law == "laplace"
        if alone and square and np.linalg.matrix_rank(matrix) == len(matrix):
            self._laplace = np.linalg.inv(matrix), noises[0].scale
        covariance = sum(
            (2.0 if noise.law == "laplace" else 1.0) * noise.scale**2 * noise.matrix @ noise.matrix.T
            for noise in noises
        )
        self._weights = np.linalg.pinv(np.asarray(covariance), hermitian=True) @ stream.moved

    def fit(self, zero: NDArray[np.float64], one: NDArray[np.float64]) -> None:
        """Do nothing, because the distribution is known."""

    def __call__(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log-likelihood ratios, up to a constant."""
        stream = self._stream
        errors = _releases(runs, stream.base) - stream.base
        if self._laplace is None:
            return np.asarray(np.einsum("ktc,tc->k", errors, self._weights))
        inverse, scale = self._laplace
        cells = np.flatnonzero(stream.moved.any(axis=0))
        noise = np.einsum("st,ktc->ksc", inverse, errors[:, :, cells])
        moved = inverse @ stream.moved[:, cells]
        return np.asarray((np.abs(noise) - np.abs(noise - moved)).sum(axis=(1, 2)) / scale)


class BinomialRatio:
    """The likelihood ratio of shuffled batches: counters with binomial noise.

    Args:
        stream: The releases without noise.
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
        """Do nothing, because the distribution is known."""

    def __call__(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log-likelihood ratios."""
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
    """Return the releases at the beginning of each run, ``[run, release, cell]``.

    The rest of a run is for other scores.
    """
    return runs[:, : like.size].reshape(len(runs), *like.shape)


def likelihood(noises: Noises, stream: Stream) -> LinearRatio | BinomialRatio | None:
    """Return the likelihood ratio of releases with this noise; None where it is not known."""
    if len(noises) == 1 and isinstance(noises[0], NoiseBitsOfBatches):
        return BinomialRatio(stream, noises[0].bits)
    additive = [noise for noise in noises if isinstance(noise, AdditiveNoise)]
    return LinearRatio(stream, additive) if additive and len(additive) == len(noises) else None


def says_gaussian(noises: Noises) -> bool:
    """Return whether all noise is described as Gaussian.

    Noise bits are never described so, whatever their number.
    """
    return bool(noises) and all(isinstance(noise, AdditiveNoise) and noise.law == "gaussian" for noise in noises)
