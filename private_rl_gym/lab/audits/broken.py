"""Mechanisms that are broken on purpose, to test that audits detect them.

Never protect data with one.

Each makes a mistake that was made in practice, and states the same guarantee as the correct mechanism:

* ``HalvedNoise`` - half the noise that is stated
* ``MissingFactor`` - noise calibrated for adding a user, where the guarantee is for replacing one
* ``SharedNoise`` - one sequence of noise for all cells
* ``FreshNoise`` - independent noise for every release, in place of a mechanism for continual release
* ``FutureOnly`` - one draw of noise for ever, which hides a user from each later user, and not from an earlier one too
* ``MissingLevel`` - a tree whose noise is calibrated for one level too few
* ``VisitedCells`` - noise only on cells that a user has visited
* ``FloatNoise`` - Laplace noise in floating point, not on a grid
* ``Reseeded`` - noise that starts again with ``reset(seed=...)``
* ``IntegerSums`` - users who send the sum of their bits, in place of bits
* ``UncheckedActions`` - counts of any policy's actions, including actions that do not exist
* ``SmallBatches`` - a shuffler that publishes small batches with the guarantee of a large one
* ``OneReport`` - noise for one report of each user, however many were asked for
* ``OneVisit`` - noise for one episode of each user, who may be in several
* ``HalvedReports``, ``HalvedBits`` - half the noise in the local and in the shuffle model
* ``Peeking`` - an agent that reads true sums inside the boundary
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents import UCBVI
from private_rl_gym.planning.policy import Policy
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.privacy.mechanisms import MECHANISMS
from private_rl_gym.privacy.mechanisms.running import RunningMechanism
from private_rl_gym.privacy.noise import AdditiveNoise, Noises, NoiseSource
from private_rl_gym.privacy.protocols import Central, ShuffledBits, ShuffledReports
from private_rl_gym.privacy.protocols.bits import NoiseBits
from private_rl_gym.privacy.protocols.central import Calibrated
from private_rl_gym.privacy.randomizers import Laplace, UserSide
from private_rl_gym.privacy.statistics import TabularCounts
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide, SDPShuffler
from private_rl_gym.wrappers.sources import EnvironmentSource, Source

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


def _scaled(scale: Callable[[Central, Calibrated], float]) -> type[Central]:
    """Return the billboard's protocol with this scale of noise instead of the calibrated one."""

    class Scaled(Central):
        def made(self, chosen: Calibrated) -> RunningMechanism:
            return super().made(chosen._replace(scale=scale(self, chosen)))

    return Scaled


def _noised(noise: type[RunningMechanism]) -> type[Central]:
    """Return the billboard's protocol with noise of another class."""

    class Noised(Central):
        noise_class = noise

    return Noised


class _Usually:
    """A boundary with other defaults."""

    usual: ClassVar[Mapping[str, Any]]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**self.usual, **options})


class HalvedNoise(JDPBillboard):
    """Half the noise that the ledger states."""

    protocol = _scaled(lambda _, chosen: chosen.scale / 2.0)


class MissingFactor(JDPBillboard):
    """Noise calibrated for adding a user, where the guarantee is for replacing one.

    The scale for replacing a user is divided by 2 (Laplace) or by sqrt(2) (Gaussian).
    """

    protocol = _scaled(lambda _, chosen: chosen.scale / (2.0 if chosen.law == "laplace" else np.sqrt(2.0)))


class _OneForAll(RunningMechanism):
    """Noise of the curator that is the same in all cells.

    It is the noise of the first cell.
    """

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        alone = np.zeros_like(sums)
        alone[0] = sums[0]
        first = super().add(alone, releases)[0] / self.grid[0] - sums[0]
        return np.asarray((sums + np.rint(first * self.grid[0] / self.grid)) * self.grid)


class SharedNoise(JDPBillboard):
    """One sequence of noise for all cells.

    It is as if every cell had a new generator with the same seed.
    """

    protocol = _noised(_OneForAll)


