"""The interface of all boundaries that publish sums over users.

* ``Boundary`` - a Gymnasium wrapper that passes on only what its guarantee allows
* ``public`` - its methods that users and auditors call
"""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, ClassVar, Concatenate, Literal, ParamSpec, TypeVar, cast

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.caller import warn
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy
from private_rl_gym.privacy.accounting.guarantee import Guarantee, plain_number
from private_rl_gym.privacy.protocols import Protocol
from private_rl_gym.privacy.randomizers.base import UserSide
from private_rl_gym.privacy.requests import Request
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.wrappers.admission import Admission
from private_rl_gym.wrappers.arguments import CommonOptions
from private_rl_gym.wrappers.audit_view import AuditView
from private_rl_gym.wrappers.base import Sealed
from private_rl_gym.wrappers.options import inside, source_of
from private_rl_gym.wrappers.pipeline import Bound, Pipeline, Proposal
from private_rl_gym.wrappers.private_model import Belief, private_model
from private_rl_gym.wrappers.sources import Source, TableReport, bare, refuse_recorders
from private_rl_gym.wrappers.state import State

__all__ = ["Boundary", "public"]

B = TypeVar("B", bound="Boundary")
P = ParamSpec("P")
T = TypeVar("T")


def public(method: Callable[Concatenate[B, P], T]) -> Callable[Concatenate[B, P], T]:
    """Return a method for the outermost boundary alone.

    One call runs at a time, and errors keep no frames.
    """

    @wraps(method)
    def alone(self: B, /, *arguments: P.args, **options: P.kwargs) -> T:
        try:
            with self._lock:
                self._require_outermost()
                return method(self, *arguments, **options)
        except BaseException as error:  # noqa: BLE001 - an interrupt passes the same frames
            held = [error]
        del arguments, options
        return bare(held)

    return alone


def _fact(read: Callable[[Pipeline], T]) -> T:
    """Return a property with a fact about the pipeline behind a boundary."""
    return cast("T", property(lambda board: read(board._pipeline), doc=read.__doc__))


