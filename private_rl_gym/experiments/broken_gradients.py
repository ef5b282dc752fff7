"""Sums of gradients that are broken on purpose, to test that audits detect them. Never protect data with one.

Each states the guarantee of the correct one:

* ``ClippedSteps`` - the gradient of every step is clipped, and not that of the user
* ``UnscaledClip`` - sums in the units of the gradient, with noise that does not follow the clip
* ``TrueSteps`` - a mean over the true number of steps in the batch
* ``OwnBaseline`` - a baseline that is the mean return of the very batch
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.network import Episodes
from private_rl_gym.privacy.asks import Ask, Objective
from private_rl_gym.privacy.gradients import Gradients
from private_rl_gym.privacy.noise import NoiseSource
from private_rl_gym.wrappers import JDPBillboard

__all__ = ["ClippedSteps", "OwnBaseline", "TrueSteps", "UnscaledClip"]


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
