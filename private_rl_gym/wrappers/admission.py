"""The admission of users to a boundary.

Each user is counted. A call takes in all of its users or none.

* ``Admission`` - lets users in, by ``serve``, by ``reset`` and ``step``, or from a table
* ``BudgetExhausted`` - more users than the boundary was built for
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from private_rl_gym.caller import warn
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.privacy.accounting.guarantee import Neighbours
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.requests import Request
from private_rl_gym.wrappers.pace import Pacer
from private_rl_gym.wrappers.pipeline import Bound, Pipeline
from private_rl_gym.wrappers.sources import BadUserError, EnvironmentSource, UserSteps, plain_generator, quietly, read
from private_rl_gym.wrappers.state import State
from private_rl_gym.wrappers.visits import Visits

__all__ = ["Admission", "BudgetExhausted"]


class BudgetExhausted(RuntimeError):  # noqa: N818 - a public name
    """The error for more users than the boundary was built for.

    Nothing about these users was released.
    """


class Admission:
    """The admission of users, who are counted from the moment they arrive.

    If a call is interrupted, all users of the call have come, and the open batch is discarded.

    Args:
        pipeline: Where users come from, and what becomes of what they send.
        state: The state on disk, which is spent before a user comes.

    Attributes:
        arrived: The number of users who have come.
        user: The user who is met step by step, if one is here.
        visits: The visits of users with an id.
        pacer: The time that users take.
    """

    def __init__(self, pipeline: Pipeline, state: State) -> None:
        self._pipeline, self._state = pipeline, state
        self.users, self.arrived = pipeline.options.users, 0
        self.user: UserSteps | None = None
        self.visits, self.pacer = Visits(), Pacer()
        self._told = False  # whether learners know that rewards are withheld
        self._torn = False  # whether a call that took in users was interrupted

    @property
    def bound(self) -> Bound:
        """The bound pipeline, made when it is first needed."""
        bound = self._pipeline.bound
        return self._pipeline.made() if bound is None else bound

    @property
    def left(self) -> int | None:
        """Number of users who may still come; None for any number."""
        return None if self.users is None else self.users - self.arrived

    def asked(self, request: Request | None) -> Request | None:
        """Return the request after a check; for None, return the last request."""
        return self._pipeline.request if request is None else self._pipeline.proposal.side.statistic.checked(request)

    # Calls ------------------------------------------------------------------------------------------------------------

    def serve(self, policy: Any, users: Any, request: Request | None, rng: np.random.Generator | None) -> int:
        """Let users run a policy, and return the number of users."""
        source = self._pipeline.proposal.source
        if source.gone:
            source.env.reset()
        plain, asked = source.policy(policy), self.asked(request)
        if not plain.deterministic:
            if rng is None:
                raise ValueError(
                    "A stochastic policy draws its actions from rng=, a generator that belongs to the agent."
                )
            rng = plain_generator(rng)
        given = None if isinstance(users, int | np.integer) else source.users(users)
        count = positive_integer(users, "users", "users to serve") if given is None else len(given)
        self._take_in(count, source.serve(plain, count, given, rng), asked)
        return count

    def ingest(
        self, given: Any, request: Request | None, order: NoiseSource, neighbours: Iterable[Neighbours], *how: Any
    ) -> int:
        """Take in the users of a table, and return the number of users.

        Args:
            given: The table.
            request: The request that they answer.
            order: The source of their order.
            neighbours: The users between whom guarantees hold.
            how: The arguments of ``read``.
        """
        source, statistic = self._pipeline.proposal.source, self._pipeline.proposal.side.statistic
        if not statistic.replays:
            raise ValueError(
                f"This {self._pipeline.name} sums {statistic.name} statistics, and they need users who run the policy "
                "of the agent. Build it with statistic='tabular' or 'reports'."
            )
        assert isinstance(source, EnvironmentSource)  # noqa: S101 - such statistics count
        asked, visits = self.asked(request), self._pipeline.options.visits
        table = read(given, source, *how)
        came = self.visits.checked(table.ids, visits)
        if visits > 1:  # no user is in a batch twice
            self.publish()
        count = len(table)
        if count:
            waits = statistic.waits and all(one is Neighbours.REPLACE_ONE for one in neighbours)
            groups = table.groups(order.generator.permutation(count), source.chunk, waits=waits)
            self._take_in(count, groups, asked, came)
        return count

    def _take_in(
        self,
        count: int,
        groups: Iterable[tuple[Any | None, int, BadUserError | None]],
        request: Request | None,
        came: Sequence[bytes] = (),
    ) -> None:
        """Take in users in groups.

        ``came`` are the digests of those with an id.
        """
        refused: BadUserError | None = None
        self._admit(count)
        with nullcontext() if self.pacer.seconds is None else self.pacer.of(count), self._coming(count):
            if came:
                self.visits.add(came)
            self._pipeline.request = request
            for users, here, problem in groups:
                self._receive(users, here, request)
                refused = problem or refused
        if refused is not None:
            raise refused

    def meet(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user, and return their first observation and harmless info."""
        source = self._pipeline.proposal.source
        if source.gone:
            source.env.reset()
        source.check_options(options)
        self._admit(1)
        with self._coming(1):
            assert isinstance(source, EnvironmentSource)  # noqa: S101 - others have refused the options
            self.user = UserSteps(source, self._pipeline.request)
            seen, problem = quietly(partial(self.user.meet, seed, options))
            if problem is not None:
                self._dismiss()
        if seen is None:
            raise problem or BadUserError("There is no user.")
        return seen

    def step(self, action: Any) -> tuple[Any, bool, bool, dict[str, Any]]:
        """Let the current user take an action, and return the step without the reward."""
        self.recover()
        number, user = self._pipeline.proposal.source.action_of(action), self.user
        if user is None:
            raise gym.error.ResetNeeded("There is no current user: call reset() to start the next one.")
        if not self._told:
            self._told = True
            warn(
                f"{self._pipeline.name} withholds rewards: step() returns 0.0, and every episode uses up one of its "
                "users. Train agents that need rewards on board.private_model(), or use LDPPerStep. Evaluate them on "
                "the environment itself."
            )
        with self._whole():
            seen, problem = quietly(partial(user.take, number))
            if problem is not None or not user.open:
                self._dismiss(whole=problem is None)
        if seen is None:
            raise problem or BadUserError("There is no user.")
        return seen

    def part(self) -> None:
        """Let the current user leave, if there is one."""
        if self.user is not None:
            with self._whole():
                self._dismiss()

    def publish(self) -> None:
        """End the current batch, if any user is in it.

        An interrupt discards the batch.
        """
        self.require_whole()
        if self.bound.sums.pending:
            self._state.touch()
            try:
                self.bound.sums.publish()
            except KeyboardInterrupt:
                self._torn = True
                self.recover()
                raise

    def lose(self, users: int) -> None:
        """Count users who are lost before their messages arrive."""
        self._admit(users)
        with self._coming(users):
            self.bound.sums.lose(users)

    # Accounts ---------------------------------------------------------------------------------------------------------

    def require_whole(self) -> None:
        """Discard the open batch of an interrupted call.

        Raise RuntimeError if an environment failed for a whole group of users.
        """
        if self._pipeline.proposal.source.broken:
            raise RuntimeError(
                "The environment failed while it simulated many users at once, and one of them may have stopped the "
                "others: this boundary publishes nothing more. The guarantee of earlier releases holds. Repair the "
                "environment, or register it without a vector entry point, so that users are simulated one by one."
            )
        self.recover()

    def recover(self) -> None:
        """Discard the open batch if a call that took in users was interrupted."""
        if self._torn:
            self.user = None
            self.bound.sums.discard(self.arrived)
            self._torn = False

    def _admit(self, users: int) -> None:
        """Raise BudgetExhausted unless all of these users may come."""
        self.require_whole()
        if self.users is not None and self.arrived + users > self.users:
            raise BudgetExhausted(
                f"{users} more users after {self.arrived} are too many: this boundary was built for {self.users}. "
                "Nothing was released. Build a new boundary with a larger users=."
            )
        _ = self.bound  # before anything stays as it is: it may not fit into memory
        if self._state.saved is not None:
            self._state.touch()
        if not self._pipeline.fixed:
            self._pipeline.fix()

    @contextmanager
    def _coming(self, users: int) -> Iterator[None]:
        """Count the users who arrive in the block.

        A user who is still in their episode leaves and contributes nothing.
        """
        with self._whole():
            self._dismiss()
            self.arrived += users
            yield

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Take in all users of the block, or none.

        An interrupt discards the open batch. All users of the call then count as gone.
        """
        self._torn = True
        try:
            yield
        except BaseException:
            self.recover()
            raise
        self._torn = False

    def _receive(self, users: Any | None, count: int, request: Request | None) -> None:
        """Let users leave, and sum their contributions.

        They answer the request that they came with.
        """
        if not self._pipeline.proposal.source.broken:
            self.bound.sums.receive(users, count, request)

    def _dismiss(self, *, whole: bool = False) -> None:
        """Let the current user leave, if there is one.

        ``whole`` states whether their episode is complete.
        """
        user, self.user = self.user, None
        if user is not None:
            user.source.part()
            self._receive(user.trajectory if whole else None, 1, user.request)
