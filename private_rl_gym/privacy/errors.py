"""Errors of released sums: standard deviations and tail bounds of the noise that they carry.

Proof: docs/proofs/error-bounds.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

__all__ = ["BoundedError", "CellError", "CombinedError", "ErrorDistribution", "GaussianError", "LaplaceError"]
__all__ += ["NoError", "SubsetError", "no_error", "sum_of_errors"]


class ErrorDistribution(ABC):
    """The distribution of the error of one released number."""

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation of the error."""

    @property
    def unvisited_std(self) -> float:
        """Standard deviation in an entry without users.

        It leaves out the part that depends on users' data.
        """
        return self.std

    @abstractmethod
    def bound(self, failure: float) -> float:
        """Return a number that the error exceeds, in absolute value, with probability at most ``failure``."""

    @abstractmethod
    def summed(self, terms: int) -> ErrorDistribution:
        """Return the error of a sum of ``terms`` numbers with independent errors like this one."""

    @abstractmethod
    def scaled(self, factor: float) -> ErrorDistribution:
        """Return the error of a number that is multiplied by ``factor``."""

    def to_dict(self) -> dict[str, Any]:
        """Return the distribution as values that JSON can hold."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        inner = {
            name: part.to_dict() if isinstance(part, ErrorDistribution) else part for name, part in content.items()
        }
        return {"law": type(self).__name__, **inner}

    @staticmethod
    def from_dict(content: dict[str, Any]) -> ErrorDistribution:
        """Return the distribution from the output of ``to_dict``."""
        kinds = {kind.__name__: kind for kind in ErrorDistribution.__subclasses__()}
        rest: dict[str, Any] = {
            name: ErrorDistribution.from_dict(part) if isinstance(part, dict) else part
            for name, part in content.items()
        }
        kind: Any = kinds[rest.pop("law")]
        if "weights" in rest:
            rest["weights"] = tuple((float(count), float(weight)) for count, weight in rest["weights"])
        error: ErrorDistribution = kind(**rest)
        return error


@dataclass(frozen=True, slots=True)
class NoError(ErrorDistribution):
    """The error of exact numbers, which is zero."""

    std: float = 0.0

    def bound(self, failure: float) -> float:
        """Return zero."""
        return 0.0

    def summed(self, terms: int) -> ErrorDistribution:
        """Return the same distribution: sums of exact numbers are exact."""
        return self

    def scaled(self, factor: float) -> ErrorDistribution:
        """Return the same distribution: multiples of exact numbers are exact."""
        return self


@dataclass(frozen=True, slots=True)
class GaussianError(ErrorDistribution):
    """A Gaussian, rounded to a grid.

    Attributes:
        std: Its standard deviation.
        grid: The step of the numbers.
    """

    std: float
    grid: float = 0.0

    def bound(self, failure: float) -> float:
        """Return the exact quantile plus half a step of the grid."""
        from scipy.special import ndtri

        return -self.std * float(ndtri(failure / 2.0)) + self.grid / 2.0

    def summed(self, terms: int) -> ErrorDistribution:
        """Return a Gaussian on a coarser grid, for the sum of such errors.

        Variances add, and so do roundings in the worst case.
        """
        return GaussianError(self.std * math.sqrt(terms), self.grid * terms)

    def scaled(self, factor: float) -> ErrorDistribution:
        """Return a Gaussian with standard deviation and grid multiplied by ``factor``."""
        return GaussianError(self.std * factor, self.grid * factor)


@dataclass(frozen=True, slots=True)
class LaplaceError(ErrorDistribution):
    """A weighted sum of independent two-sided geometric variables with a common scale.

    Attributes:
        scale: Scale of one variable, P(k) proportional to exp(-abs(k) * grid / scale).
        weights: Pairs (number of variables, weight).
        grid: The step of the numbers.
        roundings: Number of roundings to the grid.
    """

    scale: float
    weights: tuple[tuple[float, float], ...]
    grid: float
    roundings: int = 1

    @property
    def std(self) -> float:
        """Square root of the sum of all variances."""
        rest = -math.expm1(-self.grid / self.scale)  # 1 - exp(-grid / scale)
        variance = 2.0 * (1.0 - rest) * (self.grid / rest) ** 2
        return math.sqrt(variance * sum(count * weight**2 for count, weight in self.weights))

    def bound(self, failure: float) -> float:
        """Return the Chernoff bound with the best exponent."""
        from scipy.optimize import minimize_scalar

        budget = math.log(2.0 / failure)
        limit = 1.0 / (self.scale * max(abs(weight) for _, weight in self.weights))

        def at(share: float) -> float:
            return (self._log_mgf(share * limit) + budget) / (share * limit)

        minimum = minimize_scalar(at, bounds=(1e-6, 1.0 - 1e-9), method="bounded")
        return float(minimum.fun) + self.roundings * self.grid / 2.0

    def _log_mgf(self, rate: float) -> float:
        """Return log E exp(rate * error).

        With q = exp(-grid / scale), a geometric variable has E exp(x k) = (1 - q)^2 / ((1 - q e^x)(1 - q e^-x)).
        """
        step = self.grid / self.scale
        total = 0.0
        for count, weight in self.weights:
            x = rate * weight * self.grid
            head = 2.0 * math.log(-math.expm1(-step))
            total += count * (head - math.log(-math.expm1(x - step)) - math.log(-math.expm1(-x - step)))
        return total

    def summed(self, terms: int) -> ErrorDistribution:
        """Return the same distribution with ``terms`` times as many variables and roundings."""
        weights = tuple((terms * count, weight) for count, weight in self.weights)
        return LaplaceError(self.scale, weights, self.grid, terms * self.roundings)

    def scaled(self, factor: float) -> ErrorDistribution:
        """Return the same distribution with scale and grid multiplied by ``factor``."""
        return LaplaceError(self.scale * factor, self.weights, self.grid * factor, self.roundings)


@dataclass(frozen=True, slots=True)
class BoundedError(ErrorDistribution):
    """A sum of independent, bounded, centred terms, one for each user."""

    variance: float  # of the sum, from noise
    largest: float  # absolute value of one term
    data_variance: float = 0.0  # of the sum, at most, from what depends on users' data

    @property
    def std(self) -> float:
        """Square root of the largest possible variance."""
        return math.sqrt(self.variance + self.data_variance)

    @property
    def unvisited_std(self) -> float:
        """Square root of the variance from noise alone."""
        return math.sqrt(self.variance)

    def bound(self, failure: float) -> float:
        """Return Bernstein's bound."""
        budget = math.log(2.0 / failure)
        half = self.largest * budget / 3.0
        return half + math.sqrt(half**2 + 2.0 * (self.variance + self.data_variance) * budget)

    def summed(self, terms: int) -> ErrorDistribution:
        """Return the error of a sum of such numbers.

        Variances add, and so do bounds, because all terms of a user may be large together.
        """
        return BoundedError(self.variance * terms, self.largest * terms, self.data_variance * terms)

    def scaled(self, factor: float) -> ErrorDistribution:
        """Return the same distribution with every term multiplied by ``factor``."""
        return BoundedError(self.variance * factor**2, self.largest * factor, self.data_variance * factor**2)


