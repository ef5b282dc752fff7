"""Sums of disjoint batches of users, each noised once. Proof: docs/proofs/batched.md."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.mechanisms.base import Mechanism, Weights
from private_rl_gym.privacy.noise import NoiseSource

__all__ = ["Batched"]


class Batched(Mechanism):
    """Fresh noise for the sum of each batch.

    A release is the sum of all batches so far. A user is in one batch, so the noise of one release protects them,
    whatever the number of batches. The noise of the sum grows with the square root of that number: good for a few large
    batches, and for the use of batches one by one.
    """

    name = "batched"
    apart = True

    @property
    def sensitivity(self) -> float:
        """Factor on the norm of a user's vector: one, because they are in one batch."""
        return 1.0

    def returning(self, visits: int) -> float:
        """Return the factor for ``visits`` batches, each of which has its own noise.

        L1 distances add up, and so do squared L2 distances.
        """
        return float(visits) if self.law == "laplace" else math.sqrt(visits)

    @property
    def worst_step(self) -> int:
        """The last release, because noise grows."""
        return self.steps

    def weights(self, step: int) -> Weights:
        """Return one noise for each batch."""
        return ((float(step), 1.0),)

    def advance(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the noise of the new batch."""
        self.step += 1
        return self._draw(source, scale)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return no arrays, because later releases do not build on earlier noise."""
        return {}
