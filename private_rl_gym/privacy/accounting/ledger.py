"""Guarantees of several boundaries together.

* ``Ledger`` - the guarantees of a stack, from the innermost boundary to the outermost
* ``weakest`` - the guarantee to all users of several groups
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from private_rl_gym.privacy.accounting.composition import compose
from private_rl_gym.privacy.accounting.guarantee import Covers, Guarantee, Neighbours, TrustModel

__all__ = ["Ledger", "weakest"]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The guarantees of a stack of boundaries, from the innermost to the outermost.

    All of them hold at once for the outermost release: it is computed from the releases of inner boundaries, and
    post-processing keeps their guarantees (docs/proofs/post-processing.md).
    """

    entries: tuple[Guarantee, ...]

    @property
    def outside(self) -> Guarantee:
        """The strongest guarantee for the outermost release.

        Guarantees with seeded noise count only if there are no others, and so do those whose delta is too large. Of
        the rest, the strongest is the one with the least ``advantage``.
        """
        return min(self.entries, key=_weakness)

    @property
    def epsilon(self) -> float:
        """Epsilon of the strongest guarantee."""
        return self.outside.epsilon

    @property
    def delta(self) -> float:
        """Delta of the strongest guarantee."""
        return self.outside.delta

    def compose(self, *others: Ledger, delta: float = 0.0) -> Guarantee:
        """Return the guarantee to users who take part in other stacks too.

        It is composed of the strongest guarantee of each stack.

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
                f"One guarantee is for '{Neighbours.SAME_START}', another for '{Neighbours.ZERO_OUT}': neither "
                "covers the other's neighbours, so they do not compose. Build the boundaries with one relation."
            )
        if not all(math.isfinite(entry.epsilon) for entry in entries):
            return min(entries, key=lambda entry: -entry.epsilon)
        epsilon, spent = compose([entry.event for entry in entries], delta)
        return replace(
            _weakest_words(entries),
            epsilon=epsilon,
            delta=spent,
            users=min((entry.users for entry in entries if entry.users is not None), default=None),
            mu=math.hypot(*(entry.mu or 0.0 for entry in entries)) if all(entry.mu for entry in entries) else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as values that JSON can hold."""
        return {"entries": [entry.to_dict() for entry in self.entries], "outside": self.outside.to_dict()}

    def sentence(self) -> str:
        """Return all guarantees in full sentences, with notes and warnings."""
        return " ".join(entry.sentence() for entry in self.entries)

    def __str__(self) -> str:
        return "\n".join(str(entry) for entry in self.entries)


def weakest(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Return the guarantee to users of several groups, for results from all groups.

    A user is in one group, so budgets do not add up. Each part is that of the group with the least of it: the
    largest epsilon and delta, the model that needs the most trust, and the least that is covered. ``Ledger.compose`` is
    for users who are in all groups.

    Example:
        >>> strict = Guarantee(TrustModel.JDP, 0.5, 1e-6, 100, "a tree")
        >>> print(weakest([strict, Guarantee(TrustModel.LDP, 2.0, 0.0, 50, "reports")]))
        (2.0, 1e-06)-JDP, replace one user, 150 users
    """
    entries = list(guarantees)
    if len(entries) == 1:
        return entries[0]
    open_to_all = next((entry for entry in entries if not math.isfinite(entry.epsilon)), None)
    if open_to_all is not None:
        return open_to_all
    if {entry.neighbours for entry in entries} >= {Neighbours.SAME_START, Neighbours.ZERO_OUT}:
        reason = f"one group has '{Neighbours.SAME_START}', another '{Neighbours.ZERO_OUT}', which share no guarantee"
        return Guarantee(TrustModel.NONE, math.inf, 0.0, None, reason)
    numbers = [entry.users for entry in entries if entry.users is not None]
    return replace(
        _weakest_words(entries),
        epsilon=max(entry.epsilon for entry in entries),
        delta=max(entry.delta for entry in entries),
        users=sum(numbers) if len(numbers) == len(entries) else None,
        mu=max(entry.mu or 0.0 for entry in entries) if all(entry.mu for entry in entries) else None,
    )


def _weakest_words(entries: Sequence[Guarantee]) -> Guarantee:
    """Return the first guarantee, weakened to the least that any of them states.

    Its numbers stay as they are.
    """
    return replace(
        entries[0],
        model=max((entry.model for entry in entries), key=list(TrustModel).index),
        mechanism="; ".join(dict.fromkeys(entry.mechanism for entry in entries)),
        neighbours=_either(entries, "neighbours", Neighbours.ZERO_OUT, Neighbours.SAME_START),
        covers=_either(entries, "covers", Covers.REWARDS, Covers.ANSWERS),
        notes=tuple(dict.fromkeys(note for entry in entries for note in entry.notes)),
        seeded=any(entry.seeded for entry in entries),
        visits=min(entry.visits for entry in entries),  # none of them covers users who return more often
    )


def _either(entries: Iterable[Guarantee], field: str, *weaker: Any) -> Any:
    """Return the weaker value if any entry has it, or else the first entry's."""
    words = [getattr(entry, field) for entry in entries]
    return next((word for word in weaker if word in words), words[0])


def _weakness(entry: Guarantee) -> tuple[Any, ...]:
    loose = entry.delta > 0.0 and entry._loose
    return not math.isfinite(entry.epsilon), entry.seeded, loose, entry.advantage, entry.epsilon, entry.delta
