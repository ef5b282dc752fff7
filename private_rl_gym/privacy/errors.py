"""How far a released sum may be off: standard deviations and tail bounds of the noise that it carries.

Proof: docs/proofs/error-bounds.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

__all__ = ["BoundedError", "CombinedError", "ErrorLaw", "GaussianError", "LaplaceError", "NoError", "pack", "unpack"]


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

    def since(self, earlier: ErrorLaw) -> ErrorLaw:
        """The error of what was added to a sum after ``earlier``: at worst both errors, on top of each other."""
        return CombinedError.of(self, earlier)


def pack(law: ErrorLaw) -> dict[str, Any]:
    """An error law as JSON can hold it."""
    fields = {name: getattr(law, name) for name in law.__dataclass_fields__}  # type: ignore[attr-defined]
    return {"law": type(law).__name__} | {k: pack(v) if isinstance(v, ErrorLaw) else v for k, v in fields.items()}


def unpack(packed: dict[str, Any]) -> ErrorLaw:
    """What ``pack`` made, as it was."""
    kinds = {kind.__name__: kind for kind in (NoError, GaussianError, LaplaceError, BoundedError, CombinedError)}
    fields: dict[str, Any] = {
        name: unpack(v) if isinstance(v, dict) else v for name, v in packed.items() if name != "law"
    }
    if "weights" in fields:
        fields["weights"] = tuple((float(count), float(weight)) for count, weight in fields["weights"])
    law: ErrorLaw = kinds[packed["law"]](**fields)
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

    def since(self, earlier: ErrorLaw) -> ErrorLaw:
        """Still exact."""
        return earlier


@dataclass(frozen=True, slots=True)
class GaussianError(ErrorLaw):
    """A Gaussian, rounded to a grid.

    Attributes:
        std: Its standard deviation.
        grid: The step of the numbers.
        apart: Whether it is a sum of independent noises, one for each batch or user.
    """

    std: float
    grid: float = 0.0
    apart: bool = False

    def bound(self, failure: float) -> float:
        """The exact quantile, and half a step of the grid."""
        from scipy.special import ndtri

        return -self.std * float(ndtri(failure / 2.0)) + self.grid / 2.0

    def summed(self, terms: int) -> ErrorLaw:
        """Variances add, and so do roundings, at worst."""
        return GaussianError(self.std * math.sqrt(terms), self.grid * terms, self.apart)

    def scaled(self, factor: float) -> ErrorLaw:
        """A wider Gaussian on a wider grid."""
        return GaussianError(self.std * factor, self.grid * factor, self.apart)

    def since(self, earlier: ErrorLaw) -> ErrorLaw:
        """The noises that were added, where they are apart; both roundings stay."""
        if not (self.apart and isinstance(earlier, GaussianError)):
            return ErrorLaw.since(self, earlier)
        return GaussianError(math.sqrt(max(0.0, self.std**2 - earlier.std**2)), self.grid + earlier.grid, apart=True)


@dataclass(frozen=True, slots=True)
class LaplaceError(ErrorLaw):
    """A weighted sum of independent two-sided geometrics of one scale.

    Attributes:
        scale: Of one of them, P(k) proportional to exp(-abs(k) * grid / scale).
        weights: Pairs (how many, weight).
        grid: The step of the numbers.
        roundings: How many times something was rounded to it.
        apart: Whether the terms are of batches or users, one after the other.
    """

    scale: float
    weights: tuple[tuple[float, float], ...]
    grid: float
    roundings: int = 1
    apart: bool = False

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
        return LaplaceError(self.scale, weights, self.grid, terms * self.roundings, self.apart)

    def scaled(self, factor: float) -> ErrorLaw:
        """A wider law on a wider grid."""
        return LaplaceError(self.scale * factor, self.weights, self.grid * factor, self.roundings, self.apart)

    def since(self, earlier: ErrorLaw) -> ErrorLaw:
        """The terms that were added, where they are apart."""
        if isinstance(earlier, NoError):
            return self
        if not (self.apart and isinstance(earlier, LaplaceError) and earlier.apart):
            return ErrorLaw.since(self, earlier)
        (count, weight), (before, _) = self.weights[0], earlier.weights[0]
        return LaplaceError(self.scale, ((max(count - before, 1.0), weight),), self.grid, self.roundings, apart=True)


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

    def since(self, earlier: ErrorLaw) -> ErrorLaw:
        """The terms that were added: each is of one user, and independent of all before."""
        if isinstance(earlier, NoError):
            return self
        if not isinstance(earlier, BoundedError):
            return ErrorLaw.since(self, earlier)
        added = max(0.0, self.variance - earlier.variance)
        return BoundedError(added, self.largest, max(0.0, self.data_variance - earlier.data_variance))


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

    def since(self, earlier: ErrorLaw) -> ErrorLaw:
        """Part by part, if the earlier error has the same parts."""
        if not isinstance(earlier, CombinedError):
            return ErrorLaw.since(self, earlier)
        return CombinedError.of(self.first.since(earlier.first), self.second.since(earlier.second))
