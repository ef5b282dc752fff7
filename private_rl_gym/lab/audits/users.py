"""The users of an audit: two sequences that differ in one user.

They are repeated on one environment.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.envs import TabularEnv, TabularModel
from private_rl_gym.lab.registry import GridError
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.network import Layers
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.polynomials import Polynomials
from private_rl_gym.planning.simulate import Trajectories, rollout
from private_rl_gym.privacy.accounting.guarantee import Covers, Guarantee
from private_rl_gym.privacy.accounting.guarantee import Neighbours as Relation
from private_rl_gym.privacy.audit.judging import Score
from private_rl_gym.privacy.audit.neighbours import Worlds, neighbours
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.requests import Request, Values, Wanted
from private_rl_gym.privacy.statistics import Statistic
from private_rl_gym.wrappers import Boundary

__all__ = [
    "FAILED",
    "PROBE",
    "Game",
    "Maker",
    "Users",
    "board_of",
    "bound",
    "guarantee_of",
    "quiet",
    "rows_of",
    "statistic_there",
    "two_rooms",
]

MOST_TOLD = 8
"""Number of states that are told of a path."""

FAILED = -1.0
"""Mark of a run that failed, in place of the count of its numbers."""

PROBE = 2
"""A third world, in which a stack is examined before the runs."""

Maker = Callable[[gym.Env[Any, Any], int, int, str], Any]
"""A function of an environment, a number of users, a seed and a statistic: a boundary, or an agent with one."""


class Game(Protocol):
    """An attack that can run in two worlds."""

    guarantee: Guarantee
    gaussian: bool
    scores: Sequence[Score]

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """Return the observed numbers of ``count`` runs, as ``[run, number]``."""


def two_rooms(horizon: int, n_actions: int) -> TabularEnv:
    """Return two rooms in which all moves and rewards are random.

    Moves and rewards are tosses of a coin, so that two users may share no count.
    """
    coins = np.full((2, n_actions, 2), 0.5)
    return TabularEnv(TabularModel(coins, np.full((2, n_actions), 0.5), [0.5, 0.5], horizon))


def seed_of(seed: int, *path: int) -> int:
    """Return one of many independent seeds, one for each path."""
    words = np.random.SeedSequence(seed, spawn_key=path).generate_state(4)
    return int.from_bytes(words.tobytes(), "little")


def board_of(thing: Any) -> Any:
    """Return the boundary of an agent, or ``thing`` itself if it is one."""
    return thing.board if isinstance(thing, Agent) else thing


def quiet(call: Callable[[], Any]) -> Any:
    """Return the result of a function, without warnings.

    The ledger has the true cost of printed constants.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call()


def bound(thing: Any) -> Any:
    """Return a boundary that is bound to its own statistic.

    A boundary that an agent has bound, and anything else, is returned as it is.
    """
    if isinstance(thing, Boundary) and thing.open:
        thing.bind(thing.statistic.name)
    return thing


def guarantee_of(thing: Any) -> Guarantee:
    """Return the guarantee of a boundary, or of an agent with one."""
    guarantee: Guarantee = thing.guarantee if isinstance(thing, Agent) else thing.ledger.outside
    return guarantee


def rows_of(runs: Iterable[Callable[[], NDArray[np.float64]]], length: int) -> NDArray[np.float64]:
    """Return the numbers of each run and their count.

    The count is ``FAILED`` if the run failed.
    """
    rows = []
    for run in runs:
        row = np.zeros(length + 1)
        rows.append(row)
        try:
            seen = run()
        except Exception:  # noqa: BLE001 - an attacker sees failures, too
            row[-1] = FAILED
            continue
        row[: min(len(seen), length)] = seen[:length]
        row[-1] = len(seen)
    return np.array(rows).reshape(-1, length + 1)


def statistic_there(name: str, env: gym.Env[Any, Any]) -> Any:
    """Return the value of ``statistic=`` for this environment.

    It is the name, or features or layers if the environment has none of its own.
    """
    if name == "gradient":
        return Layers((), critic=())  # linear, so that noise is in few entries
    if name == "dynamics":
        return Polynomials(1)
    if name != "linear" or getattr(env.unwrapped, "mixture", None) is not None:
        return name
    model = env.unwrapped.model  # type: ignore[attr-defined]
    return _of_a_table(model.n_states, model.n_actions)


@lru_cache(maxsize=8)
def _of_a_table(n_states: int, n_actions: int) -> LinearFeatures:
    return LinearFeatures.tabular(n_states, n_actions)


