"""Generators of random instances."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import shown
from private_rl_gym.planning.memory import check_room

__all__ = ["check_model", "instance_generator", "sparse_distributions", "sparse_rows"]

ARRAYS = 4
"""Arrays of the size of a model's transitions that are there at once while it is made."""


def check_model(n_states: int, n_actions: int, stages: int = 1, width: int | None = None) -> None:
    """Raise MemoryError if the transitions of a model do not fit.

    Args:
        n_states: Number of states.
        n_actions: Number of actions.
        stages: Number of stages with transitions of their own.
        width: Next states of each state and action; all of them by default.
    """
    entries = stages * n_states * n_actions * (n_states if width is None else width)
    check_room(8 * ARRAYS * entries, f"A model with {n_states:,} states and {n_actions:,} actions", "Make it smaller.")


def instance_generator(family: str, seed: int) -> np.random.Generator:
    """Return the generator of a family's instances.

    It is independent of the generator that ``reset(seed=...)`` seeds.
    """
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"instance_seed is {shown(seed)}: it must be a whole number, 0 or more.")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(family.encode())))


def sparse_rows(
    rng: np.random.Generator, shape: tuple[int, ...], n_states: int, branching: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:  # [*shape, branching] each
    """Return random distributions, each over ``branching`` different states.

    The arrays are the states, and uniform points of the simplex. States are drawn by Floyd's algorithm, all rows at
    once: memory does not grow with the number of states.
    """
    _rows(shape, n_states, branching, branching)
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
    """Return rows like those of ``sparse_rows`` as dense arrays.

    It makes one draw for every state, as Garnets have always been made.
    """
    rows = _rows(shape, n_states, branching, n_states)
    order = np.argsort(rng.random((rows, n_states)), axis=1)[:, :branching]
    weights = rng.exponential(size=(rows, branching))
    weights /= weights.sum(axis=1, keepdims=True)
    distributions = np.zeros((rows, n_states))
    np.put_along_axis(distributions, order, weights, axis=1)
    return distributions.reshape(*shape, n_states)


def _rows(shape: tuple[int, ...], n_states: int, branching: int, width: int) -> int:
    """Return the number of rows; raise an error if they do not fit into memory.

    Raises an error, too, if ``branching`` is not a valid number of states.
    """
    if not isinstance(branching, int | np.integer) or not 1 <= branching <= n_states:
        raise ValueError(
            f"branching is {shown(branching)}: it must be a whole number between 1 and the number of states, "
            f"{n_states}."
        )
    rows = math.prod(shape)
    check_room(8 * ARRAYS * rows * width, f"{rows:,} rows of {width:,} next states", "Make a smaller model.")
    return rows
