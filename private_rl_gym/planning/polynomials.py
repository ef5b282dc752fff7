"""Features of states and actions for models of continuous worlds: products of Legendre polynomials.

* ``Polynomials`` - what is chosen: the largest degree
* ``Basis`` - the features for given sizes
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import positive_integer, read_only
from private_rl_gym.planning.compiled import compiled

__all__ = ["REACH", "Basis", "Polynomials", "write_features"]

REACH = 3.0
"""Distance from the centre, in scales, at which numbers of a state are cut off in features."""

MOST_FEATURES = 2000
"""Largest number of features: work on a step grows with its square."""


@dataclass(frozen=True, slots=True)
class Polynomials:
    """The largest degree of a product of polynomials.

    Noise grows with the number of features, and that grows fast with the degree.

    Attributes:
        degree: 1 for models that are linear in states and actions, 2 with products of two of them, and so on.
    """

    degree: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", positive_integer(self.degree, "degree", "factors of a feature"))


@dataclass(frozen=True)
class Basis:
    """Products of polynomials in the numbers of a state and of an action.

    A feature has mean square 1 if the numbers of a state are standard normal, and actions are uniform. No data is
    needed for that.

    Attributes:
        inputs: Numbers of a state.
        choices: For actions that are choices: the number of alternatives of each.
        continuous: For actions that are numbers: how many.
        degree: The largest degree of a product.
    """

    inputs: int
    choices: tuple[int, ...]
    continuous: int
    degree: int

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The variables of which a product takes one at most: the contrasts of one choice."""
        start, found = self.inputs, []
        for count in self.choices:
            found.append(tuple(range(start, start + count - 1)))
            start += count - 1
        return tuple(found)

    @property
    def variables(self) -> int:
        """The number of variables of a state and an action.

        A choice has one for each contrast.
        """
        return self.inputs + sum(count - 1 for count in self.choices) + self.continuous

    def _products(self) -> Iterator[tuple[int, ...]]:
        for degree in range(self.degree + 1):
            for product in combinations_with_replacement(range(self.variables), degree):
                if all(sum(variable in group for variable in product) <= 1 for group in self.groups):
                    yield product

    @cached_property
    def products(self) -> tuple[tuple[int, ...], ...]:
        """The variables of each feature, from the lowest degree up."""
        found: list[tuple[int, ...]] = []
        for product in self._products():
            found.append(product)
            if len(found) > MOST_FEATURES:
                raise ValueError(
                    f"Products of up to {self.degree} of {self.variables} numbers are more than {MOST_FEATURES:,} "
                    "features: take a lower degree."
                )
        return tuple(found)

    @property
    def size(self) -> int:
        """The number of features."""
        return len(self.products)

    def size_up_to(self, degree: int) -> int:
        """Return the number of features up to this degree, which come first."""
        return sum(len(product) <= degree for product in self.products)

    @cached_property
    def factors(self) -> NDArray[np.int64]:
        """``[feature, factor]``: for each feature, the places of its factors in a table ``[variable, power]``.

        Place 0 has a one.
        """
        width = self.degree + 1
        table = np.zeros((self.size, self.degree), dtype=np.int64)
        for feature, product in enumerate(self.products):
            for place, variable in enumerate(sorted(set(product))):
                table[feature, place] = variable * width + product.count(variable)
        return read_only(table)

    @cached_property
    def scales(self) -> NDArray[np.float64]:
        """``[variable, power]``: the factor that gives a polynomial mean square 1."""
        scales = np.ones((self.variables, self.degree + 1))
        scales[: self.inputs] = 1.0 / _spread(self.degree)
        if self.continuous:
            scales[self.variables - self.continuous :] = np.sqrt(2.0 * np.arange(self.degree + 1) + 1.0)
        return read_only(scales)

    @cached_property
    def contrasts(self) -> NDArray[np.float64]:
        """``[choice, alternative, contrast]``: for each choice, orthogonal numbers of mean square 1."""
        most = max(self.choices, default=1)
        table = np.zeros((len(self.choices), most, max(most - 1, 1)))
        for place, count in enumerate(self.choices):
            for contrast in range(count - 1):
                ones = contrast + 1  # Helmert contrasts: an alternative beside all before it
                size = math.sqrt(count / (ones * (ones + 1.0)))
                table[place, :ones, contrast], table[place, ones, contrast] = -size, size * ones
        return read_only(table)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays that compiled code needs."""
        return self.factors, self.scales, self.contrasts, np.array(self.choices, dtype=np.int64)

    def features(self, states: NDArray[np.float64], actions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the features ``[row, feature]`` of standardized states and the network's actions."""
        rows = np.ascontiguousarray(states, dtype=np.float64)
        acts = np.ascontiguousarray(actions, dtype=np.float64).reshape(len(rows), -1)
        out = np.empty((len(rows), self.size))
        _features(self.arrays, rows, acts, out)
        return out


@lru_cache(maxsize=16)
def _spread(degree: int) -> NDArray[np.float64]:
    """Return the root mean square of each Legendre polynomial of a standard normal number."""
    points, weights = np.polynomial.hermite_e.hermegauss(200)
    powers = np.polynomial.legendre.legvander(np.clip(points / REACH, -1.0, 1.0), degree)
    return read_only(np.sqrt((weights[:, None] * powers**2).sum(axis=0) / weights.sum()))


@compiled
def _features(basis: Any, states: Any, actions: Any, out: Any) -> None:
    table = np.empty(basis[1].shape)
    for row in range(len(states)):
        write_features(basis, states[row], actions[row], out.shape[1], table, out[row])


@compiled
def write_features(basis: Any, state: Any, action: Any, size: int, table: Any, out: Any) -> None:
    """Write the first features of one standardized state and one action.

    ``table`` is space for the powers of each variable.
    """
    factors, scales, contrasts, choices = basis
    inputs = len(state)
    top = scales.shape[1]
    for i in range(inputs):
        x = min(max(state[i] / REACH, -1.0), 1.0)
        _powers(x, top, table[i])
    at = inputs
    if len(choices):
        for k in range(len(choices)):
            chosen = min(max(int(action[k]), 0), choices[k] - 1)
            for j in range(choices[k] - 1):
                table[at, 0] = 1.0
                if top > 1:
                    table[at, 1] = contrasts[k, chosen, j]
                at += 1
    else:
        for k in range(len(action)):
            _powers(min(max(action[k], -1.0), 1.0), top, table[at])
            at += 1
    for i in range(len(table)):
        for j in range(top):
            table[i, j] *= scales[i, j]
    flat = table.ravel()
    flat[0] = 1.0
    for feature in range(size):
        value = 1.0
        for j in range(factors.shape[1]):
            value *= flat[factors[feature, j]]
        out[feature] = value


@compiled
def _powers(x: float, top: int, out: Any) -> None:
    """Write Legendre polynomials of x."""
    out[0] = 1.0
    if top > 1:
        out[1] = x
    for j in range(2, top):
        out[j] = ((2 * j - 1) * x * out[j - 1] - (j - 1) * out[j - 2]) / j
