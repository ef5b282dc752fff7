"""Guarantees of boundaries.

* ``TrustModel``, ``Neighbours``, ``Covers`` - the kinds of guarantee
* ``Guarantee`` - a guarantee with its numbers
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from private_rl_gym.privacy.accounting.composition import ApproximateDP, Event, GaussianEvent, PureDP, renyi_divergence

__all__ = ["Covers", "Guarantee", "Neighbours", "TrustModel", "plain_number"]


class _Word(str, Enum):
    """An enumeration of strings that print as their values."""

    def __str__(self) -> str:
        return str(self.value)


class TrustModel(_Word):
    """The party that users have to trust.

    The order is from the least trust that is needed to the most.

    Attributes:
        full_name: Its name in full.
        view: The view that its guarantee is about, as the beginning of a sentence.
    """

    full_name: str
    view: str

    LDP = "LDP", "local differential privacy", "What leaves the user's side"
    SDP = "SDP", "shuffle differential privacy", "What the shuffler passes on"
    JDP = "JDP", "joint differential privacy", "What all other users together see"
    NONE = "none", "no privacy", "Everything"

    def __new__(cls, value: str, full_name: str, view: str) -> TrustModel:
        """Return a value that is equal to its value."""
        self = str.__new__(cls, value)
        self._value_, self.full_name, self.view = value, full_name, view
        return self


class Neighbours(_Word):
    """The sequences of users between which a guarantee holds."""

    REPLACE_ONE = "replace one user"
    SAME_START = "replace one user by one with the same start"
    ZERO_OUT = "add or remove one user's data in her place"


class Covers(_Word):
    """The data of a user that a guarantee protects."""

    EVERYTHING = "states, actions and rewards"
    ANSWERS = "states and rewards"
    REWARDS = "rewards"


LARGE_EPSILON = 10.0
"""Epsilon above which a guarantee has a warning: odds may change by a factor of more than twenty thousand."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The guarantee of a boundary, or of an agent that adds noise itself.

    Attributes:
        model: The party that users have to trust.
        epsilon: Infinite where there is no privacy.
        delta: Zero for pure differential privacy.
        users: The number of users for whom it holds; None for any number.
        mechanism: A description of the mechanism that keeps it, for readers.
        neighbours: The sequences of users between which it holds.
        covers: The data of a user that it protects.
        notes: Remarks that weaken or qualify it, for readers.
        seeded: Whether anyone who knows a seed can draw the noise again, so that it protects no user in practice.
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
            return GaussianEvent(self.mu)
        return ApproximateDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    def rho(self) -> float | None:
        """Rho of zero-concentrated differential privacy; None if there is no such guarantee.

        Where budgets compose, rho adds up. Gaussian noise has mu^2 / 2, a pure budget at most epsilon^2 / 2. Proof:
        docs/proofs/composition.md.
        """
        if self.mu is not None:
            return self.mu**2 / 2.0
        return self.epsilon**2 / 2.0 if self.delta == 0.0 and math.isfinite(self.epsilon) else None

    def renyi(self, order: float) -> float | None:
        """Return the largest Renyi divergence of this order; None if there is no bound.

        Where budgets compose, divergences of one order add up.

        Example:
            >>> Guarantee(TrustModel.JDP, 1.0, 1e-6, 100, "noise", mu=0.25).renyi(2.0)
            0.0625
        """
        if not order > 1.0:
            raise ValueError(f"order is {order}: Renyi divergences of privacy have an order above 1.")
        return renyi_divergence(self.event, order) if self.rho is not None else None

    @property
    def advantage(self) -> float:
        """Largest advantage over chance in telling one user from another.

        It is 0 for no advantage, and 1 for certainty.
        """
        return self.delta + (1.0 - self.delta) * math.tanh(self.epsilon / 2.0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons why the guarantee may protect less than it seems to."""
        reasons = []
        if math.isfinite(self.epsilon) and self.epsilon > LARGE_EPSILON:
            reasons.append(f"epsilon is above {LARGE_EPSILON:g}: this protects very little")
        return (*reasons, *self.warnings_of_delta)

    @property
    def warnings_of_delta(self) -> tuple[str, ...]:
        """The reason why delta may protect less than it seems to.

        It is empty if there is none.
        """
        if self.model is TrustModel.NONE or not self._loose:
            return ()
        who = "delta is 0.001 or more" if self.users is None else f"delta is above 1 / {self.users} users"
        return (f"{who}, which would allow publishing all data of some user",)

    @property
    def _loose(self) -> bool:
        """Whether delta is too large for this number of users.

        Then a mechanism that publishes the data of some users could keep the guarantee.
        """
        return self.delta * (1000 if self.users is None else self.users) > 1.0

    @property
    def _who(self) -> str:
        """The users, or the episodes, that have the guarantee."""
        if self.visits == 1:
            return "any number of users" if self.users is None else f"{self.users} users"
        return "any number of episodes" if self.users is None else f"{self.users} episodes"

    @property
    def _other(self) -> str:
        """The user that each user is compared with."""
        return "no user" if self.neighbours is Neighbours.ZERO_OUT else "another user"

    @property
    def _relation(self) -> str:
        """The neighbouring relation, with the number of episodes of a user."""
        again = "" if self.visits == 1 else f", who is in at most {self.visits} episodes"
        return f"{self.neighbours}{again}"

    @property
    def _remarks(self) -> tuple[str, ...]:
        return (*self.notes, "seeded noise: for experiments") if self.seeded else self.notes

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as values that JSON can hold; an infinite epsilon is None."""
        plain = {name: getattr(self, name) for name in _KINDS}
        plain |= {name: str(plain[name]) for name in ("model", "neighbours", "covers")}
        return plain | {"epsilon": self.epsilon if math.isfinite(self.epsilon) else None, "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Guarantee:
        """Return the guarantee that ``to_dict`` wrote.

        Raise ValueError if these are not the values of a guarantee.

        Example:
            >>> guarantee = Guarantee(TrustModel.JDP, 0.5, 0.0, 100, "a tree")
            >>> Guarantee.from_dict(guarantee.to_dict()) == guarantee
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
        """Return the guarantee in full sentences, with notes and warnings."""
        if self.model is TrustModel.NONE:
            return f"No privacy is guaranteed (epsilon = inf): {self.mechanism}."
        many = self._who if self.visits == 1 else f"the users in {self._who}"
        who = "Each user" if self.users is None else f"Each of {many}"
        chance = f", except with probability {plain_number(self.delta)}" if self.delta else ""
        notes = f" Note: {'; '.join(self._remarks)}." if self._remarks else ""
        beware = "".join(f" Warning: {warning}." for warning in self.warnings)
        return (
            f"{who} has ({plain_number(self.epsilon)}, {plain_number(self.delta)})-{self.model.full_name}, "
            f"compared with {self._other} in their place ({self._relation}). It covers their {self.covers}, in "
            f"everything that is released, for ever. {self.model.view} is at most {_odds(self.epsilon)} times "
            f"as likely as with {self._other} in their place{chance}. Mechanism: {self.mechanism}.{notes}{beware}"
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


def _odds(epsilon: float) -> str:
    """Return e^epsilon as readable text."""
    if epsilon > 30.0:
        return f"e^{plain_number(epsilon)}"
    factor = math.exp(epsilon)
    return f"{factor:,.0f}" if factor >= 100.0 else f"{factor:.3g}"


def plain_number(number: float) -> str:
    """Return a number as text with nine digits, rounded up.

    So the text never states less than the number.
    """
    if number == 0.0:
        return "0"
    if not math.isfinite(number):
        return "inf"
    digits = 8 - math.floor(math.log10(number))
    nearest = round(number, digits)
    if nearest < number * (1.0 - 1e-12):
        nearest = round(nearest + 10.0**-digits, digits)
    return repr(nearest)
