"""Mechanisms that release running sums, with one contribution from each user.

* ``BinaryTree`` - the papers' mechanism, Laplace or Gaussian
* ``HonakerTree`` - the same, with every node also estimated from the nodes below it
* ``KAryTree`` - a lower tree with negative digits: the best for delta = 0
* ``MatrixFactorization`` - correlated Gaussian noise: the best for delta > 0
* ``Batched`` - disjoint batches

``MECHANISMS`` maps the names that ``counting=`` takes to these classes.
"""

from __future__ import annotations

from private_rl_gym.privacy.mechanisms.base import Mechanism
from private_rl_gym.privacy.mechanisms.batched import Batched
from private_rl_gym.privacy.mechanisms.factorization import BLT, MatrixFactorization, fit_blt
from private_rl_gym.privacy.mechanisms.k_ary import KAryTree
from private_rl_gym.privacy.mechanisms.trees import BinaryTree, HonakerTree

__all__ = [
    "BLT",
    "MECHANISMS",
    "Batched",
    "BinaryTree",
    "HonakerTree",
    "KAryTree",
    "MatrixFactorization",
    "Mechanism",
    "fit_blt",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism for mechanism in (BinaryTree, HonakerTree, KAryTree, MatrixFactorization, Batched)
}
"""The values of ``counting=``."""
