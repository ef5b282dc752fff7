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
    """The error of one released number."""

    @property
    @abstractmethod
    def std(self) -> float:
        """Its standard deviation."""

    @abstractmethod
    def bound(self, failure: float) -> float:
        """A number that the error exceeds, in absolute value, with probability at most ``failure``."""

    @abstractmethod
    def summed(self, terms: int) -> ErrorLaw:
        """The error of a sum of so many numbers with independent errors of this law."""

    @abstractmethod
    def scaled(self, factor: float) -> ErrorLaw:
        """The error of a number that is multiplied by ``factor``."""

    def to_dict(self) -> dict[str, Any]:
        """The law as JSON can hold it."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        inner = {name: part.to_dict() if isinstance(part, ErrorLaw) else part for name, part in content.items()}
        return {"law": type(self).__name__, **inner}

    @staticmethod
    def from_dict(content: dict[str, Any]) -> ErrorLaw:
        """The law that ``to_dict`` wrote down."""
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
    """Exact numbers."""

    std: float = 0.0

    def bound(self, failure: float) -> float:
        """Zero, always."""
        del failure
        return 0.0

    def summed(self, terms: int) -> ErrorLaw:
        """Still exact."""
        del terms
        return self

    def scaled(self, factor: float) -> ErrorLaw:
        """Still exact."""
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
        """The exact quantile, and half a step of the grid."""
        from scipy.special import ndtri

        return -self.std * float(ndtri(failure / 2.0)) + self.grid / 2.0

    def summed(self, terms: int) -> ErrorLaw:
        """Variances add, and so do roundings, at worst."""
        return GaussianError(self.std * math.sqrt(terms), self.grid * terms)

    def scaled(self, factor: float) -> ErrorLaw:
        """A wider Gaussian on a wider grid."""
        return GaussianError(self.std * factor, self.grid * factor)


@dataclass(frozen=True, slots=True)
class LaplaceError(ErrorLaw):
    """A weighted sum of independent two-sided geometrics of one scale.

    Attributes:
        scale: Of one of them, P(k) proportional to exp(-abs(k) * grid / scale).
        weights: Pairs (how many, weight).
        grid: The step of the numbers.
        roundings: How many times something was rounded to it.
    """

    scale: float
    weights: tuple[tuple[float, float], ...]
    grid: float
    roundings: int = 1

    @property
    def std(self) -> float:
        """Square root of the sum of variances."""
        rest = -math.expm1(-self.grid / self.scale)  # 1 - exp(-grid / scale)
        one = 2.0 * (1.0 - rest) * (self.grid / rest) ** 2
        return math.sqrt(one * sum(count * weight**2 for count, weight in self.weights))

    def bound(self, failure: float) -> float:
        """Chernoff's bound at its best exponent."""
        from scipy.optimize import minimize_scalar

        budget = math.log(2.0 / failure)
        limit = 1.0 / (self.scale * max(abs(weight) for _, weight in self.weights))

        def at(share: float) -> float:
            return (self._log_mgf(share * limit) + budget) / (share * limit)

        found = minimize_scalar(at, bounds=(1e-6, 1.0 - 1e-9), method="bounded")
        return float(found.fun) + self.roundings * self.grid / 2.0

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
        """So many times as many terms."""
        weights = tuple((terms * count, weight) for count, weight in self.weights)
        return LaplaceError(self.scale, weights, self.grid, terms * self.roundings)

    def scaled(self, factor: float) -> ErrorLaw:
        """A wider law on a wider grid."""
        return LaplaceError(self.scale * factor, self.weights, self.grid * factor, self.roundings)


@dataclass(frozen=True, slots=True)
class BoundedError(ErrorLaw):
    """A sum of independent, bounded, centred terms, one for each user."""

    variance: float  # of the sum, from noise
    largest: float  # that one term can be
    data_variance: float = 0.0  # of the sum, at most, from what depends on users' data

    @property
    def std(self) -> float:
        """Square root of the largest variance that there can be."""
        return math.sqrt(self.variance + self.data_variance)

    def bound(self, failure: float) -> float:
        """Bernstein's bound."""
        budget = math.log(2.0 / failure)
        half = self.largest * budget / 3.0
        return half + math.sqrt(half**2 + 2.0 * (self.variance + self.data_variance) * budget)

    def summed(self, terms: int) -> ErrorLaw:
        """At worst all terms of one user are large together; variances add."""
        return BoundedError(self.variance * terms, self.largest * terms, self.data_variance * terms)

    def scaled(self, factor: float) -> ErrorLaw:
        """The same law, wider."""
        return BoundedError(self.variance * factor**2, self.largest * factor, self.data_variance * factor**2)


@dataclass(frozen=True, slots=True)
class CombinedError(ErrorLaw):
    """Two independent errors on top of each other."""

    first: ErrorLaw
    second: ErrorLaw

    @classmethod
    def of(cls, first: ErrorLaw, second: ErrorLaw) -> ErrorLaw:
        """Both, or the only one that is not zero."""
        if isinstance(second, NoError):
            return first
        return second if isinstance(first, NoError) else cls(first, second)

    @property
    def std(self) -> float:
        """Variances add."""
        return math.hypot(self.first.std, self.second.std)

    def bound(self, failure: float) -> float:
        """Each fails half as often."""
        return self.first.bound(failure / 2.0) + self.second.bound(failure / 2.0)

    def summed(self, terms: int) -> ErrorLaw:
        """Sum by sum."""
        return CombinedError(self.first.summed(terms), self.second.summed(terms))

    def scaled(self, factor: float) -> ErrorLaw:
        """Both wider."""
        return CombinedError(self.first.scaled(factor), self.second.scaled(factor))
