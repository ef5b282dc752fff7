"""Where random instances come from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["instance_generator", "sparse_distributions"]


def instance_generator(family: str, seed: int) -> np.random.Generator:
    """The generator of a family's random instances: never the stream that ``reset(seed=...)`` gives users."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"instance_seed is {seed!r}: it must be a whole number, 0 or more.")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(family.encode())))


def sparse_distributions(
    rng: np.random.Generator, shape: tuple[int, ...], n_states: int, branching: int
) -> NDArray[np.float64]:  # [*shape, s']
    """Random distributions, each over ``branching`` states, uniform on that simplex."""
    if not isinstance(branching, int | np.integer) or not 1 <= branching <= n_states:
        raise ValueError(
            f"branching is {branching!r}: it must be a whole number between 1 and the number of states, {n_states}."
        )
    rows = int(np.prod(shape))
    order = np.argsort(rng.random((rows, n_states)), axis=1)[:, :branching]
    weights = rng.exponential(size=(rows, branching))
    weights /= weights.sum(axis=1, keepdims=True)
    distributions = np.zeros((rows, n_states))
    np.put_along_axis(distributions, order, weights, axis=1)
    return distributions.reshape(*shape, n_states)
