"""Rows of users, one for each step, from arrays, tables and Minari data sets.

* ``Episodes`` - arrays by [user, stage]
* ``Rows`` - one step of one user in each entry, as numbers
* ``rows_of`` - the rows in any of these
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.wrappers.sources.base import TRANSPARENT, layers
from private_rl_gym.wrappers.sources.columns import COLUMNS, columns_of, ids_of, is_id, numbers_in, real, whole
from private_rl_gym.wrappers.sources.report import BadRowsError
from private_rl_gym.wrappers.spaces import Discretize, FlattenSpaces

__all__ = ["Episodes", "Rows", "rows_of"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Episodes:
    """Trajectories of users as arrays, with a row for each user.

    This is raw user data.

    Attributes:
        user: ``[user]``, ids: whole numbers or text.
        state: ``[user, stage]``, or with one more stage, the last next state.
        action: ``[user, stage]``.
        reward: ``[user, stage]``.
        next_state: ``[user, stage]``; not needed where ``state`` has one more stage.
        length: ``[user]``, steps of each episode, where they differ; what lies behind is ignored.
    """

    user: ArrayLike | Sequence[str]
    state: ArrayLike
    action: ArrayLike
    reward: ArrayLike
    next_state: ArrayLike | None = None
    length: ArrayLike | None = None

    def __repr__(self) -> str:  # raw data does not belong in logs
        return "Episodes(...)"


class Rows(NamedTuple):
    """Steps of users, with one step of one user in each entry.

    NaN is a number that is missing, and infinity is no whole number.

    Attributes:
        ids: The users.
        user: The place of the user among them; -1 for none.
        stage, state, action, reward, next_state: The step.
        numbered: Whether they are rows of a table, which can be named.
    """

    ids: Sequence[Any]
    user: NDArray[np.int64]
    stage: NDArray[np.float64]
    state: NDArray[np.float64]
    action: NDArray[np.float64]
    reward: NDArray[np.float64]
    next_state: NDArray[np.float64]
    numbered: bool = False

    def __repr__(self) -> str:  # raw data does not belong in logs
        return "Rows(...)"


def rows_of(given: Any, env: gym.Env[Any, Any], columns: Mapping[str, str] | None) -> Rows:
    """Return the rows in ``Episodes``, in a table, or in a Minari data set.

    The data set is of this environment.

    Raises:
        TypeError: If it is none of these, or a column is missing or of another type.
    """
    if isinstance(given, Episodes):
        return _of_arrays(given)
    return _of_minari(given, env) if hasattr(given, "iterate_episodes") else _of_table(given, dict(columns or {}))


def _of_arrays(given: Episodes) -> Rows:
    ids = given.user if isinstance(given.user, list | tuple) else np.asarray(given.user).tolist()
    blank = sum(not is_id(identity) for identity in ids)
    if blank:
        raise BadRowsError(
            f"{blank:,} of {len(ids):,} users have no id: an id is a number, a text or a tuple of these."
        )
    action, reward = _matrix(given.action, "action"), _matrix(given.reward, "reward")
    state = _matrix(given.state, "state")
    users, width = action.shape
    following = state[:, 1:] if given.next_state is None else _matrix(given.next_state, "next_state")
    here = state[:, :width]
    shapes = {array.shape for array in (action, reward, here, following)}
    if len(shapes) > 1 or len(ids) != users or state.shape[1] - width not in (0, 1):
        raise TypeError(
            f"There are {len(ids)} users, actions of shape {action.shape}, rewards of shape {reward.shape}, states of "
            f"shape {state.shape}. Each array must have one row for each user and one column for each stage. States "
            "need one more column, unless next_state is given."
        )
    length = np.full(users, width) if given.length is None else np.asarray(given.length)
    if length.shape != (users,) or length.dtype.kind not in "iu" or ((length < 0) | (length > width)).any():
        raise TypeError(f"length must be a whole number in 0..{width} for each of {users} users.")
    kept = np.arange(width) < length[:, None]
    user, stage = np.nonzero(kept)
    return Rows(
        ids,
        user,
        stage.astype(np.float64),
        whole(here[kept], "state"),
        whole(action[kept], "action"),
        real(reward[kept], "reward"),
        whole(following[kept], "next_state"),
    )


def _matrix(values: ArrayLike, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:  # ragged
        array = np.zeros(0)
    if array.ndim != 2:
        raise TypeError(
            f"{name} is not an array with a row for each user and a column for each stage. If episodes differ in "
            "length, pad them, and give length=."
        )
    return array


def _of_table(given: Any, names: dict[str, str]) -> Rows:
    unknown = sorted(set(names) - set(COLUMNS))
    if unknown:
        raise TypeError(f"columns names {', '.join(unknown)}: a table has {', '.join(COLUMNS)}.")
    if not (isinstance(given, Mapping) or hasattr(given, "__arrow_c_stream__")):  # Arrow, pandas, polars and others
        raise TypeError(
            f"A {type(given).__name__} holds no episodes: give Episodes(...) of arrays, a table (Arrow, pandas, or a "
            "mapping of columns), or a Minari data set."
        )
    users, *others = columns_of(given, [names.get(name, name) for name in COLUMNS])
    arrays = {name: numbers_in(column, name) for name, column in zip(COLUMNS[1:], others, strict=True)}
    steps = {name: (real if name == "reward" else whole)(array, name) for name, array in arrays.items()}
    ids, places = ids_of(users)
    return Rows(ids, places, **steps, numbered=True)


Numbering = list[Callable[[Any], int]]
"""Functions, one behind the other, that make the number of a state or an action of what an environment shows."""


def _of_minari(given: Any, env: gym.Env[Any, Any]) -> Rows:
    """Return the rows of a Minari data set.

    Each episode is a user of its own. The adapters inside are applied.
    """
    numbers = _adapters(env, given)
    if numbers is None:
        raise TypeError(
            f"The data set has spaces {given.observation_space}, {given.action_space}, and the boundary is around "
            f"{env.observation_space}, {env.action_space}. Put it around an environment with the same spaces. If they "
            "are not Discrete, add FlattenSpaces and Discretize."
        )
    name, episodes = getattr(given, "id", None), list(given.iterate_episodes())
    lengths = np.array([len(episode.rewards) for episode in episodes], dtype=np.int64)
    seen = [_numbered(episode.observations, numbers[0], len(episode.rewards) + 1) for episode in episodes]
    done = [_numbered(episode.actions, numbers[1], len(episode.rewards)) for episode in episodes]
    empty = [np.zeros(0, dtype=np.int64)]
    return Rows(
        [f"{name}/{episode.id}" for episode in episodes],
        np.repeat(np.arange(len(episodes)), lengths),
        np.concatenate([*map(np.arange, lengths), *empty]).astype(np.float64),
        whole(np.concatenate([states[:-1] for states in seen] + empty), "observations"),
        whole(np.concatenate(done + empty), "actions"),
        real(np.concatenate([np.asarray(episode.rewards) for episode in episodes] + empty), "rewards"),
        whole(np.concatenate([states[1:] for states in seen] + empty), "observations"),
    )


def _adapters(env: gym.Env[Any, Any], given: Any) -> tuple[Numbering, Numbering] | None:
    """Return the numberings from a data set's spaces to an environment's spaces.

    They are None if no adapters lead from one to the other.
    """
    seen: Numbering = []
    done: Numbering = []
    for layer in layers(env):
        if given.observation_space == layer.observation_space and given.action_space == layer.action_space:
            return seen[::-1], done[::-1]
        if isinstance(layer, Discretize):
            seen.append(layer.observation)
        elif isinstance(layer, FlattenSpaces):
            seen.append(layer.number)
            done.append(layer.action_number)
        elif not isinstance(layer, (*TRANSPARENT, gym.wrappers.TimeLimit)):
            return None  # it is not known what this wrapper would have made of the data
    return None


def _numbered(values: Any, numbering: Numbering, count: int) -> NDArray[Any]:
    """Return the numbers of the elements of an episode.

    Elements that are not in their space have the number infinity.
    """
    if not numbering:
        return np.asarray(values)
    numbers = np.full(count, np.inf)
    for place in range(count):
        try:
            number = _element(values, place)
            for function in numbering:
                number = function(number)
            numbers[place] = number
        except (ValueError, TypeError, LookupError):
            continue  # a bad row, which is counted as one
    return numbers


def _element(values: Any, place: int) -> Any:
    """Return one step of values that Minari stacks part by part."""
    if isinstance(values, Mapping):
        return {name: _element(part, place) for name, part in values.items()}
    if isinstance(values, tuple):
        return tuple(_element(part, place) for part in values)
    return values[place]
