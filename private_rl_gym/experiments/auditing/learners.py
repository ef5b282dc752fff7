"""Agents that learn while they are watched.

* ``OthersActions`` - black box: the actions of all other users, and the final policy
* ``Perturbed`` - white box: the values that RLSVI acts by
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.agents.rlsvi import RLSVI
from private_rl_gym.experiments.auditing.users import (
    PROBE,
    Maker,
    Users,
    board_of,
    exact_of,
    guarantee_of,
    quiet,
    summed_there,
)
from private_rl_gym.experiments.names import GridError
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.audit.judging import Score
from private_rl_gym.privacy.audit.learned import LinearDiscriminant, NaiveBayes
from private_rl_gym.privacy.audit.neighbours import Neighbours
from private_rl_gym.privacy.statistics import TabularCounts
from private_rl_gym.wrappers import OpenBillboard

__all__ = ["OthersActions", "Perturbed"]


class _Script(np.random.Generator):
    """In place of an environment's generator: draws the tapes of given users, one after the other."""

    def __init__(self, tapes: NDArray[np.float64]) -> None:
        super().__init__(np.random.PCG64(0))
        self._tapes, self._next = tapes, 0

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """The next users."""
        del dtype, out
        users = size[0] if isinstance(size, tuple) else 1
        found = self._tapes[self._next : self._next + users].copy()
        self._next += users
        return found if isinstance(size, tuple) else found[0]


