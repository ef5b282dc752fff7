"""Learners that plan their own batches.

Each is written from top to bottom as in its paper.

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
from private_rl_gym.privacy.errors import ErrorDistribution
from private_rl_gym.privacy.requests import Request

__all__ = ["Batch", "BatchedAgent"]

ENDLESS = 2**40
"""Number of users who run the final policy: more than will ever come."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Users whose sums are published together.

    Attributes:
        runs: Pairs (policy, users) in order: each policy, and the number of users who run it.
        request: The request to all of them besides their actions.
        deploy: The best policy that is known so far, which ``predict`` plays. By default the first of ``runs``.
    """

    runs: Sequence[tuple[Policy, int]]
    request: Request | None = None
    deploy: Policy | None = None

    @classmethod
    def of(cls, policy: Policy, users: int, request: Request | None = None, deploy: Policy | None = None) -> Batch:
        """Return a batch in which all users run one policy."""
        return cls(((policy, users),), request, deploy)

    @property
    def users(self) -> int:
        """Number of users in the batch."""
        return sum(count for _, count in self.runs)


class BatchedAgent(Agent):
    """A learner written as a generator of batches.

    It yields a batch, and receives the release of exactly the users in it. The generator depends on sizes,
    ``known_users``, ``plan_rng`` and the releases that it received alone. So a saved agent is the list of these
    releases, and it is restored by running the generator again.
    """

    plans_batches = True
    keeps_policy = False  # users run the policy at their place in a batch
    statistic: str = "tabular"

    @abstractmethod
    def batches(self) -> Generator[Batch, Any, Any]:
        """Yield the batches of the algorithm; return the policy of all later users."""

    def prepare(self) -> None:
        """Begin again, with all users that may still come and a random stream for planning."""
        self.known_users = self._board.users_left
        sequence = np.random.SeedSequence(self.seed, spawn_key=tuple(b"plan"))
        self._restart(np.random.PCG64(sequence).state)

    def _restart(self, random_state: Any) -> None:
        """Run the generator from its beginning to its first batch."""
        self._random_start = random_state
        self.plan_rng = np.random.default_rng(0)
        self.plan_rng.bit_generator.state = random_state
        self._received: list[Any] = []
        self._running = self.batches()
        self._final: Policy | None = None
        self._batch: Batch | None = None
        self._advance(None)

    def _advance(self, release: Any) -> None:
        """Pass a release to the generator, and take its next batch.

        The release is None at first.
        """
        if release is not None:
            self._received.append(release)
            self.learned = replace(self.learned, known=None)
        self._place, self._done = 0, 0  # in the batch: the policy, and the users who have run it
        self._since: int | None = None  # the release before the current batch, once it has users
        try:
            self._batch = self._running.send(None if release is None else self.seen(release))
            if self._batch.users < 1:
                raise ValueError(f"{type(self).__name__} planned a batch without users.")
        except StopIteration as finished:
            self._final, self._batch = finished.value, None

    # One batch: users come, its sums are released, and the generator plans the next ----------------------------------

    def plan(self, release: Any) -> Policy:
        """Return the policy at the current place of the current batch."""
        return self.policy

    def users_to_come(self) -> int:
        """Return how many users still run the policy at the next place.

        Before that, take the release of a batch that is closed.
        """
        board = self._board
        if board.identity != self.learned.board:  # the board has continued from a saved state
            self._begin_on(board)
        if self._batch is not None and self._since is not None:  # RELEASE
            if self._place == len(self._batch.runs) and board.release.version == self._since:
                board.publish()  # others were in the batch, or some vanished from it
            if board.release.version != self._since:
                self._advance(board.batch.with_certain_rows())
        batch = self._batch
        if batch is None:
            policy, users = self._final, ENDLESS
        elif self._place == len(batch.runs):  # the batch is not closed yet
            policy, users = batch.runs[-1][0], board.users_to_release
        else:
            policy, users = batch.runs[self._place][0], batch.runs[self._place][1] - self._done
        self.learned = replace(self.learned, policy=policy)
        self._send(self.next_request())
        return users

    def next_request(self) -> Request | None:
        """Return the request of the current batch."""
        return None if self._batch is None else self._batch.request

    def _serve(self, users: int) -> int:
        self.users_to_come()
        batch, board = self._batch, self._board
        if batch is not None and self._since is None:  # its first users
            board.publish()  # users of others who have come before
            self._since = board.release.version
            left = board.users_left
            board.begin_batch(batch.users if left is None else min(batch.users, left))
        served = super()._serve(users)
        if batch is not None and self._place < len(batch.runs):
            self._done += served
            if self._done == batch.runs[self._place][1]:
                self._place, self._done = self._place + 1, 0
        return served

    def _begin_from(self, policy: Policy) -> None:
        """Play this policy, in an agent without an environment.

        With an environment, the algorithm decides which policies run.
        """
        if self.board is not None:
            raise ValueError(
                f"{type(self).__name__} chooses the policies that its users run. Serve this policy with "
                "board.serve(policy, users), or set it in an agent that was loaded without an environment."
            )
        self.learned = replace(self.learned, policy=policy)

    @property
    def finished(self) -> bool:
        """Whether exploration has ended."""
        return self._batch is None

    def best_policy(self) -> Policy:
        """Return the best policy that is known so far.

        Later users may still explore. A loaded agent plays the policy that it was saved with, until it has met users of
        another board.
        """
        if self.board is None:
            return self.policy
        if self._brought is not None:
            brought: Policy = self._brought.policy
            return brought
        current = self.policy
        return current if self._batch is None else self._batch.deploy or current

    # Files -----------------------------------------------------------------------------------------------------------

    def streams(self) -> dict[str, np.random.Generator]:
        """Return the generator of users' actions.

        The generator for planning is not included: a loaded agent starts it again.
        """
        return {"rng": self.rng}

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all received releases, and the place in the current batch."""
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
            errors = {family: ErrorDistribution.from_dict(law) for family, law in entry["errors"].items()}
            numbers = {name: int(entry[name]) for name in ("version", "users", "events")}
            if set(errors) != set(template.errors):
                raise ValueError("A saved release is damaged: its errors are those of other sums.")
            releases.append(
                replace(template, **numbers, errors=errors, **{f: read_only(a.copy()) for f, a in sums.items()})
            )
        self._restart(_numbers(about["random_start"]))
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
    """Return the state of a generator, checked by setting it in another one."""
    trial = np.random.PCG64(0)
    trial.state = state
    return trial.state
