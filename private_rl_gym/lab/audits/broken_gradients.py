"""Sums of gradients that are broken on purpose, to test that audits detect them.

Never protect data with one.

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

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.agents import DPPolicyGradient
from private_rl_gym.planning.network import NetworkTrajectories
from private_rl_gym.privacy.randomizers import Direction, UserSide
from private_rl_gym.privacy.requests import Objective, Request
from private_rl_gym.privacy.statistics.gradients import Gradients
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


Add = Callable[[Any, Any], NDArray[np.int64]]
"""The correct sums of some users under an objective."""


class _Wrong(Gradients):
    """Gradients with wrong sums, and with the sensitivity of the correct ones."""

    def __init__(self, correct: Gradients, wrong: Callable[..., Any]) -> None:
        super().__init__(correct.network, correct.horizon)
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
            super(_Wrong, self)._add(users, added, request, uniforms)
            return added

        assert isinstance(request, Objective)  # noqa: S101 - audits send one
        sums += np.rint(self._wrong(self, users, request, correct)).astype(np.int64)


class _Broken(JDPBillboard):
    """A billboard around gradients with wrong sums."""

    def _side(self, source: Any, statistic: Any) -> UserSide:
        """Return the user side with the broken statistic."""
        side = super()._side(source, statistic)
        return replace(side, statistic=_Wrong(side.statistic, type(self).wrong))  # type: ignore[arg-type]

    @staticmethod
    def wrong(exact: Gradients, users: NetworkTrajectories, request: Objective, correct: Add) -> Any:
        """Return the sums of these users."""
        raise NotImplementedError  # pragma: no cover - abstract


class ClippedSteps(_Broken):
    """Gradients that are clipped at each step, and not for each user.

    A user moves the sum by up to twice the clip for each of their steps.
    """

    @staticmethod
    def wrong(_: Gradients, users: NetworkTrajectories, request: Objective, correct: Add) -> Any:
        """Return the sum of the clipped gradients of all steps."""
        steps = [
            NetworkTrajectories(inputs[None, h:], actions[None, h:], rewards[None, h:], np.ones(1, int), users.policy)
            for inputs, actions, rewards, length in zip(
                users.inputs, users.actions, users.rewards, users.lengths, strict=True
            )
            for h in range(int(length))
        ]
        return sum(correct(step, request) for step in steps)


class UnscaledClip(_Broken):
    """Sums in units of the gradient, with noise that does not follow the clip.

    With a clip of 3, a user moves the sum by 6, and the noise is for 2.
    """

    @staticmethod
    def wrong(_: Gradients, users: NetworkTrajectories, request: Objective, correct: Add) -> Any:
        """Return the sum in units of the gradient."""
        return request.clip * correct(users, request)


class VanishingNorm(_Broken):
    """Gradients clipped by a norm that is zero where gradients are tiny.

    Squares of entries below 1e-162 are zero in floating point, so nothing is clipped.
    """

    @staticmethod
    def wrong(exact: Gradients, users: NetworkTrajectories, request: Objective, correct: Add) -> Any:
        """Return the sum of gradients, clipped by that norm."""
        reach, clip = 8.0, 1e4  # with these nothing is clipped, and nothing vanishes
        total: Any = 0
        for user in range(len(users)):
            one = users.part(user, user + 1)
            whole = correct(one, replace(request, reach=reach, clip=clip))
            tiny = whole * exact.grid * clip * (reach / request.reach)  # the gradient, whose squares may be zero
            with np.errstate(over="ignore"):
                norm = np.sqrt((tiny * tiny).sum())
            if norm < request.clip and np.abs(tiny).max() > request.clip:
                total += np.rint(np.clip(tiny / request.clip, -1e9, 1e9) / exact.grid).astype(np.int64)
            else:
                total += correct(one, request)
        return total


class TrueSteps(_Broken):
    """Sums divided by the number of steps that users took.

    One long episode makes the gradients of all users smaller.
    """

    @staticmethod
    def wrong(_: Gradients, users: NetworkTrajectories, request: Objective, correct: Add) -> Any:
        """Return the mean over steps, times the number of users."""
        return correct(users, request) * (len(users) / users.lengths.sum())


def _returns(users: NetworkTrajectories) -> NDArray[np.float64]:
    return np.array([users.rewards[user, :length].sum() for user, length in enumerate(users.lengths)])


class OwnBaseline(_Broken):
    """Gradients whose baseline is the mean return of the same batch.

    One user changes the gradients of all others.
    """

    @staticmethod
    def wrong(exact: Gradients, users: NetworkTrajectories, request: Objective, correct: Add) -> Any:
        """Return the sum of gradients with the batch's mean return as the baseline."""
        return correct(users, replace(request, baseline=np.full(exact.horizon, _returns(users).mean())))


class OwnNormalization(_Broken):
    """Gradients of returns that are divided by their spread in the same batch.

    One large return makes the gradients of all users smaller.
    """

    @staticmethod
    def wrong(_: Gradients, users: NetworkTrajectories, request: Objective, correct: Add) -> Any:
        """Return the sum of gradients of returns divided by their spread."""
        return correct(users, replace(request, reach=max(1e-6, float(_returns(users).std()))))


class ReadingRewards(DPPolicyGradient):
    """A learner that reads rewards inside the boundary.

    The baseline that it sends is their exact mean.
    """

    def prepare(self) -> None:
        """Start to observe the users inside the boundary."""
        super().prepare()
        self._seen, self._count = 0.0, 0
        assert self.board is not None  # noqa: S101 - it was given one
        self.board.audit.observe(self)

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
        """Return the objective, with the exact mean reward as the baseline."""
        mean = np.full_like(baseline, self._seen / max(1, self._count))
        return super().objective(mean, reach, shares, critic)


class _Eager(Direction):
    def __init__(self, statistic: Any, epsilon: float, delta: float) -> None:
        super().__init__(statistic, 2.0 * epsilon, delta)
        self.spent = epsilon, 0.0


class EagerDirections(LDPUserSide):
    """Local reports of directions, with noise for twice the epsilon that is stated."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"randomizer": _Eager, **options})
