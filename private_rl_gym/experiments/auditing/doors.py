"""Doors: requests that an honest server never makes, and that a sound boundary refuses.

* ``Hostile`` - policies with actions that do not exist, which would change counts whose noise is meant for less
* ``Early`` - a batch that is closed before it has the number of users that its guarantee assumes

A boundary that refuses them passes. If one is accepted (an open door), everything published after it is held against
the claim.
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
"""Number of users that a boundary is built for, of whom only a few come."""

OUTSIDE = (-1, -2)
"""Actions that do not exist. Larger ones would leave the memory of an array if a boundary accepted them."""


class Door(ABC):
    """White box: a request that a sound boundary refuses; if it is accepted, everything published after it."""

    gaussian = False
    population: ClassVar[int | None] = None
    """Number of users that the boundary is built for; None for the number of users who come."""

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
        """The two sequences of users, adapted to this request."""
        return pair

    @abstractmethod
    def _through(self, board: Any, tapes: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Everything that is published if these users come and the request is made; None if it is refused."""

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """The published numbers of each run, and 1 if the request was accepted or 0 if it was refused."""
        tapes = self._pair.world(world)[: self._come]
        rows = np.zeros((count, self._length + 1))
        for row, number in zip(rows, range(first, first + count), strict=True):
            seen = self._through(self._board(world, number), tapes)
            if seen is not None:
                row[:-1], row[-1] = seen[: self._length], 1.0
        return rows


class Hostile(Door):
    """Policies with unchecked tables, whose actions do not exist."""

    def _arranged(self, pair: Neighbours) -> Neighbours:
        """Let everybody start in the first state, because the cells in front of its own belong to other sums."""
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
    """A batch that is closed with too few users in it to hide any one of them."""

    population = MANY

    def _through(self, board: Any, tapes: NDArray[np.float64]) -> NDArray[np.float64] | None:
        board.ask = self._users.ask(board.statistic)
        board.serve(self._policy, tapes)
        if board.release.version:
            return None  # it publishes by itself: nobody needs this door
        try:
            quiet(board.publish)
        except Exception:  # noqa: BLE001 - refused, by whatever means
            return None
        vector: NDArray[np.float64] = board.statistic.vector(board.release.sums())
        return vector if board.release.version else None
