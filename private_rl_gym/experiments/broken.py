"""Mechanisms that are broken on purpose, to test that audits detect them. Never protect data with one.

Each makes a mistake that was made in practice, and states the same guarantee as the correct mechanism:

* ``HalvedNoise`` - half the noise that is stated
* ``MissingFactor`` - noise calibrated for adding a user, where the guarantee is for replacing one
* ``SharedNoise`` - one sequence of noise for all cells
* ``FreshNoise`` - independent noise for every release, in place of a mechanism for continual release
* ``FutureOnly`` - one draw of noise for ever, which hides a user from each later user, and not from an earlier one too
* ``MissingLevel`` - a tree whose noise is calibrated for one level too few
* ``VisitedCells`` - noise only on cells that somebody has visited
* ``FloatNoise`` - Laplace noise in floating point, not on a grid
* ``Reseeded`` - noise that starts again with ``reset(seed=...)``
* ``IntegerSums`` - users who send the sum of their bits, in place of bits
* ``UncheckedActions`` - counts of any policy's actions, including actions that do not exist
* ``SmallBatches`` - a shuffler that publishes small batches with the guarantee of a large one
* ``OneReport`` - noise for one report of each user, however many were asked for
* ``OneVisit`` - noise for one episode of each user, where she may be in several
* ``HalvedReports``, ``HalvedBits`` - half the noise in the local and in the shuffle model
* ``Peeking`` - an agent that reads true sums inside the boundary
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents import UCBVI
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.asks import Ask
from private_rl_gym.privacy.central import CentralNoise
from private_rl_gym.privacy.counting import COUNTING
from private_rl_gym.privacy.noise import AdditiveNoise, Noises, NoiseSource
from private_rl_gym.privacy.randomizers import AdditiveReports
from private_rl_gym.privacy.statistics import Statistic
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, SDPShuffler
from private_rl_gym.wrappers.population import Population

__all__ = [
    "FloatNoise",
    "FreshNoise",
    "FutureOnly",
    "HalvedBits",
    "HalvedNoise",
    "HalvedReports",
    "IntegerSums",
    "MissingFactor",
    "MissingLevel",
    "OneReport",
    "OneVisit",
    "Peeking",
    "Reseeded",
    "SharedNoise",
    "SmallBatches",
    "UncheckedActions",
    "VisitedCells",
]


class HalvedNoise(JDPBillboard):
    """Half the noise that the ledger states."""

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Calibrate the noise, and then halve its scale."""
        super().design(statistic, apart=apart)
        self._scale /= 2.0


class MissingFactor(JDPBillboard):
    """Noise for adding a user: the scale for replacing one, divided by 2 (Laplace) or by sqrt(2) (Gaussian)."""

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Calibrate the noise, and then drop the factor."""
        super().design(statistic, apart=apart)
        self._scale /= 2.0 if self._mechanism[1] == "laplace" else np.sqrt(2.0)


class _OneForAll(CentralNoise):
    """Central noise that is the same in all cells: that of the first one."""

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        alone = np.zeros_like(sums)
        alone[0] = sums[0]
        first = super().add(alone, releases)[0] / self.grid[0] - sums[0]
        return np.asarray((sums + np.rint(first * self.grid[0] / self.grid)) * self.grid)


class SharedNoise(JDPBillboard):
    """One sequence of noise for all cells, as if every cell had a new generator with the same seed."""

    central = _OneForAll


class _FreshEveryTime(CentralNoise):
    """Independent noise for every release, with the scale of a single release."""

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        del releases
        kind = COUNTING[self.counting.name]
        alone = CentralNoise(kind(1, len(sums), self.counting.law), self._narrow, self.grid, self.source)
        return alone.add(sums, 1)

    @property
    def _narrow(self) -> float:
        return self.scale / self.counting.sensitivity

    def noises(self, releases: int) -> Noises:
        return [AdditiveNoise(np.eye(releases), self._narrow, self.counting.law)]


class FreshNoise(JDPBillboard):
    """Independent noise for every release: the mean over releases removes it."""

    central = _FreshEveryTime

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"counting": "binary-tree", **options})


class _OnceForEver(CentralNoise):
    """Central noise that is drawn once, and is the same in every release."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._first: NDArray[np.float64] | None = None

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        noisy = super().add(sums, releases)
        if self._first is None:
            self._first = noisy - sums * self.grid
        return np.asarray(sums * self.grid + self._first)


class FutureOnly(JDPBillboard):
    """One draw of noise for all releases, with all of its noise in each.

    It keeps a weaker promise, about what is shown after a user: all that follows her is the exact sums and one noise.
    Somebody who came before her and somebody who came after subtract their releases, and have her counts.
    """

    central = _OnceForEver

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"counting": "binary-tree", **options})


class MissingLevel(JDPBillboard):
    """A binary tree calibrated for one level fewer than a user contributes to."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "counting": "binary-tree"})

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Calibrate the noise, and then scale it down as if the tree had no root."""
        super().design(statistic, apart=apart)
        levels = max(1, (self._releases - 1).bit_length())
        share = max(1, levels - 1) / levels
        self._scale *= share if self._mechanism[1] == "laplace" else np.sqrt(share)


class _Elsewhere(CentralNoise):
    """Central noise on cells that are not zero."""

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        return np.where(sums == 0, 0.0, super().add(sums, releases))


class VisitedCells(JDPBillboard):
    """Noise only on visited cells, as with counts in a dictionary: an exact 0 reveals that nobody visited a cell."""

    central = _Elsewhere