class Boundary(Sealed):
    """The base of boundaries that publish sums of users' contributions.

    The sums are published as the guarantee allows. Users are met in two ways, which give the same sums for the same
    users and noise: agents call ``serve``, and other learners call ``reset`` and ``step``, as in any Gymnasium
    environment. Those whose episodes are over are brought in with ``ingest``. In all cases a user's reward is withheld
    (``step`` returns 0.0, with ``info["withheld"]``). Of the rest of ``info``, only harmless keys are passed on.

    A user counts from the moment they arrive. If their episode is refused, or abandoned by another ``reset`` or by
    ``close``, they contribute nothing; where users noise their own reports, they send an empty report with noise. If a
    call is interrupted, all users of the call have come, and the open batch is discarded: it is never published.

    A subclass says what leaves the users' side (``_side``), which protocol publishes sums of it (``protocol``) and with
    which options (``_protocol_options``). The pipeline is bound once, at the first agent or the first user.
    """

    short: ClassVar[str]
    """The name on the command line, in grids and in audits."""

    may_enclose: ClassVar[tuple[str, ...]] = ()
    """Short names of the boundaries that this one may be put around. It then takes over what their users send."""

    usual_delta: ClassVar[float] = 1e-6
    """The delta that commands ask for if no other is given, where the constructor has such an option."""

    differentiates: ClassVar[bool] = False
    """Whether it publishes gradients, and so takes environments whose states cannot be counted."""

    plans_releases: ClassVar[bool] = False
    """Whether noise depends on the number of releases, so that a schedule may name it."""

    protocol: type[Protocol]
    """The protocol that publishes its sums."""

    _pipeline: Pipeline
    _admission: Admission
    _state: State

    def __init__(self, env: gym.Env[Any, Any], options: CommonOptions) -> None:
        self._wrap(env)
        self._lock = threading.RLock()  # two threads would publish the same noise on different sums
        self._inner = inside(self, env, options)
        if self._inner is not None and options.users is None:
            options = replace(options, users=self._inner.users)
        self._options, self._order = options, options.source("order")
        self._outer: str | None = None  # the boundary around this one, which has taken its users

    def _ready(self) -> None:
        """Complete the construction of a subclass.

        It proposes the usual pipeline, and takes over the boundary inside.
        """
        inner = None if self._inner is None else self._inner._pipeline
        about = type(self).__name__, self.protocol, self._protocol_options(), self._options
        self._pipeline = Pipeline(*about, self._proposed, self.stated, self._opened, self._lock, inner)
        self._state = State(self._pipeline)
        self._admission = Admission(self._pipeline, self._state)
        if self._inner is not None:
            self._inner._outer = type(self).__name__
        for reason in self.guarantee.warnings_of_delta:
            warn(f"{reason}. It is {plain_number(self.guarantee.delta)}: take 1e-6, or less.")

    # What a subclass says ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _side(self, source: Source, statistic: Any) -> UserSide:
        """Return the users' side for a value of ``statistic=``.

        Raise ValueError if no users' side fits.
        """

    @abstractmethod
    def _protocol_options(self) -> Any:
        """Return the options of the protocol."""

    def stated(self) -> Guarantee:
        """Return the guarantee before the pipeline is bound.

        Its epsilon and delta are at least those of the bound pipeline.
        """
        return self.protocol.stated(self._protocol_options())

    def _opened(self, bound: Bound) -> None:
        """Record that a pipeline was just bound."""

    def _source_of(self, statistic: Any) -> Source:
        """Return the source of users that this statistic needs."""
        return source_of(self, self.env, self._options, statistic)

    def _proposed(self, statistic: Any, *, apart: bool) -> Proposal:
        """Return the pipeline for a value of ``statistic=``; None is the usual one."""
        inner = None
        if self._inner is None:
            source = self._source_of(statistic)
            side = self._side(source, source.statistic if statistic is None else statistic)
        else:
            inner = self._inner._proposed(self._inner._pipeline.chosen(statistic), apart=True)
            source, side = inner.source, inner.side
        plan = self.protocol.planned(side, self._protocol_options(), apart=apart)
        return Proposal(source, side, plan, inner)

    # What is stated ---------------------------------------------------------------------------------------------------

    guarantee = _fact(Pipeline.guarantee)
    ledger = _fact(Pipeline.ledger)
    open = _fact(Pipeline.open)
    secure = _fact(Pipeline.secure)
    planned_batches = _fact(Pipeline.planned_batches)
    least_batch = _fact(Pipeline.least_batch)
    closes_early = _fact(Pipeline.closes_early)
    apart = _fact(Pipeline.apart)
    stationary = _fact(Pipeline.stationary)
    source = _fact(Pipeline.source)
    sizes = _fact(Pipeline.sizes)
    statistic = _fact(Pipeline.statistic)
    network = _fact(Pipeline.network)
    loads = _fact(Pipeline.loads)
    memory = _fact(Pipeline.memory)

    @property
    def users(self) -> int | None:
        """The number of users that this boundary was built for; None for any number."""
        return self._options.users

    @property
    def batch_size(self) -> int:
        """Number of users in a batch."""
        return self._options.schedule.batch_size

    @property
    def users_left(self) -> int | None:
        """Number of users who may still come; None for any number."""
        self._require_outermost()
        return self._admission.left

    def in_short(self) -> list[str]:
        """Return the guarantee, the batches, and the numbers of users.

        They are public, because neighbours have the same.
        """
        schedule, left = self._options.schedule, self._admission.left
        batches = [] if schedule == Schedule() else [f"schedule={schedule}"]
        batches += ["stationary=True"] if self._options.stationary else []
        facts = [str(self.ledger.outside), *batches]
        if self._outer is not None:
            return [*facts, f"inside a {self._outer}"]
        return [*facts, f"{self._admission.arrived} users have come" + ("" if left is None else f", {left} may come")]

    @property
    def identity(self) -> str:
        """A unique name, which is kept in saved states.

        Agents recognise the sums of this boundary by it.
        """
        return self._state.identity

    def check_memory(self) -> None:
        """Raise MemoryError if the sums, or the users in memory, do not fit."""
        self._pipeline.check_memory(self._pipeline.proposal)

    def expected_noise(self, users: int, request: Request | None = None) -> float:
        """Return the standard deviation of the noise in an entry without users.

        It is for a batch with this request. The entry is one of the release's ``headline`` sums, such as transitions.
        The number is public and known in advance, so that learners can plan the sizes of their batches. Shufflers state
        it to some percent.
        """
        return self._admission.bound.expected_noise(users, request)

    # Binding ----------------------------------------------------------------------------------------------------------

    @public
    def bind(self, statistic: Any = "tabular", *, apart: bool = False) -> None:
        """Choose the options that were left open.

        Agents do so for their needs, when they are given a boundary. Options that were given when the boundary was
        built do not change, and nothing changes after that.

        Args:
            statistic: The name of the statistic that is needed; for gradients, the layers of the network.
            apart: Whether every batch has to be published by itself; it counts where the statistic was left open.
        """
        self._pipeline.bind(statistic, apart=apart)

    def _require_outermost(self) -> None:
        if self._outer is not None:
            raise ValueError(
                f"This {type(self).__name__} lies inside a {self._outer}, which serves its users now. Call the "
                f"{self._outer}."
            )

    # Users ------------------------------------------------------------------------------------------------------------

    @property
    def request(self) -> Request | None:
        """The request to later users of ``reset`` and ``step``.

        It is the last request, unless another one was set.
        """
        return self._pipeline.request

    @request.setter
    @public
    def request(self, request: Request | None) -> None:
        self._pipeline.request = self.statistic.checked(request)

    @public
    def serve(
        self,
        policy: Policy | ArrayLike,
        users: int | NDArray[np.float64] = 1,
        request: Request | None = None,
        *,
        rng: np.random.Generator | None = None,
    ) -> int:
        """Let users run a policy.

        Agents meet users only through this method.

        Args:
            policy: The policy that they run.
            users: Number of users, or their tapes ``[user, uniform]`` where the environment has tapes.
            request: The request to them besides running the policy; by default the last request.
            rng: The generator for actions of a stochastic policy: one of numpy's generators, owned by the agent.

        Returns:
            The number of users served, and nothing about them.
        """
        return self._admission.serve(policy, users, request, rng)

    @public
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user.

        With a seed, they and the users after them are those of this seed. Privacy noise is never seeded again.
        """
        refuse_recorders(type(self).__name__)
        return self._admission.meet(seed, options)

    @public
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step of the current user, whose reward stays inside the boundary."""
        observation, terminated, truncated, info = self._admission.step(action)
        return observation, 0.0, terminated, truncated, info | {"withheld": True}

    @public
    def ingest(
        self,
        episodes: Any,
        *,
        columns: Mapping[str, str] | None = None,
        bad_rows: Literal["refuse", "empty"] = "refuse",
        most_emptied: float = 0.05,
        request: Request | None = None,
        owner: Callable[[TableReport], None] | None = None,
    ) -> int:
        """Take in users whose episodes are over, in place of serving them.

        They count as served users do. Batches take them in random order, because the order of a table may depend on its
        data. An episode that ended before the horizon waits in the absorbing state. A longer episode is cut. A next
        state that is missing at the last stage is read as the absorbing one: give it if this boundary has
        ``stationary=True``. If users may return (``visits=``), a table holds each of them once, and begins a new batch.
        Ids are compared here and are not published. A user with more than the allowed visits is refused.

        Privacy:
            The guarantee of this boundary, for replacing one user of a table with all their rows. Users whom ``serve``
            met have no id, so no user may be both served and brought in. Proof: docs/proofs/ingest.md.

        Args:
            episodes: ``Episodes`` of arrays, or a table with a row for each step (Arrow, pandas, or a mapping of
                columns) with user, stage, state, action, reward and next_state, or a Minari data set.
            columns: The table's own names for these columns, such as ``{"user": "patient"}``.
            bad_rows: Whether a table with rows that make no trajectory is refused; or the users of such rows are
                emptied (``"empty"``): they count, and wait in the absorbing state from the start. Where there is none,
                in reports, and where neighbours are not any two users, they contribute nothing.
            most_emptied: Largest share of the users that may be emptied. A table with more is refused before anything
                is spent. A service whose releases must not depend on that takes 1.
            request: The request that they answer; by default the last request.
            owner: A function of the owner of the table, for the report on its rows. No guarantee covers that report:
                show it to no one else.

        Returns:
            The number of users in the table, and nothing else about them.
        """
        neighbours = [entry.neighbours for entry in self.ledger.entries]
        return self._admission.ingest(
            episodes, request, self._order, neighbours, columns, bad_rows, most_emptied, owner
        )

    def close(self) -> None:
        """Close the environment.

        A user who is in the middle of their episode leaves.
        """
        with self._lock:
            self._admission.part()
        super().close()

    @property
    def pace(self) -> float | None:
        """Seconds that ``serve`` takes for each user; None for no waiting.

        The time that users take reveals something about them. With a pace well above that time, ``serve`` returns
        when so many seconds for each user are over; if users take longer, it waits for the next multiple and warns.
        """
        return self._admission.pacer.seconds

    @pace.setter
    def pace(self, seconds: float | None) -> None:
        self._admission.pacer.set(seconds)

    @public
    def invite(self, users: Any) -> None:
        """Let the users with these tapes come next, in this order.

        They come by ``serve`` or by ``reset``.
        """
        self._admission.bound.source.invite(users)

    # Releases --------------------------------------------------------------------------------------------------------

    @property
    @public
    def release(self) -> Any:
        """The newest release, about all users so far.

        Its type depends on the statistic.
        """
        return self._admission.bound.sums.release

    @property
    @public
    def batch(self) -> Any:
        """The release of the newest batch alone, where batches are published apart."""
        return self._admission.bound.batch

    @property
    def users_to_release(self) -> int:
        """Number of users who have to come until the next release."""
        self._require_outermost()
        return self._admission.bound.sums.users_to_release

    @public
    def begin_batch(self, users: int) -> None:
        """Set the number of users in the batch that begins now.

        Batches have to be published apart for that.
        """
        count = positive_integer(users, "users", "users in a batch")
        self._admission.recover()
        self._admission.bound.sums.begin(count)

    @public
    def publish(self) -> Any:
        """End the current batch now, if any user has left since the last release.

        Where noise is planned for a number of releases, as by trees and factorizations, there may be none to spare: the
        error then names the options of this boundary for more of them.
        """
        self._admission.publish()
        return self.release

    def private_model(
        self,
        render_mode: str | None = None,
        *,
        belief: Belief = "mean",
        start: ArrayLike | None = None,
        rng: np.random.Generator | None = None,
    ) -> TabularEnv:
        """Return the newest release as an environment.

        Any learner may train on it without weakening the guarantee. Observations contain the stage if those of the
        users' environment do. ``belief``, ``start`` and ``rng`` are those of
        :func:`private_rl_gym.wrappers.private_model.private_model`.
        """
        model = private_model(self.release, belief=belief, start=start, rng=rng)
        timed = isinstance(self.source.env.observation_space, gym.spaces.MultiDiscrete)
        return TabularEnv(model, observe_time=timed, render_mode=render_mode)

    @property
    def audit(self) -> AuditView:
        """The inside of the boundary, for an auditor who is trusted with raw data.

        No learner may read it.
        """
        self._require_outermost()
        return AuditView(self._admission.bound, self._pipeline.observers, self._pipeline.request)

    # Saved states ----------------------------------------------------------------------------------------------------

    @public
    def save_state(self, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
        """Save everything that is needed to continue after a restart.

        The file is secret: it holds raw sums. A state may be continued once. If this boundary itself continues after
        saving, that spends the file; so save at the very end, or save again. See
        :mod:`private_rl_gym.wrappers.checkpoint`.

        Args:
            path: The file.
            key: 16 bytes or more, kept apart from the file. Without a key, trust a state only as you trust code: anyone
                who can write the file can write one that breaks the guarantee.
        """
        self._admission.require_whole()
        self._state.save(path, key, self._admission)

    @public
    def load_state(self, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
        """Continue from a saved state.

        This boundary has to be built with the same arguments, and has met no user yet.

        Args:
            path: The file.
            key: The key that it was saved with. A state that was changed by someone without the key is refused.
        """
        self._state.load(path, key, self._admission)