class _FreshEveryTime(RunningMechanism):
    """Independent noise for every release, with the scale of a single release."""

    def add(self, sums: NDArray[np.int64], _releases: int) -> NDArray[np.float64]:
        kind = MECHANISMS[self.mechanism.name]
        alone = RunningMechanism(kind(1, len(sums), self.mechanism.law), self._narrow, self.grid, self.source)
        return alone.add(sums, 1)

    @property
    def _narrow(self) -> float:
        return self.scale / self.mechanism.sensitivity

    def noises(self, releases: int) -> Noises:
        return [AdditiveNoise(np.eye(releases), self._narrow, self.mechanism.law)]


class FreshNoise(_Usually, JDPBillboard):
    """Independent noise for every release: the mean over releases removes it."""

    protocol, usual = _noised(_FreshEveryTime), {"counting": "binary-tree"}


class _OnceForEver(RunningMechanism):
    """Noise of the curator that is drawn once and used in every release."""

    _first: NDArray[np.float64] | None = None

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        noisy = super().add(sums, releases)
        if self._first is None:
            self._first = noisy - sums * self.grid
        return np.asarray(sums * self.grid + self._first)


class FutureOnly(_Usually, JDPBillboard):
    """One draw of noise for all releases, with all of its noise in each.

    It keeps a weaker guarantee, about what is shown after a user: all later releases are exact sums and one noise. The
    users directly before and after subtract their releases, and have the exact counts of the user between them.
    """

    protocol, usual = _noised(_OnceForEver), {"counting": "binary-tree"}


def _of_one_level_less(protocol: Central, chosen: Calibrated) -> float:
    levels = max(1, (protocol.options.releases - 1).bit_length())
    share = max(1, levels - 1) / levels
    return float(chosen.scale * (share if chosen.law == "laplace" else np.sqrt(share)))


class MissingLevel(_Usually, JDPBillboard):
    """A binary tree calibrated for one level fewer than a user contributes to."""

    protocol, usual = _scaled(_of_one_level_less), {"counting": "binary-tree"}


class _Elsewhere(RunningMechanism):
    """Noise of the curator on cells that are not zero."""

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        return np.where(sums == 0, 0.0, super().add(sums, releases))


class VisitedCells(JDPBillboard):
    """Noise only on visited cells, as with counts in a dictionary.

    An exact 0 reveals that no user visited a cell.
    """

    protocol = _noised(_Elsewhere)


class _Floats(RunningMechanism):
    """Central Laplace noise in floating point."""

    def add(self, sums: NDArray[np.int64], releases: int) -> NDArray[np.float64]:
        super().add(sums, releases)
        return np.asarray(sums * self.grid + self.source.generator.laplace(0.0, self.scale, len(sums)))


class FloatNoise(_Usually, JDPBillboard):
    """Laplace noise in floating point, as many libraries draw it.

    The last digits of a noisy sum reveal the exact sum (Mironov, 2012).
    """

    protocol, usual = _noised(_Floats), {"counting": "batched", "noise": "laplace"}


class Reseeded(JDPBillboard):
    """Noise that starts again whenever the environment is seeded.

    Equal noise cancels in a difference.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the episode of the next user; a seed also restarts the noise."""
        if seed is not None:
            self._protocol_options().source.restore(NoiseSource(seed).state())
        return super().reset(seed=seed, options=options)


class _WholeNumbers(ShuffledBits):
    """Numbers of users, each the sum of one bit and noise bits."""

    large: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)

    def mixed(self, sums: NDArray[np.int64], bits: NoiseBits, sent: int) -> NDArray[Any]:
        held = np.array(self._held)
        numbers = (held + self.options.source.generator.binomial(bits.each, bits.bias, held.shape)).T
        self._held.clear()
        self.large = np.stack([(numbers >= bits.each + more).sum(axis=1) for more in (0, 1)])
        return np.asarray(numbers.sum(axis=1))


class IntegerSums(_Usually, SDPShuffler):
    """One number from every user for each counter, in place of bits.

    The number is the user's own bit plus their noise bits, as SDP-PE's algorithm prints.

    The sum is as private as with bits, but a shuffler passes on all numbers: the largest possible noise plus one can
    only come from a user whose own bit is 1.
    """

    bits, usual = _WholeNumbers, {"simulation": "messages"}

    def transcript(self) -> NDArray[np.float64]:
        """Return the sums, and for each counter the count of very large numbers.

        This is a part of the analyzer's view.
        """
        large = self.audit.pipeline.protocol.large
        return np.concatenate([self.statistic.vector(self.release.sums()), large.ravel()])


