"""Mechanisms that are broken on purpose, to see an audit catch them. Never use one.

Each makes a mistake that was made somewhere, and prints the same promise as before:

* ``HalvedNoise`` - half the noise that is stated
* ``MissingFactor`` - noise for adding a user, where one is replaced
* ``SharedNoise`` - one sequence of noise for all cells
* ``FreshNoise`` - fresh noise for every release, in place of a mechanism that goes on
* ``MissingLevel`` - noise for one level of the tree too few
* ``VisitedCells`` - noise only on cells where somebody was
* ``FloatNoise`` - Laplace noise in floating point, on no grid
* ``Reseeded`` - noise that begins anew with ``reset(seed=...)``
* ``IntegerSums`` - users who send the sum of their bits, in place of bits
* ``UncheckedActions`` - counts whatever a policy does, also actions that there are not
* ``SmallBatches`` - a shuffler that closes any batch under the promise of a large one
* ``HalvedReports``, ``HalvedBits`` - half the noise in the local and in the shuffle model
* ``Peeking`` - an agent that reads true rewards behind the boundary
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
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, SDPShuffler
from private_rl_gym.wrappers.population import Population

__all__ = [
    "FloatNoise",
    "FreshNoise",
    "HalvedBits",
    "HalvedNoise",
    "HalvedReports",
    "IntegerSums",
    "MissingFactor",
    "MissingLevel",
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
        """Promise, and then forget half of it."""
        super().design(statistic, apart=apart)
        self._scale /= 2.0


class MissingFactor(JDPBillboard):
    """Noise for adding a user: half of what it takes to replace one (Laplace), or its root (Gaussian)."""

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Promise, and then leave the factor out."""
        super().design(statistic, apart=apart)
        self._scale /= 2.0 if self._mechanism[1] == "laplace" else np.sqrt(2.0)


class _OneForAll(CentralNoise):
    """The noise of the first cell, in all of them."""

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        alone = np.zeros_like(sums)
        alone[0] = sums[0]
        first = super().add(alone, releases)[0] / self.grid[0] - sums[0]
        return np.asarray((sums + np.rint(first * self.grid[0] / self.grid)) * self.grid)


class SharedNoise(JDPBillboard):
    """One sequence of noise for all cells, as a generator that is made anew from one seed for every cell gives."""

    central = _OneForAll


class _FreshEveryTime(CentralNoise):
    """Noise that has nothing to do with that of other releases, each as wide as if it were the only one."""

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
    """Fresh noise for every release: whoever takes the mean removes it."""

    central = _FreshEveryTime

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"counting": "binary-tree", **options})


class MissingLevel(JDPBillboard):
    """A binary tree calibrated for one level fewer than a user is in."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "counting": "binary-tree"})

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Promise, and then forget the root."""
        super().design(statistic, apart=apart)
        levels = max(1, (self._releases - 1).bit_length())
        share = max(1, levels - 1) / levels
        self._scale *= share if self._mechanism[1] == "laplace" else np.sqrt(share)


class _Elsewhere(CentralNoise):
    """Noise on cells that are not zero."""

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        return np.where(sums == 0, 0.0, super().add(sums, releases))


class VisitedCells(JDPBillboard):
    """Noise only on cells where somebody was, as a dictionary of counts suggests: the others say that nobody was."""

    central = _Elsewhere


class _Floats(CentralNoise):
    """The same law, in floating point."""

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        super().add(sums, releases)
        return np.asarray(sums * self.grid + self.source.generator.laplace(0.0, self.scale, len(sums)))


class FloatNoise(JDPBillboard):
    """Laplace noise as libraries draw it: the last digits of a sum tell what it was added to (Mironov, 2012)."""

    central = _Floats

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "counting": "batched", "noise": "laplace"})


class Reseeded(JDPBillboard):
    """Noise that begins anew whenever the environment is seeded: the same noise twice is no noise."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user, and break the promise."""
        if seed is not None:
            self._source.restore(NoiseSource(seed).state())
        return super().reset(seed=seed, options=options)