class _Floats(CentralNoise):
    """Central Laplace noise in floating point."""

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        super().add(sums, releases)
        return np.asarray(sums * self.grid + self.source.generator.laplace(0.0, self.scale, len(sums)))


class FloatNoise(JDPBillboard):
    """Laplace noise as libraries draw it: the last digits of a noisy sum reveal the exact sum (Mironov, 2012)."""

    central = _Floats

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "counting": "batched", "noise": "laplace"})


class Reseeded(JDPBillboard):
    """Noise that starts again whenever the environment is seeded: equal noise cancels in a difference."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the episode of the next user; a seed also restarts the noise."""
        if seed is not None:
            self._source.restore(NoiseSource(seed).state())
        return super().reset(seed=seed, options=options)


class IntegerSums(SDPShuffler):
    """Every user sends one number for each counter, her own bit plus her noise bits, as in SDP-PE's printed algorithm.

    The sum is as private as with bits, but a shuffler passes on all numbers: the largest possible noise plus one can
    only come from a user whose own bit is 1.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "simulation": "messages"})
        self._numbers: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)

    def disclose(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """Sums of the numbers that users send in place of bits."""
        del sums, releases
        assert self._protocol is not None  # noqa: S101 - bits are mixed here
        held = np.array(self._held)
        bits = self._protocol.noise_bits(len(held))
        numbers = (held + self._shuffler.generator.binomial(bits.each, bits.bias, held.shape)).T
        self._held.clear()
        self._numbers = np.stack([(numbers >= bits.each + more).sum(axis=1) for more in (0, 1)])
        return np.asarray((numbers.sum(axis=1) - len(held) * bits.each * bits.bias) * self.statistic.grid)

    def transcript(self) -> NDArray[np.float64]:
        """Sums, and for each counter the count of very large numbers: a summary of the analyzer's view of a batch."""
        return np.concatenate([self.statistic.vector(self.release.sums()), self._numbers.ravel()])


class OneReport(JDPBillboard):
    """Noise for one report of each user, however many were asked for."""

    def _noise_for(self, statistic: Statistic) -> CentralNoise:
        del statistic
        return super()._noise_for(self.statistic)


class OneVisit(JDPBillboard):
    """Noise for one episode of each user, with the guarantee for all of hers."""

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Calibrate the noise for all her episodes, and then scale it down to one."""
        super().design(statistic, apart=apart)
        counting, law = self._mechanism
        small = COUNTING[counting](self._releases, 1, law)
        self._scale *= small.sensitivity / small.returning(self._visits)


class HalvedReports(LDPUserSide):
    """Half the noise in every user's report."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"randomizer": "laplace", **options})

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Calibrate the noise, and then halve its scale."""
        super().design(statistic, apart=apart)
        if isinstance(self.statistic, AdditiveReports):
            self.statistic.scale /= 2.0


class HalvedBits(SDPShuffler):
    """A quarter of the noise bits that the guarantee needs: half the noise."""

    def disclose(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """Sums with too few noise bits."""
        del releases
        assert self._protocol is not None  # noqa: S101 - bits are mixed here
        sent = self._batches.pending
        bits = self._protocol.noise_bits(sent)
        number = sent * bits.each // 4
        cells = self.statistic.cells
        noise = self._shuffler.generator.binomial(number, bits.bias, cells)
        return np.asarray((sums[:cells] + noise - number * bits.bias) * self.statistic.grid)


class _Trusting(Population):
    """Users who follow a policy even if it chooses an action that does not exist."""

    def policy(self, policy: Any) -> Policy:
        return policy if isinstance(policy, Policy) else super().policy(policy)

    def run(self, policy: Policy, tapes: NDArray[np.float64], uniforms: NDArray[np.float64] | None) -> Trajectories:
        allowed = super().run(super().policy(np.clip(policy.table, 0, policy.n_actions - 1)), tapes, uniforms)
        actions = np.asarray(policy.table)[np.arange(policy.horizon), allowed.states[:, :-1]].astype(np.int32)
        return Trajectories(allowed.states, actions, allowed.rewards)


class UncheckedActions(JDPBillboard):
    """Counts of any policy: an action that does not exist adds a reward to a cell whose noise is meant for a count."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.population = _Trusting(self.population.env, None)

    def contribute(self, users: Trajectories, ask: Ask | None, sums: NDArray[np.int64]) -> None:
        """Add the users' trajectories without a check of their actions."""
        self.statistic._collect(users, sums, None, ask)


class SmallBatches(SDPShuffler):
    """Small batches with the guarantee of a full one: a user who is alone in a batch has nobody to hide among."""

    def _needed_reports(self, users: int) -> int:
        del users
        return 1


class Peeking(UCBVI):
    """An agent that reads true sums, including rewards, inside the boundary."""

    def prepare(self) -> None:
        """Begin to observe the users inside the boundary."""
        super().prepare()
        board = self.board
        assert board is not None  # noqa: S101 - it was given one
        self._exact = board.statistic.exact
        self._true = np.zeros(self._exact.cells + self._exact.tallies, dtype=np.int64)
        board.observe(self)

    def left(self, users: Trajectories | None, count: int) -> None:
        """Add the exact contributions of users, which no agent should see."""
        del count
        if users is not None:
            self._exact.collect(users, self._true)

    def reported(self, vector: NDArray[np.int64]) -> None:
        """Ignore reports."""

    def plan(self, release: Any) -> Policy:
        """Plan from the true sums."""
        true = self._exact.sums(self._true * self._exact.grid, release.users)
        return super().plan(replace(release, **true))