class OthersActions:
    """Black box: a real agent learns in a real stack; what all users but one did, and the policy in the end.

    The others collude: of many choices of their tapes, before and after her, the one that makes most of her difference
    where sums are exact.
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
        """``chosen``: the users of somebody else who prepared this game, so that all workers meet the same."""
        self._users = Users(env, make, users=users, place=(users - 1) // 2, kind=kind, seed=seed)
        self._summed = "tabular"
        probe = self._built(PROBE, 0)
        if not isinstance(probe, Agent):
            raise GridError("A black-box attack needs an agent: name one, or a target that returns one.")
        self._summed = type(probe).learns_from
        exact = exact_of(board_of(probe)._board.statistic)
        if chosen is None:
            _, pair = self._users.policy(exact, guarantee_of(probe))
            self._pair = self._colluding(pair, type(probe))
        else:
            tapes, other = (np.frombuffer(part) for part in chosen)
            self._pair = Neighbours(tapes.reshape(users, -1), other, self._users.place)
        agent = self._built(PROBE, 0)
        self._seen(agent, self._pair.tapes)
        self.guarantee = guarantee_of(agent)
        self.scores: Sequence[Score] = [NaiveBayes(), LinearDiscriminant()]

    @property
    def chosen(self) -> tuple[bytes, bytes]:
        """The users, for others who prepare this game."""
        return self._pair.tapes.tobytes(), self._pair.other.tobytes()

    def _built(self, world: int, number: int) -> Any:
        return self._users.built(world, number, self._summed)

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """Actions and policies."""
        tapes = self._pair.world(world)
        return np.array([self._seen(self._built(world, number), tapes) for number in range(first, first + count)])

    def _seen(self, agent: Agent, tapes: NDArray[np.float64]) -> NDArray[np.float64]:
        board = agent.board
        assert board is not None  # noqa: S101 - it was built with one
        sums, horizon = board._board, self._users.horizon
        receive, actions = sums.receive, []

        def watch(users: Trajectories | None, count: int) -> None:
            actions.append(np.full((count, horizon), -1) if users is None else users.actions.copy())
            receive(users, count)

        sums.receive = watch  # type: ignore[method-assign]
        board.unwrapped.np_random = _Script(tapes)
        quiet(lambda: agent.learn(len(tapes) * horizon, log_interval=None))
        others = np.delete(np.concatenate(actions), self._users.place, axis=0)
        return np.concatenate([others.ravel(), np.ravel(quiet(lambda: agent.policy).table)]).astype(np.float64)

    def _colluding(self, pair: Neighbours, kind: type[Agent]) -> Neighbours:
        """Others who make the most of her difference: tried on exact sums, with one seed of the agent for both."""
        users, best, most = self._users, pair, -1
        for attempt in range(24):
            tapes = pair.tapes.copy()
            if attempt:
                tapes = users.rng.random(tapes.shape)
                tapes[users.place] = pair.tapes[users.place]
            tried = Neighbours(tapes, pair.other, users.place)
            seen = []
            for world in (0, 1):
                board = OpenBillboard(users.env, statistic=summed_there(kind.learns_from, users.env))
                try:
                    agent = kind("TabularPolicy", board, seed=0)
                except TypeError:  # an agent of somebody's own, with a constructor of its own
                    return pair
                seen.append(self._seen(agent, tried.world(world)))
            differ = int((seen[0] != seen[1]).sum())
            if differ > most:
                best, most = tried, differ
        return best


class Perturbed:
    """White box: the perturbed values of RLSVI at the cells of one user, in every plan after she came.

    Her path has its cells for itself, if starts allow it, and only her rewards differ. The likelihood ratio is summed
    while the agent learns, because which cells are hers depends on its noise.
    """

    gaussian = True

    def __init__(self, env: gym.Env[Any, Any], make: Maker, *, users: int, seed: int) -> None:
        self._users = Users(env, make, users=users, place=0, kind="rewards", seed=seed)
        agent = self._agent(PROBE, 0)
        _, self._pair = self._users.policy(TabularCounts(*self._users.sizes), agent.guarantee)
        self._ratio(agent, self._pair.tapes)
        self.guarantee = agent.guarantee
        self.scores: Sequence[Score] = [_AsItIs()]

    def _agent(self, world: int, number: int) -> RLSVI:
        agent = self._users.built(world, number)
        if not isinstance(agent, RLSVI):
            raise GridError("Perturbed values are those of RLSVI.")
        return agent

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """One likelihood ratio a run."""
        tapes = self._pair.world(world)
        found = [self._ratio(self._agent(world, number), tapes) for number in range(first, first + count)]
        return np.array(found)[:, None]

    def _ratio(self, agent: RLSVI, tapes: NDArray[np.float64]) -> float:
        board = agent.board
        assert board is not None  # noqa: S101 - it was built with one
        total = [0.0]
        hers: list[tuple[NDArray[Any], ...]] = []
        perturbed, receive, stages = agent.perturbed, board._board.receive, np.arange(self._users.horizon)

        def watch(users: Trajectories | None, count: int) -> None:
            if not hers and users is not None:
                hers.append((stages, users.states[0, :-1], users.actions[0], users.rewards[0]))
            receive(users, count)

        def reveal(release: Any) -> Any:
            P, R, noise = perturbed(release)
            if hers:
                cells, rewards = hers[0][:3], hers[0][3]
                n = release.n[cells]
                without = np.clip((release.r[cells] - rewards) / n, 0.0, 1.0)
                with_her = np.clip((release.r[cells] - rewards + 1.0) / n, 0.0, 1.0)
                variance = agent.noise_variance(release.users + 1) / (n + 1.0)
                seen = (R + noise)[cells]
                total[0] += float((((seen - without) ** 2 - (seen - with_her) ** 2) / (2.0 * variance)).sum())
            return P, R, noise

        agent.perturbed, board._board.receive = reveal, watch  # type: ignore[method-assign]
        board.unwrapped.np_random = _Script(tapes)
        quiet(lambda: agent.learn(len(tapes) * self._users.horizon, log_interval=None))
        return total[0]


class _AsItIs:
    """A score that was computed in the run."""

    name = "likelihood ratio"
    learns = False

    def fit(self, zero: NDArray[np.float64], one: NDArray[np.float64]) -> None:
        """Nothing is learned."""

    def __call__(self, runs: NDArray[np.float64]) -> NDArray[np.float64]:
        """The number."""
        return runs[:, 0]
