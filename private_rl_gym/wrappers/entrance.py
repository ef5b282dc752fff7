"""The entrance of a boundary: users come, walk and leave, and nothing but their number is told.

* ``Entrance`` - ``serve``, ``reset`` and ``step``, ``ingest``: the ways in
* ``Observer`` - an auditor who may see who leaves
* ``BudgetExhausted`` - more users than the boundary was built for
"""

from __future__ import annotations

import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.batches import Batches
from private_rl_gym.privacy.guarantee import Ledger, Neighbours
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.statistics import Statistic
from private_rl_gym.wrappers.crowd import Crowd
from private_rl_gym.wrappers.episodes import BadRowsError, read
from private_rl_gym.wrappers.findings import Findings
from private_rl_gym.wrappers.members import Members
from private_rl_gym.wrappers.pace import Pacer
from private_rl_gym.wrappers.population import (
    BadUserError,
    Population,
    Recorder,
    behind_closed_doors,
    harmless,
    plain_generator,
    quietly,
)
from private_rl_gym.wrappers.sealed import Sealed

__all__ = ["BudgetExhausted", "Entrance", "Observer"]


class BudgetExhausted(RuntimeError):  # noqa: N818 - a public name
    """More users were requested than the boundary was built for. Nothing about them was released."""


class Observer(Protocol):
    """An auditor that looks inside a boundary. It is shown raw data, so no part of a learner may be an observer."""

    def left(self, users: Trajectories | None, count: int) -> None:
        """``count`` users have left. ``users`` is None if their episodes were not completed."""

    def reported(self, vector: NDArray[np.int64]) -> None:
        """The summed report of a group has arrived, where users noise their own reports."""


