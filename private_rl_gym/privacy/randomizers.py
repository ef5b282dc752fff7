"""Reports that a user may send in place of her trajectory (local model).

* ``AdditiveReports`` - her counts with noise on every entry: ``"laplace"``, ``"gaussian"``
* ``SubsetReports`` - a random set of outcomes for each of her steps (``"unary"``), or for one step drawn at random
  (``"one-step"``); the true outcome is more likely to be in the set than others

Each is a ``Statistic``: boundaries sum reports as they sum counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.amplification import LARGEST_LOCAL, Looks
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.conversion import LARGEST_RATE, check_budget, gaussian_mu, laplace_scale, pure_delta
from private_rl_gym.privacy.errors import (
    BoundedError,
    CombinedError,
    ErrorLaw,
    GaussianError,
    LaplaceError,
    NoError,
)
from private_rl_gym.privacy.noise import AdditiveNoise, Noises, NoiseSource, RandomAnswers, round_to_grid, widths_of
from private_rl_gym.privacy.pooled import PooledCounts
from private_rl_gym.privacy.release import Published
from private_rl_gym.privacy.statistics import Counts, Noise, Statistic, TabularCounts, TabularStatistic, check_scale

__all__ = [
    "RANDOMIZERS",
    "AdditiveReports",
    "SubsetReports",
    "Subsets",
    "add_subset",
    "most_accurate",
    "most_accurate_pooled",
    "randomizer",
]

RANDOMIZERS = ("one-step", "unary", "laplace", "gaussian")


class AdditiveReports(Statistic):
    """A user's vector, with fresh noise on every entry, drawn on her side.

    Privacy:
        Laplace noise of scale L1 / epsilon, or Gaussian noise of sigma = L2 / mu(epsilon, delta).
        Proof: docs/proofs/local-additive.md.

    Args:
        exact: The statistic that is reported.
        law: ``"laplace"`` or ``"gaussian"``.
        scale: Scale of the noise in one entry, in real units.
    """

    def __init__(self, exact: Statistic, law: Literal["laplace", "gaussian"], scale: float) -> None:
        check_scale(scale, exact.grid_range[0])
        self._exact, self.law, self.scale = exact, law, scale
        self.horizon, self.n_states, self.n_actions = exact.horizon, exact.n_states, exact.n_actions
        self.cells, self.l1, self.l2, self.parts = exact.cells, exact.l1, exact.l2, exact.parts
        self.name, self.title, self.asks = exact.name, exact.title, exact.asks
        if (
            law == "laplace" and exact.l1 / scale <= LARGEST_LOCAL
        ):  # pure, and two users' reports are less far apart than their epsilon allows
            apart = pure_delta(0.0, [(count, distance / scale) for count, distance in exact.parts])
            self.looks = Looks.of_variation(exact.l1 / scale, apart)

    @property
    def exact(self) -> Statistic:
        """The statistic without noise."""
        return self._exact

    @property
    def grid(self) -> NDArray[np.float64]:
        """The grid of the exact statistic."""
        return self.exact.grid

    @property
    def grid_range(self) -> tuple[float, float]:
        """Those of the exact statistic."""
        return self.exact.grid_range

    @property
    def label(self) -> str:
        """The label of the exact statistic."""
        return self.exact.label

    @cached_property
    def _units(self) -> NDArray[np.float64]:
        return self.scale / self.grid

    @cached_property
    def _widths(self) -> NDArray[np.float64] | None:
        return widths_of(self._units)

    def _collect(
        self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None, ask: Ask | None
    ) -> None:
        """Add one noisy report for each user: noise first, then all in one step that no interrupt can divide."""
        reports = np.zeros_like(sums)
        self.absent(len(users), reports, source)
        self.exact.collect(users, reports, None, ask)
        sums += reports

    def absent(self, users: int, sums: NDArray[np.int64], source: NoiseSource | None = None) -> None:
        """Add noise alone, as in every report."""
        assert source is not None  # noqa: S101 - reports without noise must never be made
        noise, spare = np.empty(self.cells), np.empty(self.cells)
        for _ in range(users):
            if self.law == "laplace":
                source.geometric(self._units, noise, spare)
            else:
                source.gaussian(noise)
                noise = round_to_grid(noise * self._units)
                if self._widths is not None:
                    noise += source.smooth(self._widths)
            sums += noise.astype(np.int64)

    def sums(self, vector: NDArray[np.float64], users: int) -> dict[str, NDArray[np.float64]]:
        """The families of sums, as for the exact statistic, because noise has mean zero."""
        return self.exact.sums(vector, users)

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The vector of cells, as for the exact statistic."""
        return self.exact.vector(sums)

    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Published:
        """A release of these sums, as for the exact statistic."""
        return self.exact.release(sums, **about)

    def errors(self, noise: Noise, users: int) -> dict[str, ErrorLaw]:
        """The noise of every user, and ``noise`` in addition."""

        def both(grid: float) -> ErrorLaw:
            if users == 0:
                return noise(grid)
            if self.law == "laplace":
                local: ErrorLaw = LaplaceError(self.scale, ((float(users), 1.0),), grid)
            else:
                rounding = BoundedError(users * grid**2 / 12.0, grid / 2.0)  # of every report, without bias
                local = CombinedError.of(GaussianError(self.scale * math.sqrt(users)), rounding)
            return CombinedError.of(local, noise(grid))

        return self.exact.errors(both, users)

    def noises(self, batches: Sequence[int]) -> Noises:
        """One draw for every user, which is in all releases from hers on."""
        arrived = np.cumsum(batches)[:, None] > np.arange(sum(batches))
        return [AdditiveNoise(arrived.astype(np.float64), self.scale, self.law)]


