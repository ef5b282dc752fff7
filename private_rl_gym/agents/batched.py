"""Learners that plan their own batches, each written from top to bottom as in its paper.

* ``Batch`` - the policies of a batch, the number of users for each, and the request to all of them
* ``BatchedAgent`` - an agent that generates batches and receives the release of each
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents.base import Agent
from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.errors import ErrorLaw

__all__ = ["Batch", "BatchedAgent"]

ENDLESS = 2**40
"""Number of users who run the final policy: more than will ever come."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Users whose sums are published together.

    Attributes:
        runs: Pairs (policy, users) in order: each policy, and the number of users who run it.
        ask: The request to all of them besides their actions.
        deploy: The best policy that is known so far, which ``predict`` plays. By default the first of ``runs``.
    """

    runs: Sequence[tuple[Policy, int]]
    ask: Ask | None = None
    deploy: Policy | None = None

    @classmethod
    def of(cls, policy: Policy, users: int, ask: Ask | None = None, deploy: Policy | None = None) -> Batch:
        """A batch in which all users run one policy."""
        return cls(((policy, users),), ask, deploy)

    @property
    def users(self) -> int:
        """Number of users in the batch."""
        return sum(count for _, count in self.runs)


class BatchedAgent(Agent):
    """A learner written as a generator: it yields a batch, and receives the release of exactly the users in it.

    The generator depends on sizes, ``known_users``, ``plan_rng`` and the releases that it received, and on nothing
    else. So a saved agent is the list of these releases, and is restored by running the generator again.
    """

    plans_batches = True
    keeps_policy = False  # users run the policy at their place in a batch
    statistic: str = "tabular"

    @abstractmethod
    def batches(self) -> Generator[Batch, Any, Any]:
        """The algorithm. All later users run the policy that it returns."""

    def prepare(self) -> None:
        """Begin again, with all users that may still come and a random stream for planning."""
        self.known_users = self._board.users_left
        sequence = np.random.SeedSequence(self.seed, spawn_key=tuple(b"plan"))
        self._begin(np.random.PCG64(sequence).state)

    def _begin(self, random_state: Any) -> None:
        self._random_start = random_state
        self.plan_rng = np.random.default_rng(0)
        self.plan_rng.bit_generator.state = random_state
        self._received: list[Any] = []
        self._running = self.batches()
        self._final: Policy | None = None
        self._batch: Batch | None = None
        self._advance(None)

    def _advance(self, release: Any) -> None:
        """Hand the generator a release (None at first), and take its next batch."""
        if release is not None:
            self._received.append(release)
        self._place, self._done = 0, 0
        self._since: int | None = None  # the release before the current batch, once it has users
        try:
            self._batch = self._running.send(release)
            if self._batch.users < 1:
                raise ValueError(f"{type(self).__name__} planned a batch without users.")
        except StopIteration as finished:
            self._final, self._batch = finished.value, None

    # The loop of the base class --------------------------------------------------------------------------------------

    def plan(self, release: Any) -> Policy:
        """The policy at the current place of the current batch."""
        del release
        return self._current()

    def _plan_if_new(self) -> None:
        if self._board.identity != self._identity:  # the board has continued from a saved state
            self._meet(self._board, acts_on=True)
        self._policy = self._current()
        self._send(self.request())

    def _current(self) -> Policy:
        board = self._board
        if self._batch is not None and self._since is not None:
            everyone = self._place == len(self._batch.runs)
            if everyone and board.release.version == self._since:
                board.publish()  # others were in the batch, or some vanished from it
            if board.release.version != self._since:
                self._advance(board.batch.with_certain_rows())
        if self._batch is None:
            assert self._final is not None  # noqa: S101 - one or the other
            return self._final
        return self._batch.runs[min(self._place, len(self._batch.runs) - 1)][0]

    def request(self) -> Ask | None:
        """The request of the current batch."""
        return None if self._batch is None else self._batch.ask

    def users_to_come(self) -> int:
        """The number of users who still run the current policy."""
        if self._batch is None:
            return ENDLESS
        if self._place == len(self._batch.runs):  # the batch is not closed yet
            return self._board.users_to_release
        return self._batch.runs[self._place][1] - self._done

    def _serve(self, users: int) -> int:
        self._plan_if_new()
        batch, board = self._batch, self._board
        if batch is not None and self._since is None:  # its first users
            board.publish()  # users of others who have come before
            self._since = board.release.version
            self._learns_here()
            left = board.users_left
            board.begin_batch(batch.users if left is None else min(batch.users, left))
        served = super()._serve(users)
        if batch is not None and self._place < len(batch.runs):
            self._done += served
            if self._done == batch.runs[self._place][1]:
                self._place, self._done = self._place + 1, 0
        return served

    def begin_from(self, policy: Policy) -> None:
        """Play this policy, in an agent without an environment. With one, the algorithm decides which policies run."""
        if self.board is not None:
            raise ValueError(
                f"{type(self).__name__} decides by itself which policies users run: serve this one with "
                "board.serve(policy, users), or set it in an agent that was loaded without an environment."
            )
        self._policy = policy

    @property
    def finished(self) -> bool:
        """Whether exploration has ended."""
        return self._batch is None

    def best_policy(self) -> Policy:
        """The best policy that is known so far. Later users may still explore.

        A loaded agent plays the policy that it was saved with, until it has met users of another board.
        """
        if self.board is None:
            return self.policy
        loaded = None if self._loaded is None else self._loaded[-1]
        if loaded is not None and not self._received and self._since is None:
            return loaded
        current = self.policy
        return current if self._batch is None else self._batch.deploy or current

    # Files -----------------------------------------------------------------------------------------------------------

    def streams(self) -> dict[str, np.random.Generator]:
        """The generator of users' actions. The one for planning is not included: a loaded agent starts it again."""
        return {"rng": self.rng}

    def state(self) -> dict[str, NDArray[Any]]:
        """All releases that were received, and the place in the current batch."""
        if self.board is None:
            return {}
        about = {
            "random_start": self._random_start,
            "known_users": self.known_users,
            "place": [self._place, self._done],
            "since": self._since,
            "releases": [
                {
                    "version": release.version,
                    "users": release.users,
                    "events": release.events,
                    "errors": {family: law.to_dict() for family, law in release.errors.items()},
                }
                for release in self._received
            ],
        }
        arrays: dict[str, NDArray[Any]] = {
            "about": np.frombuffer(json.dumps(about, default=_plain).encode(), dtype=np.uint8)
        }
        for number, release in enumerate(self._received):
            arrays |= {f"{number}.{family}": array for family, array in release.sums().items()}
        return arrays

    def set_state(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Run the generator again, with the releases that it received."""
        if not arrays or self.board is None:
            return
        about = json.loads(arrays["about"].tobytes())
        template = self._board.batch
        self.known_users = about["known_users"]
        releases = []
        for number, entry in enumerate(about["releases"]):
            sums = {family: arrays[f"{number}.{family}"] for family in template.families}
            for family, array in sums.items():
                shape = getattr(template, family).shape
                if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                    raise ValueError("A saved release is damaged: its sums are not numbers of the right shape.")
            errors = {family: ErrorLaw.from_dict(law) for family, law in entry["errors"].items()}
            numbers = {name: int(entry[name]) for name in ("version", "users", "events")}
            if set(errors) != set(template.errors):
                raise ValueError("A saved release is damaged: its errors are those of other sums.")
            releases.append(
                replace(template, **numbers, errors=errors, **{f: read_only(a.copy()) for f, a in sums.items()})
            )
        self._begin(_numbers(about["random_start"]))
        for release in releases:
            if self._batch is None:
                raise ValueError("The saved run is damaged: it received more releases than it asked for.")
            self._advance(release)
        place, done = (int(number) for number in about["place"])
        runs = () if self._batch is None else self._batch.runs
        if not (0 <= place <= len(runs) and (done == 0 or (place < len(runs) and 0 < done < runs[place][1]))):
            raise ValueError("The saved run is damaged: its place is in no batch.")
        self._place, self._done = place, done
        self._since = None if about["since"] is None else int(about["since"])


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else int(value)


def _numbers(state: Any) -> Any:
    """The state of a generator, checked by setting it in another one."""
    trial = np.random.PCG64(0)
    trial.state = state
    return trial.state
