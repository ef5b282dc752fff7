"""The base class of all billboards, which take in users and publish sums.

* ``Boundary`` - what is published and guaranteed, and its saved states; users come by the entrance, ``Entrance``
"""

from __future__ import annotations

import math
import os
import uuid
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.caller import warn
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.planning.arrays import positive_integer
from private_rl_gym.planning.memory import available_memory, in_bytes
from private_rl_gym.planning.network import Layers
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.batches import Batches, Door, number_of_batches
from private_rl_gym.privacy.guarantee import Guarantee, Ledger, plain_number
from private_rl_gym.privacy.noise import Noises, NoiseSource
from private_rl_gym.privacy.statistics import Statistic
from private_rl_gym.wrappers import saving
from private_rl_gym.wrappers.crowd import Crowd
from private_rl_gym.wrappers.entrance import Entrance, Observer
from private_rl_gym.wrappers.population import TRANSPARENT, Population, countable, layers
from private_rl_gym.wrappers.private_model import Belief, private_model
from private_rl_gym.wrappers.summing import about_gradients

__all__ = ["SUMS", "Boundary"]

SUMS = 6
"""Arrays with a number for each cell that sums and releases take, without noise."""


class Boundary(Entrance, Door, gym.utils.RecordConstructorArgs):
    """Sums what users contribute, and publishes the sums as its guarantee allows.

    A subclass defines what it publishes and guarantees (``design``), what happens to a user's contribution
    (``contribute``) and to the sums (``disclose``), the error of what is published (``law``), and where the noise that
    keeps its promise is drawn from (``sources``); CONTRIBUTING has a recipe.
    """

    short: ClassVar[str]
    """The name on the command line, in grids and in audits."""

    may_enclose: ClassVar[tuple[str, ...]] = ()
    """Short names of the boundaries that this one may be put around. It then takes over their users and reports."""

    usual_delta: ClassVar[float] = 1e-6
    """The delta that commands ask for if nothing is said, where the constructor has such an option."""

    differentiates: ClassVar[bool] = False
    """Whether it publishes gradients, and so takes environments whose states cannot be counted."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        statistic: Any,
        horizon: int | None,
        users: int | None,
        batch_size: int,
        growth: float = 0.0,
        stationary: bool = False,
        reward_range: tuple[float, float] | None = None,
        visits: int = 1,
        seed: int | None = None,
        secure: bool = False,
    ) -> None:
        Entrance.__init__(self, env, seed, secure=secure)
        self._inner = self._find_inner(env)
        if self._inner is not None and reward_range is not None:
            raise ValueError(
                f"reward_range is {reward_range!r}: rewards are mapped where users are met. Give it to the "
                f"{type(self._inner).__name__} inside."
            )
        self._outer: str | None = None  # the boundary around this one, which has taken its users and reports
        self._asked_horizon, self._reward_range = horizon, reward_range
        self.population: Population = self._people(statistic)
        self._users = None if users is None else positive_integer(users, "users", "users")
        if self._inner is not None and self._inner.users is not None:
            if self._users is not None and self._inner.users < self._users:
                raise ValueError(
                    f"users is {users}: the {type(self._inner).__name__} inside was built for {self._inner.users}."
                )
            self._users = self._users or self._inner.users
        self._batch_size = positive_integer(batch_size, "batch_size", "users in a batch")
        if not 0.0 <= growth <= 1.0:
            raise ValueError(f"growth is {growth}: it is a share of the users so far, in [0, 1].")
        if stationary and self._inner is not None:
            raise ValueError(f"stationary=True is for the {type(self._inner).__name__} inside, where users report.")
        self._visits = positive_integer(visits, "visits", "episodes of one user")
        if self._visits > 1 and self._inner is not None:
            raise ValueError(
                f"visits is {visits}: no joint calibration is proved for reports that users noise themselves. Leave it "
                f"out, or put {type(self).__name__}(..., visits={visits}) around the bare environment."
            )
        self._growth, self._stationary = float(growth), bool(stationary)
        self._asked_statistic, self._apart = statistic, False
        self._opened: Batches | None = None
        self._saved: saving.Saved | None = None  # a state on disk that has not been continued yet
        self._identity = uuid.uuid4().hex

    def _find_inner(self, env: gym.Env[Any, Any]) -> Boundary | None:
        """The boundary that this one is put around, or None. Raises ValueError if the combination makes no sense."""
        name, between = type(self).__name__, []
        for layer in layers(env):
            kind = type(layer).__name__
            if getattr(layer, "randomizes_steps", False):
                raise ValueError(
                    f"{name} around {kind} makes no sense: its rewards are noisy, and sums need rewards in [0, 1]. Use "
                    "LDPUserSide, whose reports are made to be summed."
                )
            if not isinstance(layer, Boundary):
                between += [] if isinstance(layer, TRANSPARENT) else [kind]
                continue
            if layer.short not in self.may_enclose:
                allowed = f", or around {' or '.join(self.may_enclose)}" if self.may_enclose else " alone"
                raise ValueError(
                    f"{name} around {kind} makes no sense: users' data has left their trust there already. {name} may "
                    f"be put around a bare environment{allowed}."
                )
            if between:
                raise ValueError(
                    f"{', '.join(between)} between {kind} and {name} would see nothing and change nothing: put it "
                    "inside both, around the environment."
                )
            if layer._outer is not None:
                raise ValueError(f"{kind} lies inside a {layer._outer} already: build another one.")
            if layer._arrived:
                raise ValueError(f"{kind} has met users already: build the whole stack first.")
            return layer
        return None

    def _enclose(self) -> None:
        """Mark the boundary inside as enclosed: from now on, users are met through this one only."""
        if self._inner is not None:
            self._inner._outer = type(self).__name__

    def _warn_of_delta(self) -> None:
        """Say so if delta is so large that the promise would allow to publish somebody."""
        for reason in self._promised.warnings_of_delta:
            warn(f"{reason}. It is {plain_number(self._promised.delta)}: take 1e-6, or less.")

    def as_inner(self, statistic: Any) -> Statistic:
        """The statistic that users report here: of the kind that the boundary around needs, unless one was chosen."""
        if self._asked_statistic is None and self.statistic.name != statistic:
            self.design(statistic, apart=True)
        return self.statistic

    def _people(self, statistic: Any) -> Population:
        """The users, as this statistic needs them: in states that are counted, or under networks."""
        if about_gradients(statistic) and (self._inner is not None or not self.differentiates):
            around = "" if self._inner is None else f" around {type(self._inner).__name__}"
            raise ValueError(
                f"{type(self).__name__}{around} publishes no gradients: use JDPBillboard or LDPUserSide around "
                "the environment itself, or OpenBillboard for a run without privacy."
            )
        if self._inner is not None:
            return self._inner.population
        uncounted = statistic is None and self.differentiates and not countable(self.env)
        if about_gradients(statistic) or uncounted:
            if self._reward_range is not None:
                raise ValueError(
                    "reward_range is for sums of rewards: gradients take rewards of any size. Leave it out."
                )
            chosen = statistic if isinstance(statistic, Layers) else Layers()
            return Crowd(self.env, self._asked_horizon, chosen)
        return Population(self.env, self._asked_horizon, self._reward_range)

    def _require_outermost(self) -> None:
        if self._outer is not None:
            raise ValueError(
                f"This {type(self).__name__} lies inside a {self._outer}, which has taken its users and their reports: "
                f"call the {self._outer}."
            )

    # Design: what is published and guaranteed ------------------------------------------------------------------------

    @abstractmethod
    def design(self, statistic: Any, *, apart: bool) -> None:
        """Decide what is summed, how it is published and what that guarantees.

        Sets ``statistic`` and ``_promised``, and allocates no memory that grows with the problem. Raises ValueError if
        no mechanism fits.

        Args:
            statistic: The value of ``statistic=``, or the name of the one that an agent needs.
            apart: Whether every batch has to be published by itself.
        """

    statistic: Statistic
    """The statistic that every user contributes."""

    _promised: Guarantee

    _choices: NoiseSource | None = None
    """The source of users' own choices, which are no noise, where their reports leave them any."""

    def settle(self, statistic: str | Layers = "tabular", *, apart: bool = False) -> None:
        """Choose the options that were left open. Agents do so for what they need, when they are given a boundary.

        Options that were given when the boundary was built do not change, and none changes after a user has come.

        Args:
            statistic: The name of the statistic that is needed; for gradients, the layers of the network.
            apart: Whether every batch has to be published by itself.
        """
        self._require_outermost()
        gradients, asked = about_gradients(statistic), self._asked_statistic
        open_still = (asked is None or (gradients and asked == "gradient")) and not self._arrived
        name = "gradient" if gradients else statistic
        changes = self.statistic.name != name or (apart and not self.apart)
        other = isinstance(statistic, Layers) and getattr(self.population, "layers", None) != statistic
        if open_still and (changes or other):
            if other or isinstance(self.population, Crowd) != gradients:
                self.population = self._people(statistic)
            self.design(statistic, apart=apart)
            self._opened = None

    @property
    def _batches(self) -> Batches:
        """The batches of users who have left, created when first needed."""
        if self._opened is None:
            _ = self.guarantee  # nobody comes for a promise that is refused
            self._check_memory()
            self._opened = self._open()
        return self._opened

    @property
    def memory(self) -> int:
        """Bytes that sums, noise and a release take while users come: an estimate, before anything is allocated."""
        inner = 0 if self._inner is None else self._inner.arrays_of_noise()
        return 8 * self.statistic.cells * (SUMS + self.arrays_of_noise() + inner)

    def arrays_of_noise(self) -> int:
        """Number of arrays with a number for each cell that noise needs."""
        return 0

    def _check_memory(self) -> None:
        there = available_memory()
        if there is not None and self.memory > there:
            horizon, n_states, n_actions = self.sizes
            raise MemoryError(
                f"The sums of this {type(self).__name__} would take {in_bytes(self.memory)} of memory, and there are "
                f"{in_bytes(there)}: {self.statistic.cells:,} numbers, at H={horizon}, S={n_states}, A={n_actions}, "
                "several times over. Shorten the horizon, make fewer states, or let users report single steps "
                "(statistic='reports', as FrugalUCBVI asks for), which does not grow with the horizon."
            )

    def _open(self) -> Batches:
        return Batches(self.statistic, self, **self._about_users())

    def _about_users(self) -> dict[str, Any]:
        population = self.population
        return {
            "users": self.users,
            "batch_size": self.batch_size,
            "growth": self._growth,
            "absorbing": population.absorbing,
            "waiting_reward": population.rewards.zero if population.padded else 0.0,
        }

    def contribute(self, users: Trajectories, ask: Ask | None, sums: NDArray[np.int64]) -> None:
        """Add the users' vectors to ``sums``; around another boundary, add what users contribute there."""
        if self._inner is None:
            self.statistic.collect(users, sums, self._choices, ask)
        else:
            self._inner.contribute(users, ask, sums)

    def contribute_nothing(self, users: int, sums: NDArray[np.int64]) -> None:
        """Add nothing for users who left early; around another boundary, add what they contribute there."""
        if self._inner is not None:
            self._inner.contribute_nothing(users, sums)

    def expected_noise(self, users: int, ask: Ask | None = None) -> float:
        """Standard deviation of the noise in a cell that nobody is in, for a batch of users who are asked this.

        It is public and known in advance, so that learners can plan the sizes of their batches. Shufflers state it for
        large batches; in smaller ones it is a few percent less.
        """
        del ask
        return self.statistic.own_noise(users)

    def disclose(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """The values to publish for these sums; here the sums themselves."""
        del releases
        return np.asarray(sums[: self.statistic.cells] * self.statistic.grid)

    def noises(self, batches: Sequence[int]) -> Noises:
        """The additive noise in releases after batches of these sizes, for audits. Noise of other kinds is left out."""
        return self.statistic.noises(batches)

    @abstractmethod
    def sources(self) -> dict[str, NoiseSource]:
        """The sources of the noise that the promise of this boundary rests on, by role; none if nothing is promised."""

    def all_sources(self) -> dict[str, NoiseSource]:
        """The sources of all privacy noise and of users' choices, by role, here and in the boundary inside."""
        if self._inner is not None:
            return {**self._inner.all_sources(), **self.sources()}
        chosen = {"choices": self._choices} if self._choices is not None and self.statistic.leaves_choices else {}
        return {**chosen, **self.sources()}

    # Guarantees ------------------------------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of this boundary to every user."""
        promised, sources = self._promised, self.sources()
        if math.isfinite(promised.epsilon) and not sources:
            raise TypeError(
                f"{type(self).__name__} promises epsilon = {promised.epsilon:g}, and names no source of noise: its "
                "sources() must return the NoiseSource of all noise that this promise rests on."
            )
        return replace(promised, seeded=any(source.seeded for source in sources.values()))

    @property
    def ledger(self) -> Ledger:
        """The guarantees of all boundaries up to this one, from the inside out."""
        inner = () if self._inner is None else self._inner.ledger.entries
        return Ledger((*inner, self.guarantee))

    def in_short(self) -> list[str]:
        """The promise, the batches, and the numbers of users, which are public: neighbours have the same."""
        batches = [] if self._batch_size == 1 else [f"batch_size={self._batch_size}"]
        batches += [f"growth={self._growth:g}"] if self._growth else []
        batches += ["stationary=True"] if self._stationary else []
        facts = [str(self.ledger.outside), *batches]
        if self._outer is not None:
            return [*facts, f"inside a {self._outer}"]
        more = "" if self._users is None else f", {self._users - self._arrived} may come"
        return [*facts, f"{self._arrived} users have come{more}"]

    @property
    def terms(self) -> list[dict[str, Any]]:
        """The guarantees in the ledger, without notes and seeds: a stack that continues a state must have the same."""
        inner = [] if self._inner is None else self._inner.terms
        content = self.guarantee.to_dict()
        return [*inner, {key: content[key] for key in content if key not in ("notes", "seeded")}]

    @property
    def identity(self) -> str:
        """A unique name. It is kept in saved states, and tells agents whether they know the sums of this boundary."""
        return self._identity

    @property
    def users(self) -> int | None:
        """The number of users that this boundary was built for; None for any number."""
        return self._users

    @property
    def batch_size(self) -> int:
        """Number of users in a batch."""
        return self._batch_size

    @property
    def planned_batches(self) -> int | None:
        """The number of batches of all users, if none is closed early; None if any number may come."""
        return None if self._users is None else number_of_batches(self._users, self._batch_size, self._growth)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Horizon, number of states and number of actions of a release; padding adds a state."""
        return self.population.horizon, self.population.n_states, self.population.n_actions

    # Releases --------------------------------------------------------------------------------------------------------

    @property
    def release(self) -> Any:
        """The newest release, about all users so far. Its type depends on the statistic."""
        self._require_outermost()
        with self._lock:
            return self._batches.release

    @property
    def batch(self) -> Any:
        """The release of the newest batch alone, where every batch is published by itself."""
        self._require_outermost()
        if not self.apart:
            raise ValueError(
                f"This {type(self).__name__} publishes no batch by itself, but all users so far. {self.more_releases}"
            )
        with self._lock:
            return self._batches.batch

    @property
    def users_to_release(self) -> int:
        """Number of users who have to come until the next release."""
        self._require_outermost()
        return self._batches.users_to_release

    @property
    def closes_early(self) -> bool:
        """Whether ``publish`` may end any batch at no cost.

        False if noise was planned for a number of releases, or if reports are protected by the other reports of their
        batch.
        """
        return self._batches.closes_early

    @property
    def least_batch(self) -> int:
        """The smallest number of users whose sums are ever published together; a public number."""
        return 1

    def begin_batch(self, users: int) -> None:
        """Set the number of users in the batch that begins now, where batches may have any size."""
        count = positive_integer(users, "users", "users in a batch")
        with self._lock:
            self._require_outermost()
            self._batches.ask_for(count)

    def publish(self) -> Any:
        """End the current batch now, if anyone has finished since the last release. Each user is in one batch only.

        Where noise is planned for a number of releases, as by trees and factorizations, there may be none to spare: the
        error then names the options of this boundary for more of them.
        """
        with self._lock:
            self._require_outermost()
            self._require_whole()
            if self._batches.pending:
                self._touch()
                self._batches.publish()
            return self.release

    def private_model(
        self,
        render_mode: str | None = None,
        *,
        belief: Belief = "mean",
        start: ArrayLike | None = None,
        rng: np.random.Generator | None = None,
    ) -> TabularEnv:
        """The newest release as a Gymnasium environment. Any learner may train on it without weakening the guarantee.

        Observations contain the stage if those of the users' environment do.

        Args:
            render_mode: As of any Gymnasium environment.
            belief: What the model says where the release says little: its best estimate (``"mean"``), the best that
                may be hidden there (``"optimistic"``), the least that noise leaves of rewards (``"pessimistic"``), or
                something at random (``"sampled"``).
            start: The state in which users start, or the probabilities of all, if that is known publicly.
            rng: The generator of a sampled model.
        """
        model = private_model(self.release, belief=belief, start=start, rng=rng)
        timed = isinstance(self.population.env.observation_space, gym.spaces.MultiDiscrete)
        return TabularEnv(model, observe_time=timed, render_mode=render_mode)

    def observe(self, observer: Observer) -> None:
        """Show an auditor all users and reports from now on. This is raw data, which no learner may see."""
        super().observe(observer)
        if self._inner is not None:
            self._inner._observers.append(observer)

    # Saving and restoring --------------------------------------------------------------------------------------------

    def save_state(self, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
        """Save everything that is needed to continue after a restart. The file is secret: it holds raw sums.

        A state may be continued once. If this boundary itself continues after saving, that spends the file; so save at
        the very end, or save again. See :mod:`private_rl_gym.wrappers.saving`.

        Args:
            path: The file.
            key: 16 bytes or more, kept apart from the file. Without a key, trust a state only as you trust code: anyone
                who can write the file can write one that breaks the guarantee.
        """
        with self._lock:
            self._require_outermost()
            if self._recorder is not None:
                raise ValueError("A user is in the middle of her episode: finish it, then save.")
            self._require_whole()
            _ = self._batches  # created here, if no user has come yet
            self.check()
            written = saving.write(path, self._state(), self._arrays(), key)
            self._touch()  # spends an older state of the same moment, which the new one replaces
            self._saved = written

    def load_state(self, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
        """Continue from a saved state, in a boundary that was built with the same arguments and has met no user yet.

        Args:
            path: The file.
            key: The key that it was saved with. A state that was changed by someone without the key is refused.
        """
        with self._lock:
            self._require_outermost()
            if self._arrived:
                raise ValueError("This boundary has met users: load a state into a new one.")
            loaded = saving.read(path, key)
            loaded.check_terms(self._all_terms())
            loaded.into(self._state(), self._arrays(), self._go_on)

    def _state(self) -> dict[str, Any]:
        """The whole numbers, names and generator states that are needed to continue."""
        batches, sources = self._batches, self.all_sources()
        return {
            "terms": self._all_terms(),
            "boundary": self.identity,
            "arrived": self._arrived,
            "counters": {name: getattr(batches, name) for name in batches.counters},
            "noise_step": self._noise_step,
            "seeded": {role: source.seeded for role, source in sources.items()},
            "sources": {role: source.state() for role, source in sources.items()},
            "users": self.unwrapped.np_random.bit_generator.state,
        }

    def _all_terms(self) -> dict[str, Any]:
        """Everything that must be the same in a saved state and in the boundary that continues it."""
        return {
            "kind of boundary": type(self).__name__,
            "guarantee": self.terms,
            "statistic": self.statistic.label,
            "sizes": list(self.sizes),
            "batch_size": self.batch_size,
            "growth": self._growth,
            "number of users": self.users,
            "kind of generator": {role: source.secure for role, source in self.all_sources().items()},
            "environment": saving.digest(self.population.model),
            "range of rewards": None if self.population.rewards.plain else str(self.population.rewards),
            **self.noise_terms(),
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that are needed to continue."""
        asked = {} if self._ask is None else self._ask.arrays()
        optional = {f"{saving.ASK}{name}": array for name, array in asked.items()}
        optional |= {f"{saving.CAME}{name}": array for name, array in self._members.arrays().items()}
        return {**self._batches.arrays(), **self.noise_arrays(), **optional}

    def noise_terms(self) -> dict[str, Any]:
        """The numbers that noise was calibrated to, which must be the same in the boundary that continues a state."""
        return {}

    def noise_arrays(self) -> dict[str, NDArray[Any]]:
        """The noise that later releases build on, to be saved and restored in place. It is secret."""
        return {}

    _noise_step = 0

    def _go_on(self, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state that was checked."""
        for role, source in self.all_sources().items():
            source.restore(state["sources"][role])
            source.seeded = state["seeded"][role]
        for name, array in self.noise_arrays().items():
            array[...] = arrays[name]
        self._noise_step = state["noise_step"]
        self._arrived, self._identity = state["arrived"], state["boundary"]
        self.unwrapped.np_random.bit_generator.state = state["users"]
        self._batches.restore(state["counters"], arrays)
        asked, came = (
            {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
            for prefix in saving.OPTIONAL
        )
        self._members.restore(came)
        if asked and self.statistic.asks is not None:
            self._ask = self.statistic.checked(self.statistic.asks.of(asked))

    def _touch(self) -> None:
        """Spend the state that this boundary saved last, if there is one, before anything changes."""
        if self._saved is not None:
            self._saved.spend()
            self._saved = None  # only now: if spending is refused, so is continuing
