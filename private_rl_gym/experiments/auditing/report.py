"""What an audit found, and what follows from it."""

from __future__ import annotations

import math
import platform
from dataclasses import dataclass, replace
from typing import Any

import private_rl_gym
from private_rl_gym.experiments.auditing.plan import Plan
from private_rl_gym.privacy.audit.judging import Finding
from private_rl_gym.privacy.guarantee import Guarantee

__all__ = ["Report", "Result"]


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What one attack found.

    Attributes:
        kind: Which attack.
        said: The same, for readers.
        users: How many came.
        promise: What it was held against.
        epsilon: A bound from below, whatever the law of the noise.
        gaussian: One for Gaussian noise, where noise is said to be that; else None.
        finding: All that was judged; None for a single run.
        detail: A sentence.
    """

    kind: str
    said: str
    users: int
    promise: Guarantee
    epsilon: float
    gaussian: float | None
    finding: Finding | None
    detail: str

    @property
    def bound(self) -> float:
        """The better of both; where the one that trusts nothing is above the claim already, that."""
        return self.epsilon if self._above(self.epsilon) else max(self.epsilon, self.gaussian or 0.0)

    @property
    def proved(self) -> bool:
        """Whether the bound trusts no law."""
        return self.bound == self.epsilon

    @property
    def broken(self) -> bool:
        """Whether more was proved than was promised."""
        return self._above(self.bound)

    @property
    def share(self) -> float:
        """The bound over the claim; the bound itself where nothing is claimed."""
        return self.bound / self.promise.epsilon if math.isfinite(self.promise.epsilon) else self.bound * 1e-9

    def _above(self, epsilon: float) -> bool:
        return epsilon > self.promise.epsilon * (1.0 + 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "attack": self.kind,
            "users": self.users,
            "claim": self.promise.epsilon,
            "bound": self.bound,
            "any_law": self.epsilon,
            "gaussian": self.gaussian,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """An audit's outcome.

    Attributes:
        plan: What was audited.
        results: One for each attack, each held against what is claimed of what it saw.
        seconds: How long it took.
    """

    plan: Plan
    results: tuple[Result, ...]
    seconds: float

    @property
    def worst(self) -> Result:
        """The result whose bound is the largest share of its claim; one that trusts nothing goes before."""
        return max(self.results, key=lambda result: (result.broken and result.proved, result.share))

    @property
    def claim(self) -> Guarantee:
        """What is promised, by the result that matters most; that noise is seeded is the audit's own doing."""
        promise = self.worst.promise
        same = [found.promise for found in self.results if found.promise.epsilon == promise.epsilon]
        promise = max(same, key=lambda found: math.inf if found.users is None else found.users)  # the longest stream
        return replace(promise, notes=tuple(note for note in promise.notes if not note.startswith("seeded noise")))

    @property
    def bound(self) -> float:
        """The bound on epsilon from below that is the largest share of its claim."""
        return self.worst.bound

    @property
    def broken(self) -> bool:
        """Whether more was proved than was promised."""
        return self.worst.broken

    @property
    def verdict(self) -> str:
        """A sentence."""
        worst, confidence = self.worst, f"with {self.plan.confidence:.0%} confidence"
        epsilon = f"{worst.promise.epsilon:.4g}"
        if not math.isfinite(worst.promise.epsilon):
            return f"Nothing is promised; {confidence}, epsilon is at least {worst.bound:.3f}."
        if worst.broken and worst.proved:
            at = f"at delta = {worst.promise.delta:g}"
            return f"BROKEN: {confidence}, epsilon is at least {worst.bound:.3f} {at}, and {epsilon} is claimed."
        if worst.broken:
            return (
                f"BROKEN: {confidence}, the noise is less than stated: as Gaussian noise it keeps epsilon = "
                f"{worst.bound:.3f} at best, and {epsilon} is claimed."
            )
        trusting = "" if worst.proved else ", if its noise is Gaussian as it says"
        return f"Not broken: {confidence}, epsilon is at least {worst.bound:.3f}{trusting}, and {epsilon} is claimed."

    def to_dict(self) -> dict[str, Any]:
        """For machines: configuration, claim, bounds, verdict, versions."""
        return {
            "config": self.plan.to_dict(),
            "claim": self.claim.to_dict(),
            "bound": self.bound,
            "broken": self.broken,
            "verdict": self.verdict,
            "attacks": [result.to_dict() for result in self.results],
            "seconds": round(self.seconds, 1),
            "versions": {"private_rl_gym": private_rl_gym.__version__, "python": platform.python_version()},
        }