@dataclass(frozen=True, slots=True)
class Subsets:
    """Subset selection: a report is a set of ``size`` outcomes, drawn uniformly except for the true one.

    The true outcome is in it with probability p, any other with probability q. The best size has the least variance at
    this epsilon: half of all outcomes for a small epsilon, a single outcome (randomized response) for a large one.

    Attributes:
        outcomes: Number of outcomes.
        epsilon: Budget of a report.
        size: Number of outcomes in a set.
    """

    outcomes: int
    epsilon: float
    size: int

    @classmethod
    def best(cls, outcomes: int, epsilon: float) -> Subsets:
        """The size with the least variance. Epsilon is cut off at 30, beyond which double precision cannot draw p."""
        epsilon = min(epsilon, 30.0)
        ideal = outcomes / (math.exp(epsilon) + 1.0)
        sizes = {min(max(1, size), outcomes - 1) for size in (math.floor(ideal), math.ceil(ideal))}
        return min((cls(outcomes, epsilon, size) for size in sizes), key=lambda subsets: subsets.variance)

    @property
    def p(self) -> float:
        """Probability that the true outcome is in the set."""
        return self.size / (self.size + (self.outcomes - self.size) * math.exp(-self.epsilon))

    @property
    def q(self) -> float:
        """Probability that another given outcome is in the set."""
        return (self.size - self.p) / (self.outcomes - 1)

    @property
    def gain(self) -> float:
        """Factor of an outcome's count (in the set or not - q) * gain, which has mean 1 if it is true and 0 if not."""
        return 1.0 / (self.p - self.q)

    @property
    def variance(self) -> float:
        """Variance of that count, if the outcome is not true."""
        return self.q * (1.0 - self.q) * self.gain**2

    @property
    def own_variance(self) -> float:
        """Variance of that count, if the outcome is true."""
        return self.p * (1.0 - self.p) * self.gain**2

    def looks(self, reports: int) -> Looks:
        """The looks of ``reports`` independent reports of a user, beside those of another with other outcomes."""
        k, size = self.outcomes, self.size
        alone, both = size * (k - size) / (k * (k - 1)), size * (size - 1) / (k * (k - 1))
        return Looks.of_levels(self.epsilon, alone, both, reports)


