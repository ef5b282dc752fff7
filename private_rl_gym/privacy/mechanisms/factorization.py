"""The square-root factorization, streamed as a buffered linear Toeplitz matrix (BLT).

Sums are released as A x + B z, where A is the lower triangle of ones, A = B C, and z is white Gaussian noise scaled by
the largest column norm of C. C is Toeplitz, with coefficients 1 and c_k = sum_i scale_i decay_i^(k-1): close to the
square root of A, which is nearly optimal, but streamed with one buffer for each i in place of all earlier noise.
Proof: docs/proofs/matrix-factorization.md. Fichtenberger, Henzinger, Upadhyay (2023); Dvijotham, McMahan, Pillutla,
Steinke, Thakurta (2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.privacy.mechanisms.base import Law, Mechanism, Weights
from private_rl_gym.privacy.noise import NoiseSource

__all__ = ["BLT", "MatrixFactorization", "fit_blt"]


TERM_BY_TERM = 10_000_000
"""Largest number of releases for which the sensitivity is summed term by term."""

MOST_STEPS = 200_000_000
"""Largest number of releases for which returning users are accounted for, which is done term by term."""


FINEST = 2.0**-12
"""The lattice of the search. A finer one gains less than a millionth."""

GAIN = 1e-10
"""The least gain of a step, in the logarithm of the error. Rounding differs by far less between processors."""


def _buffers(steps: int) -> int:
    """Return the number of buffers for so many releases.

    With them the worst error is within one percent of that of the exact square root.
    """
    return 4 if steps <= 200_000 else 5 if steps <= 5_000_000 else 6


@dataclass(frozen=True, slots=True, eq=False)
class BLT:
    """A buffered linear Toeplitz matrix C for ``steps`` releases, with derived numbers.

    Attributes:
        steps: Number of releases.
        decay: ``[buffer]``, decreasing, in (0, 1).
        scale: ``[buffer]``.
        poles, amounts: The coefficients of B = A C^-1 are b_k = sum_j amounts_j poles_j^k.
    """

    steps: int
    decay: NDArray[np.float64]
    scale: NDArray[np.float64]
    poles: NDArray[np.float64]
    amounts: NDArray[np.float64]

    @classmethod
    def of(cls, decay: NDArray[np.float64], zeros: NDArray[np.float64], steps: int) -> BLT:
        """Return the matrix C with these decays and zeros.

        Its generating function is C(x) = prod (1 - zeros_i x) / (1 - decay_i x). Partial fractions: C(x) = 1 + sum
        scale_i x / (1 - decay_i x), and 1 / ((1 - x) C(x)) has poles 1 and zeros_i.
        """
        scale = np.array(
            [
                (d - zeros[i]) * np.prod(np.delete((d - zeros) / (d - decay + np.eye(len(decay))[i]), i))
                for i, d in enumerate(decay)
            ]
        )
        poles = np.append(1.0, zeros)
        amounts = np.array([np.prod(p - decay) / np.prod(np.delete(p - poles, i)) for i, p in enumerate(poles)])
        return cls(steps, decay, scale, poles, amounts)

    @property
    def squared_sensitivity(self) -> float:
        """The squared norm of the first column of C, the largest of all columns.

        The guarantee depends on this number, so it is summed term by term from the coefficients that are streamed.
        """
        if self.steps > TERM_BY_TERM:  # all scales are positive, so that the closed form cancels nothing
            return (1.0 + _energy(self.decay, self.scale, self.steps - 1)) * (1.0 + 1e-9)
        return float(1.0 + _sum_of_squares(self.decay, self.scale, self.steps - 1))

    def squared_spread(self, step: int) -> float:
        """Return the squared norm of row ``step`` of B.

        It is the variance of that release for white noise of variance 1.
        """
        return _energy(self.poles, self.amounts, step)

    @property
    def worst_error(self) -> float:
        """The largest standard deviation of a release.

        It is for sensitivity 1 and sigma = 1.
        """
        sensitivity = 1.0 + _energy(self.decay, self.scale, self.steps - 1)  # in closed form: the fit asks often
        return float(np.sqrt(sensitivity * self.squared_spread(self.steps)))


@compiled
def _sum_of_squares(decay: Any, scale: Any, terms: int) -> float:
    """Return the same sum as ``_energy``, computed term by term."""
    powers = np.ones(len(decay))
    total = 0.0
    for _ in range(terms):
        coefficient = 0.0
        for i in range(len(decay)):
            coefficient += scale[i] * powers[i]
            powers[i] *= decay[i]
        total += coefficient * coefficient
    return total


@compiled
def _sum_of_columns(decay: Any, scale: Any, steps: int, columns: int) -> float:
    """Return the squared norm of the sum of the first columns of C.

    It is computed term by term.
    """
    coefficients = np.ones(steps)
    powers = np.ones(len(decay))
    for k in range(1, steps):
        coefficients[k] = 0.0
        for i in range(len(decay)):
            coefficients[k] += scale[i] * powers[i]
            powers[i] *= decay[i]
    entry, total = 0.0, 0.0
    for k in range(steps):
        entry += coefficients[k]
        if k >= columns:
            entry -= coefficients[k - columns]
        total += entry * entry
    return total


@compiled
def _energy(decay: NDArray[np.float64], scale: NDArray[np.float64], terms: int) -> float:
    """Return the sum over k < terms of (sum_i scale_i decay_i^k)^2, in closed form."""
    if terms < 1:
        return 0.0
    total = 0.0
    for i in range(len(decay)):
        for j in range(len(decay)):
            ratio = decay[i] * decay[j]
            if ratio >= 1.0:
                total += scale[i] * scale[j] * terms
            elif ratio > 0.0:
                total -= scale[i] * scale[j] * np.expm1(terms * np.log(ratio)) / (1.0 - ratio)
            else:  # zero to the power of zero is one, and nothing follows
                total += scale[i] * scale[j]
    return float(total)


def fit_blt(steps: int) -> BLT:
    """Return the BLT with nearly the smallest worst error for ``steps`` releases.

    It takes a small search, which is done once. Zeros and decays interlace below one, as those of rational
    approximations of 1 / sqrt(1 - x) do. The search is over the logarithms of the gaps between them. They are multiples
    of ``FINEST``: the last digit of an exponential differs between processors, and must not change what is found.
    """
    return _fit(positive_integer(steps, "steps", "releases"))


@lru_cache(maxsize=64)
def _fit(steps: int) -> BLT:
    if steps == 1:  # C is the number one
        return BLT(1, np.zeros(0), np.zeros(0), np.ones(1), np.ones(1))
    buffers = _buffers(steps)

    def matrix(gaps: NDArray[np.float64]) -> BLT:
        depth = np.cumsum(np.exp(gaps))  # -log(1 - x), from the deepest point up
        points = -np.expm1(-depth)[::-1]
        return BLT.of(points[0::2].copy(), points[1::2].copy(), steps)

    def cost(gaps: NDArray[np.float64]) -> float:
        with np.errstate(all="ignore"):  # where points coincide, values are not finite, and the search turns back
            error = matrix(gaps).worst_error
        return float(np.log(error)) if np.isfinite(error) and error > 0 else 1e6

    found = []
    for share in (0.6, 0.9, 1.1):
        even = math.log(math.log(steps + 1.0) * share / (2 * buffers))
        found.append(_search(cost, np.full(2 * buffers, round(even / FINEST) * FINEST)))
    return matrix(min(found, key=lambda one: one[1])[0])


def _search(
    cost: Callable[[NDArray[np.float64]], float], start: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return the best point that a pattern search finds, with its cost.

    It is that of Hooke and Jeeves (1961).
    """

    def around(point: NDArray[np.float64], value: float, pace: float) -> tuple[NDArray[np.float64], float]:
        for place in range(len(point)):
            for move in (pace, -pace):
                moved = point.copy()
                moved[place] += move
                if (there := cost(moved)) < value - GAIN:
                    point, value = moved, there
                    break
        return point, value

    best, least, pace = start, cost(start), 0.5
    while pace >= FINEST:
        point, value = around(best, least, pace)
        if not value < least - GAIN:
            pace /= 2.0
        while value < least - GAIN:  # once more in the same direction
            ahead, best, least = 2.0 * point - best, point, value
            point, value = around(ahead, cost(ahead), pace)
    return best, least