class Entrance(Sealed):
    """Where users come and leave.

    Users are met in two ways, which give the same sums for the same users and noise: agents call ``serve``, and other
    learners call ``reset`` and ``step``, as in any Gymnasium environment. Those whose episodes are over are brought in
    with ``ingest``. In all cases a user's reward is withheld (``step`` returns 0.0, with ``info["withheld"]``). Of the
    rest of ``info``, only harmless keys are passed on.

    A user counts from the moment she arrives. If her episode is refused, or abandoned by another ``reset`` or by
    ``close``, she contributes nothing; where users noise their own reports, she sends an empty report with noise.
    """

    population: Population
    """The users who come."""

    statistic: Statistic
    """The statistic that every user contributes."""

    _visits: int = 1
    """The number of tables that a user may be in."""

    def __init__(self, env: gym.Env[Any, Any], seed: int | None, *, secure: bool) -> None:
        self._wrap(env)
        # One call at a time: two threads would publish the same noise on different sums.
        self._lock: threading.RLock = threading.RLock()
        self._recorder: Recorder | None = None  # of the current user of reset and step
        self._arrived = 0  # users who have come
        self._ask: Ask | None = None
        self._observers: list[Observer] = []
        self._pacer = Pacer()
        self._members = Members()  # who came with an id
        self._order = NoiseSource(seed, secure=secure, role="order")  # of the users of a table
        self._told = False  # whether the warning about withheld rewards was given

    @property
    @abstractmethod
    def users(self) -> int | None:
        """The number of users that this boundary was built for; None for any number."""

    @property
    @abstractmethod
    def ledger(self) -> Ledger:
        """The guarantees to users."""

    @property
    @abstractmethod
    def _batches(self) -> Batches:
        """The batches of users who have left."""

    @abstractmethod
    def _require_outermost(self) -> None:
        """Raise ValueError if another boundary has taken over the users."""

    @abstractmethod
    def publish(self) -> Any:
        """End the current batch now."""

    @abstractmethod
    def _touch(self) -> None:
        """Spend the state that was saved last, before anything changes."""

    @property
    def users_left(self) -> int | None:
        """Number of users who may still come; None for any number."""
        self._require_outermost()
        return None if self.users is None else self.users - self._arrived

    @property
    def ask(self) -> Ask | None:
        """The request to users who come by ``reset`` from now on; the last request, unless another one was set.

        A user answers the request that she came with: one that was made while she walked could depend on her steps.
        """
        return self._ask

    @ask.setter
    def ask(self, ask: Ask | None) -> None:
        self._require_outermost()
        self._ask = self.statistic.checked(ask)

    def serve(
        self,
        policy: Policy | ArrayLike,
        users: int | NDArray[np.float64] = 1,
        ask: Ask | None = None,
        *,
        rng: np.random.Generator | None = None,
    ) -> int:
        """Let users run a policy. Agents meet users only through this method.

        Args:
            policy: The policy that they run.
            users: Number of users, or their tapes ``[user, uniform]`` where the environment has tapes.
            ask: The request to them besides running the policy; by default the last request.
            rng: The generator for actions of a stochastic policy: one of numpy's generators, owned by the agent.

        Returns:
            The number of users served, and nothing about them.
        """
        self._require_outermost()
        self.population.require_present()
        plain = self.population.policy(policy)
        if not plain.deterministic:
            if rng is None:
                raise ValueError(
                    "A stochastic policy draws its actions from rng=, a generator that belongs to the agent."
                )
            rng = plain_generator(rng)
        asked = self._ask if ask is None else self.statistic.checked(ask)
        given = None if isinstance(users, int | np.integer) else self.population.tapes(users)
        count = positive_integer(users, "users", "users to serve") if given is None else len(given)
        with self._lock:
            self._admit(count)
            self._ask = asked
            with self._pacer.of(count):
                behind_closed_doors(partial(self._let_in, plain, given, count, rng))
        return count

    def _let_in(
        self, policy: Policy, given: NDArray[np.float64] | None, count: int, rng: np.random.Generator | None
    ) -> None:
        """Let users come, run the policy and leave. No code of the learner runs while a user is here."""
        population, before, refused = self.population, self._batches.gone, None
        try:
            for start in range(0, count, population.chunk):
                here = min(population.chunk, count - start)
                if isinstance(population, Crowd):
                    seeds = None if given is None else given[start : start + here]
                    episodes, problem = population.run_all(policy, here, seeds, rng)
                    refused = problem or refused  # who was refused is in them, with no steps
                    self._leave(episodes, here, self._ask)
                    continue
                uniforms = None if policy.deterministic or rng is None else rng.random((here, population.horizon))
                tapes = None if given is None else given[start : start + here]
                if population.compiled:
                    tapes = population.next_users(here) if tapes is None else tapes
                    assert tapes is not None  # noqa: S101 - compiled users have tapes
                    self._leave(population.run(policy, tapes, uniforms), here, self._ask)
                    continue
                for user in range(here):
                    tape = None if tapes is None else tapes[user]
                    own = None if uniforms is None else uniforms[user]
                    trajectory, problem = quietly(partial(population.walk, policy, tape, own))
                    refused = problem or refused  # the others are served as if nothing had happened
                    self._leave(trajectory, 1, self._ask)
        finally:  # users who did not finish, for instance after an interrupt, leave here
            missing = count - (self._batches.gone - before)
            if missing:
                self._leave(None, missing, self._ask)
        if refused is not None:
            raise refused

    def _leave(self, users: Any, count: int, ask: Ask | None) -> None:
        """Let users leave, and sum what they contribute in answer to what they were asked when they came."""
        if self._is_broken:
            return
        for observer in self._observers:
            observer.left(users, count)
        self._batches.receive(users, count, ask)

    def ingest(
        self,
        episodes: Any,
        *,
        columns: Mapping[str, str] | None = None,
        bad_rows: Literal["refuse", "empty"] = "refuse",
        ask: Ask | None = None,
        owner: Callable[[Findings], None] | None = None,
    ) -> int:
        """Take in users whose episodes are over, in place of serving them.

        They count as served users do, in batches that they are put into in random order, because the order of a table
        may depend on what is in it. Where users may come back (``visits=``), a table holds each of them once, and
        begins a new batch: the current one is published as it is. An episode that ended before the horizon waits in the
        absorbing state, as in the environment loop, also if its last row names a next state; one that is longer is
        cut. Ids are compared here and never leave: a user who has come as often as she may is refused. A table belongs
        to the experimenter, so errors may say how many of its rows are bad.

        Privacy:
            The guarantee of this boundary, for replacing one user of a table with all her rows. Users whom ``serve``
            met have no id, so nobody may be both served and brought in. Proof: docs/proofs/ingest.md.

        Args:
            episodes: ``Episodes`` of arrays, or a table with a row for each step (Arrow, pandas, or a mapping of
                columns) with user, stage, state, action, reward and next_state, or a Minari data set.
            columns: The table's own names for these columns, such as ``{"user": "patient"}``.
            bad_rows: Whether rows that no trajectory can be made of are refused, with all others; or their users are
                emptied (``"empty"``): they count, and wait in the absorbing state from the start. Where there is none,
                in reports, and where neighbours are not any two users (``public_start``, ``neighbours="zero-out"``),
                they contribute nothing, as users do who are refused while they are served.
            ask: The request that they answer; by default the last request.
            owner: A function of whoever owns the table. It is told, before anybody is taken in, what was found in the
                rows, which no guarantee covers: show it to nobody else.

        Returns:
            The number of users in the table, and nothing else about them.
        """
        self._require_outermost()
        if bad_rows not in ("refuse", "empty"):
            raise ValueError(f"bad_rows is {bad_rows!r}: choose 'refuse', or 'empty' for users who contribute nothing.")
        if self.statistic.name not in ("tabular", "reports"):
            raise ValueError(
                f"This {type(self).__name__} sums {self.statistic.name} statistics, which need users who run the "
                "learner's policy: build it with statistic='tabular' or 'reports'."
            )
        asked = self._ask if ask is None else self.statistic.checked(ask)
        with self._lock:
            if self._visits > 1:  # nobody is in a batch twice
                self.publish()
            strict = bad_rows == "refuse"
            return behind_closed_doors(partial(self._bring_in, episodes, columns, asked, owner, strict=strict))

    def _bring_in(
        self,
        episodes: Any,
        columns: Mapping[str, str] | None,
        ask: Ask | None,
        owner: Callable[[Findings], None] | None,
        *,
        strict: bool,
    ) -> int:
        """Admit the users of a table, all or none, and let them leave in random order."""
        finished = read(episodes, self.population, columns)
        if owner is not None:
            owner(finished.findings)
        if strict and finished.findings.problem is not None:
            raise BadRowsError(
                f"{finished.findings.problem}. Nothing was taken. (This is about users: it is for whoever owns the "
                "table.) Mend these rows, or empty their users, who then count without what is in their rows, with "
                "bad_rows='empty' (--bad-rows empty)."
            )
        waiting = finished.waiting and self._may_wait
        count, came = len(finished), self._members.digests(finished.ids)
        twice, most = self._members.known(came, self._visits) + len(came) - len(set(came)), self._visits
        if twice:
            often, promise = ("", "come once") if most == 1 else (f" {most} times", f"are in at most {most} tables")
            raise BadRowsError(
                f"{twice:,} of {count:,} users have come before{often}, or are in the table twice. Nothing was taken, "
                f"because the promise is for users who {promise}. (This is about users: it is for whoever owns the "
                "table.)"
            )
        if not count:
            return 0
        order = self._order.generator.permutation(count)
        self._admit(count)
        self._members.add(came)
        self._ask, before = ask, self._batches.gone
        with self._pacer.of(count):
            try:
                for group, whole in finished.groups(order, self.population.chunk):
                    self._leave(finished.of(group) if whole or waiting else None, len(group), ask)
            finally:
                missing = count - (self._batches.gone - before)
                if missing:
                    self._leave(None, missing, ask)
        return count

    @property
    def _may_wait(self) -> bool:
        """Whether emptied users may wait: only if neighbours are any two users.

        In reports, the absorbing state would be one in which users start.
        """
        replaced = all(entry.neighbours is Neighbours.REPLACE_ONE for entry in self.ledger.entries)
        return replaced and self.statistic.name == "tabular"

    @property
    def _is_broken(self) -> bool:
        """Whether an environment failed for a whole group of users, so that one of them would change all their sums."""
        return isinstance(self.population, Crowd) and self.population.broken

    def _require_whole(self) -> None:
        if self._is_broken:
            raise RuntimeError(
                "The environment failed while it held many users at once, and one of them may have stopped the others: "
                "nothing more is published here. What was published keeps its promise. Mend the environment, or "
                "register it without a vector entry point, so that users are met apart."
            )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user. The seed is passed to the environment; privacy noise is never seeded again."""
        with self._lock:
            self._require_outermost()
            self.population.require_present()
            self.population.check_options(options)
            self._admit(1)
            return behind_closed_doors(partial(self._meet, seed, options))

    def _meet(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        """Meet a user who has been counted. If she cannot be met, she leaves and contributes nothing."""
        recorder = self._recorder = Recorder(self.population, self._ask)

        def meet() -> tuple[Any, dict[str, Any]]:
            observation, info = self.population.meet(seed, options)
            recorder.begin(observation)
            return observation, info

        seen, problem = quietly(meet)
        if seen is None or problem is not None:
            self._dismiss()
            raise problem or BadUserError("There is no user.")
        return seen

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step of the current user. Her reward stays inside the boundary."""
        with self._lock:
            self._require_outermost()
            number = self.population.action_of(action)
            if self._recorder is None:
                raise gym.error.ResetNeeded("There is no user here: call reset() to meet the next one.")
            self._tell_of_withheld_rewards()
            observation, terminated, truncated, info = behind_closed_doors(partial(self._go, number, self._recorder))
            return observation, 0.0, terminated, truncated, info | {"withheld": True}

    def _go(self, number: int, recorder: Recorder) -> tuple[Any, bool, bool, dict[str, Any]]:
        """Let the user take an action, and leave if her episode is over."""
        population = self.population

        def go() -> tuple[Any, bool, bool, dict[str, Any]]:
            observation, reward, terminated, truncated, info = population.take(number)
            ended = terminated or truncated
            recorder.step(number, observation, reward, ended=ended)
            late = not ended and not recorder.open  # the horizon is reached, whether or not the env knows
            return observation, terminated, truncated or late, harmless(info)

        seen, problem = quietly(go)
        if seen is None or problem is not None:
            self._dismiss()
            raise problem or BadUserError("There is no user.")
        if not recorder.open:
            self._recorder = None
            self._leave(recorder.trajectory, 1, recorder.ask)
        return seen

    def _tell_of_withheld_rewards(self) -> None:
        """Warn, once for each boundary, that rewards are withheld: zeros are not for training or evaluation."""
        if self._told:
            return
        self._told = True
        warnings.warn(
            f"{type(self).__name__} withholds rewards: step() returns 0.0 in their place, and every episode spends a "
            "user. Let learners that act on rewards train on board.private_model(), or use LDPPerStep; evaluate them "
            "on the environment itself.",
            stacklevel=3,
        )

    def _admit(self, users: int) -> None:
        """Admit all of these users, or none. A user who is still in her episode leaves and contributes nothing."""
        self._require_whole()
        if self.users is not None and self._arrived + users > self.users:
            raise BudgetExhausted(
                f"{users} more after {self._arrived} users: this boundary was built for {self.users}. Nothing was "
                "released. Build it for as many users as will come, with users=."
            )
        self._touch()
        self._dismiss()
        self._arrived += users

    def _dismiss(self) -> None:
        """Let the current user, if there is one, leave before the end of her episode."""
        if self._recorder is not None:
            ask, self._recorder = self._recorder.ask, None
            self._leave(None, 1, ask)

    def close(self) -> None:
        """Close the environment. A user who is in the middle of her episode leaves."""
        with self._lock:
            self._dismiss()
        super().close()

    @property
    def pace(self) -> float | None:
        """Seconds that ``serve`` takes for each user, whatever she does; None for no waiting.

        The time that users take reveals something about them. With a pace well above that time, ``serve`` returns
        when so many seconds for each user are over; if users take longer, it waits for the next multiple and warns.
        """
        return self._pacer.seconds

    @pace.setter
    def pace(self, seconds: float | None) -> None:
        self._pacer.set(seconds)

    # For experimenters, who may see what lies inside -----------------------------------------------------------------

    def invite(self, users: Any) -> None:
        """Let the users with these tapes come next, in this order, by ``serve`` or by ``reset``."""
        self._require_outermost()
        self.population.invite(users)

    def observe(self, observer: Observer) -> None:
        """Show an auditor all users and reports from now on. This is raw data, which no learner may see."""
        self._require_outermost()
        self._observers.append(observer)
