"""The outcome of an audit, and the verdict that follows from it."""

from __future__ import annotations

import math
import platform
from dataclasses import dataclass, replace
from typing import Any

import private_rl_gym
from private_rl_gym.lab.audits.config import AuditConfig
from private_rl_gym.lab.audits.coverage import Coverage
from private_rl_gym.privacy.accounting.guarantee import Guarantee
from private_rl_gym.privacy.audit.judging import Judgement

__all__ = ["Report", "Result"]


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The outcome of one attack.

    Attributes:
        kind: Name of the attack, of ``ATTACKS``.
        title: Name of the attack for readers.
        users: Number of users.
        claim: The guarantee that the bound was held against.
        epsilon: A lower bound that holds for any distribution of the noise.
        gaussian: A lower bound for Gaussian noise, if the noise is stated to be Gaussian; else None.
        finding: All details of the judgement; None for a single run.
        detail: The evidence, as a sentence.
    """

    kind: str
    title: str
    users: int
    claim: Guarantee
    epsilon: float
    gaussian: float | None
    finding: Judgement | None
    detail: str

    @property
    def bound(self) -> float:
        """The larger of both bounds, unless ``epsilon`` is already above the claim.

        In that case it is ``epsilon``, which holds for any distribution of the noise.
        """
        return self.epsilon if self._above(self.epsilon) else max(self.epsilon, self.gaussian or 0.0)

    @property
    def proved(self) -> bool:
        """Whether the bound holds for any distribution of the noise."""
        return self.bound == self.epsilon

    @property
    def broken(self) -> bool:
        """Whether the bound is above the claim."""
        return self._above(self.bound)

    @property
    def share(self) -> float:
        """The bound divided by the claim.

        It is a tiny multiple of the bound if nothing is claimed.
        """
        return self.bound / self.claim.epsilon if math.isfinite(self.claim.epsilon) else self.bound * 1e-9

    def _above(self, epsilon: float) -> bool:
        return epsilon > self.claim.epsilon * (1.0 + 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary, for JSON."""
        return {
            "attack": self.kind,
            "users": self.users,
            "claim": self.claim.epsilon,
            "bound": self.bound,
            "any_law": self.epsilon,
            "gaussian": self.gaussian,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The outcome of an audit.

    Attributes:
        config: The stack and the attacks.
        results: One for each attack, each held against the claim about what the attack saw.
        seconds: Duration of the audit.
        coverage: The mechanism, the users and the releases that were seen.
    """

    config: AuditConfig
    results: tuple[Result, ...]
    seconds: float
    coverage: Coverage

    @property
    def worst(self) -> Result:
        """The result whose bound is the largest share of its claim.

        Claims that a bound for any distribution has broken come first.
        """
        return max(self.results, key=lambda result: (result.broken and result.proved, result.share))

    @property
    def claim(self) -> Guarantee:
        """The claim of the worst result, in its longest stream.

        It is not marked as seeded, because only the audit sets seeds.
        """
        epsilon = self.worst.claim.epsilon
        same = [result.claim for result in self.results if result.claim.epsilon == epsilon]
        longest = max(same, key=lambda claim: math.inf if claim.users is None else claim.users)
        return replace(longest, seeded=False)

    @property
    def bound(self) -> float:
        """The lower bound on epsilon that is the largest share of its claim."""
        return self.worst.bound

    @property
    def broken(self) -> bool:
        """Whether the bound is above the claim."""
        return self.worst.broken

    @property
    def verdict(self) -> str:
        """The verdict as a sentence."""
        worst, confidence = self.worst, f"with {self.config.confidence:.0%} confidence"
        epsilon = f"{worst.claim.epsilon:.4g}"
        if not math.isfinite(worst.claim.epsilon):
            return f"There is no guarantee; {confidence}, epsilon is at least {worst.bound:.3f}."
        if worst.broken and worst.proved:
            at = f"at delta = {worst.claim.delta:g}"
            return f"BROKEN: {confidence}, epsilon is at least {worst.bound:.3f} {at}, and {epsilon} is claimed."
        if worst.broken:
            return (
                f"BROKEN: {confidence}, the noise is less than stated: as Gaussian noise it keeps epsilon = "
                f"{worst.bound:.3f} at best, and {epsilon} is claimed."
            )
        trusting = "" if worst.proved else ", if its noise is Gaussian as it says"
        tried = "this attack shows" if len(self.results) == 1 else f"these {len(self.results)} attacks show"
        return (
            f"Nothing found (which is no proof): {confidence}, {tried} epsilon >= {worst.bound:.3f} at delta = "
            f"{worst.claim.delta:g}{trusting}, of {worst.claim.mechanism}; {epsilon} is claimed."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration, claim, bounds, verdict and versions as a dictionary, for JSON."""
        return {
            "config": self.config.to_dict(),
            "claim": self.claim.to_dict(),
            "scene": self.coverage.to_dict(),
            "bound": self.bound,
            "broken": self.broken,
            "verdict": self.verdict,
            "attacks": [result.to_dict() for result in self.results],
            "seconds": round(self.seconds, 1),
            "versions": {"private_rl_gym": private_rl_gym.__version__, "python": platform.python_version()},
        }
