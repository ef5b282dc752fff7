"""Randomized answers about single values: one of several, or a number between bounds.

* ``one_of`` - an entry with finitely many values, by randomized response
* ``RandomizedNumber`` - a number in [0, 1]: bounded and unbiased

Budgets are pure, and answers come from finite sets, so that no digit of a float gives a value away. Proof:
docs/proofs/local-per-step.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_BUDGET", "RandomizedNumber", "check_values", "one_of", "randomized_number"]

LARGEST_BUDGET = 30.0
"""The largest budget of one answer: beyond it, flips are rarer than double precision can draw. Less is spent then."""

MOST_VALUES = 2**20
"""The largest number of values that an answer may have: of more, doubles do not draw each as often as the others."""

FINE = 33
"""Levels of a number where the budget is large enough for more than two."""


def check_values(sizes: Any) -> None:
    """Raise ValueError if an entry has too many values.

    Answers about so many values would not all be drawn alike.
    """
    most = int(np.max(sizes, initial=1))
    if most > MOST_VALUES:
        raise ValueError(
            f"An entry of the observation has {most:,} values, and answers are drawn from at most {MOST_VALUES:,}. "
            "Divide it into bins, or into entries with fewer values."
        )


def one_of(
    true: NDArray[np.int64], sizes: NDArray[np.int64], budget: float, uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the true values, or other values drawn at random.

    Args:
        true: ``[entry]``, each at least 0 and below its size.
        sizes: ``[entry]``, the number of values that an entry may have.
        budget: Of each entry.
        uniforms: ``[2, entry]``.
    """
    check_values(sizes)
    keep = 1.0 / (1.0 + (sizes - 1.0) * math.exp(-min(budget, LARGEST_BUDGET)))
    others = (uniforms[1] * (sizes - 1)).astype(np.int64)
    others += others >= true
    return np.where((uniforms[0] < keep) | (sizes == 1), true, others)


@dataclass(frozen=True, slots=True)
class RandomizedNumber:
    """Numbers in [0, 1], each answered by one of finitely many cells.

    A number is rounded at random to one of ``levels`` levels, without bias. There are ``levels + window - 1`` cells,
    and for level j those from j to ``j + window - 1`` are e^budget times as likely as the others. The mean of the cell
    is linear in j, so that scaled answers are unbiased. With two levels and a window of 1 it is the bit of randomized
    response.

    Attributes:
        budget: The logarithm of the largest ratio of likelihoods.
        levels: Number of levels.
        window: Number of likely cells.
    """

    budget: float
    levels: int
    window: int

    @property
    def cells(self) -> int:
        """Number of possible answers."""
        return self.levels + self.window - 1

    @property
    def least(self) -> float:
        """The probability of an unlikely cell."""
        return 1.0 / (self.window * math.exp(self.budget) + self.levels - 1.0)

    def probabilities(self, level: int) -> NDArray[np.float64]:  # [cell]
        """Return the probabilities of all cells."""
        chances = np.full(self.cells, self.least)
        chances[level : level + self.window] *= math.exp(self.budget)
        return chances

    @property
    def values(self) -> NDArray[np.float64]:  # [cell]
        """The number that each cell stands for; at the ends, beyond 0 and 1."""
        cells = np.arange(self.cells, dtype=np.float64)
        rise = self.least * math.expm1(self.budget) * self.window  # of the mean cell, from one level to the next
        return np.asarray((cells - self.probabilities(0) @ cells) / (rise * (self.levels - 1)))

    @property
    def variance(self) -> float:
        """The variance of an answer about the worst number."""
        values = self.values
        squares = np.array([self.probabilities(level) @ values**2 for level in range(self.levels)])
        numbers = np.linspace(0.0, 1.0, 201)
        return float((np.interp(numbers, np.linspace(0.0, 1.0, self.levels), squares) - numbers**2).max())

    def tell(self, numbers: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a randomized answer about each number.

        Args:
            numbers: ``[entry]``, in [0, 1].
            uniforms: ``[3, entry]``.
        """
        places = numbers * (self.levels - 1)
        level = np.floor(places)
        level += uniforms[0] < places - level
        first = level.astype(np.int64)
        likely = uniforms[1] < self.window * self.least * math.exp(self.budget)
        others = (uniforms[2] * (self.levels - 1)).astype(np.int64)
        others += np.where(others >= first, self.window, 0)
        cells = np.where(likely, first + (uniforms[2] * self.window).astype(np.int64), others)
        return np.asarray(self.values[cells])


@lru_cache(maxsize=256)
def randomized_number(budget: float) -> RandomizedNumber:
    """Return the answer about a number with the least variance at this budget.

    It has two levels, or many.
    """
    budget = min(budget, LARGEST_BUDGET)
    window = max(1, round((FINE - 1) * math.exp(-budget / 2.0)))
    return min(
        (RandomizedNumber(budget, 2, 1), RandomizedNumber(budget, FINE, window)), key=lambda answer: answer.variance
    )
