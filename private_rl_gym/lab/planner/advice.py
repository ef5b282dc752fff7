"""Answers about a deployment, and the simulations that they rest on.

* ``Recommendation`` - the answer for one trust model, with the ``Advice`` that it rests on
* ``TableAdvice`` - the plans that were learned at one epsilon, where users are in a table
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from private_rl_gym.lab.planner.candidates import Candidate

__all__ = ["LEARNS", "Advice", "Recommendation", "TableAdvice"]

LEARNS, HOPELESS = 0.25, 0.9
"""Shares of the regret of never learning: up to the first a learner learns, from the second on it does not."""

LATE, LOST = 0.1, 0.75
"""Shares of the same, lost by the last policy alone: up to the first it was learned late, above the second never."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The best candidate of a trust model, and its results in simulation.

    Attributes:
        candidate: The candidate.
        epsilon, delta: Its budget; epsilon is infinite where nothing is guaranteed.
        share: Mean regret of all users, as a share of that of never learning.
        worst: The largest share of a run.
        last: Mean regret of the policy that was learned last, as a share of the regret without learning.
        regret: Mean regret of all users, in rewards as they are.
        noise: Standard deviation of the noise in a count of visits, after all users.
        visits: Mean of such a count.
        batches: Number of users in each batch, in the first run.
        memory: Bytes that the boundary takes.
        runs: Number of runs.
        short: Whether the wish was missed at every epsilon that was tried.
        alone: Whether there was no time for other candidates, one of which may learn where this one does not.
    """

    candidate: Candidate
    epsilon: float
    delta: float
    share: float
    worst: float
    last: float
    regret: float
    noise: float
    visits: float
    batches: tuple[int, ...] = field(repr=False)
    memory: int
    runs: int
    short: bool = False
    alone: bool = False

    @property
    def verdict(self) -> str:
        """The verdict on whether it learns, in one or two words."""
        if self.short or self.share >= HOPELESS or self.last > LOST:
            return "not known" if self.alone else "hopeless"
        if self.share <= LEARNS:
            return "learns"
        return "learns late" if self.last <= LATE else "in part"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The answer to a question about one trust model.

    Attributes:
        users: The number of users that it is about.
        advice: What was simulated; None if there was no time for any candidate.
        enough: Whether so many users lose little enough, where that was asked.
        hopeless: Whether noise alone leaves no hope, where nothing was simulated.
        notes: Sentences about what there was no time for.
    """

    users: int
    advice: Advice | None = None
    enough: bool = False
    hopeless: bool = False
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict on whether it learns, in one or two words."""
        if self.advice is not None:
            return self.advice.verdict
        return "hopeless" if self.hopeless else "not known"


@dataclass(frozen=True, slots=True)
class TableAdvice:
    """The plans that were learned from stand-ins of a table at one epsilon.

    Attributes:
        epsilon: The guarantee; infinite without privacy.
        gains: For each stand-in, the value of the learned policy between that of the habits (0) and the best (1).
        noise: Standard deviation of the noise in a count of visits that the plan is made from.
        visits: Mean of such a count.
    """

    epsilon: float
    gains: tuple[float, ...]
    noise: float
    visits: float

    @property
    def gain(self) -> float:
        """The mean of the gains."""
        return statistics.fmean(self.gains)

    @property
    def better(self) -> int:
        """The number of stand-ins where the policy is better than the habits."""
        return sum(gain > 0.0 for gain in self.gains)

    @property
    def verdict(self) -> str:
        """The verdict on whether it learns, in one or two words.

        Losses are shares of the loss of the habits.
        """
        lost = 1.0 - self.gain
        if lost >= HOPELESS or 2 * self.better <= len(self.gains):
            return "hopeless"
        return "learns" if lost <= LEARNS else "in part"
