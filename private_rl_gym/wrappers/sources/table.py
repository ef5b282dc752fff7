"""Users whose episodes are over, from arrays and tables.

* ``TableSource`` - their trajectories, in groups, checked row by row
* ``read`` - the users in arrays, in a table or in a Minari data set
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.planning.arrays import among, real, shown
from private_rl_gym.planning.simulate import Trajectories
from private_rl_gym.wrappers.sources.environment import EnvironmentSource
from private_rl_gym.wrappers.sources.report import BadRowsError, TableReport
from private_rl_gym.wrappers.sources.rows import Rows, rows_of

__all__ = ["TableSource", "read"]

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
    "without a next state, where no user may end early",
    "of a user and stage that another row is of",
    "whose next state is not the state of the user's next row",
    "of users whose stages do not follow each other from 0",
    "of users who have fewer than {horizon} stages, where no user may end early",
)
"""The reasons for which rows are bad, in the order in which they are counted."""

_NO_USER, _NO_STAGE, _STAGE, _NO_STATE, _STATE, _NO_ACTION, _ACTION, _NO_REWARD, _REWARD = range(9)
_NEXT, _NO_NEXT, _TWICE, _BROKEN, _GAP, _SHORT = range(9, len(KINDS))
_GOOD, _BEHIND = -1, -2  # rows that are taken, and rows behind the horizon, which are cut


class TableSource:
    """Users whose episodes are over, in groups.

    Trajectories are padded as those of an environment are. Users with bad rows have none.

    Args:
        rows: Their steps.
        source: The sizes, the first numbers of states and actions, the range of rewards, and the padding.

    Attributes:
        ids: The users.
        report: Facts for the owner of the table.
    """

    def __init__(self, rows: Rows, source: EnvironmentSource) -> None:
        users, horizon = len(rows.ids), source.horizon
        n_states, here = source.n_states - source.padded, np.arange(horizon)
        kinds = _kinds(rows, source)
        taken = np.flatnonzero(kinds == _GOOD)
        place = rows.user[taken] * horizon + rows.stage[taken].astype(np.int64)
        row_at = np.full((users, horizon), -1)
        row_at.reshape(-1)[place[::-1]] = taken[::-1]  # the first row of a user and stage
        kinds[taken[row_at.reshape(-1)[place] != taken]] = _TWICE
        filled, bad = row_at >= 0, np.zeros(users, dtype=np.bool_)
        bad[rows.user[(kinds >= 0) & (rows.user >= 0)]] = True
        states = np.zeros((users, horizon + 1), dtype=np.int32)
        actions, after = np.zeros((users, horizon), dtype=np.int32), np.full((users, horizon), -1, dtype=np.int32)
        rewards, row = np.zeros((users, horizon)), row_at[filled]
        states[:, :-1][filled] = rows.state[row] - source.first_state
        actions[filled] = rows.action[row] - source.first_action
        rewards[filled] = source.rewards.mapped(rows.reward[row])
        after[filled] = np.where(np.isnan(rows.next_state[row]), -1, rows.next_state[row] - source.first_state)

        # Rows of a user follow each other.
        lengths = np.where(bad, 0, np.where(filled.all(axis=1), horizon, filled.argmin(axis=1)))
        gaps = filled & (here >= lengths[:, None]) & ~bad[:, None]
        bad |= gaps.any(axis=1)
        lost = (lengths == 0) & ~bad
        bad |= lost
        early, last = lengths < horizon, here == lengths[:, None] - 1
        jumps = (here < lengths[:, None] - 1) & (after >= 0) & (after != states[:, 1:])
        endless = last & ~early[:, None] & (after < 0) & (not source.padded)
        bad |= (jumps | endless).any(axis=1)
        short = (here < lengths[:, None]) & (early & ~bad & (not source.padded))[:, None]
        bad |= short.any(axis=1)
        for kind, wrong in ((_GAP, gaps), (_BROKEN, jumps), (_NO_NEXT, endless), (_SHORT, short)):
            kinds[row_at[wrong]] = kind
        unfollowed = (last & (after >= 0)).any(axis=1) & early & ~bad

        states[:, -1] = np.where(after[:, -1] < 0, n_states, after[:, -1])  # where no next state is known, they left
        self.ids, self._whole, self._waiting = rows.ids, ~bad, source.padded
        self._trajectories = Trajectories(states, actions, rewards)
        source.pad(self._trajectories, np.where(bad, 0, lengths))
        self.report = _report(rows, source, kinds, bad, int(lost.sum()), int(unfollowed.sum()))

    def __len__(self) -> int:
        return len(self._whole)

    def groups(
        self, order: NDArray[np.int64], most: int, *, waits: bool
    ) -> Iterator[tuple[Trajectories | None, int, None]]:
        """Yield users in this order, in groups of at most ``most``.

        The rows of a group are all good, or all bad. Groups are as those of a source: their trajectories, their number,
        and no error.

        Args:
            order: The users.
            most: Number of users in a group, at most.
            waits: Whether users with bad rows wait from the start, where there is a state to wait in; else they come
                without a trajectory.
        """
        whole, table = self._whole[order], self._trajectories
        changes = np.flatnonzero(whole[1:] != whole[:-1]) + 1
        starts = np.unique(np.concatenate([changes, np.arange(0, len(order), most)]))
        for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
            group, kept = order[start:stop], whole[start] or (waits and self._waiting)
            yield (
                Trajectories(table.states[group], table.actions[group], table.rewards[group]) if kept else None,
                len(group),
                None,
            )


def _kinds(rows: Rows, source: EnvironmentSource) -> NDArray[np.int8]:
    """Return the kind of every row by itself.

    It is the first reason for which the row is bad, if there is one.
    """

    def outside(numbers: NDArray[np.float64], first: int, size: int) -> NDArray[np.bool_]:
        return np.asarray(~((numbers >= first) & (numbers < first + size) & (numbers == np.floor(numbers))))

    def reasons() -> Iterator[tuple[int, NDArray[np.bool_]]]:
        n_states, first_state = source.n_states - source.padded, source.first_state
        reward = source.rewards.mapped(rows.reward)
        yield _NO_USER, rows.user < 0
        yield _NO_STAGE, np.isnan(rows.stage)
        yield _STAGE, ~((rows.stage >= 0.0) & np.isfinite(rows.stage))
        yield _BEHIND, rows.stage >= source.horizon
        yield _NO_STATE, np.isnan(rows.state)
        yield _STATE, outside(rows.state, first_state, n_states)
        yield _NO_ACTION, np.isnan(rows.action)
        yield _ACTION, outside(rows.action, source.first_action, source.n_actions)
        yield _NO_REWARD, np.isnan(reward)
        yield _REWARD, ~((reward >= 0.0) & (reward <= 1.0))
        yield _NEXT, outside(rows.next_state, first_state, n_states) & ~np.isnan(rows.next_state)

    kinds = np.full(len(rows.user), _GOOD, dtype=np.int8)
    for kind, wrong in reasons():
        kinds[wrong & (kinds == _GOOD)] = kind
    return kinds


def _report(
    rows: Rows,
    source: EnvironmentSource,
    kinds: NDArray[np.int8],
    bad: NDArray[np.bool_],
    lost: int,  # users without a row that could be named
    unfollowed: int,
) -> TableReport:
    """Return the facts about rows, for the owner of the table."""
    states = source.n_states - source.padded
    described = {
        "states": f"{source.first_state}..{source.first_state + states - 1}",
        "actions": f"{source.first_action}..{source.first_action + source.n_actions - 1}",
        "rewards": str(source.rewards),
        "horizon": source.horizon,
    }
    counts: list[tuple[str, int]] = []
    places: list[NDArray[np.int64]] = []
    for number, kind in enumerate(KINDS) if bad.any() or (kinds >= 0).any() else ():
        these = np.flatnonzero(kinds == number)
        count = len(these) + (lost if number == _GAP else 0)
        if count:
            counts.append((kind.format(**described), count))
            places.append(these + 1 if rows.numbered else these[:0])
    owned = rows.user[rows.user >= 0]
    return TableReport(
        rows=len(rows.user),
        horizon=source.horizon,
        kinds=counts,
        places=places,
        emptied_users=int(bad.sum()),
        emptied_rows=int(bad[owned].sum()),
        without_user=len(rows.user) - len(owned),
        behind=int((kinds == _BEHIND).sum()),
        unfollowed=unfollowed,
        no_start=bool(len(rows.stage)) and not (rows.stage == 0).any(),
    )


def read(
    given: Any,
    source: EnvironmentSource,
    columns: Mapping[str, str] | None = None,
    bad_rows: str = "empty",
    most_emptied: float = 1.0,
    owner: Callable[[TableReport], None] | None = None,
) -> TableSource:
    """Return the users of a table, whose episodes are over.

    Args:
        given: ``Episodes``, an Arrow table, a pandas data frame, a mapping of columns, or a Minari data set.
        source: The sizes, the first numbers of states and actions, and the range of rewards.
        columns: The table's own names of ``COLUMNS``, where they differ.
        bad_rows: Whether a table with bad rows is refused (``"refuse"``), or their users are emptied (``"empty"``).
        most_emptied: Largest share of the users that may be emptied.
        owner: A function of the owner of the table, for the report on the rows.

    Raises:
        TypeError: If it is none of these, or a column is missing or of another type.
        BadRowsError: If there are bad rows, and they are refused, or too many users would be emptied.
    """
    if not among(bad_rows, ("refuse", "empty")):
        raise ValueError(
            f"bad_rows is {shown(bad_rows)}: choose 'refuse', or 'empty' for users who contribute nothing."
        )
    if not 0.0 <= real(most_emptied, "most_emptied") <= 1.0:
        raise ValueError(f"most_emptied is {shown(most_emptied)}: it is a share of users, in [0, 1].")
    table = TableSource(rows_of(given, source.env, columns), source)
    if owner is not None:
        owner(table.report)
    problem, emptied = table.report.problem, table.report.emptied_users
    end = (
        "Nothing was admitted. (This message is about single users: it is for the owner of the table only.) Correct "
        "these rows, or"
    )
    if bad_rows == "refuse" and problem is not None:
        raise BadRowsError(
            f"{problem}. {end} empty the episodes of their users with bad_rows='empty' (--bad-rows empty)."
        )
    if emptied > most_emptied * len(table):
        raise BadRowsError(
            f"{emptied:,} of {len(table):,} users would be emptied, which is more than {most_emptied:.0%}: {problem}. "
            f"{end} allow a larger share with most_emptied=1 (--most-emptied 1)."
        )
    return table
