"""Guarantees of boundaries and of stacks of them.

* ``TrustModel``, ``Neighbours``, ``Covers`` - the kinds of guarantee
* ``Guarantee`` - a guarantee with its numbers
* ``weakest`` - the one that promises least
* ``Ledger`` - the guarantees of a stack, from the innermost boundary to the outermost
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from private_rl_gym.privacy.composition import ApproximateDP, Event, Gaussian, PureDP, compose, renyi_divergence

__all__ = ["Covers", "Guarantee", "Ledger", "Neighbours", "TrustModel", "plain_number", "weakest"]


class _Word(str, Enum):
    """An enumeration of strings that print as their values."""

    def __str__(self) -> str:
        return str(self.value)


class TrustModel(_Word):
    """The party that users have to trust; in this order, from the least trust that is needed to the most.

    Attributes:
        full_name: Its name in full.
        view: The view that its promise is about, as the beginning of a sentence.
    """

    full_name: str
    view: str

    LDP = "LDP", "local differential privacy", "What leaves her side"
    SDP = "SDP", "shuffle differential privacy", "What the shuffler passes on"
    JDP = "JDP", "joint differential privacy", "What all other users together see"
    NONE = "none", "no privacy", "Everything"

    def __new__(cls, value: str, full_name: str, view: str) -> TrustModel:
        """A member that is equal to its value."""
        self = str.__new__(cls, value)
        self._value_, self.full_name, self.view = value, full_name, view
        return self


class Neighbours(_Word):
    """The sequences of users between which a promise holds."""

    REPLACE_ONE = "replace one user"
    SAME_START = "replace one user by one with the same start"
    ZERO_OUT = "add or remove one user's data in her place"


class Covers(_Word):
    """The data of a user that a promise protects."""

    EVERYTHING = "states, actions and rewards"
    ANSWERS = "states and rewards"
    REWARDS = "rewards"


LARGE_EPSILON = 10.0
"""Epsilon above which a guarantee has a warning: odds may change by a factor of more than twenty thousand."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The promise of a boundary, or of an agent that protects users by its own noise.

    Attributes:
        model: The party that users have to trust.
        epsilon: Infinite where nothing is promised.
        delta: Zero for pure differential privacy.
        users: The number of users for whom it holds; None for any number.
        mechanism: A description of the mechanism that keeps it, for readers.
        neighbours: The sequences of users between which it holds.
        covers: The data of a user that it protects.
        notes: Remarks that weaken or qualify it, for readers.
        seeded: Whether anyone who knows a seed can draw the noise again, so that it protects nobody in practice.
        mu: For Gaussian noise, sensitivity over sigma, which composes better than epsilon; else None.
        visits: The number of episodes, in different batches, that one user may be in; ``users`` then counts episodes.
    """

    model: TrustModel
    epsilon: float
    delta: float
    users: int | None
    mechanism: str
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    covers: Covers = Covers.EVERYTHING
    notes: tuple[str, ...] = ()
    seeded: bool = False
    mu: float | None = None
    visits: int = 1

    @property
    def event(self) -> Event:
        """The privacy cost to a user, as an event that ``compose`` understands."""
        if self.mu is not None:
            return Gaussian(self.mu)
        return ApproximateDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    def rho(self) -> float | None:
        """Rho of zero-concentrated privacy, which adds up where budgets compose; None where there is none.

        Gaussian noise has mu^2 / 2, a pure budget at most epsilon^2 / 2. Proof: docs/proofs/composition.md.
        """
        if self.mu is not None:
            return self.mu**2 / 2.0
        return self.epsilon**2 / 2.0 if self.delta == 0.0 and math.isfinite(self.epsilon) else None

    def renyi(self, order: float) -> float | None:
        """The Renyi divergence of this order at most, which adds up where budgets compose; None where there is none.

        Example:
            >>> Guarantee(TrustModel.JDP, 1.0, 1e-6, 100, "noise", mu=0.25).renyi(2.0)
            0.0625
        """
        if not order > 1.0:
            raise ValueError(f"order is {order}: Renyi divergences of privacy have an order above 1.")
        return renyi_divergence(self.event, order) if self.rho is not None else None

    @property
    def advantage(self) -> float:
        """Largest advantage over chance in telling her from another user: 0 for none, 1 for certainty."""
        return self.delta + (1.0 - self.delta) * math.tanh(self.epsilon / 2.0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons why it may promise less than it seems to."""
        reasons = []
        if math.isfinite(self.epsilon) and self.epsilon > LARGE_EPSILON:
            reasons.append(f"epsilon is above {LARGE_EPSILON:g}: odds that may change so much protect next to nobody")
        return (*reasons, *self.warnings_of_delta)

    @property
    def warnings_of_delta(self) -> tuple[str, ...]:
        """The reason why its delta may promise less than it seems to, if there is one."""
        if self.model is TrustModel.NONE or not self._loose:
            return ()
        who = "delta is 0.001 or more" if self.users is None else f"delta is above 1 / {self.users} users"
        return (f"{who}: publishing somebody whole, now and then, would keep such a promise",)

    @property
    def _loose(self) -> bool:
        """Whether delta is so large that publishing the data of some users would keep the promise."""
        return self.delta * (1000 if self.users is None else self.users) > 1.0

    @property
    def _who(self) -> str:
        """The users, or the episodes, for whom it holds."""
        if self.visits == 1:
            return "any number of users" if self.users is None else f"{self.users} users"
        return "any number of episodes" if self.users is None else f"{self.users} episodes"

    @property
    def _other(self) -> str:
        """Whoever she is compared with."""
        return "nobody" if self.neighbours is Neighbours.ZERO_OUT else "another user"

    @property
    def _relation(self) -> str:
        """The neighbours, with the number of episodes of a user."""
        again = "" if self.visits == 1 else f", who is in at most {self.visits} episodes"
        return f"{self.neighbours}{again}"

    @property
    def _remarks(self) -> tuple[str, ...]:
        return (*self.notes, "seeded noise: for experiments") if self.seeded else self.notes

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as values that JSON can hold; an infinite epsilon is None."""
        return {
            "model": str(self.model),
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "delta": self.delta,
            "users": self.users,
            "mechanism": self.mechanism,
            "neighbours": str(self.neighbours),
            "covers": str(self.covers),
            "notes": list(self.notes),
            "seeded": self.seeded,
            "mu": self.mu,
            "rho": self.rho,
            "visits": self.visits,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Guarantee:
        """The guarantee that ``to_dict`` wrote. Raises ValueError if these are not its values.

        Example:
            >>> promise = Guarantee(TrustModel.JDP, 0.5, 0.0, 100, "a tree")
            >>> Guarantee.from_dict(promise.to_dict()) == promise
            True
        """
        values = dict(plain)
        found: dict[str, Any] = {}
        if values.keys() == _KINDS.keys() and all(isinstance(values[name], kind) for name, kind in _KINDS.items()):
            words = {str(word): word for kind in (TrustModel, Neighbours, Covers) for word in kind}
            epsilon = math.inf if values["epsilon"] is None else values["epsilon"]
            found = {**values, "epsilon": epsilon, "notes": tuple(values["notes"])}
            found |= {name: words.get(values[name]) for name in ("model", "neighbours", "covers")}
            del found["rho"]  # which follows from mu, or from epsilon
        if found.get("model") is not None and found["epsilon"] >= 0.0 and 0.0 <= found["delta"] <= 1.0:
            guarantee = cls(**found)
            if guarantee.to_dict() == values and all(isinstance(note, str) for note in guarantee.notes):
                return guarantee
        raise ValueError("These are not the values of a guarantee, as to_dict writes them.")

    def sentence(self) -> str:
        """The guarantee in full sentences, with notes and warnings."""
        if self.model is TrustModel.NONE:
            return f"No privacy is promised (epsilon = inf): {self.mechanism}."
        who = self._who if self.visits == 1 else f"the users in {self._who}"
        chance = f", but for a chance of {plain_number(self.delta)}" if self.delta else ""
        notes = f" Note: {'; '.join(self._remarks)}." if self._remarks else ""
        beware = "".join(f" Warning: {warning}." for warning in self.warnings)
        return (
            f"Each of {who} has ({plain_number(self.epsilon)}, {plain_number(self.delta)})-{self.model.full_name}, "
            f"compared with "
            f"{self._other} in her place ({self._relation}); it covers her {self.covers}, over everything that is "
            f"released, for ever. {self.model.view} changes the odds of anything that is said about her by a factor of "
            f"{_odds(self.epsilon)} at most{chance}. Mechanism: {self.mechanism}.{notes}{beware}"
        )

    def __str__(self) -> str:
        if self.model is TrustModel.NONE:
            return "no privacy (epsilon = inf)"
        notes = "".join(f"; {note}" for note in self._remarks)
        budget = f"({plain_number(self.epsilon)}, {plain_number(self.delta)})"
        return f"{budget}-{self.model}, {self._relation}, {self._who}{notes}"


_KINDS: dict[str, Any] = {
    "model": str,
    "epsilon": float | int | None,
    "delta": float | int,
    "users": int | None,
    "mechanism": str,
    "neighbours": str,
    "covers": str,
    "notes": list,
    "seeded": bool,
    "mu": float | None,
    "rho": float | None,
    "visits": int,
}
"""The values of a guarantee in JSON."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The promises of a stack of boundaries, from the innermost to the outermost.

    All of them hold at once for the outermost release: it is computed from the releases of inner boundaries, and
    post-processing keeps their guarantees (docs/proofs/post-processing.md).
    """

    entries: tuple[Guarantee, ...]

    @property
    def outside(self) -> Guarantee:
        """The strongest promise for the outermost release.

        Promises with seeded noise count only if there are no others, and so do promises whose delta is too large. Of
        the rest, the strongest is the one with the least ``advantage``.
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

    def compose(self, *others: Ledger, delta: float = 0.0) -> Guarantee:
        """The promise to users who take part in other stacks too: the strongest promises of all stacks, composed.

        Args:
            others: The ledgers of the other stacks.
            delta: The delta that may be spent in all; pure budgets need none.

        Example:
            >>> ledger = Ledger((Guarantee(TrustModel.JDP, 0.5, 0.0, 100, "a tree"),))
            >>> print(ledger.compose(ledger))
            (1.0, 0)-JDP, replace one user, 100 users
        """
        entries = [self.outside, *(ledger.outside for ledger in others)]
        if {entry.neighbours for entry in entries} >= {Neighbours.SAME_START, Neighbours.ZERO_OUT}:
            raise ValueError(
                f"One promise is for '{Neighbours.SAME_START}', another for '{Neighbours.ZERO_OUT}': neither "
                "covers the other's neighbours, so they do not compose. Build the boundaries with one relation."
            )
        if not all(math.isfinite(entry.epsilon) for entry in entries):
            return min(entries, key=lambda entry: -entry.epsilon)
        epsilon, spent = compose([entry.event for entry in entries], delta)
        return replace(
            self.outside,
            model=_weakest(entry.model for entry in entries),
            epsilon=epsilon,
            delta=spent,
            users=min((entry.users for entry in entries if entry.users is not None), default=None),
            mechanism="; ".join(dict.fromkeys(entry.mechanism for entry in entries)),
            neighbours=_either(entries, "neighbours", Neighbours.ZERO_OUT, Neighbours.SAME_START),
            covers=_either(entries, "covers", Covers.REWARDS, Covers.ANSWERS),
            notes=tuple(dict.fromkeys(note for entry in entries for note in entry.notes)),
            seeded=any(entry.seeded for entry in entries),
            mu=math.hypot(*(entry.mu or 0.0 for entry in entries)) if all(entry.mu for entry in entries) else None,
            visits=min(entry.visits for entry in entries),  # nobody promised more to who comes more often
        )

    def to_dict(self) -> dict[str, Any]:
        """The ledger as values that JSON can hold."""
        return {"entries": [entry.to_dict() for entry in self.entries], "outside": self.outside.to_dict()}

    def sentence(self) -> str:
        """All promises in full sentences, with notes and warnings."""
        return " ".join(entry.sentence() for entry in self.entries)

    def __str__(self) -> str:
        return "\n".join(str(entry) for entry in self.entries)


