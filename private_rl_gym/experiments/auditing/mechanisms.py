"""White boxes: everything that a mechanism publishes.

* ``Published`` - all releases of a boundary, or all reports
* ``RandomizedSteps`` - all that ``LDPPerStep`` told
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.experiments.auditing.users import PROBE, Maker, Users, board_of, exact_of, guarantee_of
from private_rl_gym.experiments.names import GridError
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.audit.judging import Score
from private_rl_gym.privacy.audit.learned import LastDigits, LinearDiscriminant, NaiveBayes
from private_rl_gym.privacy.audit.likelihood import Stream, likelihood, says_gaussian
from private_rl_gym.privacy.publishing import PublicSums
from private_rl_gym.privacy.randomizers import SubsetReports
from private_rl_gym.privacy.statistics import Statistic

__all__ = ["Published", "RandomizedSteps"]


MANY, OTHERS = 64, 16
"""Where a release has more cells than that, hers are looked at, and so many of the others."""

FAILED = -1.0
"""Stands where the length of what was seen would stand."""

EACH = 8
"""So many users are let in one by one, and releases looked at after each of them."""


class Published:
    """White box: everything that a boundary publishes while users run a fixed policy.

    Users come in by both doors, ``serve`` and ``reset``: the second by ``reset(seed=...)`` with one seed for all runs.
    In the local model what is published is every report. A boundary with a method ``transcript`` says itself what it
    has published.
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
        """The user who differs is the first, whom ``serve`` lets in; ``late``: the last who walks in by ``reset``."""
        self._users = Users(env, make, users=users, place=0, kind=kind, seed=seed)
        self._summed, self._length = statistic, 0
        board = self._board(PROBE, 0)
        self.guarantee = guarantee_of(board)
        sums = board._board
        self._bits = isinstance(sums.statistic, SubsetReports) and sums.noise is None and type(sums) is PublicSums
        self._each = users <= EACH  # looked at after every user
        exact = exact_of(sums.statistic)
        self._policy, self._pair = self._users.policy(exact, self.guarantee)
        groups = list(self._groups(board, self._pair.tapes))
        batches = [came for came, _ in groups if came]
        if not batches:
            raise GridError(
                f"{type(board).__name__} has published nothing after {users} users: let more come, with users=, or "
                "publish more often."
            )
        if late:
            starts = np.cumsum([0, *batches])[:-1]
            self._users.place = int(starts[1::2][-1]) if len(starts) > 1 else users - 1
            self._policy, self._pair = self._users.policy(exact, self.guarantee)
        self._prepare(board, exact, batches)

    def _prepare(self, board: Any, exact: Statistic, batches: list[int]) -> None:
        """Which numbers are looked at, and by which scores."""
        sums = board._board
        vectors = [self._users.vectors(exact, self._policy, self._pair.world(world)) for world in (0, 1)]
        hers = (vectors[1] - vectors[0]).any(axis=0)
        rest = np.flatnonzero(~hers)[: max(OTHERS, MANY - int(hers.sum()))]
        self._cells = np.sort(np.concatenate([np.flatnonzero(hers), rest]))
        told = hasattr(board, "transcript")
        visits = exact.sums(vectors[1].sum(axis=0) - vectors[0].sum(axis=0), len(vectors[0])).get("n")
        self._visits = None if visits is None else np.flatnonzero(visits)[:MANY]
        arrived = np.cumsum(batches)
        steps = [np.cumsum(found[:, self._cells], axis=0)[arrived - 1] for found in vectors]
        self.stream = Stream(steps[0], steps[1] - steps[0], tuple(batches))
        self.gaussian = says_gaussian(sums) and not told
        self._length = len(self._watched(self._board(PROBE, 1), self._pair.tapes))
        learned: list[Score] = [LinearDiscriminant(), NaiveBayes(), LastDigits()]
        known = None if told else likelihood(sums, self.stream)
        self.scores: Sequence[Score] = learned if known is None else [known, *learned]

    def _board(self, world: int, number: int) -> Any:
        return board_of(self._users.built(world, number, self._summed))

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """Releases, one after the other, what stands beside them, and how much there was: ``FAILED`` if it failed."""
        tapes = self._pair.world(world)
        rows = np.zeros((count, self._length + 1))
        for row, number in zip(rows, range(first, first + count), strict=True):
            try:
                found = self._watched(self._board(world, number), tapes)
            except Exception:  # noqa: BLE001 - whoever sees it sees that, too
                row[-1] = FAILED
                continue
            row[: min(len(found), self._length)] = found[: self._length]
            row[-1] = len(found)
        return rows

    def _groups(self, board: Any, tapes: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Let users in, a release at a time; in every other group the first one walks.

        Yields:
            How many came, once a release is there, or 0 before; and what the walkers were told.
        """
        if self._policy.values is not None:
            board.values = self._policy.values
        start, walks, version, came = 0, False, board.release.version, 0
        while start < len(tapes):
            stop = min(len(tapes), start + max(1, board.users_to_release))
            told, here = np.zeros(0), start
            if walks:
                told = self._users.walk(board, self._policy, tapes[start])
                told = told[2::2] if start == self._users.place else told  # what she sees of herself is hers
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
                yield came, told
                came = 0
            elif len(told):
                yield 0, told

    def _watched(self, board: Any, tapes: NDArray[np.float64]) -> NDArray[np.float64]:
        """One run: first what likelihood ratios are of, release by release, then everything else."""
        rows, beside, sums = [], [], board._board
        transcript = getattr(board, "transcript", None)
        before: NDArray[np.float64] | float = 0.0
        for came, told in self._groups(board, tapes):
            beside.append(told)
            if transcript is not None:
                rows.append(np.ravel(transcript()))
            elif not came:
                beside.append(self._vector(board))
            elif self._bits:
                total = np.concatenate([sums._sums, sums.statistic.arrays()["reports"]]).astype(np.float64)
                rows.append(total - before)
                before = total
                beside.append(self._vector(board)[:MANY])
            else:
                rows.append(self._vector(board)[self._cells])
            beside.append(self._beside(board.release))
        if board.closes_early:
            board.publish()
            beside.append(self._vector(board)[:MANY])
        return np.concatenate([*rows, *beside]).astype(np.float64)

    def _vector(self, board: Any) -> NDArray[np.float64]:
        found: NDArray[np.float64] = board._board.statistic.vector(board.release.sums())
        return found

    def _beside(self, release: Any) -> NDArray[np.float64]:
        """What a release says besides its vector: counts, noise, visits. Where all is well it tells nothing more."""
        numbers = [release.version, release.users, *release.noise_std.values()]
        visits = [] if self._visits is None else release.n.ravel()[self._visits]
        return np.concatenate([numbers, visits])


class _Told:
    """What steps tell of a user before it is randomized: states and rewards, one after the other."""

    kind = "tabular"

    def __init__(self, horizon: int) -> None:
        self.cells = 2 * horizon + 1
        self.grid = np.ones(self.cells)

    def collect(self, users: Trajectories, sums: NDArray[np.int64], source: Any = None) -> None:
        """Write them down."""
        del source
        sums += np.concatenate([users.states[0], np.rint(users.rewards[0]).astype(np.int64)])


class RandomizedSteps:
    """White box: every observation and reward that ``LDPPerStep`` tells of one user."""

    gaussian = False

    def __init__(self, env: gym.Env[Any, Any], make: Maker, *, kind: str, seed: int) -> None:
        self._users = Users(env, make, users=1, place=0, kind=kind, seed=seed)
        self.guarantee = self._users.built(PROBE, 0).ledger.outside
        self._policy, self._pair = self._users.policy(_Told(self._users.horizon), self.guarantee)
        self.scores: Sequence[Score] = [NaiveBayes(), LinearDiscriminant(), LastDigits()]

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """Observations and rewards."""
        tape = self._pair.world(world)[0]
        boards = (self._users.built(world, number) for number in range(first, first + count))
        return np.array([self._users.walk(board, self._policy, tape) for board in boards])
