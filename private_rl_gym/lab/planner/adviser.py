"""An adviser that simulates deployments before they start.

It recommends the boundary, the agent, the epsilon and the number of users.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from private_rl_gym.agents.tabular.frugal_constants import FIRST_BATCH
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.lab.planner.advice import Advice, Recommendation, TableAdvice
from private_rl_gym.lab.planner.candidates import QUICK, TRUST, Candidate, candidates, work
from private_rl_gym.lab.planner.problems import Problem, model_of_table
from private_rl_gym.lab.planner.simulate import MOST_USERS, Clock, Outcome, Question, learn, plan_offline
from private_rl_gym.lab.registry import BOUNDARIES, GridError
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.privacy.accounting.conversion import check_budget
from private_rl_gym.privacy.requests import Wanted
from private_rl_gym.wrappers.boundary import Boundary

__all__ = ["EPSILONS", "LADDER", "MOST_USERS", "Adviser"]

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The epsilons among which the smallest is looked for that learns well enough."""

LADDER = (500, *(digit * 10**power for power in range(3, 6) for digit in (1, 2, 5)), MOST_USERS)
"""The numbers of users among which the smallest is looked for."""

TOO_LARGE = 5_000_000
"""Products in one plan, H S S A, above which nothing is simulated."""

CLOSE = 1.5
"""Candidates up to so many times the least regret in their first run get the other runs too."""

LEAST = 0.2
"""Numbers of users below this share of ``standing_out`` are not tried. Problems took 0.28 to 25 times as many."""

DOUBTLESS = 30.0
"""Users that noise asks for, as a multiple of those who come, above which there is no hope without a simulation."""


class _NoTimeError(Exception):
    """The error for a lack of time, or for too large a problem."""


Runs = tuple[Candidate, list[Outcome]]
"""A candidate and its runs."""


