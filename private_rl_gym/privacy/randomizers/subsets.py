"""Random sets of outcomes that hold the true one more often than others.

* ``Subset`` - a set for a report of a user
* ``OneStep``, ``Unary`` - a set for one of their steps, or for each of them
* ``Subsets`` - the distribution of a set

Proof: docs/proofs/local-unary.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.privacy.accounting.amplification import Blanket
from private_rl_gym.privacy.errors import BoundedError, CellError, CombinedError, SubsetError
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.randomizers.base import AT_ONCE, Randomizer
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.statistics.base import Alphabet, Sensitivity, Statistic

__all__ = ["OneStep", "Subset", "Subsets", "Unary", "add_subset"]

MOST_STAGES = 256
"""Largest number of sets of a user whose blanket is enumerated: their number grows with its square."""


@dataclass(frozen=True, slots=True)
class Subsets:
    """The distribution of a random set of ``size`` outcomes (subset selection).

    A set is drawn uniformly except for the true outcome. The true outcome is in it with probability p, any other with
    probability q. The best size has the least variance at this epsilon: half of all outcomes for a small epsilon, a
    single outcome (randomized response) for a large one.

    Attributes:
        outcomes: Number of outcomes.
        epsilon: Budget of a report.
        size: Number of outcomes in a set.
    """

    outcomes: int
    epsilon: float
    size: int

    @classmethod
    def best(cls, outcomes: int, epsilon: float) -> Subsets:
        """Return the size with the least variance.

        Epsilon is cut off at 30: beyond it, doubles cannot draw p.
        """
        epsilon = min(epsilon, 30.0)
        ideal = outcomes / (math.exp(epsilon) + 1.0)
        sizes = {min(max(1, size), outcomes - 1) for size in (math.floor(ideal), math.ceil(ideal))}
        return min((cls(outcomes, epsilon, size) for size in sizes), key=lambda subsets: subsets.variance)

    @property
    def p(self) -> float:
        """Probability that the true outcome is in the set."""
        return self.size / (self.size + (self.outcomes - self.size) * math.exp(-self.epsilon))

    @property
    def q(self) -> float:
        """Probability that another given outcome is in the set."""
        return (self.size - self.p) / (self.outcomes - 1)

    @property
    def gain(self) -> float:
        """Factor that makes the count of an outcome unbiased.

        The count is (in the set or not - q) * gain. It has mean 1 if the outcome is true, and 0 if not.
        """
        return 1.0 / (self.p - self.q)

    @property
    def variance(self) -> float:
        """Variance of the count of an outcome that is not true."""
        return self.q * (1.0 - self.q) * self.gain**2

    @property
    def own_variance(self) -> float:
        """Variance of the count of an outcome that is true."""
        return self.p * (1.0 - self.p) * self.gain**2

    def blanket(self, reports: int) -> Blanket:
        """Return the blanket of ``reports`` reports of one user.

        It is for the comparison with another user, who has other outcomes.
        """
        k, size = self.outcomes, self.size
        alone, both = size * (k - size) / (k * (k - 1)), size * (size - 1) / (k * (k - 1))
        return Blanket.of_levels(self.epsilon, alone, both, reports)


class Subset(Randomizer):
    """A random set of outcomes for each message of a user.

    The true outcome is in it with a larger probability than others. A user who has nothing to say, or left early, sends
    sets of an outcome that is not counted.

    Privacy:
        All sets of a user together cost epsilon. With the same randomness, replacing a user moves one outcome into each
        set and one out of it.
    """

    name = "subset"
    alphabet = Alphabet.STEP

    def __init__(self, statistic: Statistic, epsilon: float, delta: float) -> None:
        self.statistic, self.spent = statistic, (epsilon, 0.0)
        self.counters = statistic.blocks
        self._outcomes = statistic.cells // statistic.blocks
        self.subsets = Subsets.best(self._outcomes + 1, epsilon / statistic.messages)
        self.sensitivity = Sensitivity.of_ones(2 * statistic.messages)

    @cached_property
    def blanket(self) -> Blanket | None:  # type: ignore[override] # computed when a shuffler asks
        """The blanket of a user's sets; None if there are too many sets.

        Then only their epsilon is used.
        """
        messages = self.statistic.messages
        return self.subsets.blanket(messages) if messages <= MOST_STAGES else None

    def send(
        self, users: Any | None, count: int, request: Request | None, source: NoiseSource, out: NDArray[np.int64]
    ) -> None:
        """Add the sets of every user, and count the sets of each block."""
        messages, own = self.statistic.messages, self.statistic.draws
        each = own + self.subsets.size + 1
        step = max(1, AT_ONCE // (messages * each))
        for start in range(0, count, step):
            here = min(step, count - start)
            drawn = source.uniform(here * messages * each).reshape(here, messages, each)
            some = None if users is None else users.part(start, start + here)
            blocks, places = self.statistic.outcomes(some, request, drawn[:, :, :own])
            self._add(blocks, places, drawn[:, :, own:], out)

    def _add(
        self, blocks: NDArray[np.int64], places: NDArray[np.int64], drawn: NDArray[np.float64], out: NDArray[np.int64]
    ) -> None:
        size = self.statistic.cells
        table, counts = out[:size].reshape(-1, self._outcomes), out[size:]
        for user, message in np.ndindex(blocks.shape):
            block, place = blocks[user, message], int(places[user, message])
            add_subset(drawn[user, message], place if place >= 0 else self._outcomes, self.subsets.p, table[block])
            counts[block] += 1

    def unbias(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return unbiased counts.

        They come from the number of sets with each outcome, and from the number of all sets.
        """
        size = self.statistic.cells
        table, counts = vector[:size].reshape(-1, self._outcomes), vector[size:]
        gain = self.subsets.gain * self.statistic.times
        return np.asarray(gain * (table - self.subsets.q * counts[:, None])).ravel()

    def error(self, users: int, added: CellError) -> CellError:
        """Return the error of drawing sets, plus ``added``.

        ``added`` is the error of the number of sets with one outcome.
        """
        subsets = self.subsets
        if self.statistic.rounds:
            times, numbers = self.statistic.times, (subsets.variance, subsets.own_variance, subsets.gain, subsets.q)
            return lambda _: SubsetError(users, times, subsets.size, *numbers, added(1.0))
        own = max(0.0, subsets.own_variance - subsets.variance)  # of users whose outcome it is
        drawn = BoundedError(users * subsets.variance, subsets.gain * max(subsets.q, 1.0 - subsets.q), users * own)
        both = CombinedError.of(drawn, added(1.0).scaled(subsets.gain))
        return lambda _: both


class OneStep(Subset):
    """A set for one random step of a user, with the whole budget."""

    name = "one-step"


class Unary(Subset):
    """A set for each step of a user.

    Each stage has a share of the budget.
    """

    name = "unary"
    alphabet = Alphabet.STEPS


@compiled
def add_subset(drawn: Any, true: int, p: float, counts: Any) -> None:
    """Add a random set of outcomes to ``counts``.

    The last outcome, which is not counted, stands for no outcome. The others are drawn from all but the last, without
    looking at the true one; where it is drawn, the last one takes its place. So the sets of two users with the same
    uniforms differ only in their own two outcomes and in the last.
    """
    outcomes, size = len(counts), len(drawn) - 1
    kept = drawn[0] < p
    order = np.arange(outcomes)
    for i in range(size):
        j = i + int(drawn[1 + i] * (outcomes - i))
        other = order[j]
        order[j] = order[i]
        if (i < size - 1 or not kept) and other != true:
            counts[other] += 1
    if kept and true < outcomes:
        counts[true] += 1
