"""Scores learned from runs, for attackers without a description of the mechanism.

They are also for attackers who do not trust the description.

* ``LinearDiscriminant`` - the direction that separates best: detects noise that is shared, repeated or missing
* ``NaiveBayes`` - a likelihood ratio number by number: exact for randomized answers, and for actions
* ``LastDigits`` - the same for the last binary digit of each number: detects floats that are on no grid
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LastDigits", "LinearDiscriminant", "NaiveBayes"]

MOST_VALUES = 24
"""Largest number of different values that are counted one by one; beyond it, values are put into bins."""


class LinearDiscriminant:
    """Fisher's linear discriminant: the difference of means relative to the covariance.

    It works even where the covariance is zero.
    """

    name = "linear discriminant"
    learns = True

    def fit(self, zero: NDArray[np.float64], one: NDArray[np.float64]) -> None:
        """Estimate the means and the pooled covariance.

        Variances below a small floor are raised to it.
        """
        self._middle = (zero.mean(axis=0) + one.mean(axis=0)) / 2.0
        shift = one.mean(axis=0) - zero.mean(axis=0)
        spread = np.sqrt((zero.var(axis=0) + one.var(axis=0)) / 2.0)
        self._scale = np.where(spread > 0.0, spread, 1.0)
        residuals = np.concatenate([zero - zero.mean(axis=0), one - one.mean(axis=0)]) / self._scale
        values, vectors = np.linalg.eigh(residuals.T @ residuals / len(residuals))
        floor = 1e-9 * max(float(values.max(initial=0.0)), 1e-9)
        along = vectors.T @ (shift / self._scale)
        self._weights = vectors @ (along / np.maximum(values, floor))

    def __call__(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return positions of the runs along the direction that separates best."""
        scores: NDArray[np.float64] = ((runs - self._middle) / self._scale) @ self._weights
        return scores


class NaiveBayes:
    """A sum of log-likelihood ratios, one for each number of a run.

    Each ratio is estimated from the frequencies of the values of its number.
    """

    name = "naive Bayes"
    learns = True

    def fit(self, zero: NDArray[np.float64], one: NDArray[np.float64]) -> None:
        """Count the values of each number, in bins if there are many."""
        zero, one = self._seen(zero), self._seen(one)
        self._edges, self._tables = [], []
        for column in range(zero.shape[1]):
            pooled = np.concatenate([zero[:, column], one[:, column]])
            values = np.unique(pooled)
            if len(values) > MOST_VALUES:
                edges = np.unique(np.quantile(pooled, np.linspace(0.0, 1.0, 13)[1:-1]))
            else:
                edges = (values[1:] + values[:-1]) / 2.0
            counts = [
                np.bincount(np.searchsorted(edges, world[:, column]), minlength=len(edges) + 1) + 0.5
                for world in (zero, one)
            ]
            self._edges.append(edges)
            self._tables.append(np.log(counts[1] / counts[1].sum()) - np.log(counts[0] / counts[0].sum()))

    def __call__(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log-likelihood ratios, as if numbers were independent."""
        seen, total = self._seen(runs), np.zeros(len(runs))
        for column, (edges, table) in enumerate(zip(self._edges, self._tables, strict=True)):
            if len(edges):
                total += table[np.searchsorted(edges, seen[:, column])]
        return total

    def _seen(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        return runs


class LastDigits(NaiveBayes):
    """A score from the place of the last binary digit of each number.

    If numbers lie on a grid, this place reveals nothing about a user.
    """

    name = "last digits"

    def _seen(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        return last_digit(runs)


def last_digit(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest k for which a number is a multiple of 2^k.

    For 0 it is 99.
    """
    mantissas, exponents = np.frexp(np.nan_to_num(numbers))
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = whole & -whole
    _, places = np.frexp(lowest.astype(np.float64))
    return np.where(whole == 0, 99.0, exponents - 53.0 + places - 1.0)
