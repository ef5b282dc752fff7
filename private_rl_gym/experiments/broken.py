"""Boundaries and an agent that are broken on purpose, for audits to catch. NEVER put users behind them.

Each makes a mistake that was made somewhere, and prints the same promise as before:

    private-rl-gym audit --target private_rl_gym.experiments.broken:SharedNoise

* ``HalvedNoise`` - half the noise that the ledger states
* ``SharedNoise`` - one sequence of noise for all cells
* ``FreshNoise`` - fresh noise for every release, as for one, in place of a tree
* ``MissingLevel`` - a tree with noise for one level too few
* ``MissingFactor`` - noise for adding a user, where one is replaced
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
from private_rl_gym.privacy.counting import BinaryTree, ContinualNoise
from private_rl_gym.privacy.counting.base import Weights
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.privacy.publishing import CentralNoise
from private_rl_gym.privacy.shuffling import NoiseBits
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, SDPShuffler

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


class _Broken(JDPBillboard):
    """A billboard whose noise was tampered with, after its promise was made."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        noise = self._board.noise
        assert noise is not None  # noqa: S101 - a billboard has noise
        self._board.noise = self._tampered(noise)

    def _tampered(self, noise: CentralNoise) -> CentralNoise:
        raise NotImplementedError


def _again(noise: CentralNoise, counting: ContinualNoise | None = None, scale: float | None = None) -> CentralNoise:
    """The same noise, but for what is given."""
    return CentralNoise(counting or noise.counting, scale or noise.scale, noise.grid, noise.source)


class HalvedNoise(_Broken):
    """Half the noise that the ledger states."""

    def _tampered(self, noise: CentralNoise) -> CentralNoise:
        return _again(noise, scale=noise.scale / 2.0)


class MissingFactor(_Broken):
    """Noise for adding a user: half of what it takes to replace one (Laplace), or its root (Gaussian)."""

    def _tampered(self, noise: CentralNoise) -> CentralNoise:
        factor = 2.0 if noise.counting.law == "laplace" else np.sqrt(2.0)
        return _again(noise, scale=noise.scale / float(factor))


class SharedNoise(_Broken):
    """One sequence of noise for all cells, as a generator that is made anew from one seed for every cell gives."""

    def _tampered(self, noise: CentralNoise) -> CentralNoise:
        kind: Any = type(noise.counting)

        class Shared(kind):  # type: ignore[misc]
            def _draw(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
                fresh: NDArray[np.float64] = super()._draw(source, scale)
                width = scale if self.law == "laplace" else np.ones_like(scale)
                fresh[:] = np.rint(fresh[0] / width[0] * width) if self.law == "laplace" else fresh[0]
                return fresh

        counting = noise.counting
        return _again(noise, Shared(counting.steps, counting.cells, counting.law))


class _Fresh(ContinualNoise):
    """Noise that has nothing to do with that of other releases."""

    name = "fresh"
    sensitivity = 1.0
    worst_step = 1

    def weights(self, step: int) -> Weights:
        del step
        return ((1.0, 1.0),)

    def advance(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        self.step += 1
        return self._draw(source, scale)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        return {}


class FreshNoise(_Broken):
    """Fresh noise for every release, each as wide as if it were the only one: whoever takes the mean removes it."""

    def _tampered(self, noise: CentralNoise) -> CentralNoise:
        counting = noise.counting
        scale = noise.scale / counting.sensitivity
        return _again(noise, _Fresh(counting.steps, counting.cells, counting.law), scale)


class MissingLevel(_Broken):
    """A binary tree calibrated for one level fewer than a user is in."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "counting": "binary-tree"})

    def _tampered(self, noise: CentralNoise) -> CentralNoise:
        tree = noise.counting
        assert isinstance(tree, BinaryTree)  # noqa: S101 - it was asked for
        fewer = max(1, tree.levels - 1)
        share = fewer / tree.levels if tree.law == "laplace" else np.sqrt(fewer / tree.levels)
        return _again(noise, scale=noise.scale * float(share))


class _Elsewhere(CentralNoise):
    """Noise on cells that are not zero."""

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        return np.where(sums == 0, 0.0, super().add(sums, releases))


class VisitedCells(_Broken):
    """Noise only on cells where somebody was, as a dictionary of counts suggests: the others say that nobody was."""

    def _tampered(self, noise: CentralNoise) -> CentralNoise:
        return _Elsewhere(noise.counting, noise.scale, noise.grid, noise.source)


class _Floats(CentralNoise):
    """The same law, in floating point."""

    _total: NDArray[np.float64] | float = 0.0

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        super().add(sums, releases)
        self._total = self._total + self.source.generator.laplace(0.0, self.scale, len(sums))
        return sums * self.grid + self._total


class FloatNoise(_Broken):
    """Laplace noise as libraries draw it: the last digits of a sum tell what it was added to (Mironov, 2012)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "counting": "batched", "noise": "laplace"})

    def _tampered(self, noise: CentralNoise) -> CentralNoise:
        return _Floats(noise.counting, noise.scale, noise.grid, noise.source)


