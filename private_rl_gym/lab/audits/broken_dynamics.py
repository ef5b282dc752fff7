"""Corrections of a model that are broken on purpose, to test that audits detect them.

Never protect data with one.

Each states the guarantee of the correct one:

* ``Unclipped`` - steps are divided by the clip, and not clipped
* ``NormOfNaN`` - a step with a number that is not finite is not longer than the clip, and so is not clipped
* ``OwnScales`` - states are standardized by the sizes in the very batch
* ``TrueMedian`` - the clip is the median length of steps in the very batch
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.network import NetworkTrajectories
from private_rl_gym.privacy.randomizers import UserSide
from private_rl_gym.privacy.release import GRID
from private_rl_gym.privacy.requests import Refinement, Request
from private_rl_gym.privacy.statistics.dynamics import STEP, Dynamics
from private_rl_gym.wrappers import JDPBillboard

__all__ = ["NormOfNaN", "OwnScales", "TrueMedian", "Unclipped"]

Add = Callable[[Any, Any], NDArray[np.int64]]
"""The correct sums of some users about a question."""

WIDE = 1e4
"""A clip that clips nothing."""


class _WrongCorrections(Dynamics):
    """Corrections with wrong sums, and with the sensitivity of the correct ones."""

    def __init__(self, correct: Dynamics, wrong: Callable[..., Any]) -> None:
        super().__init__(correct.network, correct.horizon, correct.degree)
        self._wrong = wrong

    def _add(
        self,
        users: NetworkTrajectories,
        sums: NDArray[np.int64],
        request: Request | None,
        uniforms: NDArray[np.float64],
    ) -> None:
        def correct(users: NetworkTrajectories, request: Request | None) -> NDArray[np.int64]:
            added = np.zeros_like(sums)
            super(_WrongCorrections, self)._add(users, added, request, uniforms)
            return added

        if isinstance(request, Refinement) and request.about == "step":
            sums += np.rint(self._wrong(self, users, request, correct)).astype(np.int64)
        else:
            sums += correct(users, request)


class _BrokenCorrections(JDPBillboard):
    """A billboard around corrections with wrong sums."""

    def _side(self, source: Any, statistic: Any) -> UserSide:
        """Return the users' side with the broken statistic."""
        side = super()._side(source, statistic)
        return replace(side, statistic=_WrongCorrections(side.statistic, type(self).wrong))  # type: ignore[arg-type]

    @staticmethod
    def wrong(exact: Dynamics, users: NetworkTrajectories, request: Refinement, correct: Add) -> Any:
        """Return the sums of these users."""
        raise NotImplementedError  # pragma: no cover - abstract


def _each(users: NetworkTrajectories) -> list[NetworkTrajectories]:
    return [users.part(user, user + 1) for user in range(len(users))]


class Unclipped(_BrokenCorrections):
    """Steps that are divided by the clip, and not clipped."""

    @staticmethod
    def wrong(_: Dynamics, users: NetworkTrajectories, request: Refinement, correct: Add) -> Any:
        """Return the sum of steps in units of the clip, however long they are."""
        return correct(users, replace(request, clip=WIDE)) * (WIDE / request.clip)


class NormOfNaN(_BrokenCorrections):
    """Steps with a number that is not finite, whose norm is not above the clip.

    The number itself is dropped afterwards, and the rest stays as long as it is.
    """

    @staticmethod
    def wrong(exact: Dynamics, users: NetworkTrajectories, request: Refinement, correct: Add) -> Any:
        """Return the sum of steps; those with such a number are not clipped."""
        total = correct(users, request)
        for one in _each(users):
            if not np.isfinite(one.rewards[0, : one.lengths[0]]).all():
                kept = replace(one, rewards=np.nan_to_num(one.rewards))
                total = total + Unclipped.wrong(exact, kept, request, correct)
        return total


class OwnScales(_BrokenCorrections):
    """States that are standardized by the sizes in the very batch.

    A user who changes them changes the steps of all others.
    """

    @staticmethod
    def wrong(_: Dynamics, users: NetworkTrajectories, request: Refinement, correct: Add) -> Any:
        """Return the sum of steps under the scales of the batch."""
        sizes = np.sqrt((users.inputs**2).mean(axis=(0, 1))) + 1e-9
        return correct(users, replace(request, scale=sizes, units=np.append(sizes, request.units[-1])))


class TrueMedian(_BrokenCorrections):
    """A clip that is the mean length of steps in the very batch.

    One user may move it.
    """

    @staticmethod
    def wrong(exact: Dynamics, users: NetworkTrajectories, request: Refinement, correct: Add) -> Any:
        """Return the sum of steps, clipped to the mean length of the batch."""
        size = exact.basis.size * exact.targets
        wide = replace(request, clip=WIDE)
        lengths = [float(np.linalg.norm(correct(one, wide)[:size])) * GRID * WIDE / STEP**0.5 for one in _each(users)]
        clip = float(np.mean(lengths)) + 1e-9
        return correct(users, replace(request, clip=clip)) * (clip / request.clip)
