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
    "JDP": "joint differential privacy: what all other users together see tells nearly nothing about her",
    "LDP": "local differential privacy: what leaves her side tells nearly nothing about her",
    "SDP": "shuffle differential privacy: what the shuffler passes on tells nearly nothing about her",
    "none": "no privacy",
}


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
    """

    model: str
    epsilon: float
    delta: float
    users: int | None
    mechanism: str
    neighbours: str = "replace one user"
    covers: str = "states and rewards"
    notes: tuple[str, ...] = ()

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
        notes = f" Note: {'; '.join(self.notes)}." if self.notes else ""
        return (
            f"Each of {who} has ({plain_number(self.epsilon)}, {plain_number(self.delta)})-{_MODELS[self.model]}, "
            f"compared with another user in her place ({self.neighbours}); it covers her {self.covers}, over "
            f"everything that is released, for ever. Mechanism: {self.mechanism}.{notes}"
        )

    def __str__(self) -> str:
        if self.model == "none":
            return "no privacy (epsilon = inf)"
        who = "any number of users" if self.users is None else f"{self.users} users"
        notes = "".join(f"; {note}" for note in self.notes)
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
        """The strongest promise that holds against whoever sees the outermost release."""
        return min(self.entries, key=lambda entry: (entry.epsilon, entry.delta))

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
