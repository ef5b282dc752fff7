"""Generators of random instances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["instance_generator", "sparse_distributions", "sparse_rows"]


def instance_generator(family: str, seed: int) -> np.random.Generator:
    """The generator of a family's random instances, independent of the one that ``reset(seed=...)`` seeds for users."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"instance_seed is {seed!r}: it must be a whole number, 0 or more.")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(family.encode())))


def sparse_rows(
    rng: np.random.Generator, shape: tuple[int, ...], n_states: int, branching: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:  # [*shape, branching] each
    """Random distributions, each over ``branching`` different states: the states, and a uniform point of the simplex.

    States are drawn by Floyd's algorithm, all rows at once: memory does not grow with the number of states.
    """
    if not isinstance(branching, int | np.integer) or not 1 <= branching <= n_states:
        raise ValueError(_no_branching(branching, n_states))
    chosen = np.empty((*shape, branching), dtype=np.int64)
    for place, top in enumerate(range(n_states - branching, n_states)):
        drawn = rng.integers(0, top + 1, size=shape)
        taken = (chosen[..., :place] == drawn[..., None]).any(axis=-1)
        chosen[..., place] = np.where(taken, top, drawn)
    weights = rng.exponential(size=(*shape, branching))
    return chosen, weights / weights.sum(axis=-1, keepdims=True)


def sparse_distributions(
    rng: np.random.Generator, shape: tuple[int, ...], n_states: int, branching: int
) -> NDArray[np.float64]:  # [*shape, s']
    """The law of ``sparse_rows`` as dense rows, with a draw for every state. Garnets keep it, to stay the same."""
    if not isinstance(branching, int | np.integer) or not 1 <= branching <= n_states:
        raise ValueError(_no_branching(branching, n_states))
    rows = int(np.prod(shape))
    order = np.argsort(rng.random((rows, n_states)), axis=1)[:, :branching]
    weights = rng.exponential(size=(rows, branching))
    weights /= weights.sum(axis=1, keepdims=True)
    distributions = np.zeros((rows, n_states))
    np.put_along_axis(distributions, order, weights, axis=1)
    return distributions.reshape(*shape, n_states)


def _no_branching(branching: object, n_states: int) -> str:
    return f"branching is {branching!r}: it must be a whole number between 1 and the number of states, {n_states}."
