"""Sums along a binary tree (Chan, Shi and Song), plain and with Honaker's weighting.

Release t is the sum of the noisy nodes that cover users 1..t, one for each bit of t. A user is in at most
floor(log2 T) + 1 nodes; where T is a power of two, in one less, because the last release is made of two halves in place
of a root that nothing else would use. Proof: docs/proofs/binary-tree.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.privacy.mechanisms.base import Law, Mechanism, Weights
from private_rl_gym.privacy.noise import NoiseSource

__all__ = ["BinaryTree", "HonakerTree"]


class BinaryTree(Mechanism):
    """The binary mechanism.

    Only noise is stored, and of it only what is needed: ``totals[i]``, the noise of the last release whose lowest bit
    is i. The nodes above the lowest bit of t are those of release t minus that bit, so that the next release
    takes one addition for each cell.
    """

    name = "binary-tree"

    def __init__(self, steps: int, cells: int, law: Law) -> None:
        super().__init__(steps, cells, law)
        self.levels = max(1, (self.steps - 1).bit_length())  # floor(log2 steps) + 1, or one less for a power of two
        self._totals = np.zeros((self.levels + 1, self.cells))  # the last row stays zero: before the first release

    @property
    def sensitivity(self) -> float:
        """The norm of a user's nodes, one of each level.

        L1 norms add up for Laplace noise, and squared L2 norms for Gaussian noise.
        """
        return float(self.levels) if self.law == "laplace" else float(np.sqrt(self.levels))

    def returning(self, visits: int) -> float:
        """Return the norm of the nodes of a user who is in ``visits`` batches.

        At worst all these batches are side by side. A node of level l holds at most 2^l of their batches. Honaker's
        estimates are computed from these nodes.
        """
        if visits == 1 or self.law == "laplace":
            return super().returning(visits)
        visits, squares = min(visits, self.steps), 0
        for level in range(self.levels):
            full, rest = divmod(visits, 1 << level)
            squares += full * (1 << level) ** 2 + rest**2
        return float(np.sqrt(squares))

    @property
    def worst_step(self) -> int:
        """The largest release number whose bits are all set.

        Of two releases it is the second, which is made of two halves.
        """
        return (1 << (self.steps + 1).bit_length() - 1) - 1 if self.steps != 2 else 2

    def weights(self, step: int) -> Weights:
        """Return one noise for each node that the release adds up."""
        return ((float(len(self._cover(step))), 1.0),)

    def advance(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the noise of the next release.

        It is the noise of the node that this release completes, and of the nodes before it.
        """
        self.step += 1
        level = self._level(self.step)
        rest = self.step - (1 << level)
        before = self._totals[self._level(rest) if rest else -1]
        total: NDArray[np.float64] = self._totals[level]
        np.add(before, self._node(source, scale), out=total)  # the last release of 2^k is built on its own row
        return total

    def _level(self, step: int) -> int:
        """Return the level of the node that ends at a step.

        It is the place of the lowest bit of the step, but never a root that only one release would use.
        """
        return min((step & -step).bit_length() - 1, self.levels - 1)

    def _cover(self, step: int) -> list[int]:
        """Return the levels of the nodes that add up to a release."""
        levels = []
        while step:
            levels.append(self._level(step))
            step -= 1 << levels[-1]
        return levels

    def _node(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._draw(source, scale)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the noise of the releases that later ones build on."""
        return {"totals": self._totals}


class HonakerTree(BinaryTree):
    """The binary mechanism, where every node is also estimated from the nodes below it.

    All nodes carry noise anyway, so an estimate of a node from its children costs no privacy. A node of level l is
    estimated as v_l times its own noisy value plus (1 - v_l) times its children's estimates, with v_0 = 1 and
    1 / v_l = 1 + 1 / (2 v_{l-1}), which is also its variance. Noise is real-valued here, and rounded at the release.
    """

    name = "honaker-tree"

    def __init__(self, steps: int, cells: int, law: Law) -> None:
        super().__init__(steps, cells, law)
        self._estimates = np.zeros((self.levels, self.cells))
        self._variances = [1.0]
        for _ in range(self.levels - 1):
            self._variances.append(1.0 / (1.0 + 1.0 / (2.0 * self._variances[-1])))

    @property
    def sensitivity(self) -> float:
        """The number of levels for Laplace noise; a bound for Gaussian noise.

        For Gaussian noise it bounds what the estimates reveal of a user. A release adds the estimate of one node to
        those before it, so releases amount to the estimates of nodes that end a cover. Given the published estimates
        inside it, an estimate has the fresh noise of its own node and of the right halves of right halves below it, and
        reveals of the user what those have not revealed. Proof: docs/proofs/binary-tree.md.
        """
        if self.law == "laplace":
            return float(self.levels)
        shown = [0.0] * self.levels  # at most, by the published nodes of that level and below that contain the user
        for level in range(self.levels):
            share, fresh, ways = 1.0, 0.0, []
            for below in range(level, -1, -1):
                fresh += (share * self._variances[below]) ** 2
                share *= 1.0 - self._variances[below]
                if below:  # the user is in the left half of the right half of ... : an estimate that was published
                    ways.append((share, shown[below - 1]))
            shown[level] = max([1.0 / fresh, *((1.0 - known) ** 2 / fresh + before for known, before in ways)])
        return float(np.sqrt(max(shown)))

    def weights(self, step: int) -> Weights:
        """Return the noises of the nodes of the release, and of all nodes below."""
        pairs: list[tuple[float, float]] = []
        for level in self._cover(step):
            share = 1.0
            for below in range(level, -1, -1):
                pairs.append((2.0 ** (level - below), share * self._variances[below]))
                share *= 1.0 - self._variances[below]
        return tuple(pairs)

    def _node(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        level = self._level(self.step)
        estimate: NDArray[np.float64] = self._estimates[level]
        estimate[:] = self._draw(source, scale)
        for below in range(level):  # the left child's estimate is stored; the right child has just been completed
            own = self._variances[below + 1]
            _weigh(estimate, self._estimates[below], self._draw(source, scale), own)
        return estimate

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the noise that later releases build on.

        It is that of releases, and that of the estimates of finished nodes.
        """
        return {"totals": self._totals, "estimates": self._estimates}


@compiled
def _weigh(estimate: Any, left: Any, fresh: Any, own: float) -> None:
    """Turn the right child's estimate into the parent's, in place."""
    for cell in range(len(estimate)):
        estimate[cell] = own * fresh[cell] + (1.0 - own) * (left[cell] + estimate[cell])