class Reseeded(JDPBillboard):
    """Noise that begins anew whenever the environment is seeded: the same noise twice is no noise."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Meet the next user, and break the promise."""
        if seed is not None and self._board.noise is not None:
            self._board.noise.source = NoiseSource(seed)
        return super().reset(seed=seed, options=options)


class IntegerSums(SDPShuffler):
    """Every user sends one number a counter, her own bit plus her noise bits, as SDP-PE's algorithm prints it.

    The sum is as private as with bits, but a shuffler passes on all numbers: the largest that noise allows, plus one,
    can only come from somebody who holds the bit.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "simulation": "messages"})
        self._numbers: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)
        self._board._mixed = self._integers  # type: ignore[method-assign]

    def _integers(self, bits: NoiseBits, sent: int) -> NDArray[np.int64]:
        del sent
        held = np.array(self._board._held)
        noise = self._board.shuffler.generator.binomial(bits.each, bits.bias, held.shape)
        found = (held + noise).T
        self._numbers = np.stack([(found >= bits.each + more).sum(axis=1) for more in (0, 1)])
        return np.asarray(found.sum(axis=1))

    def transcript(self) -> NDArray[np.float64]:
        """What the analyzer sees of a batch, in short: sums, and how many numbers of a counter were very large."""
        vector = self._board.statistic.vector(self.release.sums())
        return np.concatenate([vector, self._numbers.ravel()])


class HalvedReports(LDPUserSide):
    """Half the noise in every user's report."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"randomizer": "laplace", **options})
        self._board.statistic.scale /= 2.0  # type: ignore[attr-defined]


class HalvedBits(SDPShuffler):
    """A quarter of the noise bits that the promise needs: half the noise."""

    def _halved(self, bits: NoiseBits, sent: int) -> NDArray[np.int64]:
        generator = self._board.shuffler.generator
        return np.asarray(
            self._board._sums + generator.binomial(sent * bits.each // 4, bits.bias, self._board._sums.size)
        )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._board._mixed = self._halved  # type: ignore[method-assign]


class UncheckedActions(JDPBillboard):
    """Counts whatever a policy does: an action that there is not writes a reward where a count is noised for one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        inside: Any = self._inside
        checked, run = inside.policy, inside.run

        def trusting(policy: Any) -> Policy:
            return policy if isinstance(policy, Policy) else checked(policy)

        def recorded(policy: Policy, users: Any, uniforms: Any) -> Trajectories:
            allowed = run(checked(np.clip(policy.table, 0, policy.n_actions - 1)), users, uniforms)
            actions = np.asarray(policy.table)[np.arange(policy.horizon), allowed.states[:, :-1]].astype(np.int32)
            return Trajectories(allowed.states, actions, allowed.rewards, policy.values)

        inside.policy, inside.run = trusting, recorded
        self._board.statistic._in_range = lambda users: users  # type: ignore[method-assign]


class SmallBatches(SDPShuffler):
    """Closes any batch, and prints what a full one costs: whoever is alone in one hides among nobody."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._board.smallest = 1


class Peeking(UCBVI):
    """An agent that reads true sums, rewards and all, behind the boundary."""

    def plan(self, release: Any) -> Policy:
        """Not from the release."""
        sums = self._board._board
        return super().plan(replace(release, **sums.statistic.sums(sums._sums * sums.statistic.grid, release.users)))