class IntegerSums(SDPShuffler):
    """Every user sends one number a counter, her own bit plus her noise bits, as SDP-PE's algorithm prints it.

    The sum is as private as with bits, but a shuffler passes on all numbers: the largest that noise allows, plus one,
    can only come from somebody who holds the bit.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "simulation": "messages"})
        self._numbers: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)

    def disclose(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """Numbers in place of messages."""
        del sums, releases
        assert self._protocol is not None  # noqa: S101 - bits are mixed here
        held = np.array(self._held)
        bits = self._protocol.noise_bits(len(held))
        numbers = (held + self._shuffler.generator.binomial(bits.each, bits.bias, held.shape)).T
        self._held.clear()
        self._numbers = np.stack([(numbers >= bits.each + more).sum(axis=1) for more in (0, 1)])
        return np.asarray((numbers.sum(axis=1) - len(held) * bits.each * bits.bias) * self.statistic.grid)

    def transcript(self) -> NDArray[np.float64]:
        """Sums, and how many numbers of a counter were very large: the analyzer's view of a batch, in short."""
        return np.concatenate([self.statistic.vector(self.release.sums()), self._numbers.ravel()])


class HalvedReports(LDPUserSide):
    """Half the noise in every user's report."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"randomizer": "laplace", **options})

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Promise, and then forget half of it."""
        super().design(statistic, apart=apart)
        if isinstance(self.statistic, AdditiveReports):
            self.statistic.scale /= 2.0


class HalvedBits(SDPShuffler):
    """A quarter of the noise bits that the promise needs: half the noise."""

    def disclose(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        """Few bits."""
        del releases
        assert self._protocol is not None  # noqa: S101 - bits are mixed here
        sent = self._batches.pending
        bits = self._protocol.noise_bits(sent)
        number = sent * bits.each // 4
        noise = self._shuffler.generator.binomial(number, bits.bias, len(sums))
        return np.asarray((sums + noise - number * bits.bias) * self.statistic.grid)


class _Trusting(Population):
    """Users who do what a policy says, also where there is no such action."""

    def policy(self, policy: Any) -> Policy:
        return policy if isinstance(policy, Policy) else super().policy(policy)

    def run(self, policy: Policy, tapes: NDArray[np.float64], uniforms: NDArray[np.float64] | None) -> Trajectories:
        allowed = super().run(super().policy(np.clip(policy.table, 0, policy.n_actions - 1)), tapes, uniforms)
        actions = np.asarray(policy.table)[np.arange(policy.horizon), allowed.states[:, :-1]].astype(np.int32)
        return Trajectories(allowed.states, actions, allowed.rewards)


class UncheckedActions(JDPBillboard):
    """Counts whatever a policy does: an action that there is not writes a reward where a count is noised for one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.population = _Trusting(self.population.env, None)

    def contribute(self, users: Trajectories, ask: Ask | None, sums: NDArray[np.int64]) -> None:
        """Whatever they did."""
        self.statistic._collect(users, sums, None, ask)


class SmallBatches(SDPShuffler):
    """Closes any batch, and prints what a full one costs: whoever is alone in one hides among nobody."""

    def _needed_reports(self, users: int) -> int:
        del users
        return 1


class Peeking(UCBVI):
    """An agent that reads true sums, rewards and all, behind the boundary."""

    def prepare(self) -> None:
        """Look inside."""
        super().prepare()
        board = self.board
        assert board is not None  # noqa: S101 - it was given one
        self._exact = board.statistic.exact
        self._true = np.zeros(self._exact.cells + self._exact.tallies, dtype=np.int64)
        board.observe(self)

    def left(self, users: Trajectories | None, count: int) -> None:
        """Add up what nobody should see."""
        del count
        if users is not None:
            self._exact.collect(users, self._true)

    def reported(self, vector: NDArray[np.int64]) -> None:
        """Reports are of no interest."""

    def plan(self, release: Any) -> Policy:
        """Plan from what nobody should see."""
        true = self._exact.sums(self._true * self._exact.grid, release.users)
        return super().plan(replace(release, **true))