class SubsetReports(TabularStatistic):
    """A user's steps as random sets of outcomes (s, a, s', reward bit), in which the true one is more likely.

    With ``one_step`` she draws a single stage and reports it with her whole budget, and her report counts H times.
    Rewards that are not bits are first rounded to bits at random, without bias. Users who left early report a separate
    outcome, which is not counted.

    Privacy:
        With ``one_step``, the report of one stage costs epsilon; else all stages together cost H times the budget of a
        stage. With the same randomness, replacing a user moves one outcome into the set and one out of it, at each
        stage that is reported.
        Proof: docs/proofs/local-unary.md.
    """

    def __init__(self, exact: TabularCounts, epsilon: float, *, one_step: bool) -> None:
        self._exact = exact
        self.horizon, self.n_states, self.n_actions = exact.horizon, exact.n_states, exact.n_actions
        self.one_step = one_step
        self._outcomes = 2 * self.n_states * self.n_actions * self.n_states
        self.subsets = Subsets.best(self._outcomes + 1, epsilon if one_step else epsilon / self.horizon)
        self.cells = self.horizon * self._outcomes
        stages = 1 if one_step else self.horizon
        self.l1, self.l2, self.parts = 2.0 * stages, math.sqrt(2.0 * stages), ((2 * stages, 1.0),)
        self.looks = self.subsets.looks(stages)
        self.tallies = self.horizon  # reports of each stage; which stage says nothing about a user

    @property
    def exact(self) -> TabularCounts:
        """The statistic of the counts that are reported."""
        return self._exact

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The unit of each cell, which is 1."""
        return read_only(np.ones(self.cells))

    @property
    def grid_range(self) -> tuple[float, float]:
        """The unit of every cell."""
        return 1.0, 1.0

    def _collect(
        self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None, ask: Ask | None
    ) -> None:
        """Add one report for each user."""
        del ask
        for user in range(len(users)):
            self._send(users.part(user, user + 1), sums, source)

    def absent(self, users: int, sums: NDArray[np.int64], source: NoiseSource | None = None) -> None:
        """Add reports of the outcome that is not counted, so that nobody can tell who left early."""
        for _ in range(users):
            self._send(None, sums, source)

    def _send(self, user: Trajectories | None, sums: NDArray[np.int64], source: NoiseSource | None) -> None:
        """Add one user's report, of one stage or of all."""
        assert source is not None  # noqa: S101 - reports without noise must never be made
        table, reports = sums[: self.cells].reshape(self.horizon, self._outcomes), sums[self.cells :]
        stages = [int(source.uniform(1)[0] * self.horizon)] if self.one_step else range(self.horizon)
        for h in stages:
            drawn = source.uniform(self.subsets.size + 2)
            true = self._outcomes if user is None else self._outcome(user, h, drawn[0])
            add_subset(drawn[1:], true, self.subsets.p, table[h])
            reports[h] += 1

    def _outcome(self, user: Trajectories, h: int, uniform: float) -> int:
        """The true outcome at stage h: (s, a, s', reward bit)."""
        s, a, following = int(user.states[0, h]), int(user.actions[0, h]), int(user.states[0, h + 1])
        bit = int(uniform < user.rewards[0, h])
        return ((s * self.n_actions + a) * self.n_states + following) * 2 + bit

    def places(self, user: Trajectories) -> NDArray[np.int64]:  # [h]
        """The outcomes of a user, stage by stage, if her rewards are bits."""
        return np.array([self._outcome(user, h, 0.5) for h in range(self.horizon)])

    def counts(self, vector: NDArray[np.float64], users: int) -> Counts:
        """Unbiased sums, from the number of sets with each outcome, and the number of all sets."""
        del users
        weight = self.subsets.gain * (self.horizon if self.one_step else 1)
        reports = vector[self.cells :]
        centred = vector[: self.cells].reshape(self.horizon, self._outcomes) - self.subsets.q * reports[:, None]
        by_outcome = (weight * centred).reshape(self.horizon, self.n_states, self.n_actions, self.n_states, 2)
        m = by_outcome.sum(axis=-1)
        return Counts(m.sum(axis=-1), m, by_outcome[..., 1].sum(axis=-1))

    def errors(self, noise: Noise, users: int) -> dict[str, ErrorLaw]:
        """The errors from drawing sets and stages, and from ``noise`` on every count."""
        times, subsets = self.horizon if self.one_step else 1, self.subsets
        weight = subsets.gain * times
        # A user whose outcome is among those that are summed adds the variance of that, and of being drawn or not.
        own = times * (subsets.own_variance + 1.0)
        own = own - 1.0 if own >= 2.0 else own**2 / 4.0

        def of(outcomes: int) -> ErrorLaw:
            drawn = users * times * outcomes * subsets.variance
            largest = weight * max(min(outcomes, subsets.size), outcomes * subsets.q) + 1.0
            law = BoundedError(drawn, largest, users * own)
            return CombinedError.of(law, noise(1.0).scaled(weight).summed(outcomes))

        return {"n": of(2 * self.n_states), "m": of(2), "r": of(self.n_states)}

    def noises(self, batches: Sequence[int]) -> Noises:
        """Random answers, because sets are drawn and not added to."""
        del batches
        return [RandomAnswers()]


