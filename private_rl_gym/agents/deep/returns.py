"""A baseline from releases: the return that is expected from each stage on."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.release import GradientRelease
from private_rl_gym.privacy.statistics.gradients import RANGES

__all__ = ["Returns", "largest_return"]

KEPT = 0.5
"""Weight of earlier batches, relative to a new batch: policies change, and returns with them."""

DEVIATIONS = 3.0
"""Deviations of noise above which numbers of users are trusted."""


class Returns:
    """Returns by stage, averaged over the newest batches.

    The return of users who are there at stage t is the sum of all rewards from t on, over the number who are there.
    Between the stages of a release, and to zero at the horizon, it is interpolated.

    Args:
        horizon: Number of stages.
        discount: Factor on rewards for each further step.
    """

    def __init__(self, horizon: int, discount: float) -> None:
        self.horizon, self.discount = horizon, discount
        self.users = self.variance = 0.0
        self.rewards = self.ends = np.zeros(0)  # [segment]
        self.mean = 0.0  # return of a whole episode
        self.mean_noise = math.inf  # its standard deviation

    def add(self, release: GradientRelease, reach: float, share: float) -> NDArray[np.float64]:
        """Take in a batch, and return the baseline, ``[h]``.

        The batch was requested with this reach and this share.
        """
        half = share * math.sqrt(0.5)
        first = self.users == 0.0
        rewards, ends = release.rewards * reach / half, release.ends / half
        self.rewards = rewards if first else KEPT * self.rewards + rewards
        self.ends = ends if first else KEPT * self.ends + ends
        self.users = KEPT * self.users + release.users
        noise = release.noise_std["ends"] / half
        self.variance = KEPT**2 * self.variance + noise**2
        self.mean_noise = reach * noise * math.sqrt(len(ends)) / max(1, release.users)
        return self._baseline(release.stages)

    def _baseline(self, stages: NDArray[np.int64]) -> NDArray[np.float64]:
        last = len(stages)
        times, values = [], []
        for k in range(last):
            # Those who are there have not left before, and leave later: two counts, weighted by their noise.
            later, earlier = self.ends[k:].sum(), self.users - self.ends[:k].sum()
            there = (k * later + (last - k) * earlier) / last
            if there <= max(1.0, DEVIATIONS * math.sqrt(self.variance * k * (last - k) / last)):
                break
            ahead = float((self.discount ** (stages[k:] - stages[k]) * self.rewards[k:]).sum())
            times.append(float(stages[k]))
            values.append(ahead / min(there, self.users))
        self.mean = values[0] if values else 0.0
        return np.asarray(np.interp(np.arange(self.horizon), [*times, self.horizon], [*values, 0.0]))


def largest_return(release: GradientRelease) -> float:
    """Return a bound on the returns of nearly all users.

    It is the end of the highest class that surely has a user.
    """
    seen = np.flatnonzero(release.ranges > max(1.0, DEVIATIONS * release.noise_std["ranges"]))
    return float(2.0 * RANGES[seen[-1]]) if len(seen) else 1.0
