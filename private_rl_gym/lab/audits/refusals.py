"""Attacks by requests that a sound boundary refuses.

An honest server never makes such requests.

* ``Hostile`` - policies with actions that do not exist, which would change counts whose noise is meant for less
* ``Early`` - a batch that is closed before it has the number of users that its guarantee assumes

A boundary that refuses them passes. If one is accepted, everything published after it is held against
the claim.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.lab.audits.users import PROBE, Maker, Users, guarantee_of, quiet
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.audit.judging import Score
from private_rl_gym.privacy.audit.learned import LastDigits, LinearDiscriminant, NaiveBayes
from private_rl_gym.privacy.audit.neighbours import Worlds

__all__ = ["Early", "Hostile", "RefusedRequest"]

MANY = 20_000
"""Number of users that a boundary is built for, of whom only a few come."""

OUTSIDE = (-1, -2)
"""Actions that do not exist. Larger ones would leave the memory of an array if a boundary accepted them."""


class RefusedRequest(ABC):
    """White box: a request that a sound boundary refuses.

    If it is accepted, the attack sees everything that is published after it.
    """

    gaussian = False
    users_there: ClassVar[int | None] = None
    """Number of users that the boundary is built for; None for the number of users who come."""

    def __init__(
        self, env: gym.Env[Any, Any], make: Maker, *, users: int, kind: str, seed: int, statistic: str
    ) -> None:
        self._users = Users(
            env, make, users=self.users_there or users, place=0, kind=kind, seed=seed, statistic=statistic
        )
        self._come, board = users, self._users.board(PROBE, 0)
        self.guarantee = guarantee_of(board)
        self._policy, pair = self._users.policy(board.statistic.exact, self.guarantee)
        self._pair = self._arranged(pair)
        seen = self._through(board, self._pair.tapes[:users])
        self.open = seen is not None
        self._length = 0 if seen is None else len(seen)
        self.scores: Sequence[Score] = [LinearDiscriminant(), NaiveBayes(), LastDigits()]

    def _arranged(self, pair: Worlds) -> Worlds:
        """Return the two sequences of users, adapted to this request."""
        return pair

    @abstractmethod
    def _through(self, board: Any, tapes: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return everything that is published after the request; None if it is refused.

        The users are those of the tapes.
        """

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """Return the published numbers of each run, and whether the request was accepted.

        The last number is 1 if the request was accepted, or 0 if it was refused.
        """
        tapes = self._pair.world(world)[: self._come]
        rows = np.zeros((count, self._length + 1))
        for row, number in zip(rows, range(first, first + count), strict=True):
            seen = self._through(self._users.board(world, number), tapes)
            if seen is not None:
                row[:-1], row[-1] = seen[: self._length], 1.0
        return rows


class Hostile(RefusedRequest):
    """Policies with unchecked tables, whose actions do not exist."""

    def _arranged(self, pair: Worlds) -> Worlds:
        """Return users who all start in the first state.

        The cells in front of those of this state belong to other sums.
        """
        tapes, other = pair.tapes.copy(), pair.other.copy()
        tapes[:, 0] = other[0] = 0.0
        return Worlds(tapes, other, pair.place)

    def _through(self, board: Any, tapes: NDArray[np.float64]) -> NDArray[np.float64] | None:
        board.unwrapped.reset(seed=self._users.seed)
        board.request = self._users.ask(board.statistic)
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


class Early(RefusedRequest):
    """A batch that is closed with too few users to hide any one."""

    users_there = MANY

    def _through(self, board: Any, tapes: NDArray[np.float64]) -> NDArray[np.float64] | None:
        board.request = self._users.ask(board.statistic)
        board.serve(self._policy, tapes)
        if board.release.version:
            return None  # it publishes by itself: there is nothing to refuse
        try:
            quiet(board.publish)
        except Exception:  # noqa: BLE001 - refused, by whatever means
            return None
        vector: NDArray[np.float64] = board.statistic.vector(board.release.sums())
        return vector if board.release.version else None
