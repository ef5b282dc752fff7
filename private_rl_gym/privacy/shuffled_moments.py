"""Linear moments behind a shuffler: every entry of a user's vector as some bits, and noise bits beside them.

* ``ShuffledMoments`` - a user's moments, rounded at random to a coarse grid
* ``VectorSums`` - the noise bits that sums of whole numbers need, whose differences have a bounded L2 norm

Proof: docs/proofs/shuffled-vectors.md.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import read_only
from private_rl_gym.planning.features import LinearFeatures
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.conversion import check_budget, gaussian_mu
from private_rl_gym.privacy.errors import BoundedError, CombinedError, ErrorLaw, NoError
from private_rl_gym.privacy.linear_release import GRID
from private_rl_gym.privacy.moments import LinearMoments
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.shuffling import BinarySums, NoiseBits, check_bits, least_number
from private_rl_gym.privacy.statistics import Noise

__all__ = ["ShuffledMoments", "VectorSums", "vector_epsilon"]

FEWEST_LEVELS, MOST_LEVELS = 16, 1024
"""Bounds on the number of levels in a unit: powers of two, so that the fine grid contains the coarse one."""

FEW_USERS = 0.02
"""Users for whom bits need no bias: where they are at most this share of the noise bits, fair ones cost no more."""


class ShuffledMoments(LinearMoments):
    """Linear moments in which every entry is a whole number of levels, rounded at random on a user's side, unbiased.

    An entry v from -span to span is 2 span bits, of which v + span are set: their sum says v, and no more.

    Privacy:
        Replacing her moves the vector by at most ``reach`` levels in L2, each entry by at most ``most``.
        Proof: docs/proofs/shuffled-vectors.md.

    Args:
        features: The known features of the model.
        horizon: Number of stages.
    """

    def __init__(self, features: LinearFeatures, horizon: int) -> None:
        super().__init__(features, horizon)
        touched = sum(
            stages * (nonzeros * (nonzeros + 1) // 2 + nonzeros)
            for stages, nonzeros in ((horizon - 1, features.nonzeros), (horizon, features.reward_nonzeros))
        )
        rounded = math.sqrt(max(1, min(self.cells, 2 * touched)))  # entries that are zero are not rounded
        wanted = 50.0 * rounded / self.l2  # so that rounding costs two parts in a hundred
        self.levels = int(min(MOST_LEVELS, max(FEWEST_LEVELS, 2 ** math.ceil(math.log2(wanted)))))
        self.reach = self.levels * self.l2 + rounded
        self.most = math.ceil(self.levels * (1.0 + 1e-6)) + 1
        self.span = math.ceil(self.levels * math.sqrt(0.5) * (1.0 + 1e-6)) + 1

    @cached_property
    def exact(self) -> LinearMoments:
        """The moments without rounding."""
        return LinearMoments(self.features, self.horizon)

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """One level, in every cell."""
        return read_only(np.full(self.cells, 1.0 / self.levels))

    @property
    def own_bits(self) -> int:
        """Number of bits in which a user says one entry."""
        return 2 * self.span

    def _collect(
        self, users: Trajectories, sums: NDArray[np.int64], source: NoiseSource | None, ask: Ask | None
    ) -> None:
        """Add the rounded moments of every user, all at once."""
        assert source is not None  # noqa: S101 - moments are rounded with it
        fine, added = round(1.0 / (GRID * self.levels)), np.zeros_like(sums)
        for user in range(len(users)):
            vector = np.zeros_like(sums)
            super()._collect(users.part(user, user + 1), vector, None, ask)
            added += (vector + (source.uniform(len(vector)) * fine).astype(np.int64)) // fine
        sums += added

    def errors(self, noise: Noise, users: int = 0) -> dict[str, ErrorLaw]:
        """The error of one entry: of the noise bits, and of rounding to levels, at most a quarter for each user."""
        level = 1.0 / self.levels
        rounding = BoundedError(0.0, level, users * level**2 / 4.0) if users else NoError()
        law = CombinedError.of(noise(level), rounding)
        return {
            family: law.scaled(float(unit.max())) if unit.any() else NoError() for family, unit in self.units.items()
        }

    @cached_property
    def label(self) -> str:
        """Identity of the sums, which differs between sets of features and numbers of levels."""
        return f"{self.exact.label} in {self.levels} levels"


class VectorSums(BinarySums):
    """The protocol for one batch of vectors of whole numbers, with the noise that its users need.

    Args:
        reach: L2 distance by which replacing one user moves the vector, in levels.
        most: The largest distance by which she moves one entry.
        epsilon, delta: Budget of the whole vector.
        dropout: The share of a batch that may vanish without the promise being broken.
    """

    def __init__(self, reach: float, most: int, epsilon: float, delta: float, *, dropout: float = 0.0) -> None:
        check_budget(epsilon, delta)
        check_bits(delta, dropout)
        self.moved, self.paper = 0, False
        self.reach, self.most, self.epsilon, self.delta, self.dropout = reach, most, epsilon, delta, dropout
        self.true_epsilon = epsilon
        self.tau = float(_least_fair(reach, most, epsilon, delta))

    def noise_bits(self, users: int) -> NoiseBits:
        """The noise for a batch of ``users`` users, of whom the planned share may vanish."""
        sure = self.sure(users)
        each = math.ceil(self.tau / sure)
        if sure <= FEW_USERS * self.tau:
            return NoiseBits(each, 0.5)
        return NoiseBits(each, _least_bias(sure * each, self.reach, self.most, self.epsilon, self.delta))


@lru_cache(maxsize=4096)
def vector_epsilon(bits: int, bias: float, reach: float, most: int, delta: float, epsilon: float) -> float:
    """An epsilon of vectors of whole numbers with Binomial(bits, bias) noise in every entry, at this delta.

    Two users' vectors differ by at most ``reach`` in L2, and by at most ``most`` in an entry. ``epsilon`` is about what
    is expected: it chooses the order of the Renyi divergence. Whatever the order, the bound holds.
    """
    deviation = math.sqrt(bits * bias * (1.0 - bias))
    mu = gaussian_mu(epsilon, delta)
    order = 1.0 + math.sqrt(2.0 * math.log(1.0 / delta)) / mu
    width = 10.0 * deviation + 60.0
    low, high = max(0, math.floor(bits * bias - width)), min(bits, math.ceil(bits * bias + width))
    first, last = max(0, low - most), min(bits, high + most)
    k = np.arange(first, last + 1.0)
    fall = np.log((k[:-1] + 1.0) * (1.0 - bias)) - np.log((bits - k[:-1]) * bias)  # log P(k) / P(k + 1)
    logs = -np.concatenate([[0.0], np.cumsum(fall)])
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    steepest, lost = 0.0, 0.0
    for shift in range(1, most + 1):
        for away in (shift, -shift) if bias != 0.5 else (shift,):
            here = slice(max(0, -away), len(k) - max(0, away))
            there = slice(max(0, away), len(k) - max(0, -away))
            inside = float(mass[here].sum())
            moment = float((mass[here] * np.exp((order - 1.0) * (logs[here] - logs[there]))).sum())
            renyi = (math.log(moment) - order * math.log(inside)) / (order - 1.0)
            steepest, lost = max(steepest, renyi / shift**2), max(lost, 1.0 - inside)
    # Entries that move are whole numbers: no more of them than the square of the reach.
    left = delta - reach**2 * (lost + 1e-20)
    if left <= 0.0:
        return math.inf
    spent = reach**2 * steepest * (1.0 + 1e-9)
    return max(0.0, spent + math.log1p(-1.0 / order) - math.log(left * order) / (order - 1.0))


@lru_cache(maxsize=256)
def _least_fair(reach: float, most: int, epsilon: float, delta: float) -> int:
    """The least number of fair bits for this budget, to within a thousandth of epsilon."""
    guess = 4.0 * (reach / gaussian_mu(epsilon, delta)) ** 2  # for Gaussian noise of that variance

    def cost(bits: float) -> float:
        return vector_epsilon(math.ceil(bits), 0.5, reach, most, delta, epsilon)

    return math.ceil(least_number(cost, epsilon, 1.1 * guess))


@lru_cache(maxsize=4096)
def _least_bias(bits: int, reach: float, most: int, epsilon: float, delta: float) -> float:
    """The least bias of ``bits`` bits for this budget, to within a thousandth of epsilon; one half is enough."""
    fair = _least_fair(reach, most, epsilon, delta)
    guess = 0.5 * (1.0 - math.sqrt(max(0.0, 1.0 - fair / bits)))

    def cost(bias: float) -> float:
        return vector_epsilon(bits, bias, reach, most, delta, epsilon)

    return least_number(cost, epsilon, guess, 0.5)
