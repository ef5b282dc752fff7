"""What a boundary promises, and what a stack of them promises.

* ``Guarantee`` - one promise
* ``Ledger`` - the promises of a stack, from the inside out
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Guarantee", "Ledger", "plain_number"]

_MODELS = {
    "JDP": ("joint differential privacy", "What all other users together see"),
    "LDP": ("local differential privacy", "What leaves her side"),
    "SDP": ("shuffle differential privacy", "What the shuffler passes on"),
}
"""What each is called, and what it speaks of."""

LARGE_EPSILON = 10.0
"""Beyond this odds may change more than twenty thousandfold."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a boundary promises.

    Attributes:
        model: ``"JDP"``, ``"LDP"``, ``"SDP"`` or ``"none"``.
        epsilon: Infinite where nothing is promised.
        delta: Zero for pure differential privacy.
        users: The number of users for whom it holds; None for any number.
        mechanism: What keeps it, in words.
        neighbours: Between which data sets it holds.
        covers: Which of a user's data it protects.
        notes: What weakens or qualifies it.
        seeded: Whether the noise can be drawn again by whoever knows a seed, so that nothing is promised in earnest.
    """

    model: str
    epsilon: float
    delta: float
    users: int | None
    mechanism: str
    neighbours: str = "replace one user"
    covers: str = "states and rewards"
    notes: tuple[str, ...] = ()
    seeded: bool = False

    @property
    def advantage(self) -> float:
        """How much more often than by chance she can be told from another at best: 0 for never, 1 for always."""
        return self.delta + (1.0 - self.delta) * math.tanh(self.epsilon / 2.0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why it may promise less than it seems to."""
        found = []
        if math.isfinite(self.epsilon) and self.epsilon > LARGE_EPSILON:
            found.append(f"epsilon is above {LARGE_EPSILON:g}: odds that may change so much protect next to nobody")
        if self.model != "none" and self._loose:
            who = "delta is 0.001 or more" if self.users is None else f"delta is above 1 / {self.users} users"
            found.append(f"{who}: publishing somebody whole, now and then, would keep such a promise")
        return tuple(found)

    @property
    def _loose(self) -> bool:
        """Whether delta is so large that the promise may be kept by giving users away."""
        return self.delta * (1000 if self.users is None else self.users) > 1.0

    @property
    def _remarks(self) -> tuple[str, ...]:
        return (*self.notes, "seeded noise: for experiments") if self.seeded else self.notes

    def to_dict(self) -> dict[str, Any]:
        """For machines: JSON has no infinity, so an infinite epsilon is None."""
        found = asdict(self)
        found["epsilon"] = self.epsilon if math.isfinite(self.epsilon) else None
        found["notes"] = list(self.notes)
        return found

    def sentence(self) -> str:
        """For lawyers."""
        if self.model == "none":
            return f"No privacy is promised (epsilon = inf): {self.mechanism}."
        who = "any number of users" if self.users is None else f"{self.users} users"
        name, seen = _MODELS[self.model]
        chance = f", but for a chance of {plain_number(self.delta)}" if self.delta else ""
        notes = f" Note: {'; '.join(self._remarks)}." if self._remarks else ""
        beware = "".join(f" Warning: {warning}." for warning in self.warnings)
        return (
            f"Each of {who} has ({plain_number(self.epsilon)}, {plain_number(self.delta)})-{name}, compared with "
            f"another user in her place ({self.neighbours}); it covers her {self.covers}, over everything that is "
            f"released, for ever. {seen} changes the odds of anything that is said about her by a factor of "
            f"{_odds(self.epsilon)} at most{chance}. Mechanism: {self.mechanism}.{notes}{beware}"
        )

    def __str__(self) -> str:
        if self.model == "none":
            return "no privacy (epsilon = inf)"
        who = "any number of users" if self.users is None else f"{self.users} users"
        notes = "".join(f"; {note}" for note in self._remarks)
        return (
            f"({plain_number(self.epsilon)}, {plain_number(self.delta)})-{self.model}, {self.neighbours}, {who}{notes}"
        )


@dataclass(frozen=True, slots=True)
class Ledger:
    """The promises of a stack of boundaries, from the inside out.

    All of them hold at once for what the outside sees: it is computed from what the inner boundaries passed on, and
    computing on a private release keeps its guarantee (docs/proofs/post-processing.md).
    """

    entries: tuple[Guarantee, ...]

    @property
    def outside(self) -> Guarantee:
        """The strongest promise that holds against whoever sees the outermost release.

        A promise whose noise can be drawn again counts only where there is no other, and one whose delta gives users
        away only where there is none that does not. Of the rest, the one under which she is told from others least.
        """
        return min(self.entries, key=_weakness)

    @property
    def epsilon(self) -> float:
        """Epsilon of the strongest promise."""
        return self.outside.epsilon

    @property
    def delta(self) -> float:
        """Delta of the strongest promise."""
        return self.outside.delta

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {"entries": [entry.to_dict() for entry in self.entries], "outside": self.outside.to_dict()}

    def sentence(self) -> str:
        """For lawyers."""
        return " ".join(entry.sentence() for entry in self.entries)

    def __str__(self) -> str:
        return "\n".join(str(entry) for entry in self.entries)


def _weakness(entry: Guarantee) -> tuple[Any, ...]:
    loose = entry.delta > 0.0 and entry._loose
    return not math.isfinite(entry.epsilon), entry.seeded, loose, entry.advantage, entry.epsilon, entry.delta


def _odds(epsilon: float) -> str:
    """e^epsilon, for people."""
    if epsilon > 30.0:
        return f"e^{plain_number(epsilon)}"
    factor = math.exp(epsilon)
    return f"{factor:,.0f}" if factor >= 100.0 else f"{factor:.3g}"


def plain_number(number: float) -> str:
    """A number without the noise of floating point: nine digits, rounded up so as to promise nothing more."""
    if number == 0.0:
        return "0"
    if not math.isfinite(number):
        return "inf"
    digits = 8 - math.floor(math.log10(number))
    nearest = round(number, digits)
    if nearest < number * (1.0 - 1e-12):
        nearest = round(nearest + 10.0**-digits, digits)
    return repr(nearest)
