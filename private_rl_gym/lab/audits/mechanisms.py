"""White-box attacks that see everything that a mechanism publishes.

* ``Releases`` - all releases of a boundary, or all reports
* ``RandomizedSteps`` - all observations and rewards of ``LDPPerStep``
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.lab.audits.users import PROBE, Maker, Users, guarantee_of, rows_of
from private_rl_gym.lab.registry import GridError
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.accounting.guarantee import TrustModel
from private_rl_gym.privacy.audit.judging import Score
from private_rl_gym.privacy.audit.learned import LastDigits, LinearDiscriminant, NaiveBayes
from private_rl_gym.privacy.audit.likelihood import Stream, likelihood, says_gaussian
from private_rl_gym.privacy.audit.neighbours import neighbours
from private_rl_gym.privacy.noise import RandomAnswers

__all__ = ["MessageSum", "RandomizedSteps", "Releases", "reports_are_seen"]


MANY, OTHERS = 64, 16
"""Of the cells of a release, those that differ are examined, and others up to ``MANY`` in all, or ``OTHERS``."""

EACH = 8
"""Up to this number, users come one by one, and the release is examined after each of them."""


class MessageSum:
    """An observer that sums the reports since the last call."""

    def __init__(self) -> None:
        self._total: NDArray[np.float64] | None = None

    def left(self, users: Trajectories | None, count: int) -> None:
        """Ignore users."""

    def reported(self, vector: NDArray[np.int64]) -> None:
        """Add a report."""
        self._total = vector.astype(np.float64) if self._total is None else self._total + vector

    def taken(self, size: int) -> NDArray[np.float64]:
        """Return the sum of reports since the last call."""
        total, self._total = self._total, None
        return np.zeros(size) if total is None else total


def reports_are_seen(board: Any) -> bool:
    """Return whether an attacker sees single reports, and not only their sums.

    This holds for random answers in the local model: they reveal more than their sums.
    """
    answers = any(isinstance(noise, RandomAnswers) for noise in board.audit.noises([1]))
    return answers and board.guarantee.model is TrustModel.LDP


class Releases:
    """White box: everything that a boundary publishes while users run a fixed policy.

    Users enter in both ways, by ``serve`` and by ``reset``: the latter as ``reset(seed=...)`` with one seed for all
    runs. In the local model every report is published. A boundary with a method ``transcript`` returns all that it has
    published.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        make: Maker,
        *,
        users: int,
        kind: str,
        seed: int,
        statistic: str = "tabular",
        late: bool = False,
    ) -> None:
        """Prepare the game.

        The user who differs is the first, who enters by ``serve``; if ``late``, the last, who enters by ``reset``.
        """
        self._users = Users(env, make, users=users, place=0, kind=kind, seed=seed, statistic=statistic)
        self._length = 0
        board = self._users.board(PROBE, 0)
        self.guarantee = guarantee_of(board)
        self._reports_seen = reports_are_seen(board)
        self._each = users <= EACH  # looked at after every user
        self._policy, self._pair = self._users.policy(board.statistic.exact, self.guarantee)
        batches = [came for came, _ in self._groups(board, self._pair.tapes) if came]
        if not batches:
            raise GridError(
                f"{type(board).__name__} has published nothing after {users} users: give more users, with users=, or "
                "publish more often."
            )
        if late:
            starts = np.cumsum([0, *batches])[:-1]
            self._users.place = int(starts[1::2][-1]) if len(starts) > 1 else users - 1
            self._policy, self._pair = self._users.policy(board.statistic.exact, self.guarantee)
        if self.guarantee.visits > 1:  # the user comes back in the next batches
            later = [int(start) for start in np.cumsum(batches)[:-1] if start > self._users.place]
            self._pair = replace(self._pair, again=tuple(later[: self.guarantee.visits - 1]))
        self._prepare(board, batches)
        told = self._users.told(self._policy, self._pair)
        self.view = (self._users.horizon, users, len(batches), told)

    def _prepare(self, board: Any, batches: list[int]) -> None:
        """Choose the numbers to examine, and the scores that judge them."""
        exact = board.statistic.exact
        vectors = [self._users.vectors(exact, self._policy, self._pair.world(world)) for world in (0, 1)]
        differ = (vectors[1] - vectors[0]).any(axis=0)
        rest = np.flatnonzero(~differ)[: max(OTHERS, MANY - int(differ.sum()))]
        self._cells = np.sort(np.concatenate([np.flatnonzero(differ), rest]))
        has_transcript = hasattr(board, "transcript")
        visits = exact.sums(vectors[1].sum(axis=0) - vectors[0].sum(axis=0)).get("n")
        self._visits = None if visits is None else np.flatnonzero(visits)[:MANY]
        arrived = np.cumsum(batches)
        steps = [np.cumsum(contributed[:, self._cells], axis=0)[arrived - 1] for contributed in vectors]
        self.stream = Stream(steps[0], steps[1] - steps[0], tuple(batches))
        noises = board.audit.noises(batches)
        self.gaussian = says_gaussian(noises) and not has_transcript
        self._length = len(self._watched(self._users.board(PROBE, 1), self._pair.tapes))
        learned: list[Score] = [LinearDiscriminant(), NaiveBayes(), LastDigits()]
        known = None if has_transcript else likelihood(noises, self.stream)
        self.scores: Sequence[Score] = learned if known is None else [known, *learned]

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """Return the numbers of each run and their count.

        The count is ``FAILED`` if the run failed.
        """
        tapes, numbers = self._pair.world(world), range(first, first + count)
        seen = (lambda number=number: self._watched(self._users.board(world, number), tapes) for number in numbers)
        return rows_of(seen, self._length)

    def _groups(self, board: Any, tapes: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Serve users, and yield after each release.

        In every second group the first user enters by ``reset``.

        Yields:
            The number of users since the last release if there is a new one, else 0; and the observations and rewards
            of users who entered by ``reset``, without those of the user who differs.
        """
        board.request = self._users.ask(board.statistic)
        start, walks, version, came = 0, False, board.release.version, 0
        while start < len(tapes):
            stop = min(len(tapes), start + max(1, board.users_to_release))
            answers, here = np.zeros(0), start
            if walks:
                answers = self._users.walk(board, self._policy, tapes[start])
                answers = (
                    answers[2::2] if start in self._pair.places else answers
                )  # a user's own states are theirs to see
                here += 1
            while here < stop:
                size = 1 if self._each else stop - here
                board.serve(self._policy, tapes[here : here + size])
                here += size
                if self._each and here < stop:
                    yield 0, np.zeros(0)
            came += stop - start
            start, walks = stop, not walks
            if board.release.version != version:
                version = board.release.version
                yield came, answers
                came = 0
            elif len(answers):
                yield 0, answers

    def _watched(self, board: Any, tapes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers of one run.

        First are the numbers for likelihood ratios, release by release, then everything else.
        """
        rows, beside, reports = [], [], MessageSum()
        if self._reports_seen:
            board.audit.observe(reports)
        transcript = getattr(board, "transcript", None)
        for came, answers in self._groups(board, tapes):
            beside.append(answers)
            if transcript is not None:
                rows.append(np.ravel(transcript()))
            elif not came:
                beside.append(self._vector(board))
            elif self._reports_seen:
                rows.append(reports.taken(board.audit.size))
                beside.append(self._vector(board)[:MANY])
            else:
                rows.append(self._vector(board)[self._cells])
            beside.append(self._beside(board.release))
        if board.closes_early:
            board.publish()
            beside.append(self._vector(board)[:MANY])
        return np.concatenate([*rows, *beside]).astype(np.float64)

    def _vector(self, board: Any) -> NDArray[np.float64]:
        vector: NDArray[np.float64] = board.statistic.vector(board.release.sums())
        return vector

    def _beside(self, release: Any) -> NDArray[np.float64]:
        """Return the numbers of a release besides its vector.

        In a sound boundary they reveal nothing more.
        """
        numbers = [release.version, release.users, *release.noise_std.values()]
        visits = [] if self._visits is None else release.n.ravel()[self._visits]
        return np.concatenate([numbers, visits])


class RandomizedSteps:
    """White box: every observation and reward from ``LDPPerStep`` for one user."""

    gaussian = False

    def __init__(self, env: gym.Env[Any, Any], make: Maker, *, kind: str, seed: int) -> None:
        users = self._users = Users(env, make, users=1, place=0, kind=kind, seed=seed)
        self.guarantee = users.built(PROBE, 0).ledger.outside
        H, S, A = users.sizes
        self._policy = Policy(np.zeros((H, S), dtype=np.int64), A)

        def distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
            """Return the number of observations and rewards that differ."""
            first, second = (users.trajectories(self._policy, tape[None]) for tape in (one, other))
            return float((first.states != second.states).sum() + (first.rewards != second.rewards).sum())

        self._pair = neighbours(kind, users.tables, distance, users.rng, users=1, place=0)
        self.view = (H, 1, 0, users.told(self._policy, self._pair))
        self.scores: Sequence[Score] = [NaiveBayes(), LinearDiscriminant(), LastDigits()]

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """Return the observations and rewards of each run."""
        tape = self._pair.world(world)[0]
        boards = (self._users.built(world, number) for number in range(first, first + count))
        return np.array([self._users.walk(board, self._policy, tape) for board in boards])
