"""The counts that an offline policy rests on, from the release alone. This is post-processing: it costs no privacy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.projection import project_counts
from private_rl_gym.privacy.release import Release

__all__ = ["Choice", "Evidence"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of a policy, with what speaks for it.

    Attributes:
        action: The action; None where no action is known to be worth anything.
        visits: Noisy visits of the state with this action, or with all of them where there is none.
        margin: By how much of the value, in mapped rewards, it is ahead of the second best.
        usual: The action that the users took most often there; None where noise hides it.
    """

    action: int | None
    visits: float
    margin: float
    usual: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A release as it is planned from: by stage, or with every stage holding the counts of all.

    Attributes:
        release: The release.
        visits: ``[h, s, a]``, projected counts.
    """

    release: Release
    visits: NDArray[np.float64]

    @classmethod
    def of(cls, release: Release, *, stationary: bool) -> Evidence:
        """The evidence in a release."""
        if stationary and not release.pooled:
            release = _pooled(release)
        _, visits = project_counts(release.m, release.m.sum(axis=-1), 0.0)
        return cls(release, visits)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in a count of visits."""
        return self.release.noise_std["n"]

    @property
    def needed(self) -> float:
        """Visits from which on a count is planned with: twice its noise, as in ``DPUCBVI``."""
        return 2.0 * self.noise

    def spread(self, n_states: int, n_actions: int) -> float:
        """Visits in a count, were they spread evenly over these states and actions."""
        counted = len(self.visits) if self.release.pooled else 1
        return self.release.users * counted / (n_states * n_actions)

    def usual(self, stage: int, state: int) -> int | None:
        """The action that the users took most often there, if noise does not hide it."""
        taken = self.visits[stage, state]
        return int(taken.argmax()) if taken.max() > self.needed else None

    def choice(self, q: NDArray[np.float64], stage: int, state: int) -> Choice:
        """The greedy action there, for the values ``[h, s, a]`` of a pessimistic plan, with what speaks for it."""
        taken, values = self.visits[stage, state], np.sort(q[stage, state])
        usual = self.usual(stage, state)
        if not values[-1] > 0.0:  # pessimism gives 0 to what is not known
            return Choice(None, float(taken.sum()), 0.0, usual)
        action = int(q[stage, state].argmax())
        margin = float(values[-1] - values[-2]) if len(values) > 1 else 0.0
        return Choice(action, float(taken[action]), margin, usual)


def _pooled(release: Release) -> Release:
    """The same release with the counts of all stages at every stage, and their noise."""
    horizon = len(release.n)
    sums = {family: np.broadcast_to(array.sum(axis=0), array.shape) for family, array in release.sums().items()}
    errors = {family: law.summed(horizon) for family, law in release.errors.items()}
    return replace(release, n=sums["n"], m=sums["m"], r=sums["r"], errors=errors, pooled=True)
