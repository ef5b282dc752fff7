"""Errors of released sums: standard deviations and tail bounds of the noise that they carry.

Proof: docs/proofs/error-bounds.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["BoundedError", "CombinedError", "ErrorLaw", "GaussianError", "LaplaceError", "NoError"]


class ErrorLaw(ABC):
    """The law of the error of one released number."""

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation of the error."""

    @abstractmethod
    def bound(self, failure: float) -> float:
        """A number that the error exceeds, in absolute value, with probability at most ``failure``."""

    @abstractmethod
    def summed(self, terms: int) -> ErrorLaw:
        """The error of a sum of ``terms`` numbers with independent errors of this law."""

    @abstractmethod
    def scaled(self, factor: float) -> ErrorLaw:
        """The error of a number that is multiplied by ``factor``."""

    def to_dict(self) -> dict[str, Any]:
        """The law as values that JSON can hold."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        inner = {name: part.to_dict() if isinstance(part, ErrorLaw) else part for name, part in content.items()}
        return {"law": type(self).__name__, **inner}

    @staticmethod
    def from_dict(content: dict[str, Any]) -> ErrorLaw:
        """The law from the output of ``to_dict``."""
        laws = {kind.__name__: kind for kind in (NoError, GaussianError, LaplaceError, BoundedError, CombinedError)}
        rest: dict[str, Any] = {
            name: ErrorLaw.from_dict(part) if isinstance(part, dict) else part for name, part in content.items()
        }
        kind: Any = laws[rest.pop("law")]
        if "weights" in rest:
            rest["weights"] = tuple((float(count), float(weight)) for count, weight in rest["weights"])
        law: ErrorLaw = kind(**rest)
        return law


@dataclass(frozen=True, slots=True)
class NoError(ErrorLaw):
    """The error of exact numbers, which is zero."""

    std: float = 0.0

    def bound(self, failure: float) -> float:
        """Zero."""
        del failure
        return 0.0

    def summed(self, terms: int) -> ErrorLaw:
        """The same law: sums of exact numbers are exact."""
        del terms
        return self

    def scaled(self, factor: float) -> ErrorLaw:
        """The same law: multiples of exact numbers are exact."""
        del factor
        return self


@dataclass(frozen=True, slots=True)
class GaussianError(ErrorLaw):
    """A Gaussian, rounded to a grid.

    Attributes:
        std: Its standard deviation.
        grid: The step of the numbers.
    """

    std: float
    grid: float = 0.0

    def bound(self, failure: float) -> float:
        """The exact quantile plus half a step of the grid."""
        from scipy.special import ndtri

        return -self.std * float(ndtri(failure / 2.0)) + self.grid / 2.0

    def summed(self, terms: int) -> ErrorLaw:
        """A Gaussian on a coarser grid: variances add, and so do roundings in the worst case."""
        return GaussianError(self.std * math.sqrt(terms), self.grid * terms)

    def scaled(self, factor: float) -> ErrorLaw:
        """A Gaussian with standard deviation and grid multiplied by ``factor``."""
        return GaussianError(self.std * factor, self.grid * factor)


@dataclass(frozen=True, slots=True)
class LaplaceError(ErrorLaw):
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
        """The Chernoff bound with the best exponent."""
        from scipy.optimize import minimize_scalar

        budget = math.log(2.0 / failure)
        limit = 1.0 / (self.scale * max(abs(weight) for _, weight in self.weights))

        def at(share: float) -> float:
            return (self._log_mgf(share * limit) + budget) / (share * limit)

        minimum = minimize_scalar(at, bounds=(1e-6, 1.0 - 1e-9), method="bounded")
        return float(minimum.fun) + self.roundings * self.grid / 2.0

    def _log_mgf(self, rate: float) -> float:
        """Log E exp(rate * error): each geometric has (1 - q)^2 / ((1 - q e^x)(1 - q e^-x)), q = exp(-grid / scale)."""
        step = self.grid / self.scale
        total = 0.0
        for count, weight in self.weights:
            x = rate * weight * self.grid
            head = 2.0 * math.log(-math.expm1(-step))
            total += count * (head - math.log(-math.expm1(x - step)) - math.log(-math.expm1(-x - step)))
        return total

    def summed(self, terms: int) -> ErrorLaw:
        """The same law with ``terms`` times as many variables and roundings."""
        weights = tuple((terms * count, weight) for count, weight in self.weights)
        return LaplaceError(self.scale, weights, self.grid, terms * self.roundings)

    def scaled(self, factor: float) -> ErrorLaw:
        """The same law with scale and grid multiplied by ``factor``."""
        return LaplaceError(self.scale * factor, self.weights, self.grid * factor, self.roundings)


@dataclass(frozen=True, slots=True)
class BoundedError(ErrorLaw):
    """A sum of independent, bounded, centred terms, one for each user."""

    variance: float  # of the sum, from noise
    largest: float  # absolute value of one term
    data_variance: float = 0.0  # of the sum, at most, from what depends on users' data

    @property
    def std(self) -> float:
        """Square root of the largest possible variance."""
        return math.sqrt(self.variance + self.data_variance)

    def bound(self, failure: float) -> float:
        """Bernstein's bound."""
        budget = math.log(2.0 / failure)
        half = self.largest * budget / 3.0
        return half + math.sqrt(half**2 + 2.0 * (self.variance + self.data_variance) * budget)

    def summed(self, terms: int) -> ErrorLaw:
        """The same law for sums: variances add, and so do bounds, as all terms of a user may be large together."""
        return BoundedError(self.variance * terms, self.largest * terms, self.data_variance * terms)

    def scaled(self, factor: float) -> ErrorLaw:
        """The same law with every term multiplied by ``factor``."""
        return BoundedError(self.variance * factor**2, self.largest * factor, self.data_variance * factor**2)


@dataclass(frozen=True, slots=True)
class CombinedError(ErrorLaw):
    """The sum of two independent errors."""

    first: ErrorLaw
    second: ErrorLaw

    @classmethod
    def of(cls, first: ErrorLaw, second: ErrorLaw) -> ErrorLaw:
        """The sum of both errors, or the only one that is not zero."""
        if isinstance(second, NoError):
            return first
        return second if isinstance(first, NoError) else cls(first, second)

    @property
    def std(self) -> float:
        """Square root of the sum of both variances."""
        return math.hypot(self.first.std, self.second.std)

    def bound(self, failure: float) -> float:
        """The sum of both bounds, each at half the probability of failure."""
        return self.first.bound(failure / 2.0) + self.second.bound(failure / 2.0)

    def summed(self, terms: int) -> ErrorLaw:
        """Both errors, each summed."""
        return CombinedError(self.first.summed(terms), self.second.summed(terms))

    def scaled(self, factor: float) -> ErrorLaw:
        """Both errors, each multiplied by ``factor``."""
        return CombinedError(self.first.scaled(factor), self.second.scaled(factor))
