"""Running sums with fresh noise at every release, as in a published experiment: what they cost, stated.

Proof: docs/proofs/refreshed.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.counting.base import ContinualNoise, Law, Weights
from private_rl_gym.privacy.noise import NoiseSource

__all__ = ["Refreshed", "refreshed_cost"]


class Refreshed(ContinualNoise):
    """Fresh noise at every release: at release t a sum of floor(ln t) + 1 Laplace draws, and none of them again.

    The sum is as wide as the noise of a tree. A tree adds the same few draws in release after release; fresh ones
    average out, so that a user pays for every release from hers on.
    """

    name = "refreshed"
    laws: ClassVar[tuple[Law, ...]] = ("laplace",)

    @property
    def sensitivity(self) -> float:
        """The number of releases, all of which the first user is in."""
        return float(self.steps)

    @property
    def worst_step(self) -> int:
        """The last release, because noise grows."""
        return self.steps

    def weights(self, step: int) -> Weights:
        """All draws of this release."""
        return ((float(_draws(step)), 1.0),)

    def advance(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """The noise of the next release, which has nothing in common with that of others."""
        self.step += 1
        total = np.zeros(self.cells)
        for _ in range(_draws(self.step)):
            total += self._draw(source, scale)
        return total

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """No arrays, because later releases do not build on earlier noise."""
        return {}


def _draws(step: int) -> int:
    return math.floor(math.log(step)) + 1


def refreshed_cost(
    parts: Sequence[tuple[int, float]], l1: float, scale: float, releases: int, delta: float
) -> tuple[float, float]:
    """The epsilon and delta of so many releases with fresh noise of this scale.

    At delta = 0 it is the sum over releases, which is tight; else the better one of this and of concentrated DP.
    """
    pure = releases * l1 / scale
    if delta == 0.0:
        return pure, 0.0
    rho = releases * sum(count * (size / scale) ** 2 for count, size in parts) / 2.0
    composed = rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))
    return (composed, delta) if composed < pure else (pure, 0.0)
