"""Finished episodes, from arrays and tables to trajectories as boundaries sum them.

* ``Episodes`` - arrays by [user, stage]
* ``read`` - the episodes in arrays, in a table or in a Minari data set, checked row by row
* ``BadRowsError`` - the number and the kinds of rows that no trajectory can be made of, for the owner of the table
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_rl_gym.planning.compiled import compiled
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.wrappers.findings import Findings
from private_rl_gym.wrappers.population import TRANSPARENT, Population, layers
from private_rl_gym.wrappers.spaces import Discretize, FlattenSpaces

__all__ = ["COLUMNS", "BadRowsError", "Episodes", "Finished", "ids_of", "read"]

COLUMNS = ("user", "stage", "state", "action", "reward", "next_state")
"""Names of the columns of a table."""

KINDS = (
    "without a user",
    "without a stage",
    "with a stage that is not a whole number from 0 on",
    "without a state",
    "with a state outside {states}",
    "without an action",
    "with an action outside {actions}",
    "without a reward",
    "with a reward outside {rewards}",
    "with a next state outside {states}",
    "without a next state, where nobody may end early",
    "of a user and stage that another row is of",
    "whose next state is not the state of the user's next row",
    "of users whose stages do not follow each other from 0",
    "of users who have fewer than {horizon} stages, where nobody may end early",
)
_NO_USER, _NO_STAGE, _STAGE, _NO_STATE, _STATE, _NO_ACTION, _ACTION, _NO_REWARD, _REWARD = range(9)
_NEXT, _NO_NEXT, _TWICE, _BROKEN, _GAP, _SHORT = range(9, len(KINDS))
_GOOD, _BEHIND = -1, -2  # rows that are taken, and rows that are cut

_MISSING, _NO_NUMBER = -(2**61), -(2**62)  # codes of states and actions that are not there, or no whole numbers


class BadRowsError(ValueError):
    """Rows that no trajectory can be made of. The message is about users: it is for whoever owns the table."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Episodes:
    """Finished episodes as arrays, with a row for each user. This is raw user data.

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Finished:
    """Episodes that were read: trajectories, and the users among them whose rows are bad."""

    ids: Sequence[Any]  # [user]
    trajectories: Trajectories
    whole: NDArray[np.bool_]  # [user]
    findings: Findings
    waiting: bool  # whether users with bad rows wait from the start

    def __len__(self) -> int:
        return len(self.whole)

    def groups(self, order: NDArray[np.int64], most: int) -> Iterator[tuple[NDArray[np.int64], bool]]:
        """Yield users in this order, in groups of ``most`` at most whose rows are all good, or all bad."""
        whole = self.whole[order]
        changes = np.flatnonzero(whole[1:] != whole[:-1]) + 1
        starts = np.unique(np.concatenate([changes, np.arange(0, len(order), most)]))
        for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
            yield order[start:stop], bool(whole[start])

    def of(self, group: NDArray[np.int64]) -> Trajectories:
        """The trajectories of some users."""
        found = self.trajectories
        return Trajectories(found.states[group], found.actions[group], found.rewards[group])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Rows:
    """One step of one user in each entry; -1 is no user."""

    ids: Sequence[Any]
    user: NDArray[np.int64]
    stage: NDArray[np.int64]
    state: NDArray[np.int64]
    action: NDArray[np.int64]
    reward: NDArray[np.float64]
    next_state: NDArray[np.int64]
    numbered: bool = False  # whether the rows are rows of a table


def read(given: Any, population: Population, columns: Mapping[str, str] | None = None) -> Finished:
    """Read finished episodes, and pad those that ended early as the environment loop does.

    Args:
        given: ``Episodes``, an Arrow table, a pandas data frame, a mapping of columns, or a Minari data set.
        population: The sizes, the first numbers of states and actions, and the range of rewards.
        columns: The table's own names of ``COLUMNS``, where they differ.

    Raises:
        TypeError: If it is none of these, or a column is missing or of another type.
    """
    if isinstance(given, Episodes):
        rows = _of_arrays(given)
    elif hasattr(given, "iterate_episodes"):
        rows = _of_minari(given, population)
    else:
        rows = _of_table(given, dict(columns or {}))
    return _placed(rows, population)


# Sources -------------------------------------------------------------------------------------------------------------


def _of_arrays(given: Episodes) -> _Rows:
    ids = given.user if isinstance(given.user, list | tuple) else np.asarray(given.user).tolist()
    blank = sum(one is None or (isinstance(one, str) and not one.strip()) for one in ids)
    if blank:
        raise BadRowsError(f"{blank:,} of {len(ids):,} users have no id: what has none may be anybody's.")
    action, reward = _matrix(given.action, "action"), _matrix(given.reward, "reward")
    state = _matrix(given.state, "state")
    users, width = action.shape
    following = state[:, 1:] if given.next_state is None else _matrix(given.next_state, "next_state")
    here = state[:, :width]
    shapes = {array.shape for array in (action, reward, here, following)}
    if len(shapes) > 1 or len(ids) != users or state.shape[1] - width not in (0, 1):
        raise TypeError(
            f"There are {len(ids)} users, actions of shape {action.shape}, rewards of shape {reward.shape}, states of "
            f"shape {state.shape}: each must have a row for each user and a column for each stage, and states one "
            "column more, unless next_state is given."
        )
    length = np.full(users, width) if given.length is None else np.asarray(given.length)
    if length.shape != (users,) or length.dtype.kind not in "iu" or ((length < 0) | (length > width)).any():
        raise TypeError(f"length must be a whole number in 0..{width} for each of {users} users.")
    kept = np.arange(width) < length[:, None]
    user, stage = np.nonzero(kept)
    return _Rows(
        ids,
        user,
        stage,
        _whole(here[kept], "state"),
        _whole(action[kept], "action"),
        _real(reward[kept], "reward"),
        _whole(following[kept], "next_state"),
    )


def _matrix(values: ArrayLike, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:  # ragged
        array = np.zeros(0)
    if array.ndim != 2:
        raise TypeError(
            f"{name} is not an array with a row for each user and a column for each stage; where episodes differ in "
            "length, fill them up and give length=."
        )
    return array


def _of_minari(given: Any, population: Population) -> _Rows:
    """The episodes of a Minari data set, each a user of its own, through the adapters inside the boundary."""
    numbers = _adapters(population.env, given)
    if numbers is None:
        env = population.env
        raise TypeError(
            f"The data set has spaces {given.observation_space}, {given.action_space}, and the boundary is around "
            f"{env.observation_space}, {env.action_space}: put it around an environment with the same spaces, with "
            "FlattenSpaces and Discretize on top where they are not Discrete."
        )
    name, episodes = getattr(given, "id", None), list(given.iterate_episodes())
    lengths = np.array([len(episode.rewards) for episode in episodes], dtype=np.int64)
    seen = [_numbered(episode.observations, numbers[0], len(episode.rewards) + 1) for episode in episodes]
    done = [_numbered(episode.actions, numbers[1], len(episode.rewards)) for episode in episodes]
    empty = [np.zeros(0, dtype=np.int64)]
    return _Rows(
        [f"{name}/{episode.id}" for episode in episodes],
        np.repeat(np.arange(len(episodes)), lengths),
        np.concatenate([*map(np.arange, lengths), *empty]),
        _whole(np.concatenate([states[:-1] for states in seen] + empty), "observations"),
        _whole(np.concatenate(done + empty), "actions"),
        _real(np.concatenate([np.asarray(episode.rewards) for episode in episodes] + empty), "rewards"),
        _whole(np.concatenate([states[1:] for states in seen] + empty), "observations"),
    )


Numbering = list[Callable[[Any], int]]
"""Functions, one behind the other, that make the number of a state or an action of what an environment shows."""


def _adapters(env: gym.Env[Any, Any], given: Any) -> tuple[Numbering, Numbering] | None:
    """The numberings between the spaces of a data set and those of an environment; None if they do not meet."""
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
            return None  # nobody knows what this wrapper would have made of the data
    return None


def _numbered(values: Any, numbering: Numbering, count: int) -> NDArray[Any]:
    """The numbers of the elements of an episode; a code that no space has for those that are not in theirs."""
    if not numbering:
        return np.asarray(values)
    found = np.full(count, _NO_NUMBER, dtype=np.int64)
    for place in range(count):
        try:
            number = _element(values, place)
            for function in numbering:
                number = function(number)
            found[place] = number
        except (ValueError, TypeError, LookupError):
            continue  # a bad row, which is counted as one
    return found


def _element(values: Any, place: int) -> Any:
    """One step of what Minari stacks part by part."""
    if isinstance(values, Mapping):
        return {name: _element(part, place) for name, part in values.items()}
    if isinstance(values, tuple):
        return tuple(_element(part, place) for part in values)
    return values[place]


def _of_table(given: Any, names: dict[str, str]) -> _Rows:
    import pyarrow as pa

    unknown = sorted(set(names) - set(COLUMNS))
    if unknown:
        raise TypeError(f"columns names {', '.join(unknown)}: a table has {', '.join(COLUMNS)}.")
    if not (isinstance(given, Mapping | pa.Table) or hasattr(given, "__arrow_c_stream__")):  # pandas, polars and others
        raise TypeError(
            f"A {type(given).__name__} holds no episodes: give Episodes(...) of arrays, a table (Arrow, pandas, or a "
            "mapping of columns), or a Minari data set."
        )
    try:
        table = given if isinstance(given, pa.Table) else pa.table(given)
    except (pa.ArrowException, TypeError, ValueError):  # its message shows values
        raise TypeError("A column of the table holds values of several types, or columns differ in length.") from None
    missing = [name for name in COLUMNS if names.get(name, name) not in table.column_names]
    if missing:
        raise TypeError(
            f"The table has no column {', '.join(names.get(name, name) for name in missing)}. Each row is one step, in "
            f"columns {', '.join(COLUMNS)}; name yours with columns={{'user': 'patient', ...}} (--column user=patient)."
        )
    user, *numbers = (table.column(names.get(name, name)) for name in COLUMNS)
    user = ids_of(user)
    arrays = [_numbers(column, name) for column, name in zip(numbers, COLUMNS[1:], strict=True)]
    stage, state, action, reward, following = arrays
    encoded = user.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return _Rows(
        encoded.dictionary.to_pylist(),
        codes,
        _whole(stage, "stage"),
        _whole(state, "state"),
        _whole(action, "action"),
        _real(reward, "reward"),
        _whole(following, "next_state"),
        numbered=True,
    )


def ids_of(column: Any) -> Any:
    """A column of ids, in which blank text and numbers that are none are missing, as nobody's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pa.chunked_array([pa.array(column.to_numpy(), from_pandas=True)])
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        if len(column.chunks) > 1:  # older versions of Arrow lose their place in slices
            column = pa.chunked_array([column.combine_chunks()])
        column = pc.if_else(pc.equal(pc.utf8_trim_whitespace(column), ""), pa.scalar(None, column.type), column)
    return column


