"""Mechanisms that release running sums, with one contribution from each user.

* ``BinaryTree`` - the papers' mechanism, Laplace or Gaussian
* ``HonakerTree`` - the same, with every node also estimated from the nodes below it
* ``KAryTree`` - a lower tree with negative digits: the best for delta = 0
* ``MatrixFactorization`` - correlated Gaussian noise: the best for delta > 0
* ``Batched`` - disjoint batches

``COUNTING`` maps the names that ``counting=`` takes to these classes.
"""

from __future__ import annotations

from private_rl_gym.privacy.counting.base import ContinualNoise
from private_rl_gym.privacy.counting.batched import Batched
from private_rl_gym.privacy.counting.blt import BLT, MatrixFactorization, fit_blt
from private_rl_gym.privacy.counting.k_ary import KAryTree
from private_rl_gym.privacy.counting.tree import BinaryTree, HonakerTree

__all__ = [
    "BLT",
    "COUNTING",
    "Batched",
    "BinaryTree",
    "ContinualNoise",
    "HonakerTree",
    "KAryTree",
    "MatrixFactorization",
    "fit_blt",
]

COUNTING: dict[str, type[ContinualNoise]] = {
    mechanism.name: mechanism for mechanism in (BinaryTree, HonakerTree, KAryTree, MatrixFactorization, Batched)
}
"""The values of ``counting=``."""