class MatrixFactorization(Mechanism):
    """Noise with the best known correlation over time.

    Later releases partly cancel the noise of earlier ones.
    """

    name = "matrix-factorization"
    laws = ("gaussian",)

    def __init__(self, steps: int, cells: int, law: Law = "gaussian") -> None:
        super().__init__(steps, cells, law)
        self.blt = fit_blt(self.steps)
        self._buffers = np.zeros((len(self.blt.decay), self.cells))
        self._total = np.zeros(self.cells)

    @property
    def sensitivity(self) -> float:
        """The norm of the first column of C."""
        return float(np.sqrt(self.blt.squared_sensitivity))

    def returning(self, visits: int) -> float:
        """Return the norm of the sum of the first ``visits`` columns of C.

        No other columns have a longer sum, because coefficients are positive and fall from 1 on.
        """
        if visits == 1:
            return self.sensitivity
        if self.steps > MOST_STEPS:
            raise ValueError(
                f"visits is {visits}: repeated visits are accounted for in at most {MOST_STEPS:,} releases, and there "
                f"are {self.steps:,}. Use larger batches, or counting='batched'."
            )
        decay, scale = self.blt.decay, self.blt.scale
        if not ((scale >= 0.0).all() and (decay >= 0.0).all() and (decay <= 1.0).all() and scale.sum() <= 1.0):
            raise ValueError(
                f"visits is {visits}: the coefficients for {self.steps} releases do not decrease, so that there is no "
                "bound for repeated visits. Use another number of releases, or counting='batched'."
            )
        return float(np.sqrt(_sum_of_columns(decay, scale, self.steps, min(visits, self.steps))))

    @property
    def worst_step(self) -> int:
        """The last release, because noise grows."""
        return self.steps

    def weights(self, step: int) -> Weights:
        """Return one noise, weighted by the norm of row ``step`` of B.

        It has the variance of the release.
        """
        return ((1.0, float(np.sqrt(self.blt.squared_spread(step)))),)

    def advance(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the next running sum of y, where y = C^-1 z.

        It takes one step of this linear recursion.
        """
        self.step += 1
        _stream(self._draw(source, scale), self._buffers, self._total, self.blt.decay, self.blt.scale)
        return self._total

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the buffers and the running sum."""
        return {"buffers": self._buffers, "total": self._total}


@compiled
def _stream(fresh: Any, buffers: Any, total: Any, decay: Any, scale: Any) -> None:
    # Separate passes over the cells, because the compiler turns each of them into vector instructions.
    cells = len(fresh)
    for i in range(len(decay)):
        for cell in range(cells):
            fresh[cell] -= scale[i] * buffers[i, cell]
    for i in range(len(decay)):
        for cell in range(cells):
            buffers[i, cell] = decay[i] * buffers[i, cell] + fresh[cell]
    for cell in range(cells):
        total[cell] += fresh[cell]