class Users:
    """The two sequences of users of a game, and the stacks that they meet.

    All are on one environment.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        make: Maker,
        *,
        users: int,
        place: int,
        kind: str,
        seed: int,
        statistic: str = "tabular",
    ) -> None:
        model = getattr(env.unwrapped, "model", None)
        if model is None:
            raise GridError(f"{env} has no tapes. Audits replay users, and need a TabularEnv.")
        self.env, self.make, self.users, self.place, self.seed = env, make, users, place, seed
        self.tables, self.horizon = model.tables, model.horizon
        self.sizes = (model.horizon, model.n_states, model.n_actions)
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(b"neighbours")))
        self.kind, self.statistic = kind, statistic

    def built(self, world: int, number: int) -> Any:
        """Return the stack of one run."""
        return bound(self.make(self.env, self.users, seed_of(self.seed, self.users, world, number), self.statistic))

    def board(self, world: int, number: int) -> Any:
        """Return the boundary of the stack of one run."""
        return board_of(self.built(world, number))

    def policy(self, statistic: Statistic, guarantee: Guarantee) -> tuple[Policy, Worlds]:
        """Return the policy under which two users differ most, and both sequences of users.

        It is constant; if users report single steps, each cell once, it takes another action at every stage.

        The two users differ only in ways that the guarantee covers.
        """
        if guarantee.neighbours is Relation.ZERO_OUT:
            raise GridError(
                f"The guarantee is for '{guarantee.neighbours}', and audits replace a user: build the boundary with "
                "neighbours='replace'."
            )
        H, S, A = self.sizes
        kind = "rewards" if guarantee.covers is Covers.REWARDS else self.kind
        same_start = guarantee.neighbours is Relation.SAME_START
        best: tuple[float, Policy, Worlds] | None = None
        tables = [np.full((H, S), action) for action in range(min(A, 4))]
        if statistic.request_type is Wanted:
            tables = [np.broadcast_to(np.arange(H)[:, None] % A, (H, S))]
        for table in tables:
            policy = Policy(table, A)

            def distance(one: NDArray[np.float64], other: NDArray[np.float64], policy: Policy = policy) -> float:
                users = np.stack([one, other])
                if same_start and len(set(self.trajectories(policy, users).states[:, 0])) > 1:
                    return -1.0
                moved = np.subtract(*self.vectors(statistic, policy, users))
                far = float(np.linalg.norm(moved))  # Gaussian noise pays for this; it chooses among equals in L1
                return far if statistic.name == "linear" else float(np.abs(moved).sum()) + far / 100.0

            pair = neighbours(kind, self.tables, distance, self.rng, users=self.users, place=self.place)
            far = distance(pair.tapes[self.place], pair.other)
            if best is None or far > best[0] + 1e-9:
                best = far, policy, pair
        assert best is not None  # noqa: S101 - there is an action
        if best[0] <= 0.0:
            raise GridError(f"neighbours={kind!r} finds no two users with different contributions: choose another.")
        return best[1], best[2]

    def ask(self, statistic: Statistic) -> Request | None:
        """Return a request that makes contributions large, or None.

        None means that the statistic needs no request.
        """
        H, S, A = self.sizes
        if statistic.request_type is Wanted:
            return Wanted(np.ones((S, A), dtype=bool), most=H, by_stage=statistic.name == "staged-reports")
        if statistic.request_type is not Values:
            return None
        return Values(np.broadcast_to(np.append(H, np.arange(H - 1.0, -1.0, -1.0))[:, None], (H + 1, S)))

    def trajectories(self, policy: Policy, tapes: NDArray[np.float64]) -> Trajectories:
        """Return the trajectories of these users."""
        return rollout(self.tables, policy, tapes)

    def told(self, policy: Policy, pair: Worlds) -> str:
        """Return a description of the two users who make the difference.

        It is the end of a sentence.
        """
        both = self.trajectories(policy, np.stack([pair.tapes[pair.place], pair.other]))
        paths = [[str(state) for state in states[:MOST_TOLD]] for states in both.states]
        dots = " ..." if both.states.shape[1] > MOST_TOLD else ""
        said = [
            f"through states {' '.join(path)}{dots}, paid {paid:g}"
            for path, paid in zip(paths, both.rewards.sum(axis=1), strict=True)
        ]
        return f"user {pair.place + 1} goes {said[0]}, and in the other {said[1]}"

    def vectors(self, statistic: Statistic, policy: Policy, tapes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the contribution of each user, ``[user, cell]``, without noise.

        The users make the same random choices each time.
        """
        exact = statistic.exact
        users = self.trajectories(policy, tapes)
        vectors = np.zeros((len(tapes), exact.cells), dtype=np.int64)
        for user, vector in enumerate(vectors):
            uniforms = NoiseSource(self.seed).uniform(exact.draws)[None] if exact.draws else None
            exact.encode(users.part(user, user + 1), vector, self.ask(exact), uniforms)
        return np.asarray(vectors * exact.grid)

    def walk(self, env: gym.Env[Any, Any], policy: Policy, tape: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the observations and rewards of a user who enters by ``reset``.

        The seed is the same in every run.
        """
        return np.array(quiet(lambda: self._told(env, policy, tape)))

    def _told(self, env: gym.Env[Any, Any], policy: Policy, tape: NDArray[np.float64]) -> list[float]:
        observation, _ = env.reset(seed=self.seed, options={"user": tape})
        answers = [float(np.ravel(observation)[-1])]
        state = self.trajectories(policy, tape[None]).states[0]
        for stage in range(self.horizon):
            observation, reward, _, _, _ = env.step(int(policy.table[stage, state[stage]]))
            answers += [float(np.ravel(observation)[-1]), float(reward)]
        return answers
