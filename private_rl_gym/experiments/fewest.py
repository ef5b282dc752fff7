"""The fewest users from whom a promise still lets a learner learn.

* ``Fewest`` - the number of users under a trust model, and what a learner did with so many
* ``fewest_users`` - simulates more and more users until they lose little
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from private_rl_gym.experiments.advice import MOST_USERS, TRUST, Advice, Adviser
from private_rl_gym.experiments.problems import Problem

__all__ = ["LADDER", "Fewest", "fewest_users"]

LADDER = (500, *(digit * 10**power for power in range(3, 6) for digit in (1, 2, 5)), MOST_USERS)
"""Numbers of users that are tried."""

LEAST = 0.2
"""Share of the users who stand out of noise once, below which nobody is simulated: it took 0.28 to 25 times as many."""


@dataclass(frozen=True, slots=True)
class Fewest:
    """The fewest users from whom enough is learned.

    Attributes:
        users: Their number; if there are never enough, the largest that was tried.
        enough: Whether so many are enough.
        advice: The learner, and what it did with so many; None if there was no time for any.
        note: A sentence about what there was no time for, or nothing.
    """

    users: int
    enough: bool
    advice: Advice | None
    note: str = ""


class _NoTimeError(Exception):
    """Time ran out, or the problem is too large to simulate."""


@dataclass(slots=True)
class _Simulation:
    """One question, with as many users as wanted."""

    problem: Problem
    trust: str
    epsilon: float
    wish: float
    seconds: float
    options: Mapping[str, Any]
    last: Fewest | None = None

    def enough(self, users: int, *, quick: bool = False) -> bool:
        """Whether so many users lose little enough; ``quick``: by one run."""
        begun = time.process_time()
        adviser = Adviser(self.problem, users, seconds=max(0.0, self.seconds), **self.options)
        advice = adviser.within(self.trust, self.epsilon, self.wish, quick=quick)
        self.seconds -= time.process_time() - begun
        if advice is None:
            raise _NoTimeError
        self.last = Fewest(users, advice.share <= self.wish, advice)
        return self.last.enough


def fewest_users(
    problem: Problem, trust: str, epsilon: float, wish: float, *, seconds: float = math.inf, **options: Any
) -> Fewest:
    """The fewest users, of ``LADDER``, who lose at most a share ``wish`` of what never learning loses.

    One run with every other number finds the place, and all runs confirm it. Numbers that are far too small for the
    noise are left out.

    Args:
        problem: The problem.
        trust: Short name of the boundary; ``"open"`` for learning without privacy.
        epsilon: The promise.
        wish: The share of regret.
        seconds: Processor time for everything.
        options: Further arguments of ``Adviser``: ``delta``, ``told_nothing``, ``runs``.

    Example:
        >>> from private_rl_gym.experiments.problems import problem_of
        >>> found = fewest_users(problem_of("RiverSwim", {}, horizon=8), "jdp", 4.0, 0.5, runs=1)
        >>> found.enough, found.users <= 5_000
        (True, True)
    """
    simulation, top = _Simulation(problem, trust, epsilon, wish, seconds, options), len(LADDER) - 1
    adviser = Adviser(problem, MOST_USERS, **options)
    wanted = adviser.standing_out(trust, epsilon)
    start = next((place for place in range(top) if LADDER[place] >= LEAST * wanted), top)
    with suppress(_NoTimeError):
        place = next((place for place in range(start, top, 2) if simulation.enough(LADDER[place], quick=True)), top)
        if place > start and simulation.enough(LADDER[place - 1], quick=True):
            place -= 1
        for users in LADDER[place:]:
            if simulation.enough(users):
                break
        assert simulation.last is not None  # noqa: S101 - somebody was simulated
        return simulation.last
    last = simulation.last or Fewest(LADDER[start], False, None)
    missing = "and fewer may do" if last.enough else "and more were not tried"
    large = adviser.too_large
    reason = "too large to simulate" if large else f"time ran out at {last.users:,} users, {missing}"
    note = (
        f"{trust.upper() if trust in TRUST else 'none'}: {reason}. For each state and action to stand out of the noise "
        f"once, it takes about {wanted:,} users.{'' if large else ' Try a larger --seconds.'}"
    )
    return Fewest(last.users, last.enough, last.advice, note)