class Adviser:
    """A simulator of candidates that finds the best of each trust model.

    Every candidate gets one run, and those that are near the best of them the others; all have the same users.

    Args:
        problem: The problem.
        users: Number of users. If there are more than a million, a million are simulated.
        delta: The delta of guarantees that have one; by default the usual one of each boundary.
        stationary: Whether the problem is known to be time-homogeneous. Candidates then pool the stages.
        runs: Number of runs of the best candidates.
        seconds: Time for everything: of the processor, or by the clock where that is less. What would take longer is
            left out; the notes of answers name it.

    Example:
        >>> from private_rl_gym.lab.planner.adviser import Adviser
        >>> from private_rl_gym.lab.planner.problems import problem_of
        >>> adviser = Adviser(problem_of("RiverSwim", {}), users=500, runs=1)
        >>> adviser.at("jdp", 0.25).verdict
        'hopeless'
        >>> found = adviser.fewest("jdp", 16.0, 0.5)
        >>> found.enough, found.users <= 5_000
        (True, True)
    """

    def __init__(
        self,
        problem: Problem,
        users: int = MOST_USERS,
        *,
        delta: float | None = None,
        stationary: bool = False,
        runs: int = 2,
        seconds: float = math.inf,
    ) -> None:
        self.users = positive_integer(users, "users", "users")
        if stationary and not problem.model.stationary:
            raise GridError("stationary is True, and this problem differs from stage to stage: leave it out.")
        self.problem, self.delta, self.stationary, self.runs = problem, delta, stationary, runs
        self.simulated = min(self.users, MOST_USERS)
        self.clock, self.too_large = Clock(seconds), work(problem.sizes) > TOO_LARGE
        self._more_time = f" Try --seconds {max(300.0, 4.0 * seconds):g}."
        if problem.never <= 1e-9:
            raise GridError("Random actions have no regret in this environment: there is nothing to learn.")
        if delta is not None:
            check_budget(1.0, delta)

    @property
    def lost(self) -> float:
        """The regret of all users without learning, in rewards as they are."""
        return self.problem.lost(self.users)

    def reference(self) -> Recommendation:
        """Return the best learner without privacy."""
        self.clock.share(1 + len(TRUST))
        return self._compared(self._question("open", math.inf))

    def at(self, trust: str, epsilon: float, *, parts: int = 1) -> Recommendation:
        """Return the best candidate at this epsilon.

        Args:
            trust: Short name of the boundary.
            epsilon: The guarantee.
            parts: Number of questions that the time left is for, this one included.
        """
        self.clock.share(parts)
        question = self._question(trust, epsilon)
        answer = self._compared(question)
        return self._by_noise(question) if answer.advice is None else answer

    def smallest(self, trust: str, wish: float, *, parts: int = 1) -> Recommendation:
        """Return the smallest epsilon at which the share of regret is at most ``wish``.

        It is one of ``EPSILONS``, found by bisection.

        If there is none, it is the largest epsilon, and the advice is short of the wish.
        """
        self.clock.share(parts)
        questions = [self._question(trust, epsilon) for epsilon in EPSILONS]
        low, high = 0, len(EPSILONS) - 1
        best = self._within(questions[high], wish, quick=True)
        if best is None:
            return self._by_noise(questions[high])
        if best.share > wish:
            answer = self._compared(questions[high])
            return replace(answer, advice=replace(answer.advice or best, short=True))
        while low < high:  # first runs find the place
            middle = (low + high) // 2
            found = self._within(questions[middle], wish, quick=True)
            if found is None:
                break
            best, low, high = (found, low, middle) if found.share <= wish else (best, middle + 1, high)
        for question in questions[high:]:  # and all runs confirm it
            best = self._within(question, wish) or best
            if best.share <= wish:
                break
        late = f"{trust.upper()}: time ran out; an epsilon below {best.epsilon:g} may be enough.{self._more_time}"
        advice = replace(best, short=best.share > wish)
        return Recommendation(self.users, advice, notes=(late,) if low < high else ())

    def fewest(self, trust: str, epsilon: float, wish: float, *, parts: int = 1) -> Recommendation:
        """Return the fewest users who lose at most a share ``wish``.

        The number is one of ``LADDER``. The share is that of the loss without learning.

        One run with every other number finds the place, and all runs confirm it. Numbers that are far too small for the
        noise are left out. If there are never enough, it is the largest number that was tried.
        """
        self.clock.share(parts)
        asked, tried = self._question(trust, epsilon, MOST_USERS), list[Recommendation]()
        wanted, top = self.standing_out(asked), len(LADDER) - 1
        start = next((place for place in range(top) if LADDER[place] >= LEAST * wanted), top)

        def enough(users: int, *, quick: bool = False) -> bool:
            advice = self._within(replace(asked, users=users), wish, quick=quick)
            if advice is None:
                raise _NoTimeError
            tried.append(Recommendation(users, advice, enough=advice.share <= wish))
            return tried[-1].enough

        try:
            place = next((place for place in range(start, top, 2) if enough(LADDER[place], quick=True)), top)
            if place > start and enough(LADDER[place - 1], quick=True):
                place -= 1
            next((users for users in LADDER[place:] if enough(users)), None)
            return tried[-1]
        except _NoTimeError:
            last = tried[-1] if tried else Recommendation(LADDER[start])
        missing = "and fewer may do" if last.enough else "and more were not tried"
        reason = "too large to simulate" if self.too_large else f"time ran out at {last.users:,} users, {missing}"
        note = (
            f"{asked.name}: {reason}. For each state and action to stand out of the noise "
            f"once, it takes about {wanted:,} users.{'' if self.too_large else ' Try a larger --seconds.'}"
        )
        return replace(last, notes=(note,))

    def from_table(self, epsilons: Iterable[float]) -> list[TableAdvice]:
        """Return the results of learning from a table, at each epsilon.

        The problem is that of ``problem_of_table``.

        All epsilons have the same stand-ins, with the same users; there are as many as runs, if time allows.
        """
        found: dict[float, list[tuple[float, float]]] = {epsilon: [] for epsilon in epsilons}
        for number in range(self.runs):
            if number and self.clock.over:
                break
            model = model_of_table(self.problem.sizes, number, stationary=self.stationary)
            for epsilon, plans in found.items():
                question = self._question("jdp", epsilon)
                plans.append(plan_offline(model, question, number, stationary=self.stationary))
        horizon, n_states, n_actions = self.problem.sizes
        visits = self.simulated * (horizon if self.stationary else 1) / ((n_states - 1) * n_actions)
        return [
            TableAdvice(epsilon, tuple(gain for gain, _ in plans), plans[-1][1], visits)
            for epsilon, plans in found.items()
        ]

    def standing_out(self, question: Question) -> int:
        """Return the number of users that every state and action needs to exceed the noise.

        Each exceeds it once.
        """
        _, S, A = self.problem.sizes
        noise = 0.0
        if question.trust in TRUST:
            options = {"epsilon": question.epsilon, "delta": question.delta, "users": question.users}
            board: Boundary = BOUNDARIES[question.trust].build(TabularEnv(self.problem.model), **options)
            board.bind("reports", apart=True)
            noise = board.expected_noise(question.users, Wanted(np.ones((S, A), dtype=bool)))
        return round(FIRST_BATCH * S * A * max(2.0, noise))

    def delta_of(self, trust: str) -> float:
        """Return the delta of a boundary."""
        usual = BOUNDARIES[trust].kind.usual_delta if trust in TRUST else 0.0  # type: ignore[attr-defined]
        return float(usual) if self.delta is None or not usual else self.delta

    def _question(self, trust: str, epsilon: float, users: int | None = None) -> Question:
        return Question(trust, epsilon, self.delta_of(trust), self.users if users is None else users)

    def _by_noise(self, question: Question) -> Recommendation:
        """Return the answer from the noise alone, without simulation.

        It states whether single reports of all cells could stand out of the noise.
        """
        wanted, users = self.standing_out(question), question.users
        reason = "too large to simulate" if self.too_large else "time ran out in simulation"
        few = "more than there are" if wanted > users else "a part of them"
        note = (
            f"{question.name}: {reason}. For each state and action to stand out of the noise of epsilon = "
            f"{question.epsilon:g} once, FrugalUCBVI needs about {wanted:,} users, {few}."
            f"{'' if self.too_large else self._more_time}"
        )
        return Recommendation(users, hopeless=wanted > DOUBTLESS * users, notes=(note,))

    def _candidates(self, question: Question) -> list[Candidate]:
        return list(candidates(question.trust, question.simulated, self.problem.sizes, stationary=self.stationary))

    def _compared(self, question: Question) -> Recommendation:
        """Return the candidate with the least regret.

        Candidates near the best get the other runs, too, as far as time allows.

        All are compared by the runs that all of them have, because one run is noisy.
        """
        order = self._candidates(question)
        if question.trust in TRUST and work(self.problem.sizes) > QUICK:
            order.reverse()  # the quick one gives an answer, and the better bet a better one if there is time
        first = [(candidate, self._run(question, candidate, 0)) for candidate in order]
        left_out = [candidate.label for candidate, outcome in first if outcome is None]
        tried = sorted(((candidate, [outcome]) for candidate, outcome in first if outcome is not None), key=_share)
        if not tried:
            return Recommendation(question.users)
        close = [one for one in tried if _share(one) <= CLOSE * _share(tried[0])]
        for run in range(1, self.runs):
            for candidate, outcomes in close:
                found = self._run(question, candidate, run) if len(outcomes) == run else None
                outcomes += [] if found is None else [found]
        common = min(len(outcomes) for _, outcomes in close)
        best = min(close, key=lambda one: _share((one[0], one[1][:common])))
        note = f"{question.name}: time ran out before {' and '.join(left_out)} could be simulated.{self._more_time}"
        advice = replace(self._advice(question, best), alone=bool(left_out))
        return Recommendation(question.users, advice, notes=(note,) if left_out else ())

    def _within(self, question: Question, wish: float, *, quick: bool = False) -> Advice | None:
        """Return the first candidate whose share of regret is at most ``wish``.

        If there is none, return the best candidate that was tried.

        None if there was no time. ``quick``: by one run.
        """
        tried: list[Runs] = []
        for candidate in self._candidates(question):
            first = self._run(question, candidate, 0)
            if first is None:
                return None  # a later candidate would not tell of this one
            outcomes = [first]
            if first.share <= wish and not quick:
                more = (self._run(question, candidate, run) for run in range(1, self.runs))
                outcomes += [outcome for outcome in more if outcome is not None]
            tried.append((candidate, outcomes))
            if _share(tried[-1]) <= wish:
                return self._advice(question, tried[-1])
            if first.share > 2.0 * wish:
                break  # others will not be so much better
        return self._advice(question, min(tried, key=_share))

    def _run(self, question: Question, candidate: Candidate, run: int) -> Outcome | None:
        return None if self.too_large else learn(self.problem, question, candidate, run, self.clock)

    def _advice(self, question: Question, runs: Runs) -> Advice:
        candidate, outcomes = runs
        share, first = _share(runs), outcomes[0]
        return Advice(
            candidate,
            question.epsilon,
            question.delta,
            share=share,
            worst=max(outcome.share for outcome in outcomes),
            last=statistics.fmean(outcome.last for outcome in outcomes),
            regret=share * self.problem.lost(question.users),
            noise=first.noise,
            visits=first.visits,
            batches=first.batches,
            memory=first.memory,
            runs=len(outcomes),
        )


def _share(runs: Runs) -> float:
    return statistics.fmean(outcome.share for outcome in runs[1])
