"""Reports: users say one thing each, or a few, about steps that are wanted.

* ``Reports`` - a user's steps (s, a, s', reward bit) in wanted cells, whatever the stage, each cell once
* ``ReportedSteps`` - one step of each user at a random stage, in the form of counts
* ``LocalReports`` - one such step, as a random set of outcomes in which the true one is more likely (local model)
* ``ReportRelease`` - published sums of either

A report is short, so one user moves the sums by little, whatever the horizon. A reward is rounded to a bit on the
user's side, without bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Ask, Wanted
from private_rl_gym.privacy.errors import BoundedError, CombinedError, ErrorLaw
from private_rl_gym.privacy.noise import Noises, NoiseSource, RandomAnswers
from private_rl_gym.privacy.randomizers import Subsets, add_subset
from private_rl_gym.privacy.release import CERTAIN, Published, Release
from private_rl_gym.privacy.statistics import Noise, Statistic

__all__ = ["LocalReports", "ReportRelease", "ReportedSteps", "Reports"]


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class ReportRelease(Published):
    """The sums of reports.

    Attributes:
        starts: ``[s]``, users who reported that they started there.
        reports: ``[s, a, s', bit]``, reported steps, with rewards rounded to bits; of staged reports
            ``[h, s, a, s', bit]``, where those that do not say their stage stand at the first.
    """

    families: ClassVar[tuple[str, ...]] = ("starts", "reports")
    headline: ClassVar[str] = "reports"

    starts: NDArray[np.float64]
    reports: NDArray[np.float64]

    def with_certain_rows(self) -> ReportRelease:
        """The same release, with rows which state that no action leaves the absorbing state."""
        if self.absorbing is None:
            return self
        reports = self.reports.copy()
        reports[..., self.absorbing, :, :, :] = 0.0
        rewards = np.array([1.0 - self.waiting_reward, self.waiting_reward])  # as bits
        reports[..., self.absorbing, :, self.absorbing, :] = CERTAIN * rewards
        return replace(self, reports=read_only(reports))

    def __repr__(self) -> str:
        n_states, n_actions = self.reports.shape[-4:-2]
        noise = self.noise_std["reports"]
        return (
            f"ReportRelease(version={self.version}, users={self.users}, S={n_states}, A={n_actions}, noise={noise:.3g})"
        )


class Reports(Statistic):
    """A user's first steps in wanted cells (s, a), or her step at a random stage, or her first state: see ``Wanted``.

    Privacy:
        A user's vector has ``most`` ones or fewer, and zeros. Replacing her moves at most ``most`` entries up by one
        and as many down: L1 at most 2 ``most``, squared L2 at most 2 ``most``. How many reports a batch was asked for
        is public, and its noise follows the largest number. Proof: docs/proofs/reports.md. With ``zero_out`` she is
        compared with nobody, and both are ``most``: docs/proofs/zero-out.md.

    Args:
        horizon, n_states, n_actions: Sizes of the problem.
        most: Largest number of reports of a user.
        staged: Whether users may be asked for the stage of a step: then there is a cell for each (h, s, a).

    Example:
        >>> reports = Reports(20, 6, 2)
        >>> reports.l1, Reports(20, 6, 2, most=8).l2
        (2.0, 4.0)
    """

    title = "reports"
    asks: type[Ask] | None = Wanted
    leaves_choices = True

    def __init__(
        self,
        horizon: int,
        n_states: int,
        n_actions: int,
        *,
        most: int = 1,
        staged: bool = False,
        zero_out: bool = False,
    ) -> None:
        self.horizon, self.n_states, self.n_actions, self.most = horizon, n_states, n_actions, most
        self.staged, self.name = staged, "staged-reports" if staged else "reports"
        self._shape = (horizon,) * staged + (n_states, n_actions, n_states, 2)
        self.cells = n_states + math.prod(self._shape)
        self.tallies = horizon  # users who were asked for 1, ..., H reports
        self.moved = most
        self.zero_out = zero_out
        ones = most if zero_out else 2 * most
        self.l1, self.l2, self.parts = float(ones), math.sqrt(ones), ((ones, 1.0),)

    @property
    def everything(self) -> Wanted:
        """The ask of users who were sent none: one report, of a step at a random stage."""
        cells = np.ones((self.n_states, self.n_actions), dtype=bool)
        return Wanted(read_only(cells), anywhere=0.9, starts=0.1)

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The unit of each cell, which is 1."""
        return read_only(np.ones(self.cells))

    @property
    def grid_range(self) -> tuple[float, float]:
        """The unit of every cell."""
        return 1.0, 1.0

    def tally(self, users: int, ask: Ask | None, sums: NDArray[np.int64]) -> None:
        """Count users by the number of reports that they were asked for."""
        sums[self.cells + (ask.most if isinstance(ask, Wanted) else 1) - 1] += users

    def asked(self, tallies: NDArray[Any]) -> Reports:
        """Reports with the largest number that anyone in the batch was asked for."""
        asked = np.flatnonzero(tallies)
        return self.of_at_most(int(asked[-1]) + 1 if len(asked) else 1)

    def of_at_most(self, most: int) -> Reports:
        """The same reports with another largest number of them."""
        if most == self.most:
            return self
        return _reports(self.horizon, self.n_states, self.n_actions, most, self.staged, self.zero_out)

    def checked(self, ask: Ask | None) -> Ask | None:
        """A copy of the ask in plain arrays of the right sizes; raises if users cannot answer it."""
        ask = super().checked(ask)
        if isinstance(ask, Wanted) and ask.by_stage and not self.staged:
            raise ValueError("Users were asked for stages, and these sums have none: take statistic='staged-reports'.")
        return ask

    def _collect(
        self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None, ask: Ask | None
    ) -> None:
        """Add the reports of every user."""
        assert source is not None  # noqa: S101 - users choose with it
        uniforms = source.uniform(len(users) * (self.horizon + 2)).reshape(len(users), -1)
        places = self.places(users, self.everything if ask is None else ask, uniforms)
        np.add.at(sums, places[places >= 0], 1)

    def places(self, users: Trajectories, ask: Ask, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """The places of every user's ones, at the beginning of her row, and then -1."""
        assert isinstance(ask, Wanted)  # noqa: S101 - it was checked when it was sent
        out = np.full((len(users), self.horizon), -1)
        shares = ask.starts, ask.starts + ask.anywhere
        _choose(users.states, users.actions, users.rewards, uniforms, ask.cells, *shares, ask.most, ask.by_stage, out)
        return out

    def sums(self, vector: NDArray[np.float64], users: int) -> dict[str, NDArray[np.float64]]:
        """Starts and steps."""
        del users
        steps = vector[self.n_states : self.cells]
        return {"starts": vector[: self.n_states].copy(), "reports": steps.reshape(self._shape).copy()}

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Starts, then steps."""
        return np.concatenate([sums["starts"], sums["reports"].ravel()])

    def errors(self, noise: Noise, users: int) -> dict[str, ErrorLaw]:
        """The noise of one cell, in both families."""
        del users
        return {"starts": noise(1.0), "reports": noise(1.0)}

    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Published:
        """Starts and steps."""
        return ReportRelease(starts=sums["starts"], reports=sums["reports"], **about)


@lru_cache(maxsize=1024)
def _reports(horizon: int, n_states: int, n_actions: int, most: int, staged: bool, zero_out: bool) -> Reports:
    return Reports(horizon, n_states, n_actions, most=most, staged=staged, zero_out=zero_out)


class ReportedSteps(Reports):
    """Counts pooled over stages, of one step of each user, at a random stage: for agents that learn from counts.

    In releases every stage has the same counts.
    """

    title = "counts"
    asks = None

    def __init__(self, horizon: int, n_states: int, n_actions: int) -> None:
        super().__init__(horizon, n_states, n_actions)
        self.name = "tabular"

    @property
    def everything(self) -> Wanted:
        """A step at a random stage."""
        return replace(super().everything, anywhere=1.0, starts=0.0)

    def sums(self, vector: NDArray[np.float64], users: int) -> dict[str, NDArray[np.float64]]:
        """Visits, transitions and rewards, repeated for every stage."""
        steps = super().sums(vector, users)["reports"]
        m, r = (np.repeat(array[None], self.horizon, axis=0) for array in (steps.sum(-1), steps[..., 1].sum(-1)))
        return {"n": m.sum(axis=-1), "m": m, "r": r}

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Transitions and rewards of the first stage, which are those of all."""
        return np.concatenate([sums["m"][0].ravel(), sums["r"][0].ravel()])

    def errors(self, noise: Noise, users: int) -> dict[str, ErrorLaw]:
        """The noise of a cell, for every outcome that is summed."""
        del users
        return {
            "n": noise(1.0).summed(2 * self.n_states),
            "m": noise(1.0).summed(2),
            "r": noise(1.0).summed(self.n_states),
        }

    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Published:
        """Visits, transitions and rewards."""
        return Release(n=sums["n"], m=sums["m"], r=sums["r"], pooled=True, **about)


class LocalReports(Reports):
    """One report of each user, as a random set of outcomes, in which the true one is more likely.

    A user who is asked for several reports sends the first. Users who have nothing to report, or left early, report an
    outcome that is not counted.

    Privacy:
        The report is epsilon-LDP (docs/proofs/local-unary.md). With the same randomness, replacing a user moves one
        outcome into the set and one out of it.

    Args:
        exact: The reports that are randomized.
        epsilon: Budget of a user.
    """

    def __init__(self, exact: Reports, epsilon: float) -> None:
        super().__init__(exact.horizon, exact.n_states, exact.n_actions, staged=exact.staged)
        self._exact, self.name, self.title, self.asks = exact, exact.name, exact.title, exact.asks
        self.subsets = Subsets.best(self.cells + 1, epsilon)
        self.looks, self.gain = self.subsets.looks(1), self.subsets.gain
        self.tallies = 1  # sets: everyone who came sends one

    @property
    def exact(self) -> Reports:
        """The reports without randomness."""
        return self._exact

    def tally(self, users: int, ask: Ask | None, sums: NDArray[np.int64]) -> None:
        """Count nothing yet: sets are counted when they are sent, so that an interrupt does not count them twice."""
        del users, ask, sums

    def asked(self, tallies: NDArray[Any]) -> LocalReports:
        """The same statistic: a user sends one report, whatever she was asked for."""
        del tallies
        return self

    def _collect(
        self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None, ask: Ask | None
    ) -> None:
        """Add the random set of every user."""
        assert source is not None  # noqa: S101 - reports without noise must never be made
        choices = self.horizon + 2
        drawn = source.uniform(len(users) * (choices + self.subsets.size + 1)).reshape(len(users), -1)
        places = self.places(users, self.everything if ask is None else ask, drawn[:, :choices])
        self._send(places[:, 0], drawn[:, choices:], sums)

    def absent(self, users: int, sums: NDArray[np.int64], source: NoiseSource | None = None) -> None:
        """Add sets of users who have nothing to say, so that nobody can tell who left early."""
        assert source is not None  # noqa: S101 - reports without noise must never be made
        drawn = source.uniform(users * (self.subsets.size + 1)).reshape(users, -1)
        self._send(np.full(users, -1), drawn, sums)

    def _send(self, places: NDArray[np.int64], drawn: NDArray[np.float64], sums: NDArray[np.int64]) -> None:
        nothing, table = self.cells, np.zeros(self.cells, dtype=np.int64)
        for place, uniforms in zip(places, drawn, strict=True):
            add_subset(uniforms, int(place) if place >= 0 else nothing, self.subsets.p, table)
        sums += np.append(table, len(places))  # all at once: no interrupt can divide it

    def own_noise(self, users: int) -> float:
        """Standard deviation of the number of sets with an outcome that nobody has, times the gain."""
        return math.sqrt(users * self.subsets.variance)

    def sums(self, vector: NDArray[np.float64], users: int) -> dict[str, NDArray[np.float64]]:
        """Unbiased sums, from the number of sets with each outcome, and the number of all sets."""
        sets = vector[self.cells :].sum()
        centred = self.subsets.gain * (vector[: self.cells] - self.subsets.q * sets)
        return self._exact.sums(np.concatenate([centred, vector[self.cells :]]), users)

    @property
    def everything(self) -> Wanted:
        """The ask of users who were sent none."""
        return self._exact.everything

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The vector of cells, as without randomness."""
        return self._exact.vector(sums)

    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Published:
        """A release of these sums, as without randomness."""
        return self._exact.release(sums, **about)

    def errors(self, noise: Noise, users: int) -> dict[str, ErrorLaw]:
        """The errors from drawing sets, and from ``noise`` on every count."""
        subsets = self.subsets
        own = max(0.0, subsets.own_variance - subsets.variance)  # of users whose outcome it is
        drawn = BoundedError(users * subsets.variance, subsets.gain * max(subsets.q, 1.0 - subsets.q), users * own)
        law = CombinedError.of(drawn, noise(1.0).scaled(subsets.gain))
        return self._exact.errors(lambda _: law, users)

    def noises(self, batches: Sequence[int]) -> Noises:
        """Random answers, because sets are drawn and not added to."""
        del batches
        return [RandomAnswers()]


@compiled
def _choose(
    states: Any,
    actions: Any,
    rewards: Any,
    uniforms: Any,  # [user, 2 + h]: the kind of report, the stage, and the rounding of each reward
    wanted: Any,
    starts: float,
    anywhere: float,  # starts and this share together
    most: int,
    by_stage: bool,
    out: Any,
) -> None:
    """Write the places of the ones of each user. Looks at the past only, so that next states are unbiased."""
    users, horizon = actions.shape
    n_states, n_actions = wanted.shape
    reported = np.zeros((n_states, n_actions), dtype=np.int64)  # the last user who reported this cell, from 1
    for user in range(users):
        kind, number = uniforms[user, 0], 0
        stage = int(uniforms[user, 1] * horizon)
        if kind < starts:
            out[user, 0] = states[user, 0]
            continue
        for h in range(horizon):
            s, a = states[user, h], actions[user, h]
            new = by_stage or reported[s, a] != user + 1
            here = h == stage if kind < anywhere else wanted[s, a] and new and number < most
            if here:
                bit = 1 if uniforms[user, 2 + h] < rewards[user, h] else 0
                first = h * n_states if by_stage else 0
                place = (((first + s) * n_actions + a) * n_states + states[user, h + 1]) * 2 + bit
                out[user, number] = n_states + place
                reported[s, a] = user + 1
                number += 1
