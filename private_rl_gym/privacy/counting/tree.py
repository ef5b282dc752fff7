"""Sums along a binary tree (Chan, Shi and Song), plain and with Honaker's weighting.

Release t is the sum of the noisy nodes that cover users 1..t, one for each bit of t. A user is in at most
floor(log2 T) + 1 nodes. Proof: docs/proofs/binary-tree.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.privacy.counting.base import ContinualNoise, Law, Weights
from private_rl_gym.privacy.noise import NoiseSource

__all__ = ["BinaryTree", "HonakerTree"]


class BinaryTree(ContinualNoise):
    """The binary mechanism.

    Only noise is stored, and of it only what is needed: ``totals[i]``, the noise of the last release whose lowest bit
    is i. The nodes above the lowest bit of t are those of release t minus that bit, so that one addition a cell makes
    the next release.
    """

    name = "binary-tree"

    def __init__(self, steps: int, cells: int, law: Law) -> None:
        super().__init__(steps, cells, law)
        self.levels = steps.bit_length()  # floor(log2 steps) + 1
        self._totals = np.zeros((self.levels + 1, cells))  # the last row stays zero: before the first release

    @property
    def sensitivity(self) -> float:
        """A user is in one node of each level: L1 norms add, squares of L2 norms add."""
        return float(self.levels) if self.law == "laplace" else float(np.sqrt(self.levels))

    @property
    def worst_step(self) -> int:
        """The last number all of whose bits are set."""
        return (1 << (self.steps + 1).bit_length() - 1) - 1

    def weights(self, step: int) -> Weights:
        """One noise for each bit of the step."""
        return ((float(step.bit_count()), 1.0),)

    def advance(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """The noise of the node that this release completes, and of the nodes before it."""
        self.step += 1
        total: NDArray[np.float64] = self._totals[_lowest_bit(self.step)]
        np.add(self._totals[_lowest_bit(self.step & (self.step - 1))], self._node(source, scale), out=total)
        return total

    def _node(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._draw(source, scale)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The noise of the releases that later ones build on."""
        return {"totals": self._totals}


class HonakerTree(BinaryTree):
    """The binary mechanism, where every node is also estimated from the nodes below it.

    All nodes have been noised anyway, so what the children say about a node costs nothing. A node of level l is
    estimated as v_l times its own noisy value plus (1 - v_l) times its children's estimates, with v_0 = 1 and
    1 / v_l = 1 + 1 / (2 v_{l-1}), which is also its variance. Noise is real-valued here, and rounded at the release.
    """

    name = "honaker-tree"

    def __init__(self, steps: int, cells: int, law: Law) -> None:
        super().__init__(steps, cells, law)
        self._estimates = np.zeros((self.levels, cells))
        self._variances = [1.0]
        for _ in range(self.levels - 1):
            self._variances.append(1.0 / (1.0 + 1.0 / (2.0 * self._variances[-1])))

    def weights(self, step: int) -> Weights:
        """Each node of the cover, unfolded into the noises of all nodes below it."""
        found: list[tuple[float, float]] = []
        for level in range(step.bit_length()):
            if step >> level & 1:
                share = 1.0
                for below in range(level, -1, -1):
                    found.append((2.0 ** (level - below), share * self._variances[below]))
                    share *= 1.0 - self._variances[below]
        return tuple(found)

    def _node(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        level = _lowest_bit(self.step)
        estimate: NDArray[np.float64] = self._estimates[level]
        estimate[:] = self._draw(source, scale)
        for below in range(level):  # the left child's estimate is stored; the right child has just been completed
            own = self._variances[below + 1]
            _weigh(estimate, self._estimates[below], self._draw(source, scale), own)
        return estimate

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The noise of the releases that later ones build on, and of the estimates of finished nodes."""
        return {"totals": self._totals, "estimates": self._estimates}


def _lowest_bit(number: int) -> int:
    """The place of the lowest bit that is set; for 0, minus one, the row that stays zero."""
    return (number & -number).bit_length() - 1


@compiled
def _weigh(estimate: Any, left: Any, fresh: Any, own: float) -> None:
    """From the right child's estimate to the parent's, in place."""
    for cell in range(len(estimate)):
        estimate[cell] = own * fresh[cell] + (1.0 - own) * (left[cell] + estimate[cell])