def weakest(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee that promises least, for what is computed from several groups of users."""
    return max(guarantees, key=_weakness)


def _weakest(models: Iterable[TrustModel]) -> TrustModel:
    """The model that needs the most trust."""
    return max(models, key=list(TrustModel).index)


def _either(entries: Iterable[Guarantee], field: str, *weaker: Any) -> Any:
    """The weaker value, if any entry has it; else that of the first entry."""
    words = [getattr(entry, field) for entry in entries]
    return next((word for word in weaker if word in words), words[0])


def _weakness(entry: Guarantee) -> tuple[Any, ...]:
    loose = entry.delta > 0.0 and entry._loose
    return not math.isfinite(entry.epsilon), entry.seeded, loose, entry.advantage, entry.epsilon, entry.delta


def _odds(epsilon: float) -> str:
    """e^epsilon, as readable text."""
    if epsilon > 30.0:
        return f"e^{plain_number(epsilon)}"
    factor = math.exp(epsilon)
    return f"{factor:,.0f}" if factor >= 100.0 else f"{factor:.3g}"


def plain_number(number: float) -> str:
    """A number as text with nine digits, without floating-point noise, rounded up so as not to promise more."""
    if number == 0.0:
        return "0"
    if not math.isfinite(number):
        return "inf"
    digits = 8 - math.floor(math.log10(number))
    nearest = round(number, digits)
    if nearest < number * (1.0 - 1e-12):
        nearest = round(nearest + 10.0**-digits, digits)
    return repr(nearest)
