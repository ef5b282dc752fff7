"""Public names of states and actions, for tables, policies and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from private_rl_gym.lab.registry import GridError
from private_rl_gym.lab.tables.files import trimmed

__all__ = ["Labels"]


@dataclass(frozen=True, slots=True)
class Labels:
    """Names in the order of their numbers; empty where numbers are used.

    Names are public, as the number of states is: give them from what is known of the problem, not from the table.

    Attributes:
        states: Names of the states.
        actions: Names of the actions.

    Example:
        >>> labels = Labels.of("mild, severe", None)
        >>> labels.state(1), labels.action(1)
        ('severe', '1')
    """

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()

    @classmethod
    def of(cls, states: str | None, actions: str | None) -> Labels:
        """Return the names in two texts, separated by commas."""
        return cls(_names(states, "--state-names"), _names(actions, "--action-names"))

    def state(self, number: int) -> str:
        """Return the name of a state, or its number."""
        return self.states[number] if self.states else str(number)

    def action(self, number: int) -> str:
        """Return the name of an action, or its number."""
        return self.actions[number] if self.actions else str(number)

    def numbered(self, table: Any, columns: Mapping[str, str] | None = None) -> Any:
        """Return the Arrow table with numbers in place of names.

        The number is -1 for a text that is no name, and missing for an empty text.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        for column, names, option in (
            ("state", self.states, "--state-names"),
            ("action", self.actions, "--action-names"),
            ("next_state", self.states, "--state-names"),
        ):
            own = (columns or {}).get(column, column)
            if own not in table.column_names or not _holds_text(table.column(own).type):
                continue
            if not names:
                raise GridError(
                    f"Column {own} holds names. Give all names that are publicly known with {option}, separated by "
                    "commas, such as `mild,severe`."
                )
            text = trimmed(table.column(own).cast(pa.string()))
            found = pc.index_in(text, value_set=pa.array(names, pa.string()))
            numbers = pc.if_else(pc.and_(pc.is_null(found), pc.is_valid(text)), -1, found).cast(pa.int64())
            table = table.set_column(table.column_names.index(own), own, numbers)
        return table


def _names(text: str | None, option: str) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise GridError(f"{option} {text!r}: give each name once, with commas between them.")
    return names


def _holds_text(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
