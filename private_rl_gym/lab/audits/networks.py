"""White-box attacks on sums of gradients, and on corrections of a model.

Two users get requests that make one of them move the sums as far as possible.

* ``OBJECTIVES``, ``QUESTIONS`` - the requests that an attack may send to users
* ``NetworkSums`` - everything that a boundary publishes of two worlds of such users

The users, the public coins of their actions, the parameters and the request are searched for: those are taken with
which the exact sums of the two worlds lie farthest apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from private_rl_gym.lab.audits.canaries import LONG, OTHER, RICH, SHORT, TOLD
from private_rl_gym.lab.audits.learners import AsItIs
from private_rl_gym.lab.audits.mechanisms import MANY
from private_rl_gym.lab.audits.users import FAILED, PROBE, Maker, board_of, bound, guarantee_of, rows_of, seed_of
from private_rl_gym.lab.registry import GridError
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.audit.judging import Score
from private_rl_gym.privacy.audit.learned import LastDigits, LinearDiscriminant, NaiveBayes
from private_rl_gym.privacy.audit.likelihood import Stream, likelihood, says_gaussian
from private_rl_gym.privacy.requests import Objective, Refinement

__all__ = ["OBJECTIVES", "OTHERS", "QUESTIONS", "NetworkSums"]

OTHERS = 10
"""Number of users in a batch where the user who differs is among others."""

COINS = 64
"""Number of seeds that are tried for the coins of actions."""

_ALONE: dict[str, Any] = {"shares": (1.0, 0.0, 0.0, 0.0), "clip": 1e-3}

OBJECTIVES: dict[str, tuple[dict[str, Any], ...]] = {
    "one-release": (_ALONE, {**_ALONE, "clip": 3.0}),
    "stream": (_ALONE,),
    "others": (_ALONE, {**_ALONE, "clip": 1.0}),
    "parts": ({"shares": (0.8, 0.36, 0.36, 0.3), "clip": 1e-3},),
    "critic": ({"shares": (0.0, 0.0, 0.0, 1.0), "clip": 1e-3},),
    "local-steps": ({**_ALONE, "local_steps": 3},),
    "hostile": tuple(
        {"shares": shares, "reach": reach, "clip": clip}
        for shares in ((1.0, 0.0, 0.0, 0.0), (0.8, 0.36, 0.36, 0.3))
        for reach, clip in ((1e166, 1e-172), (1e150, 1e-170), (1e170, 1e-300), (1e-300, 1e-300), (1e-300, 1e300))
    ),
}
"""For each attack the objectives that it may ask of users. Hostile ones are as small and as large as numbers are."""

SCALES = {"hostile": (0.1, 1.0, 50.0)}
"""Factors on the parameters of the network that users run; 1 where nothing is said."""


_REWARD: dict[str, Any] = {"about": "step", "centre": 0.0, "scale": 1e9, "units": (0.0, 1.0), "clip": 1e-3}

QUESTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "one-release": (_REWARD, {**_REWARD, "clip": 0.3}),
    "stream": (_REWARD,),
    "others": (_REWARD, {**_REWARD, "clip": 0.3}),
    "scales": ({**_REWARD, "about": "scales"},),
    "centre": ({**_REWARD, "about": "centre", "scale": 1.0},),
    "hostile": tuple(
        {**_REWARD, "about": about, "scale": scale, "units": (unit, unit), "clip": clip}
        for about in ("step", "centre")
        for scale, unit, clip in ((1e-9, 1e-300, 1e-172), (1e9, 1e9, 1e-300), (1.0, 1e-300, 1e300), (1e-300, 1.0, 1e-3))
    ),
}
"""For each attack the questions that it may ask of users, whose state is one number."""


def requests_of(kind: str, exact: Any, stages: int) -> list[Any]:
    """Return the requests of an attack, for this statistic."""
    if exact.name == "gradient":
        return [exact.checked(Objective(np.zeros(stages), **options)) for options in OBJECTIVES[kind]]
    found = []
    for options in QUESTIONS[kind]:
        centre, scale = np.full(1, options["centre"]), np.full(1, options["scale"])
        units, coefficients = np.array(options["units"]), np.zeros((exact.basis.size, exact.targets))
        found.append(Refinement(options["about"], centre, scale, units, coefficients, options["clip"]))
    return [exact.checked(request) for request in found]


class NetworkSums:
    """White box: all published sums of batches in which one user differs."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        make: Maker,
        *,
        users: int,
        kind: str,
        seed: int,
        statistic: str = "gradient",
        chosen: tuple[bytes, bytes] | None = None,
    ) -> None:
        """Prepare the game.

        ``chosen`` is the result of a worker that has prepared it, so that the search runs once.
        """
        self._env, self._make, self._count, self._seed, self._statistic = env, make, users, seed, statistic
        board = self._board(PROBE, 0)
        if getattr(board.statistic, "name", None) != statistic:
            raise GridError(f"{type(board).__name__} publishes no {statistic}, but sums of {board.statistic.title}.")
        self.guarantee = guarantee_of(board)
        if self.guarantee.neighbours is not Neighbours.REPLACE_ONE:
            raise GridError(f"The guarantee is for '{self.guarantee.neighbours}', and this attack replaces a user.")
        self._sizes = self._batches(board)
        size = board.source.network.size
        self._theta = np.array([0.0, 0.0, 1.0, -1.0]) if size == 4 else np.random.default_rng(0).normal(size=size)
        exact, stages = board.statistic.exact, board.source.horizon
        self._asks = requests_of(kind, exact, stages)
        scales = SCALES.get(kind, (1.0,))
        searched = itertools.product(scales, range(COINS)) if chosen is None else [np.frombuffer(chosen[0]).tolist()]
        farthest = 0.0
        for scale, coins in searched:
            sums = self._exact(board, scale, int(coins))
            for (one, other), number in itertools.product(itertools.combinations(sums, 2), range(len(self._asks))):
                distance = float(np.linalg.norm(sums[other][number] - sums[one][number]))
                if distance > farthest * (1.0 + 1e-9):
                    farthest, self._pair, self._sums = distance, (one, other), (sums[one][number], sums[other][number])
                    self._ask, self._scale, self._coins = self._asks[number], scale, int(coins)
        if farthest == 0.0:
            raise GridError(f"{kind}: the two users send the same reports under this request. Choose other attacks.")
        self._prepare(board)
        here, there = (TOLD[user] for user in self._pair)
        self.view = (stages, users, len(self._sizes), f"user 1 {here}, and in the other {there}")

    @property
    def chosen(self) -> tuple[bytes, bytes]:
        """The scale and the coins, for other workers that prepare this game.

        The scale is that of the parameters.
        """
        return np.array([self._scale, self._coins]).tobytes(), b""

    def _board(self, world: int, number: int) -> Any:
        seed = seed_of(self._seed, self._count, world, number)
        return board_of(bound(self._make(self._env, self._count, seed, self._statistic)))

    def _batches(self, board: Any) -> list[int]:
        """Return the public numbers of users in the batches that are published."""
        sizes, left = [], self._count
        while left > 0:
            sizes.append(min(left, max(1, board.users_to_release)))
            parameters = np.zeros(board.source.network.size)
            ask = requests_of("stream", board.statistic.exact, board.source.horizon)[0]
            board.serve(parameters, np.full(sizes[-1], OTHER), ask, rng=np.random.default_rng(0))
            left -= sizes[-1]
        if not board.release.version:
            raise GridError(f"{type(board).__name__} has published nothing after {self._count} users: give more users.")
        return sizes

    def _seeds(self, user: int) -> list[NDArray[np.int64]]:
        """Return the users of each batch.

        The user who differs comes first, as often as the guarantee allows.
        """
        firsts = [user if place < self.guarantee.visits else OTHER for place in range(len(self._sizes))]
        return [np.array([first] + [OTHER] * (size - 1)) for first, size in zip(firsts, self._sizes, strict=True)]

    def _exact(self, board: Any, scale: float, coins: int) -> dict[int, NDArray[np.float64]]:
        """Return the exact sums ``[ask, batch, cell]`` for each user in first place."""
        exact, source = board.statistic.exact, board.source
        policy, found = source.policy(scale * self._theta), {}
        for user in (LONG, SHORT, RICH):
            rows = np.zeros((len(self._asks), len(self._sizes), exact.cells), dtype=np.int64)
            for place, seeds in enumerate(self._seeds(user)):
                episodes, _ = source.run_all(policy, len(seeds), seeds, np.random.default_rng([coins, place]))
                for number, ask in enumerate(self._asks):
                    exact.encode(episodes, rows[number, place], ask)
            found[user] = rows * exact.grid
        return found

    def _prepare(self, board: Any) -> None:
        """Choose the numbers to examine, and the scores that judge them."""
        base, other = np.cumsum(self._sums, axis=1)  # releases are about all users so far
        moved = other - base
        self._moved, each = self._sums[1] - self._sums[0], max(8, MANY // len(self._sizes))
        self._cells = np.argsort(-np.abs(moved).max(axis=0), kind="stable")[:each]
        noises, silent = board.audit.noises(self._sizes), not hasattr(board, "transcript")
        self.gaussian = says_gaussian(noises) and silent
        self._known = likelihood(noises, Stream(base, moved, tuple(self._sizes))) if silent else None
        self._length = len(self._seen(self._board(PROBE, 1), 0))
        first = "projection" if self._known is None else "likelihood ratio"
        learned: Sequence[Score] = (LinearDiscriminant(), NaiveBayes(), LastDigits())
        self.scores: Sequence[Score] = [AsItIs(first), AsItIs("one coordinate", 1), *learned]

    def runs(self, world: int, first: int, count: int) -> NDArray[np.float64]:
        """Return two scores, the observed numbers and their count for each run.

        The count is ``FAILED`` if the run failed.
        """
        numbers, size = range(first, first + count), self._moved.size
        seen = rows_of((lambda n=n: self._seen(self._board(world, n), world) for n in numbers), self._length)  # type: ignore[misc]
        releases, rest = seen[:, :size], seen[:, size:]
        rest[:, -1] -= np.where(rest[:, -1] == FAILED, 0.0, size)
        batches = np.diff(releases.reshape(count, *self._moved.shape), axis=1, prepend=0.0)
        score = np.einsum("ktc,tc->k", batches, self._moved) if self._known is None else self._known(releases)
        return np.column_stack([score, batches[:, 0, self._cells[0]], rest])

    def _seen(self, board: Any, world: int) -> NDArray[np.float64]:
        """Return the releases of one run, some of their numbers, and their other fields."""
        releases, seen, parameters = [], [], self._scale * self._theta
        for place, seeds in enumerate(self._seeds(self._pair[world])):
            board.serve(parameters, seeds, self._ask, rng=np.random.default_rng([self._coins, place]))
            release = board.release
            releases.append(board.statistic.vector(release.sums()))
            seen += [releases[-1][self._cells], [release.version, release.users, *release.noise_std.values()]]
            if board.apart:
                seen.append(board.statistic.vector(board.batch.sums())[self._cells])
        if hasattr(board, "transcript"):
            seen.append(np.ravel(board.transcript()))
        return np.concatenate([*releases, *seen]).astype(np.float64)
