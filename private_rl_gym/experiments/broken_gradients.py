"""Sums of gradients that are broken on purpose, to test that audits detect them. Never protect data with one.

Each states the guarantee of the correct one:

* ``ClippedSteps`` - the gradient of every step is clipped, and not that of the user
* ``VanishingNorm`` - a norm whose squares vanish where gradients are tiny, so that nothing is clipped
* ``UnscaledClip`` - sums in the units of the gradient, with noise that does not follow the clip
* ``TrueSteps`` - a mean over the true number of steps in the batch
* ``OwnBaseline`` - a baseline that is the mean return of the very batch
* ``OwnNormalization`` - returns over the spread of the very batch
* ``ReadingRewards`` - a learner whose baseline is the exact mean reward
* ``EagerDirections`` - local reports of twice the budget that is stated
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents import DPPolicyGradient
from private_rl_gym.planning.network import Episodes
from private_rl_gym.privacy.asks import Ask, Objective
from private_rl_gym.privacy.directions import DirectionReports
from private_rl_gym.privacy.gradients import Gradients
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.wrappers import JDPBillboard, LDPUserSide

__all__ = [
    "ClippedSteps",
    "EagerDirections",
    "OwnBaseline",
    "OwnNormalization",
    "ReadingRewards",
    "TrueSteps",
    "UnscaledClip",
    "VanishingNorm",
]


class _Broken(JDPBillboard):
    """A billboard around a statistic that is broken."""

    broken: ClassVar[type[Gradients]]

    def design(self, statistic: Any, *, apart: bool) -> None:
        """Calibrate for the correct statistic, and sum another."""
        super().design(statistic, apart=apart)
        assert isinstance(self.statistic, Gradients)  # noqa: S101 - for boundaries that sum gradients
        self.statistic = self.broken(self.statistic.network, self.statistic.horizon)


class _ByStep(Gradients):
    def collect(
        self, users: Any, sums: NDArray[np.int64], source: NoiseSource | None = None, ask: Ask | None = None
    ) -> None:
        for user in range(len(users)):
            one = slice(user, user + 1)
            for h in range(int(users.lengths[user])):
                inputs, actions, rewards = (a[one, h:] for a in (users.inputs, users.actions, users.rewards))
                super().collect(Episodes(inputs, actions, rewards, np.ones(1, int), users.policy), sums, source, ask)


class ClippedSteps(_Broken):
    """Clips steps: a user moves the sum by twice the clip for each of her steps."""

    broken = _ByStep


class _Unscaled(Gradients):
    def collect(
        self, users: Any, sums: NDArray[np.int64], source: NoiseSource | None = None, ask: Ask | None = None
    ) -> None:
        assert isinstance(ask, Objective)  # noqa: S101 - audits send one
        added = np.zeros_like(sums)
        super().collect(users, added, source, ask)
        sums += np.rint(ask.clip * added).astype(np.int64)


class UnscaledClip(_Broken):
    """Sums gradients as they are: with a clip of 3, a user moves the sum by 6, and noise is for 2."""

    broken = _Unscaled


class _Vanishing(Gradients):
    def collect(
        self, users: Any, sums: NDArray[np.int64], source: NoiseSource | None = None, ask: Ask | None = None
    ) -> None:
        assert isinstance(ask, Objective)  # noqa: S101 - audits send one
        reach, clip = 8.0, 1e4  # with these nothing is clipped, and nothing vanishes
        for user in range(len(users)):
            one, whole = users.part(user, user + 1), np.zeros_like(sums)
            super().collect(one, whole, source, replace(ask, reach=reach, clip=clip))
            tiny = whole * self.grid * clip * (reach / ask.reach)  # her gradient, whose squares may be zero
            with np.errstate(over="ignore"):
                norm = np.sqrt((tiny * tiny).sum())
            if norm < ask.clip and np.abs(tiny).max() > ask.clip:
                sums += np.rint(np.clip(tiny / ask.clip, -1e9, 1e9) / self.grid).astype(np.int64)
            else:
                super().collect(one, sums, source, ask)


class VanishingNorm(_Broken):
    """Takes the norm of a gradient as it is: squares of entries below 1e-162 are zero, and so nothing is clipped."""

    broken = _Vanishing


class _OverSteps(Gradients):
    def collect(
        self, users: Any, sums: NDArray[np.int64], source: NoiseSource | None = None, ask: Ask | None = None
    ) -> None:
        added = np.zeros_like(sums)
        super().collect(users, added, source, ask)
        sums += np.rint(added * (len(users) / users.lengths.sum())).astype(np.int64)


class TrueSteps(_Broken):
    """Divides by the steps that users took: one long episode makes everyone's gradient smaller."""

    broken = _OverSteps


class _Inside(Gradients):
    def collect(
        self, users: Any, sums: NDArray[np.int64], source: NoiseSource | None = None, ask: Ask | None = None
    ) -> None:
        assert isinstance(ask, Objective)  # noqa: S101 - audits send one
        total = np.array([users.rewards[user, :length].sum() for user, length in enumerate(users.lengths)])
        own = replace(ask, baseline=np.full(self.horizon, total.mean()))
        super().collect(users, sums, source, own)


class OwnBaseline(_Broken):
    """Takes the batch's own returns for its baseline: one user turns the gradients of all others."""

    broken = _Inside


class _OverSpread(Gradients):
    def collect(
        self, users: Any, sums: NDArray[np.int64], source: NoiseSource | None = None, ask: Ask | None = None
    ) -> None:
        assert isinstance(ask, Objective)  # noqa: S101 - audits send one
        total = np.array([users.rewards[user, :length].sum() for user, length in enumerate(users.lengths)])
        super().collect(users, sums, source, replace(ask, reach=max(1e-6, float(total.std()))))


class OwnNormalization(_Broken):
    """Divides returns by their spread in the very batch: one large return makes everyone's gradient smaller."""

    broken = _OverSpread


class ReadingRewards(DPPolicyGradient):
    """A learner that reads rewards inside the boundary: the baseline that it sends is their exact mean."""

    def prepare(self) -> None:
        """Begin to observe the users inside the boundary."""
        super().prepare()
        self._seen, self._count = 0.0, 0
        assert self.board is not None  # noqa: S101 - it was given one
        self.board.observe(self)

    def left(self, users: Any, count: int) -> None:
        """Add the rewards of users, which no agent should see."""
        self._count += count
        if users is not None:
            self._seen += sum(users.rewards[user, :length].sum() for user, length in enumerate(users.lengths))

    def reported(self, vector: NDArray[np.int64]) -> None:
        """Ignore reports."""

    def objective(
        self, baseline: NDArray[np.float64], reach: float, shares: tuple[float, ...], critic: NDArray[np.float64]
    ) -> Objective:
        """The objective, with the exact mean for a baseline."""
        mean = np.full_like(baseline, self._seen / max(1, self._count))
        return super().objective(mean, reach, shares, critic)


class EagerDirections(LDPUserSide):
    """Directions that tell the truth as often as twice the epsilon would allow."""

    def design(self, statistic: Any, *, apart: bool) -> None:
        """State the guarantee of one budget, and report with two."""
        super().design(statistic, apart=apart)
        exact = self.statistic.exact
        assert isinstance(exact, Gradients)  # noqa: S101 - for boundaries that sum gradients
        self.statistic = DirectionReports(exact, 2.0 * self._promised.epsilon)