def _numbers(column: Any, name: str) -> NDArray[Any]:
    """A column of an Arrow table; entries that are not there are not-a-number."""
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    if not any(kind(column.type) for kind in kinds):
        remedy = "Write them with a decimal point" if name == "reward" else "Number what it names, from 0 on"
        raise TypeError(f"Column {name} holds {column.type}: it must hold numbers. {remedy}.")
    if pa.types.is_null(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(column.to_numpy())


def _whole(values: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Whole numbers; codes far below 0 where there are none."""
    if values.dtype.kind == "b" or (values.dtype.kind in "iu" and values.dtype.itemsize < 8):
        return values.astype(np.int64)
    if values.dtype.kind == "i":
        return values.astype(np.int64, copy=False)
    if values.dtype.kind not in "fu":
        raise TypeError(f"{name} holds {values.dtype}: it must hold whole numbers.")
    fits = (np.abs(values) < 2.0**53) & (values == np.floor(values))
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    numbers = np.where(fits, values, 0).astype(np.int64)
    numbers[~fits] = _NO_NUMBER
    numbers[missing] = _MISSING
    return numbers


def _real(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} holds {values.dtype}: it must hold numbers.")
    return values.astype(np.float64, copy=False)


# Rows into trajectories ----------------------------------------------------------------------------------------------


def _placed(rows: _Rows, population: Population) -> Finished:
    """Trajectories of all users in the rows, and the kinds of rows that are bad."""
    users, horizon = len(rows.ids), population.horizon
    states = np.zeros((users, horizon + 1), dtype=np.int32)
    actions = np.zeros((users, horizon), dtype=np.int32)
    rewards = np.zeros((users, horizon))
    following = np.full((users, horizon), -1, dtype=np.int32)
    filled, bad = np.zeros((users, horizon), bool), np.zeros(users, bool)
    found = np.full(len(rows.user), _GOOD, dtype=np.int8)  # the kind of each row
    marks = np.full((users, horizon), _GOOD, dtype=np.int8)  # the same of what users' rows are together
    first_state, first_action = population._first_state, population.env_action(0)
    sizes = population.n_states - population.padded, population.n_actions, population.padded
    into = states, actions, rewards, following, filled
    _place(
        (
            _own(rows.user),
            _own(rows.stage),
            _own(rows.state),
            _own(rows.action),
            _own(population.rewards.mapped(rows.reward)),
            _own(rows.next_state),
        ),
        (first_state, first_action),
        sizes,
        into,
        bad,
        found,
    )
    lost, unfollowed = _finish(sizes, population.rewards.zero, into, bad, marks)
    described = {
        "states": f"{first_state}..{first_state + sizes[0] - 1}",
        "actions": f"{first_action}..{first_action + sizes[1] - 1}",
        "rewards": str(population.rewards),
        "horizon": horizon,
    }
    findings = _findings(rows, (bad, found, marks), described, int(lost), int(unfollowed))
    return Finished(rows.ids, Trajectories(states, actions, rewards), ~bad, findings, population.padded)


def _findings(
    rows: _Rows,
    checked: tuple[NDArray[np.bool_], NDArray[np.int8], NDArray[np.int8]],
    described: Mapping[str, Any],
    lost: int,  # users without a row that could be named
    unfollowed: int,
) -> Findings:
    """The findings in rows that were placed, for the owner of the table."""
    bad, found, marks = checked
    behind = int((found == _BEHIND).sum())
    kinds: list[tuple[str, int]] = []
    places: list[NDArray[np.int64]] = []
    if bad.any() or (found >= 0).any():
        taken = np.flatnonzero(found == _GOOD)
        found[taken] = marks[rows.user[taken], rows.stage[taken]]
        for number, kind in enumerate(KINDS):
            these = np.flatnonzero(found == number)
            count = len(these) + (lost if number == _GAP else 0)
            if count:
                kinds.append((kind.format(**described), count))
                places.append(these + 1 if rows.numbered else these[:0])
    owned = rows.user >= 0
    return Findings(
        rows=len(rows.user),
        horizon=int(described["horizon"]),
        kinds=kinds,
        places=places,
        emptied_users=int(bad.sum()),
        emptied_rows=int(bad[rows.user[owned]].sum()),
        nobodys=int(len(owned) - owned.sum()),
        behind=behind,
        unfollowed=unfollowed,
        no_start=bool(len(rows.stage)) and not (rows.stage == 0).any(),
    )


def _own(array: NDArray[Any]) -> NDArray[Any]:
    """An array that may be written to: compiled functions are compiled anew for others."""
    return array if array.flags.writeable and array.flags.c_contiguous else array.copy()


@compiled
def _place(rows: Any, first: Any, sizes: Any, into: Any, bad: Any, found: Any) -> None:
    """Write every row into its place. A row is bad for the first reason that is found."""
    user, stage, state, action, reward, next_state = rows
    states, actions, rewards, following, filled = into
    first_state, first_action = first
    n_states, n_actions, _ = sizes
    horizon = actions.shape[1]
    for row in range(len(user)):
        u, h = user[row], stage[row]
        if u < 0:
            found[row] = _NO_USER
            continue
        s, a = state[row] - first_state, action[row] - first_action
        after, missing = next_state[row] - first_state, next_state[row] == _MISSING
        kind = _GOOD
        if h == _MISSING:
            kind = _NO_STAGE
        elif h < 0:
            kind = _STAGE
        elif h >= horizon:
            found[row] = _BEHIND  # an episode is cut there
            continue
        elif state[row] == _MISSING:
            kind = _NO_STATE
        elif not 0 <= s < n_states:
            kind = _STATE
        elif action[row] == _MISSING:
            kind = _NO_ACTION
        elif not 0 <= a < n_actions:
            kind = _ACTION
        elif np.isnan(reward[row]):
            kind = _NO_REWARD
        elif not 0.0 <= reward[row] <= 1.0:
            kind = _REWARD
        elif not (missing or 0 <= after < n_states):
            kind = _NEXT
        elif filled[u, h]:
            kind = _TWICE
        if kind >= 0:
            found[row] = kind
            bad[u] = True
            continue
        states[u, h], actions[u, h], rewards[u, h], filled[u, h] = s, a, reward[row], True
        following[u, h] = -1 if missing else after


@compiled
def _finish(sizes: Any, zero: float, into: Any, bad: Any, marks: Any) -> Any:
    """Check that rows follow each other, and pad episodes that ended early; users with bad rows wait from the start.

    Returns the number of bad users without a row before the horizon, and of those who are not seen in a next state.
    """
    states, actions, rewards, following, filled = into
    n_states, _, padded = sizes
    users, horizon = actions.shape
    lost, unfollowed = 0, 0
    for u in range(users):
        length, after = 0, -1
        while not bad[u] and length < horizon and filled[u, length]:
            length += 1
        wrong = bad[u]
        for h in range(length, horizon):
            if not wrong and filled[u, h]:
                marks[u, h] = _GAP
                bad[u] = True
        if length == 0 and not bad[u]:
            lost += 1
            bad[u] = True
        left = False
        for h in range(length):
            last = h == length - 1
            after = following[u, h]
            if last and length < horizon:
                left = after >= 0  # it is replaced by the absorbing state
            elif last and after < 0 and padded:
                after = n_states  # nobody was seen afterwards
            elif last and after < 0:
                marks[u, h] = _NO_NEXT
                bad[u] = True
            elif not last and after >= 0 and after != states[u, h + 1]:
                marks[u, h] = _BROKEN
                bad[u] = True
        if length < horizon and not padded and not bad[u]:
            marks[u, :length] = _SHORT
            bad[u] = True
        if bad[u]:
            length = 0
        elif left:
            unfollowed += 1
        if length == horizon:
            states[u, horizon] = max(after, 0)
            continue
        for h in range(length, horizon):
            states[u, h + 1], actions[u, h], rewards[u, h] = n_states, 0, zero
        states[u, length] = n_states
    return lost, unfollowed
