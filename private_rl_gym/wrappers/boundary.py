"""What all billboards share: users come in, sums go out."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import positive_integer, read_only
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.errors import NoError
from private_rl_gym.privacy.guarantee import Guarantee, Ledger
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.release import Release
from private_rl_gym.privacy.statistics import Counts, Noise, Statistic
from private_rl_gym.wrappers import saving
from private_rl_gym.wrappers.inside import BadUserError, Inside, Recorder, layers
from private_rl_gym.wrappers.private_model import private_model

__all__ = ["Boundary", "BudgetExhausted"]

CHUNK = 4096  # users that are in memory at once
HARMLESS = ("TimeLimit.truncated",)  # info keys that say nothing that a user's observations do not say


class BudgetExhausted(RuntimeError):  # noqa: N818 - a public name
    """More users asked for than the boundary was built for. Nothing was released of them."""


class Boundary(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
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
        self.users = None if users is None else positive_integer(users, "users", "users")
        self.publish_every = positive_integer(publish_every, "publish_every", "users in a batch")
        self._inner = self._find_inner(env)
        self._outer: Boundary | None = None
        if self._inner is None:
            self._inside = Inside(env, horizon)
        else:
            self._inside = self._inner._inside
            self._inner._outer = self
        self._recorder: Recorder | None = None  # of the user who is here by reset and step
        self._arrived = 0  # users who have come
        self._gone = 0  # users who have left, and whose contributions are in the sums
        self._pending = 0  # of them, since the last release
        self._version = 0
        self._saved: saving.Saved | None = None  # a state on disk that nobody has continued yet

    def _sum(self, statistic: Statistic, source: NoiseSource | None) -> None:
        """Called by each kind of boundary once it knows what is summed, and where user-side noise comes from."""
        self._statistic = statistic
        self._user_source = source
        self._sums = np.zeros(statistic.cells, dtype=np.int64)
        self._release = self._make(np.zeros(statistic.cells))

    def _find_inner(self, env: gym.Env[Any, Any]) -> Boundary | None:
        for layer in layers(env):
            if isinstance(layer, Boundary):
                if type(layer).__name__ in self.may_enclose and layer._arrived == 0:
                    return layer
                if layer._arrived:
                    raise ValueError(f"{type(layer).__name__} has met users already: build the whole stack first.")
                allowed = " or ".join(self.may_enclose) or "no other boundary"
                raise ValueError(
                    f"{type(self).__name__} around {type(layer).__name__} makes no sense: users' data has left their "
                    f"trust there already. {type(self).__name__} may be put around a bare environment, or {allowed}."
                )
            if getattr(layer, "randomizes_steps", False):
                raise ValueError(
                    f"{type(self).__name__} around {type(layer).__name__} makes no sense: its rewards are noisy, and "
                    "sums need rewards in [0, 1]. Use LDPUserSide, whose reports are made to be summed."
                )
        return None

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Horizon, states and actions of what is released; padding adds a state."""
        return self._inside.horizon, self._inside.n_states, self._inside.n_actions

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

    # What goes out ---------------------------------------------------------------------------------------------------

    @property
    def release(self) -> Release:
        """The newest release."""
        return self._release

    @property
    def users_left(self) -> int | None:
        """How many more users may come; None for any number."""
        return None if self.users is None else self.users - self._arrived

    def publish(self) -> Release:
        """End the current batch now, if anyone is in it. Each user is in one batch only."""
        if self._pending:
            self._touch()
            self._publish(1, early=True)
        return self._release

    def private_model(self, render_mode: str | None = None) -> TabularEnv:
        """The newest release as a Gymnasium environment: training anything on it keeps the guarantee."""
        return TabularEnv(private_model(self._release, padded=self._inside.padded), render_mode=render_mode)

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
            rng: Where a stochastic policy draws its actions from; a generator of the agent's.

        Returns:
            How many were served, and nothing about them.
        """
        inside = self._inside
        checked = inside.policy(policy)
        if not checked.deterministic and rng is None:
            raise ValueError("A stochastic policy draws its actions from rng=, a generator that belongs to the agent.")
        given = None if isinstance(users, int | np.integer) else inside.tapes(users)
        count = positive_integer(users, "users", "users to serve") if given is None else len(given)
        self._admit(count)
        refused: BadUserError | None = None
        for start in range(0, count, CHUNK):
            here = min(CHUNK, count - start)
            uniforms = None if checked.deterministic or rng is None else rng.random((here, inside.horizon))
            if inside.compiled:
                group = here if given is None else given[start : start + here]
                self._receive(inside.run(checked, group, uniforms), here)
                continue
            for user in range(here):
                tape = None if given is None else given[start + user]
                try:
                    found = inside.walk(checked, tape, None if uniforms is None else uniforms[user])
                except BadUserError as error:  # the others are served as if she had been anybody else
                    refused = error
                    self._receive(None, 1)
                else:
                    self._receive(found, 1)
        if refused is not None:
            raise refused
        return count

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user. The seed goes to the environment; privacy noise is never seeded again."""
        if self._outer is None:
            self._admit(1)
        observation, info = self.env.reset(seed=seed, options=options)
        if self._inner is None:
            self._recorder = Recorder(self._inside)
            self._recorder.begin(observation)
        return observation, _harmless(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step of the user; her reward stays inside."""
        recorder = self._recorder
        if recorder is not None:
            self._inside.check_action(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        if recorder is not None:
            ended = bool(terminated or truncated)
            try:
                recorder.step(self._inside.action_of(action), observation, reward, ended=ended)
            except BadUserError:
                self._dismiss()
                raise
            if not recorder.open:
                truncated = bool(truncated or not ended)  # the horizon is reached, whether or not the env knows
                self._recorder = None
                self._outermost._receive(recorder.trajectory, 1)
        return observation, 0.0, bool(terminated), bool(truncated), _harmless(info) | {"withheld": True}

    def close(self) -> None:
        """Close the environment; a user who is in the middle of her episode has left."""
        self._innermost._dismiss()
        super().close()

    def render(self) -> Any:
        """Refused: a picture shows a user's data."""
        raise gym.error.Error(
            "A picture shows a user's data, which stays inside the trust boundary. An experimenter may render what "
            "lies inside, with env.unwrapped.render()."
        )

    @property
    def render_mode(self) -> None:  # type: ignore[override]
        """None: see :meth:`render`."""
        return

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
            raise ValueError(
                f"{type(self).__name__} lies inside {type(self._outer).__name__}: serve users through that."
            )
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
            self._outermost._receive(None, 1)

    def _receive(self, users: Trajectories | None, count: int) -> None:
        """Users leave. Where several releases fall due, noise is spent on each, and the newest is made."""
        self._gone += count
        due, rest = divmod(self._pending + count, self.publish_every)
        if rest and self._gone == self.users:  # the last batch may be smaller
            due, rest = due + 1, 0
        cut = count - rest if due else count
        self._collect(users, 0, cut)
        self._pending = 0 if due else self._pending + count
        if due:
            self._publish(due, early=False, behind=rest)
            self._pending = rest
            self._collect(users, cut, count)

    def _collect(self, users: Trajectories | None, start: int, stop: int) -> None:
        """Add what some of the users contribute; without trajectories, what those contribute who left early."""
        if start == stop:
            return
        if users is None:
            self._statistic.absent(stop - start, self._sums, self._user_source)
        else:
            self._statistic.collect(users.part(start, stop), self._sums, self._user_source)

    def _publish(self, times: int, *, early: bool, behind: int = 0) -> None:
        """Publish so many times, the last time with all users but those ``behind`` the last batch."""
        del early
        self._version += times
        self._pending = 0
        self._release = self._make(self._noisy(times), behind)

    def _noisy(self, times: int) -> NDArray[np.float64]:
        """The sums in real units, with what noise belongs to this many further releases."""
        del times
        return self._sums * self._statistic.grid

    def _noise_law(self) -> Noise:
        """The error that this boundary adds to one entry of the sums, given the entry's grid."""
        return lambda _grid: NoError()

    def _make(self, vector: NDArray[np.float64], behind: int = 0) -> Release:
        users = self._gone - behind
        return self._state(self._statistic.counts(vector, users), users)

    def _state(self, counts: Counts, users: int) -> Release:
        """A release of these counts, with the errors that hold where the noise stands."""
        n, m, r = counts
        horizon, n_states, n_actions = n.shape
        entries = horizon * n_states * n_actions * (n_states + 2)
        return Release(
            version=self._version,
            users=users,
            n=read_only(n),
            m=read_only(m),
            r=read_only(r),
            errors=self._statistic.errors(self._noise_law(), users),
            events=entries * self._releases(),
        )

    def _releases(self) -> int:
        """How many releases an error bound has to hold for; v (v + 1) for the v-th of an endless series."""
        return max(1, self._version * (self._version + 1)) if self.users is None else self.users

    # A long run that survives a restart ------------------------------------------------------------------------------

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write down everything that it takes to go on after a restart. The file is secret: it holds raw sums.

        A state may be continued once. If this boundary goes on itself, it does so, and the file is spent; so save
        last, or save again. See :mod:`private_rl_gym.wrappers.saving`.
        """
        self._saved = saving.save(self, path)

    def load_state(self, path: str | os.PathLike[str]) -> None:
        """Go on from a saved state, in a boundary that was built with the same arguments and has met nobody yet."""
        saving.load(self, path)

    def _touch(self) -> None:
        """Before anything changes: if a state on disk stands where this boundary stands, it is spent now."""
        if self._saved is not None:
            saved, self._saved = self._saved, None
            saved.spend()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that change, to be saved and restored in place."""
        return {"sums": self._sums, **{f"statistic.{k}": v for k, v in self._statistic.arrays().items()}}

    def _sources(self) -> dict[str, NoiseSource]:
        """Noise sources whose position has to be saved."""
        return {} if self._user_source is None else {"users": self._user_source}


def _harmless(info: dict[str, Any]) -> dict[str, Any]:
    return {key: info[key] for key in HARMLESS if key in info} | ({"withheld": True} if info.get("withheld") else {})
