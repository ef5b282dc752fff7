"""What all billboards share: users come in, sums go out."""

from __future__ import annotations

import os
import threading
import uuid
import warnings
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.policy import Policy, checked_values
from private_rl_gym.privacy.guarantee import Guarantee, Ledger
from private_rl_gym.privacy.publishing import PublicSums
from private_rl_gym.wrappers import saving
from private_rl_gym.wrappers.inside import (
    BadUserError,
    Inside,
    Recorder,
    behind_closed_doors,
    plain_generator,
    quietly,
)
from private_rl_gym.wrappers.pace import Pacer
from private_rl_gym.wrappers.private_model import private_model
from private_rl_gym.wrappers.sealed import Sealed
from private_rl_gym.wrappers.stacks import find_inner

__all__ = ["Boundary", "BudgetExhausted"]

CHUNK = 4096  # users that are in memory at once
HARMLESS = ("TimeLimit.truncated",)  # info keys that say nothing that a user's observations do not say


class BudgetExhausted(RuntimeError):  # noqa: N818 - a public name
    """More users asked for than the boundary was built for. Nothing was released of them."""


class Boundary(Sealed, gym.utils.RecordConstructorArgs):
    """Sums what users contribute, and publishes those sums as its guarantee allows.

    There are two ways in, with the same outcome for the same users and noise: ``serve``, by which agents meet users,
    and ``reset`` and ``step``, as in any Gym environment. Either way a user's reward is withheld (0.0, with
    ``info["withheld"]``), and of the rest of ``info`` only harmless keys are passed on.

    A user counts from the moment she arrives. One whose episode is abandoned by another ``reset`` (or by ``close``), or
    refused, contributes nothing; where users noise their own reports, a report of nothing.
    """

    may_enclose: ClassVar[tuple[str, ...]] = ()
    """Names of the boundaries that this one may be put around."""

    def __init__(self, env: gym.Env[Any, Any], *, horizon: int | None, users: int | None, publish_every: int) -> None:
        gym.Wrapper.__init__(self, env)
        self._users = None if users is None else positive_integer(users, "users", "users")
        self._publish_every = positive_integer(publish_every, "publish_every", "users in a batch")
        self._inner = find_inner(self, env)
        self._outer: Boundary | None = None
        if self._inner is None:
            self._inside = Inside(env, horizon)
        else:
            self._inside = self._inner._inside
        # One at a time: two threads would publish the same noise on different sums.
        self._lock: threading.RLock = threading.RLock() if self._inner is None else self._inner._lock
        self._recorder: Recorder | None = None  # of the user who is here by reset and step
        self._invited = False  # whether the next reset was admitted by the outermost boundary
        self._arrived = 0  # users who have come
        self._saved: saving.Saved | None = None  # a state on disk that nobody has continued yet
        self._identity = uuid.uuid4().hex
        self._values: NDArray[np.float64] | None = None
        self._pacer = Pacer()
        self._told = False  # whether it was said that rewards are withheld

    _board: PublicSums
    """What is summed and published; each kind of boundary makes its own."""

    @property
    def identity(self) -> str:
        """A name that no other boundary has; it goes on with a saved state, and tells agents whose sums they know."""
        return self._identity

    @property
    def users(self) -> int | None:
        """The number of users that this boundary was built for; None for any number."""
        return self._users

    @property
    def publish_every(self) -> int:
        """Users in a batch."""
        return self._publish_every

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Horizon, states and actions of what is released; padding adds a state."""
        return self._inside.horizon, self._inside.n_states, self._inside.n_actions

    @property
    def summed(self) -> str:
        """What releases speak of: ``"tabular"`` counts, or ``"linear"`` moments."""
        return self._board.statistic.kind

    @property
    def values(self) -> NDArray[np.float64] | None:
        """The value function ``[h, s]`` that was sent to users last, with a policy of a linear learner.

        Users whom ``serve`` lets in are sent that of their policy, if it has one; all others, this one.
        """
        return self._values

    @values.setter
    def values(self, values: ArrayLike) -> None:
        horizon, n_states, _ = self.sizes
        self._values = checked_values(values, (horizon + 1, n_states))

    @property
    def pace(self) -> float | None:
        """Seconds that ``serve`` takes for each user, whatever she does; None for as little as it takes.

        How long users take tells about them. With a pace well above that, ``serve`` returns when so many seconds have
        gone by, and no sooner; where users take longer it waits for the next whole multiple, and warns.
        """
        return self._pacer.seconds

    @pace.setter
    def pace(self, seconds: float | None) -> None:
        self._pacer.set(seconds)

    # What is promised ------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What this boundary promises."""

    @property
    def ledger(self) -> Ledger:
        """What the whole stack up to here promises, from the inside out."""
        inner = () if self._inner is None else self._inner.ledger.entries
        return Ledger((*inner, self.guarantee))

    @property
    def _terms(self) -> list[dict[str, Any]]:
        """What a saved state has to have in common with the boundary that goes on from it."""
        inner = [] if self._inner is None else self._inner._terms
        said = self.guarantee.to_dict()
        return [*inner, {key: said[key] for key in said if key not in ("notes", "seeded")}]

    # What goes out ---------------------------------------------------------------------------------------------------

    @property
    def release(self) -> Any:
        """The newest release: what kind it is follows from the statistic that is summed."""
        return self._board.release

    @property
    def users_left(self) -> int | None:
        """How many more users may come; None for any number."""
        return None if self.users is None else self.users - self._arrived

    @property
    def users_to_release(self) -> int:
        """How many more users it takes until something new is published."""
        return self._board.users_to_release

    @property
    def closes_early(self) -> bool:
        """Whether ``publish`` may end any batch at no cost.

        Not where noise was planned for a number of releases, nor where reports hide among those of their batch.
        """
        return self._board.closes_early

    def publish(self) -> Any:
        """End the current batch now, if anyone has finished since the last release. Each user is in one batch only.

        With a tree or a factorization every release was planned for: build the board with ``releases=`` to spare, or
        with ``counting="batched"``.
        """
        with self._lock:
            if self._board.pending:
                self._touch()
                self._board.publish()
            return self.release

    def private_model(self, render_mode: str | None = None) -> TabularEnv:
        """The newest release as a Gymnasium environment: training anything on it keeps the guarantee.

        It shows the stage if the users' environment does.
        """
        model = private_model(self.release, padded=self._inside.padded)
        timed = isinstance(self._inside.env.observation_space, gym.spaces.MultiDiscrete)
        return TabularEnv(model, observe_time=timed, render_mode=render_mode)

    # Who comes in ----------------------------------------------------------------------------------------------------

    def serve(
        self,
        policy: Policy | ArrayLike,
        users: int | NDArray[np.float64] = 1,
        *,
        rng: np.random.Generator | None = None,
    ) -> int:
        """Let users run a policy. The one door through which an agent meets users.

        Args:
            policy: What they run.
            users: How many, or their tapes ``[user, uniform]`` where the environment has tapes.
            rng: Where a stochastic policy draws its actions from: one of numpy's generators, the agent's own.

        Returns:
            How many were served, and nothing about them.
        """
        inside = self._inside
        checked = inside.policy(policy)
        if not checked.deterministic:
            if rng is None:
                raise ValueError(
                    "A stochastic policy draws its actions from rng=, a generator that belongs to the agent."
                )
            rng = plain_generator(rng)
        given = None if isinstance(users, int | np.integer) else inside.tapes(users)
        count = positive_integer(users, "users", "users to serve") if given is None else len(given)
        with self._lock:
            self._admit(count)
            if checked.values is not None:
                self._values = checked.values
            elif self._values is not None:
                checked = checked.with_values(self._values)
            with self._pacer.of(count):
                behind_closed_doors(partial(self._let_in, checked, given, count, rng))
        return count

    def _let_in(
        self, policy: Policy, given: NDArray[np.float64] | None, count: int, rng: np.random.Generator | None
    ) -> None:
        """Users come, run the policy, and leave. Nothing of the learner's runs while one of them is here."""
        inside, before, refused = self._inside, self._board.gone, None
        try:
            for start in range(0, count, CHUNK):
                here = min(CHUNK, count - start)
                uniforms = None if policy.deterministic or rng is None else rng.random((here, inside.horizon))
                if inside.compiled:
                    group = here if given is None else given[start : start + here]
                    self._board.receive(inside.run(policy, group, uniforms), here)
                    continue
                for user in range(here):
                    tape = None if given is None else given[start + user]
                    own = None if uniforms is None else uniforms[user]
                    trajectory, problem = quietly(partial(inside.walk, policy, tape, own))
                    refused = problem or refused  # the others are served as if she had been anybody else
                    self._board.receive(trajectory, 1)
        finally:  # whoever was let in and did not finish, as when someone interrupts, has left
            missing = count - (self._board.gone - before)
            if missing:
                self._board.receive(None, missing)
        if refused is not None:
            raise refused

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user. The seed goes to the environment; privacy noise is never seeded again."""
        with self._lock:
            if self._outer is None:
                self._inside.check_options(options)
                self._admit(1)
                self._innermost._invited = True
            if self._inner is not None:
                return self._pass_on(lambda: self.env.reset(seed=seed, options=options))
            if not self._invited:
                raise ValueError(f"{type(self).__name__} lies inside {_name(self._outer)}: meet users through that.")
            self._invited = False
            return behind_closed_doors(partial(self._meet, seed, options))

    def _meet(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        """A user arrives: from here on she counts, whatever happens."""
        recorder = self._recorder = Recorder(self._inside, self._outermost._values)

        def meet() -> tuple[Any, dict[str, Any]]:
            observation, info = self.env.reset(seed=seed, options=options)
            recorder.begin(observation)
            return observation, _harmless(info)

        seen, problem = quietly(meet)
        if seen is None or problem is not None:
            self._dismiss()
            raise problem or BadUserError("There is no user.")
        return seen

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step of the user; her reward stays inside."""
        with self._lock:
            number = self._inside.action_of(action)
            if self._inner is not None:
                observation, _, terminated, truncated, info = self.env.step(self._inside.env_action(number))
                return observation, 0.0, bool(terminated), bool(truncated), _harmless(info) | {"withheld": True}
            if self._recorder is None:
                raise gym.error.ResetNeeded("There is no user here: call reset() to meet the next one.")
            self._outermost._tell_of_withheld_rewards()
            observation, terminated, truncated, info = behind_closed_doors(partial(self._go, number))
            return observation, 0.0, terminated, truncated, info | {"withheld": True}

    def _tell_of_withheld_rewards(self) -> None:
        """Once for each boundary: a learner that trains on zeros, or an evaluation of them, is a mistake."""
        if self._told:
            return
        self._told = True
        warnings.warn(
            f"{type(self).__name__} withholds rewards: step() returns 0.0 in their place, and every episode spends a "
            "user. Let learners that act on rewards train on board.private_model(), or use LDPPerStep; evaluate them "
            "on the environment itself.",
            stacklevel=3,
        )

    def _go(self, number: int) -> tuple[Any, bool, bool, dict[str, Any]]:
        """The user takes an action, and leaves if her episode is over."""
        recorder = self._recorder
        assert recorder is not None  # noqa: S101 - she was asked for

        def go() -> tuple[Any, bool, bool, dict[str, Any]]:
            observation, reward, terminated, truncated, info = self.env.step(self._inside.env_action(number))
            ended = bool(terminated or truncated)
            recorder.step(number, observation, reward, ended=ended)
            late = not ended and not recorder.open  # the horizon is reached, whether or not the env knows
            return observation, bool(terminated), bool(truncated) or late, _harmless(info)

        seen, problem = quietly(go)
        if seen is None or problem is not None:
            self._dismiss()
            raise problem or BadUserError("There is no user.")
        if not recorder.open:
            self._recorder = None
            self._outermost._board.receive(recorder.trajectory, 1)
        return seen

    def _pass_on(self, call: Callable[[], tuple[Any, dict[str, Any]]]) -> tuple[Any, dict[str, Any]]:
        """The reset of an inner boundary; if anything between fails, nobody has come in by it."""
        done = False
        try:
            observation, info = call()
            done = True
            return observation, _harmless(info)
        finally:
            innermost = self._innermost
            if not done and innermost._invited:
                innermost._invited = False
                self._board.receive(None, 1)

    def close(self) -> None:
        """Close the environment; a user who is in the middle of her episode has left."""
        with self._lock:
            self._innermost._dismiss()
        super().close()

    # Inside the boundary ---------------------------------------------------------------------------------------------

    @property
    def _outermost(self) -> Boundary:
        return self if self._outer is None else self._outer._outermost

    @property
    def _innermost(self) -> Boundary:
        return self if self._inner is None else self._inner._innermost

    def _admit(self, users: int) -> None:
        """Count users in, all or none; whoever is here without having finished leaves with nothing."""
        if self._outer is not None:
            raise ValueError(f"{type(self).__name__} lies inside {_name(self._outer)}: serve users through that.")
        if self.users is not None and self._arrived + users > self.users:
            raise BudgetExhausted(
                f"{users} more after {self._arrived} users: this boundary was built for {self.users}. Nothing was "
                "released. Build it for as many users as will come, with users=."
            )
        self._touch()
        self._innermost._dismiss()
        self._arrived += users

    def _dismiss(self) -> None:
        if self._recorder is not None:
            self._recorder = None
            self._outermost._board.receive(None, 1)

    # A long run that survives a restart ------------------------------------------------------------------------------

    def save_state(self, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
        """Write down everything that it takes to go on after a restart. The file is secret: it holds raw sums.

        A state may be continued once. If this boundary goes on itself, it does so, and the file is spent; so save
        last, or save again. See :mod:`private_rl_gym.wrappers.saving`.

        Args:
            path: The file.
            key: 16 bytes or more, kept apart from the file. Without one a state is trusted as code is: whoever can
                write the file can write one that breaks the promise.
        """
        with self._lock:
            self._saved = saving.save(self, path, key)

    def load_state(self, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
        """Go on from a saved state, in a boundary that was built with the same arguments and has met nobody yet.

        Args:
            path: The file.
            key: What it was saved with. A state that somebody without it has touched is refused.
        """
        with self._lock:
            saving.load(self, path, key)

    def _touch(self) -> None:
        """Before anything changes: if a state on disk stands where this boundary stands, it is spent now."""
        if self._saved is not None:
            self._saved.spend()
            self._saved = None  # not before: where spending is refused, so is going on


def _harmless(info: dict[str, Any]) -> dict[str, Any]:
    """The keys that may pass, and of these no more than that they are true."""
    return {key: True for key in HARMLESS if info.get(key) is True}


def _name(boundary: Boundary | None) -> str:
    return type(boundary).__name__