@dataclass(frozen=True, slots=True)
class CombinedError(ErrorDistribution):
    """The sum of two independent errors."""

    first: ErrorDistribution
    second: ErrorDistribution

    @classmethod
    def of(cls, first: ErrorDistribution, second: ErrorDistribution) -> ErrorDistribution:
        """Return the sum of both errors, or the one that is not zero."""
        if isinstance(second, NoError):
            return first
        return second if isinstance(first, NoError) else cls(first, second)

    @property
    def std(self) -> float:
        """Square root of the sum of both variances."""
        return math.hypot(self.first.std, self.second.std)

    @property
    def unvisited_std(self) -> float:
        """Square root of the sum of both variances, in an entry without users."""
        return math.hypot(self.first.unvisited_std, self.second.unvisited_std)

    def bound(self, failure: float) -> float:
        """Return the sum of both bounds, each at half the probability of failure."""
        return self.first.bound(failure / 2.0) + self.second.bound(failure / 2.0)

    def summed(self, terms: int) -> ErrorDistribution:
        """Return both errors, each summed."""
        return CombinedError(self.first.summed(terms), self.second.summed(terms))

    def scaled(self, factor: float) -> ErrorDistribution:
        """Return both errors, each multiplied by ``factor``."""
        return CombinedError(self.first.scaled(factor), self.second.scaled(factor))


@dataclass(frozen=True, slots=True)
class SubsetError(ErrorDistribution):
    """The error of summed outcomes of the random sets that users drew.

    ``terms`` outcomes are summed, times a factor. There may be noise on each.

    Attributes:
        users: Number of users in the sum.
        times: How often a set counts.
        size: Number of outcomes in a set.
        variance: Variance of the count of an outcome that is not true.
        own_variance: Variance of the count of an outcome that is true.
        gain: The factor of an outcome's count.
        q: Probability that an outcome that is not true is in the set.
        noise: The error of the number of sets with one outcome.
        terms: Number of outcomes that are summed.
        factor: The factor on the sum.
    """

    users: int
    times: int
    size: int
    variance: float
    own_variance: float
    gain: float
    q: float
    noise: ErrorDistribution
    terms: int = 1
    factor: float = 1.0

    @property
    def _law(self) -> ErrorDistribution:
        # A user whose outcome is among those that are summed adds the variance of that, and of being drawn or not.
        own = self.times * (self.own_variance + 1.0)
        own = own - 1.0 if own >= 2.0 else own**2 / 4.0
        weight = self.gain * self.times
        largest = weight * max(min(self.terms, self.size), self.terms * self.q) + 1.0
        drawn = BoundedError(self.users * self.times * self.terms * self.variance, largest, self.users * own)
        both = CombinedError.of(drawn, self.noise.scaled(weight).summed(self.terms))
        return both if self.factor == 1.0 else both.scaled(self.factor)

    @property
    def std(self) -> float:
        """Standard deviation of the error."""
        return self._law.std

    @property
    def unvisited_std(self) -> float:
        """Standard deviation in an entry that no user is in."""
        return self._law.unvisited_std

    def bound(self, failure: float) -> float:
        """Return a number that the error exceeds, in absolute value, with probability at most ``failure``."""
        return self._law.bound(failure)

    def summed(self, terms: int) -> ErrorDistribution:
        """Return the error of a sum of ``terms`` such numbers.

        The outcomes are of the same sets, so they are not independent.
        """
        return replace(self, terms=self.terms * terms)

    def scaled(self, factor: float) -> ErrorDistribution:
        """Return the error of a number that is multiplied by ``factor``."""
        return replace(self, factor=self.factor * factor)


CellError = Callable[[float], ErrorDistribution]
"""The error of one cell, given the unit of the cell."""


def no_error(_grid: float) -> NoError:
    """Return the error of one cell where there is no noise."""
    return NoError()


def sum_of_errors(errors: Sequence[CellError]) -> CellError:
    """Return the error of a sum of cells with these errors."""

    def together(grid: float) -> ErrorDistribution:
        total: ErrorDistribution = NoError()
        for error in errors:
            total = CombinedError.of(total, error(grid))
        return total

    return together
