"""The report on a table of trajectories, for its owner alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BadRowsError", "TableReport"]

SHOWN = 5
"""Numbers of rows in a sentence, of each kind."""


class BadRowsError(ValueError):
    """The error for rows that make no trajectory.

    The message is about users: it is for the owner of the table.
    """


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableReport:
    """Facts about a table for its owner.

    They are numbers of rows and of users, never contents of rows. They come from raw data, and no guarantee covers
    them. They belong on the owner's screen, and in no report.

    Attributes:
        rows: Number of rows.
        horizon: Number of stages that are counted.
        kinds: Kinds of bad rows with their numbers.
        places: ``[kind]``, the rows of each kind, from 1 on; empty where no row can be named.
        emptied_users: Users with bad rows.
        emptied_rows: All rows of such users.
        without_user: Rows without a user.
        behind: Rows behind the horizon, which are cut.
        unfollowed: Users whose last row, before the horizon, names a next state.
        no_start: Whether no row at all is of stage 0.
    """

    rows: int
    horizon: int
    kinds: Sequence[tuple[str, int]]
    places: Sequence[NDArray[np.int64]]
    emptied_users: int
    emptied_rows: int
    without_user: int
    behind: int
    unfollowed: int
    no_start: bool

    def __repr__(self) -> str:  # about users, and so not for logs
        return "TableReport(...)"

    @property
    def problem(self) -> str | None:
        """The kinds of bad rows in one sentence without its full stop.

        It is None if there are none.
        """
        if not self.kinds:
            return None
        named = zip(self.kinds, self.places, strict=True)
        total = sum(count for _, count in self.kinds)
        counted = [f"{count:,} {kind}{_named(rows)}" for (kind, count), rows in named]
        first = "; row 1 is the first below the names of the columns" if any(len(rows) for rows in self.places) else ""
        begin = ". No row has stage 0: do your stages begin at 1? Take 1 off each" if self.no_start else ""
        return f"{total:,} of {self.rows:,} rows cannot be taken: {', '.join(counted)}{first}{begin}"

    def reasons(self) -> Iterator[tuple[int, str]]:
        """Yield the number and the reason of every bad row.

        They are in the order of the table.
        """
        named = [(int(row), kind) for (kind, _), rows in zip(self.kinds, self.places, strict=True) for row in rows]
        yield from sorted(named)

    def sentences(self, *, emptied: bool) -> list[str]:
        """Return everything that was done to the table without an error.

        ``emptied`` states that bad rows were no error.
        """
        done = []
        if self.problem is not None and emptied:
            done.append(
                f"{self.problem}. Users who were emptied for such rows: {self.emptied_users:,}, with "
                f"{self.emptied_rows:,} rows in all. They count, and what is in their rows does not."
            )
            if self.without_user:
                done.append(f"Rows without a user, which were left out: {self.without_user:,}.")
        if self.behind:
            done.append(f"Rows behind the horizon of {self.horizon} stages, which are cut: {self.behind:,}.")
        if self.unfollowed:
            done.append(
                "Users with a next state in their last row, before the horizon, and no row for it: "
                f"{self.unfollowed:,}. They are taken for users who left there. If they were still here when the table "
                "was made, they did not: take fewer stages, or users who were seen long enough."
            )
        return done


def _named(rows: NDArray[np.int64]) -> str:
    """Return the first of some rows, in brackets."""
    if not len(rows):
        return ""
    more = ", ..." if len(rows) > SHOWN else ""
    return f" ({'row' if len(rows) == 1 else 'rows'} {', '.join(str(row) for row in rows[:SHOWN])}{more})"