@compiled
def add_subset(drawn: Any, true: int, p: float, counts: Any) -> None:
    """Add a random set of outcomes. The last outcome, which is not counted, stands for no outcome.

    The others are drawn from all but the last, without looking at the true one; where it is drawn, the last one takes
    its place. So the sets of two users with the same uniforms differ only in their own two outcomes and in the last.
    """
    outcomes, size = len(counts), len(drawn) - 1
    kept = drawn[0] < p
    order = np.arange(outcomes)
    for i in range(size):
        j = i + int(drawn[1 + i] * (outcomes - i))
        other = order[j]
        order[j] = order[i]
        if (i < size - 1 or not kept) and other != true:
            counts[other] += 1
    if kept and true < outcomes:
        counts[true] += 1


def randomizer(
    name: str, exact: Statistic, epsilon: float, delta: float, *, paper: bool = False
) -> tuple[Statistic, float, float]:
    """The reports with this name, and the (epsilon, delta) that they really cost.

    Args:
        name: One of ``RANDOMIZERS``.
        exact: The statistic that is reported.
        epsilon: Budget of a user.
        delta: Budget of a user; used by ``"gaussian"`` and ``"laplace"``.
        paper: Use the papers' constants in place of exact ones; ``"laplace"`` alone has any.
    """
    check_budget(epsilon, delta)
    if name not in RANDOMIZERS:
        raise ValueError(f"There is no randomizer {name!r}: choose one of {', '.join(RANDOMIZERS)}.")
    if paper and exact.name != "tabular":
        raise ValueError("calibration='paper' is for counts: LinOpt prints no constants for reports of moments.")
    if paper and name != "laplace":
        raise ValueError(
            f"calibration='paper' is for randomizer='laplace', the papers' own; {name!r} has exact constants only."
        )
    if name == "laplace":
        if paper:
            scale = max(exact.paper_scale(1.0, epsilon, delta), exact.grid_range[1] / LARGEST_RATE)
            spent = exact.l1 / scale, 0.0
        else:
            scale, *rest = laplace_scale(exact.parts, exact.l1, 1, epsilon, delta, exact.grid_range[1])
            spent = rest[0], rest[1]
        return AdditiveReports(exact, "laplace", scale), *spent
    if name == "gaussian":
        return AdditiveReports(exact, "gaussian", exact.l2 / gaussian_mu(epsilon, delta)), epsilon, delta
    if not isinstance(exact, TabularCounts):
        raise ValueError(  # noqa: TRY004 - no wrong type, but the wrong randomizer
            f"randomizer={name!r} reports steps as bits, and moments are not bits: take 'gaussian', or 'laplace' where "
            "delta is 0."
        )
    return SubsetReports(exact, epsilon, one_step=name == "one-step"), epsilon, 0.0


def most_accurate_pooled(exact: PooledCounts, epsilon: float, delta: float) -> str:
    """The randomizer of pooled counts with the least noise: one step, or all first steps, which say V times as much."""
    S, A = exact.n_states, exact.n_actions
    V = min(exact.horizon, S * A)
    every = "gaussian" if delta > 0.0 else "laplace"
    scale = randomizer(every, exact, epsilon, delta)[0].errors(lambda _: NoError(), 1_000_000)["m"].std
    one = Subsets.best(S + 2 * S * A * S + 1, epsilon)
    return "one-step" if V * math.sqrt(2e6 * one.variance) < scale else every


def most_accurate(exact: Statistic, epsilon: float, delta: float, *, paper: bool = False) -> str:
    """The name of the randomizer with the least noise for this budget and size, measured for a million users.

    Of counts, the noise of transitions is compared; of moments, Gaussian noise is taken where delta allows it.
    """
    if paper:
        return "laplace"
    if not isinstance(exact, TabularCounts):
        return "gaussian" if delta > 0.0 else "laplace"
    allowed = [name for name in RANDOMIZERS if name != "gaussian" or delta > 0.0]

    def noise(name: str) -> float:
        return randomizer(name, exact, epsilon, delta)[0].errors(lambda _: NoError(), 1_000_000)["m"].std

    return min(allowed, key=noise)
