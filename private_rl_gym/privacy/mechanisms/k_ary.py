"""Sums along a k-ary tree with negative digits (Andersson, Pagh and Torkamani, 2024).

This is the best pure mechanism here.

Release t is a signed sum of noisy nodes, one block of at most (k - 1) / 2 nodes a level, after the digits of t in base
k between -(k - 1) / 2 and (k - 1) / 2: a prefix that ends late in a block is the block less its tail. A wider tree is
lower, so a user is in fewer nodes. Nodes that are subtracted hold users who have yet to come: only their noise is drawn
early. Proof, for streams that depend on earlier releases: docs/proofs/k-ary-tree.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.privacy.mechanisms.base import Law, Mechanism, Weights
from private_rl_gym.privacy.noise import NoiseSource

__all__ = ["KAryTree", "balanced_digits", "best_arity"]


def balanced_digits(number: int, k: int) -> list[int]:
    """Return the digits of ``number`` in base k, lowest first.

    They lie between -(k - 1) / 2 and (k - 1) / 2, and k is odd.
    """
    half, digits = (k - 1) // 2, []
    while number:
        digit = (number + half) % k - half
        digits.append(digit)
        number = (number - digit) // k
    return digits


@lru_cache(maxsize=64)
def best_arity(steps: int) -> int:
    """Return the odd k with the least mean error over so many releases."""
    sample = np.unique(np.linspace(1, steps, min(steps, 1000)).astype(int)).tolist()

    def error(k: int) -> float:
        levels = len(balanced_digits(steps, k))
        return levels * math.fsum(math.sqrt(sum(map(abs, balanced_digits(t, k)))) for t in sample)

    return min(range(3, 66, 2), key=error)


class KAryTree(Mechanism):
    """The k-ary mechanism, for Laplace noise.

    For each level it keeps the running sum of the nodes that are added, and the sums of the last 1, 2, ... nodes before
    the next multiple, which are subtracted; ``totals[j]`` is the noise of the digits from level j up.
    """

    name = "k-ary-tree"
    laws = ("laplace",)
    composes = False  # nodes that are subtracted hold users who have yet to come: its proof goes point by point

    def __init__(self, steps: int, cells: int, law: Law) -> None:
        super().__init__(steps, cells, law)
        self.k = best_arity(self.steps)
        self.levels = len(balanced_digits(self.steps, self.k))
        self._half = (self.k - 1) // 2
        self._added = np.zeros((self.levels, self.cells))
        self._tails = np.zeros((self.levels, self._half + 1, self.cells))  # [level, how many nodes]
        self._totals = np.zeros((self.levels + 1, self.cells))

    @property
    def sensitivity(self) -> float:
        """The number of levels, because a user is in one node of each level."""
        return float(self.levels)

    @property
    def worst_step(self) -> int:
        """The release with the largest digits.

        Only numbers whose lower digits are all as large as possible are compared.
        """
        worst = 1
        for level in range(self.levels):
            tail = self._half * (self.k**level - 1) // (self.k - 1)
            for top in range(1, self._half + 1):
                for step in (top * self.k**level - tail, top * self.k**level + tail):
                    if step <= self.steps and self.spread(step) > self.spread(worst):
                        worst = step
        return worst

    def weights(self, step: int) -> Weights:
        """Return one noise for each unit of each digit."""
        return ((float(sum(map(abs, balanced_digits(step, self.k)))), 1.0),)

    def advance(self, source: NoiseSource, scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the noise of the next release.

        The lowest digits carry, and the noise is computed anew for all digits that change.
        """
        self.step += 1
        digits = balanced_digits(self.step, self.k)
        changed = 0
        while changed < len(digits) - 1 and digits[changed] == -self._half:
            changed += 1
        for level in range(changed, -1, -1):
            digit = digits[level]
            if digit == -self._half and level < changed:
                self._draw_tail(level, source, scale)
            if digit > 0:
                self._added[level] += self._draw(source, scale)
                contribution = self._added[level]
            else:
                contribution = -self._tails[level, -digit]
            np.add(self._totals[level + 1], contribution, out=self._totals[level])
        total: NDArray[np.float64] = self._totals[0]
        return total

    def _draw_tail(self, level: int, source: NoiseSource, scale: NDArray[np.float64]) -> None:
        """Draw noise for the second half of a new block.

        The noise of its nodes is summed from the end.
        """
        self._added[level] = 0.0
        tail = self._tails[level]
        for nodes in range(1, self._half + 1):
            np.add(tail[nodes - 1], self._draw(source, scale), out=tail[nodes])

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the noise of the nodes that later releases build on."""
        return {"added": self._added, "tails": self._tails, "totals": self._totals}
