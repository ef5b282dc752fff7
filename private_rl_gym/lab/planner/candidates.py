"""Candidates for a deployment: a boundary and an agent with their options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from private_rl_gym.lab.planner.problems import settings
from private_rl_gym.lab.registry import BOUNDARIES

__all__ = ["QUICK", "TRUST", "Candidate", "candidates", "work"]

TRUST = tuple(name for name, board in BOUNDARIES.items() if board.takes("epsilon"))
"""The boundaries that guarantee something."""

QUICK = 50_000
"""Products in one plan up to which all candidates are simulated."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A boundary and an agent, by name, with their options."""

    boundary: str
    agent: str
    about: str = ""
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    boundary_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The agent, and its knowledge about the steps."""
        return f"{self.agent}{self.about and ', '}{self.about}"

    @property
    def typed(self) -> tuple[str, ...]:
        """The options of ``private-rl-gym train`` that name it, without its budget."""
        rest = dict(self.boundary_options)
        size = rest.pop("batch_size", None)
        words = ["--boundary", self.boundary, "--agent", self.agent]
        words += [] if size is None else ["--batch-size", str(size)]
        return (*words, *settings("agent", self.agent_options), *settings("boundary", rest))


def candidates(trust: str, users: int, sizes: tuple[int, int, int], *, stationary: bool) -> Iterator[Candidate]:
    """Yield the candidates of a trust model, the best ones first.

    For large problems, only candidates that are quick enough are included.
    """
    products = work(sizes)
    if trust not in TRUST:
        options = {"batch_size": min(100, users), "growth": 0.25}
        if stationary:
            yield Candidate(trust, "UCBVI", "counts pooled", {}, options | {"stationary": True})
        yield Candidate(trust, "UCBVI", "steps may differ", {}, options)
        if products > 10 * QUICK:  # its many plans would take the time of all
            return
    if stationary:
        yield Candidate(trust, "FrugalUCBVI", "time-homogeneous", {"stationary": True})
    if products <= QUICK or not stationary:
        yield Candidate(trust, "FrugalUCBVI", "steps may differ")
    if trust in TRUST and trust != "ldp":  # where users add noise themselves, counts of whole episodes drown in it
        options = {"batch_size": min(500 if trust == "sdp" else 50, users), "growth": 0.25}
        pooled = {"stationary": True} if stationary else {}
        yield Candidate(trust, "DPUCBVI", "counts pooled" if stationary else "counts by stage", {}, options | pooled)


def work(sizes: tuple[int, int, int]) -> int:
    """Return the number of products that one plan takes, H S S A."""
    horizon, n_states, n_actions = sizes
    return horizon * n_states**2 * n_actions
