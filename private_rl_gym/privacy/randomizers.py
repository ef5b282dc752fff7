"""What a user may send in place of her trajectory (local model).

* ``AdditiveReports`` - her counts with noise on every entry: ``"laplace"``, ``"gaussian"``
* ``UnaryReports`` - optimized unary encoding of her steps: all of them (``"unary"``), or one drawn at random
  (``"one-step"``)

Each is a ``Statistic``: boundaries sum reports as they sum counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.conversion import check_budget, gaussian_mu
from private_rl_gym.privacy.errors import (
    BoundedError,
    CombinedError,
    ErrorLaw,
    GaussianError,
    LaplaceError,
)
from private_rl_gym.privacy.noise import NoiseSource, round_to_grid
from private_rl_gym.privacy.release import Published
from private_rl_gym.privacy.statistics import Counts, Noise, Statistic, TabularCounts, TabularStatistic, check_scale

__all__ = ["RANDOMIZERS", "AdditiveReports", "UnaryReports", "randomizer"]

RANDOMIZERS = ("one-step", "unary", "laplace", "gaussian")


class AdditiveReports(Statistic):
    """A user's vector, with fresh noise on every entry, drawn on her side.

    Privacy:
        Laplace noise of scale L1 / epsilon, or Gaussian noise of sigma = L2 / mu(epsilon, delta).
        Proof: docs/proofs/local-additive.md.

    Args:
        exact: What the vector is of.
        law: ``"laplace"`` or ``"gaussian"``.
        scale: Of the noise in one entry, in real units.
    """

    def __init__(self, exact: Statistic, law: Literal["laplace", "gaussian"], scale: float) -> None:
        check_scale(scale, float(exact.grid.min()))
        self.exact, self.law, self.scale = exact, law, scale
        self.horizon, self.n_states, self.n_actions = exact.horizon, exact.n_states, exact.n_actions
        self.cells, self.l1, self.l2 = exact.cells, exact.l1, exact.l2
        self.kind = exact.kind

    @property
    def grid(self) -> NDArray[np.float64]:
        """That of the exact vector."""
        return self.exact.grid

    @property
    def label(self) -> str:
        """That of the exact vector."""
        return self.exact.label

    @cached_property
    def _units(self) -> NDArray[np.float64]:
        return self.scale / self.grid

    def collect(self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None) -> None:
        """Add one noisy report for each user: noise first, and all at once, so that no interrupt comes in between."""
        reports = np.zeros_like(sums)
        self.absent(len(users), reports, source)
        self.exact.collect(users, reports, None)
        sums += reports

    def absent(self, users: int, sums: NDArray[np.int64], source: NoiseSource | None) -> None:
        """Noise alone, which is also what everybody's report is made with."""
        assert source is not None  # noqa: S101 - reports without noise must never be made
        noise, spare = np.empty(self.cells), np.empty(self.cells)
        for _ in range(users):
            if self.law == "laplace":
                source.geometric(self._units, noise, spare)
            else:
                source.gaussian(noise)
                noise = round_to_grid(noise * self._units)
            sums += noise.astype(np.int64)

    def sums(self, vector: NDArray[np.float64], users: int) -> dict[str, NDArray[np.float64]]:
        """The same as of exact vectors: noise has mean zero."""
        return self.exact.sums(vector, users)

    def vector(self, sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The same as of exact vectors."""
        return self.exact.vector(sums)

    def release(self, sums: Mapping[str, NDArray[np.float64]], **about: Any) -> Published:
        """The same as of exact vectors."""
        return self.exact.release(sums, **about)

    def errors(self, noise: Noise, users: int) -> dict[str, ErrorLaw]:
        """Noise of every user, and ``noise`` on top."""

        def both(grid: float) -> ErrorLaw:
            if users == 0:
                return noise(grid)
            if self.law == "laplace":
                local: ErrorLaw = LaplaceError(self.scale, ((float(users), 1.0),), grid, apart=True)
            else:
                rounding = BoundedError(users * grid**2 / 12.0, grid / 2.0)  # of every report, without bias
                local = CombinedError.of(GaussianError(self.scale * math.sqrt(users), apart=True), rounding)
            return CombinedError.of(local, noise(grid))

        return self.exact.errors(both, users)


@dataclass(frozen=True, slots=True)
class _Flips:
    """Optimized unary encoding: a bit that is set stays with probability 1/2, one that is not is set with q."""

    epsilon: float

    @property
    def q(self) -> float:
        return math.exp(-self.epsilon) / (1.0 + math.exp(-self.epsilon))

    @property
    def gain(self) -> float:
        """A bit counts (bit - q) * gain, which has mean 1 if it was set and 0 if not."""
        return 1.0 / (0.5 - self.q)

    @property
    def variance(self) -> float:
        """Of that count, if the bit was not set: 4 e^epsilon / (e^epsilon - 1)^2."""
        return self.q * (1.0 - self.q) * self.gain**2


class UnaryReports(TabularStatistic):
    """A user's steps as bits, one for each outcome (s, a, s', reward bit), each flipped at random.

    With ``one_step`` she draws a single stage, reports that one with her whole budget, and counts H times.
    Rewards that are not bits are first rounded to one at random, without bias.

    Privacy:
        Replacing a user moves one set bit to another place, at each stage that is reported: epsilon for one stage,
        H times the budget of a stage for all of them. Proof: docs/proofs/local-unary.md.
    """

    def __init__(self, exact: TabularCounts, epsilon: float, *, one_step: bool) -> None:
        self.horizon, self.n_states, self.n_actions = exact.horizon, exact.n_states, exact.n_actions
        self.one_step = one_step
        # Beyond 30 the flips are rarer than double precision can draw; less is spent then than was granted.
        self._flips = _Flips(min(30.0, epsilon if one_step else epsilon / self.horizon))
        self._outcomes = 2 * self.n_states * self.n_actions * self.n_states
        self.cells = self.horizon * self._outcomes
        stages = 1 if one_step else self.horizon
        self.l1, self.l2 = 2.0 * stages, math.sqrt(2.0 * stages)
        self._reports = np.zeros(self.horizon, dtype=np.int64)  # of each stage; which stage says nothing about a user

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """Bits are counted one by one."""
        return read_only(np.ones(self.cells))

    def collect(self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None) -> None:
        """Add one report for each user."""
        for user in range(len(users)):
            self._send(users.part(user, user + 1), sums, source)

    def absent(self, users: int, sums: NDArray[np.int64], source: NoiseSource | None) -> None:
        """Reports in which no bit was set before the flips, so that nobody can tell who left early."""
        for _ in range(users):
            self._send(None, sums, source)

    def _send(self, user: Trajectories | None, sums: NDArray[np.int64], source: NoiseSource | None) -> None:
        """One user's report, of one stage or of all."""
        assert source is not None  # noqa: S101 - reports without noise must never be made
        table = sums.reshape(self.horizon, self._outcomes)
        stages = [int(source.uniform(1)[0] * self.horizon)] if self.one_step else range(self.horizon)
        for h in stages:
            drawn = source.uniform(self._outcomes + 1)
            true = -1 if user is None else self._outcome(user, h, drawn[0])
            _add_flipped(drawn[1:], true, self._flips.q, table[h])
            self._reports[h] += 1

    def _outcome(self, user: Trajectories, h: int, uniform: float) -> int:
        """The place of the bit that is set at stage h: (s, a, s', reward bit)."""
        s, a, following = user.states[0, h], user.actions[0, h], user.states[0, h + 1]
        bit = int(uniform < user.rewards[0, h])
        return int(((s * self.n_actions + a) * self.n_states + following) * 2 + bit)

    def places(self, user: Trajectories) -> NDArray[np.int64]:  # [h]
        """Where the bits of a user are, stage by stage, if her rewards are bits."""
        return np.array([self._outcome(user, h, 0.5) for h in range(self.horizon)])

    def counts(self, vector: NDArray[np.float64], users: int) -> Counts:
        """Unbiased sums, from the number of bits and of reports."""
        del users
        weight = self._flips.gain * (self.horizon if self.one_step else 1)
        bits = vector.reshape(self.horizon, self._outcomes)
        shape = (self.horizon, self.n_states, self.n_actions, self.n_states, 2)
        found = (weight * (bits - self._flips.q * self._reports[:, None])).reshape(shape)
        m = found.sum(axis=-1)
        return Counts(m.sum(axis=-1), m, found[..., 1].sum(axis=-1))

    def errors(self, noise: Noise, users: int) -> dict[str, ErrorLaw]:
        """The flips, the draw of the stage, and ``noise`` on top of every bit count."""
        times = self.horizon if self.one_step else 1
        weight = self._flips.gain * times

        def of(bits: int) -> ErrorLaw:
            flips = users * times * bits * self._flips.variance
            # A user who is in this cell adds the variance of her own set bit, and of being drawn or not.
            drawn = users * (times * (0.25 * self._flips.gain**2 + 1.0) - 1.0)
            largest = times * bits * (1.0 - self._flips.q) * self._flips.gain + 1.0
            return CombinedError.of(BoundedError(flips, largest, drawn), noise(1.0).scaled(weight).summed(bits))

        return {"n": of(2 * self.n_states), "m": of(2), "r": of(self.n_states)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """How often each stage was reported."""
        return {"reports": self._reports}


@compiled
def _add_flipped(drawn: Any, true: int, q: float, counts: Any) -> None:
    for outcome in range(len(counts)):
        if drawn[outcome] < (0.5 if outcome == true else q):
            counts[outcome] += 1


def randomizer(
    name: str, exact: Statistic, epsilon: float, delta: float, *, paper: bool = False
) -> tuple[Statistic, float, float]:
    """The reports of that name, and the (epsilon, delta) that they really cost.

    Args:
        name: One of ``RANDOMIZERS``.
        exact: What the reports are of.
        epsilon: Budget of a user.
        delta: Budget of a user; used by ``"gaussian"`` alone.
        paper: Use the papers' constants in place of exact ones; ``"laplace"`` alone has any.
    """
    check_budget(epsilon, delta)
    if name not in RANDOMIZERS:
        raise ValueError(f"There is no randomizer {name!r}: choose one of {', '.join(RANDOMIZERS)}.")
    if paper and exact.kind != "tabular":
        raise ValueError("calibration='paper' is for counts: LinOpt prints no constants for reports of moments.")
    if paper and name != "laplace":
        raise ValueError(
            f"calibration='paper' is for randomizer='laplace', the papers' own; {name!r} has exact constants only."
        )
    if name == "laplace":
        scale = exact.paper_scale(1.0, epsilon, delta) if paper else exact.l1 / epsilon
        return AdditiveReports(exact, "laplace", scale), exact.l1 / scale, 0.0
    if name == "gaussian":
        return AdditiveReports(exact, "gaussian", exact.l2 / gaussian_mu(epsilon, delta)), epsilon, delta
    if not isinstance(exact, TabularCounts):
        raise ValueError(  # noqa: TRY004 - no wrong type, but the wrong randomizer
            f"randomizer={name!r} reports steps as bits, and moments are no bits: take 'gaussian', or 'laplace' where "
            "delta is 0."
        )
    return UnaryReports(exact, epsilon, one_step=name == "one-step"), epsilon, 0.0