class _ForOne(Central):
    def noise_for(self, load: int) -> RunningMechanism:
        return super().noise_for(1)


class OneReport(JDPBillboard):
    """Noise for one report of each user, though users send several."""

    protocol = _ForOne


def _of_one_visit(protocol: Central, chosen: Calibrated) -> float:
    return chosen.scale * (chosen.small.sensitivity / chosen.small.returning(protocol.options.visits))


class OneVisit(JDPBillboard):
    """Noise for one episode of each user, with a guarantee for all their episodes."""

    protocol = _scaled(_of_one_visit)


class _HalvedLaplace(Laplace):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.scale /= 2.0


class HalvedReports(_Usually, LDPUserSide):
    """Half the noise in every user's report."""

    usual: ClassVar[Mapping[str, Any]] = {"randomizer": _HalvedLaplace}


class _QuarterOfBits(ShuffledBits):
    def mixed(self, sums: NDArray[np.int64], bits: NoiseBits, sent: int) -> NDArray[Any]:
        number = sent * bits.each // 4
        noise = self.options.source.generator.binomial(number, bits.bias, len(sums))
        return np.asarray(sums + noise + (sent * bits.each - number) * bits.bias)


class HalvedBits(SDPShuffler):
    """A quarter of the noise bits that the guarantee needs: half the noise."""

    bits = _QuarterOfBits


class _Trusting(EnvironmentSource):
    """Users who follow a policy even if it chooses an action that does not exist."""

    def policy(self, policy: Any) -> Policy:
        return policy if isinstance(policy, Policy) else super().policy(policy)

    def run(self, policy: Policy, tapes: NDArray[np.float64], uniforms: NDArray[np.float64] | None) -> Trajectories:
        allowed = super().run(super().policy(np.clip(policy.table, 0, policy.n_actions - 1)), tapes, uniforms)
        actions = np.asarray(policy.table)[np.arange(policy.horizon), allowed.states[:, :-1]].astype(np.int32)
        return Trajectories(allowed.states, actions, allowed.rewards)


class _Unchecked(TabularCounts):
    def in_range(self, users: Any) -> Any:
        return users


class UncheckedActions(JDPBillboard):
    """Counts of any policy, including actions that do not exist.

    Such an action adds a reward to a cell whose noise is meant for a count.
    """

    def _source_of(self, statistic: Any) -> EnvironmentSource:
        return _Trusting(self.env, None)

    def _side(self, source: Source, statistic: Any) -> UserSide:
        """Return a user side whose counts are not checked."""
        sizes = source.horizon, source.n_states, source.n_actions
        return replace(super()._side(source, statistic), statistic=_Unchecked(*sizes))


class _Small(ShuffledReports):
    def needed(self, users: int) -> int:
        return 1


class SmallBatches(SDPShuffler):
    """Small batches with the guarantee of a full one.

    The messages of a user who is alone in a batch are mixed with no others.
    """

    reports = _Small


class Peeking(UCBVI):
    """An agent that reads true sums, including rewards, inside the boundary."""

    def prepare(self) -> None:
        """Start to observe the users inside the boundary."""
        super().prepare()
        board = self.board
        assert board is not None  # noqa: S101 - it was given one
        self._exact = board.statistic.exact
        self._true = np.zeros(self._exact.cells, dtype=np.int64)
        board.audit.observe(self)

    def left(self, users: Trajectories | None, count: int) -> None:
        """Add the exact contributions of users, which no agent should see."""
        if users is not None:
            self._exact.encode(users, self._true)

    def reported(self, vector: NDArray[np.int64]) -> None:
        """Ignore reports."""

    def plan(self, release: Any) -> Policy:
        """Plan from the true sums."""
        true = self._exact.sums(self._true * self._exact.grid)
        return super().plan(replace(release, **true))
