"""Attacks on agents while they learn.

* ``OthersActions`` - black box: the actions of all other users, and the final policy
* ``Perturbed`` - white box: the perturbed values that RLSVI plans with
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.agents.tabular.rlsvi import RLSVI
from private_rl_gym.lab.audits.users import (
    PROBE,
    Maker,
    Users,
    board_of,
    guarantee_of,
    quiet,
    statistic_there,
)
from private_rl_gym.lab.registry import GridError
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.audit.judging import Score
from private_rl_gym.privacy.audit.learned import LinearDiscriminant, NaiveBayes
from private_rl_gym.privacy.audit.neighbours import Worlds
from private_rl_gym.privacy.release import Release
from private_rl_gym.privacy.statistics import TabularCounts
from private_rl_gym.wrappers import OpenBillboard

__all__ = ["AsItIs", "OthersActions", "Perturbed"]


class Actions:
    """An observer that records the actions of users."""

    def __init__(self, horizon: int) -> None:
        self._horizon = horizon
        self.actions: list[NDArray[Any]] = []
        self.first: Trajectories | None = None

    def left(self, users: Trajectories | None, count: int) -> None:
        """Record the actions of users who have left."""
        if self.first is None and users is not None:
            self.first = users.part(0, 1)
        self.actions.append(np.full((count, self._horizon), -1) if users is None else users.actions.copy())

    def reported(self, vector: NDArray[np.int64]) -> None:
        """Ignore reports."""


class OthersActions:
    """Black box: the actions of all users but one, and the last policy.

    An agent learns behind a boundary, as in use.

    The others collude. The attack tries many choices of their tapes, before and after the user who differs. It takes
    the choice for which that user makes the largest difference if sums are exact.
    """

    gaussian = False

    def __init__(
        self,
        env: gym.Env[Any, Any],
        make: Maker,
        *,
        users: int,
        kind: str,
        seed: int,
        chosen: tuple[bytes, bytes] | None = None,
    ) -> None:
        """Prepare the game.

        ``chosen`` are the users of a worker that has prepared it, so that all use the same.
        """
        self._users = Users(env, make, users=users, place=(users - 1) // 2, kind=kind, seed=seed)
        probe = self._users.built(PROBE, 0)
        if not isinstance(probe, Agent):
            raise GridError("A black-box attack needs an agent: name one, or a target that returns one.")
        self._users.statistic = type(probe).statistic
        if chosen is None:
            _, pair = self._users.policy(board_of(probe).statistic.exact, guarantee_of(probe))
            self._pair = self._colluding(pair, type(probe))
        else:
            tapes, other = (np.frombuffer(part) for part in chosen)
            self._pair = Worlds(tapes.reshape(users, -1), other, self._users.place)
        agent = self._users.built(PROBE, 0)
        self._seen(agent, self._pair.tapes)
        self.guarantee = guarantee_of(agent)
        self.scores: Sequence[Score] = [NaiveBayes(), LinearDiscriminant()]

    @property
    def chosen(self) -> tuple[bytes, bytes]:
        """The users, for other workers that prepare this game."""
        return self._pair.tapes.tobytes(), self._pair.other.tobytes()

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """Return the actions and the last policy of each run."""
        tapes = self._pair.world(world)
        return np.array([self._seen(self._users.built(world, number), tapes) for number in range(first, first + count)])

    def _seen(self, agent: Agent, tapes: NDArray[np.float64]) -> NDArray[np.float64]:
        board = agent.board
        assert board is not None  # noqa: S101 - it was built with one
        horizon, seen = self._users.horizon, Actions(self._users.horizon)
        board.audit.observe(seen)
        board.invite(tapes)
        quiet(lambda: agent.learn(len(tapes) * horizon, log_interval=None))
        others = np.delete(np.concatenate(seen.actions), self._users.place, axis=0)
        return np.concatenate([others.ravel(), np.ravel(quiet(lambda: agent.policy).table)]).astype(np.float64)

    def _colluding(self, pair: Worlds, kind: type[Agent]) -> Worlds:
        """Choose the other users with whom the user makes the largest difference.

        The difference is that of exact sums with one seed.
        """
        users, best, most = self._users, pair, -1
        for attempt in range(24):
            tapes = pair.tapes.copy()
            if attempt:
                tapes = users.rng.random(tapes.shape)
                tapes[users.place] = pair.tapes[users.place]
            tried = Worlds(tapes, pair.other, users.place)
            seen = []
            for world in (0, 1):
                board = OpenBillboard(users.env, statistic=statistic_there(kind.statistic, users.env))
                try:
                    agent = kind("TabularPolicy", board, seed=0)
                except TypeError:  # an agent from other code, with another constructor
                    return pair
                seen.append(self._seen(agent, tried.world(world)))
            differ = int((seen[0] != seen[1]).sum())
            if differ > most:
                best, most = tried, differ
        return best


class Perturbed:
    """White box: the perturbed values of RLSVI at the cells of one user.

    The values are those of all later plans.

    No other user visits the cells of their path, if starts allow it, and only their rewards differ. The likelihood
    ratio is summed while the agent learns, because the cells of the path depend on its noise.
    """

    gaussian = True

    def __init__(self, env: gym.Env[Any, Any], make: Maker, *, users: int, seed: int) -> None:
        self._users = Users(env, make, users=users, place=0, kind="rewards", seed=seed)
        agent = self._agent(PROBE, 0)
        _, self._pair = self._users.policy(TabularCounts(*self._users.sizes), agent.guarantee)
        self._ratio(agent, self._pair.tapes)
        self.guarantee = agent.guarantee
        self.scores: Sequence[Score] = [AsItIs()]

    def _agent(self, world: int, number: int) -> RLSVI:
        agent = self._users.built(world, number)
        if not isinstance(agent, RLSVI):
            raise GridError("This attack reads perturbed values, and needs the agent RLSVI.")
        return agent

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """Return one likelihood ratio for each run."""
        tapes = self._pair.world(world)
        ratios = [self._ratio(self._agent(world, number), tapes) for number in range(first, first + count)]
        return np.array(ratios)[:, None]

    def _ratio(self, agent: RLSVI, tapes: NDArray[np.float64]) -> float:
        board = agent.board
        assert board is not None  # noqa: S101 - it was built with one
        seen, total = Actions(self._users.horizon), [0.0]
        stages = np.arange(self._users.horizon)

        def reveal(release: Release, R: NDArray[np.float64], noise: NDArray[np.float64]) -> None:
            """Add the log likelihood ratio of the user's values in one plan.

            The values are those of the cells that the user visits, and the ratio compares a user with rewards to one
            without.
            """
            if seen.first is None:
                return
            cells = (stages, seen.first.states[0, :-1], seen.first.actions[0])
            n, others = release.n[cells], release.r[cells] - seen.first.rewards[0]
            without, paid = np.clip(others / n, 0.0, 1.0), np.clip((others + 1.0) / n, 0.0, 1.0)
            variance = agent.noise_variance(release.users + 1) / (n + 1.0)
            values = (R + noise)[cells]
            total[0] += float((((values - without) ** 2 - (values - paid) ** 2) / (2.0 * variance)).sum())

        agent.observe(reveal)
        board.audit.observe(seen)
        board.invite(tapes)
        quiet(lambda: agent.learn(len(tapes) * self._users.horizon, log_interval=None))
        return total[0]


@dataclass
class AsItIs:
    """A score that was computed during the run, at a fixed place."""

    name: str = "likelihood ratio"
    place: int = 0
    learns: bool = False

    def fit(self, zero: NDArray[np.float64], one: NDArray[np.float64]) -> None:
        """Do nothing, because the score is not learned."""

    def __call__(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the score of each run."""
        return runs[:, self.place]
