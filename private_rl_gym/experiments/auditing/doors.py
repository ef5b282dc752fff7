"""Doors that an honest server leaves alone, and that a sound boundary keeps shut.

* ``Hostile`` - policies whose actions there are not, which would reach into counts that are noised for less
* ``Early`` - a batch that is closed before as many users have come as the promise was made for

A boundary that refuses them has passed. Where one is open, what comes through is held against the claim.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.experiments.auditing.users import PROBE, Maker, Users, board_of, guarantee_of, quiet
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.audit.judging import Score
from private_rl_gym.privacy.audit.learned import LastDigits, LinearDiscriminant, NaiveBayes
from private_rl_gym.privacy.audit.neighbours import Neighbours

__all__ = ["Door", "Early", "Hostile"]

MANY = 20_000
"""So many users a boundary is built for, of whom a few come."""

OUTSIDE = (-1, -2)
"""Actions that there are not. Larger ones would reach outside of memory, where a boundary lets them pass."""


class Door(ABC):
    """White box: something that is refused by a sound boundary; and if not, everything that it publishes then."""

    gaussian = False
    population: ClassVar[int | None] = None
    """How many users the boundary is built for; by default as many as come."""

    def __init__(
        self, env: gym.Env[Any, Any], make: Maker, *, users: int, kind: str, seed: int, statistic: str
    ) -> None:
        self._users = Users(env, make, users=self.population or users, place=0, kind=kind, seed=seed)
        self._statistic, self._come = statistic, users
        board = self._board(PROBE, 0)
        self.guarantee = guarantee_of(board)
        self._policy, pair = self._users.policy(board.statistic.exact, self.guarantee)
        self._pair = self._arranged(pair)
        seen = self._through(board, self._pair.tapes[:users])
        self.open = seen is not None
        self._length = 0 if seen is None else len(seen)
        self.scores: Sequence[Score] = [LinearDiscriminant(), NaiveBayes(), LastDigits()]

    def _board(self, world: int, number: int) -> Any:
        return board_of(self._users.built(world, number, self._statistic))

    def _arranged(self, pair: Neighbours) -> Neighbours:
        """The two sequences of users, as they come to this door."""
        return pair

    @abstractmethod
    def _through(self, board: Any, tapes: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Everything that is published if these users come and the door is tried; None where it is shut."""

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """The numbers that came through, and whether anything did."""
        tapes = self._pair.world(world)[: self._come]
        rows = np.zeros((count, self._length + 1))
        for row, number in zip(rows, range(first, first + count), strict=True):
            seen = self._through(self._board(world, number), tapes)
            if seen is not None:
                row[:-1], row[-1] = seen[: self._length], 1.0
        return rows


class Hostile(Door):
    """Policies that are not what they say: tables that nobody checked, with actions that there are not."""

    def _arranged(self, pair: Neighbours) -> Neighbours:
        """Everybody starts in the first state: what is in front of its cells belongs to other sums."""
        tapes, other = pair.tapes.copy(), pair.other.copy()
        tapes[:, 0] = other[0] = 0.0
        return Neighbours(tapes, other, pair.place)

    def _through(self, board: Any, tapes: NDArray[np.float64]) -> NDArray[np.float64] | None:
        board.unwrapped.reset(seed=self._users.seed)
        board.ask = self._users.ask(board.statistic)
        seen, shut = [], True
        for action in OUTSIDE:
            table = np.full_like(self._policy.table, action)
            policy = Policy.trusted(table, self._policy.n_actions)
            try:
                board.serve(policy, tapes[:1])
                shut = False
            except Exception:  # noqa: BLE001, S110 - refused, by whatever means
                pass
            seen.append(board.statistic.vector(board.release.sums()))
        return None if shut else np.concatenate(seen)


class Early(Door):
    """A batch that is closed while there is hardly anyone in it to hide among."""

    population = MANY

    def _through(self, board: Any, tapes: NDArray[np.float64]) -> NDArray[np.float64] | None:
        board.serve(self._policy, tapes)
        if board.release.version:
            return None  # it publishes by itself: nobody needs this door
        try:
            quiet(board.publish)
        except Exception:  # noqa: BLE001 - refused, by whatever means
            return None
        vector: NDArray[np.float64] = board.statistic.vector(board.release.sums())
        return vector if board.release.version else None
