"""CSV files as Arrow tables, however a spreadsheet has written them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from private_rl_gym.experiments.names import GridError
from private_rl_gym.wrappers.episodes import COLUMNS

__all__ = ["check_columns", "read_csv", "separator_of"]


def separator_of(path: Path) -> str:
    """The separator that the first line has most of."""
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline(2**16)
    return max(",;\t|", key=first.count)  # a comma, if there is none


def read_csv(path: Path, separator: str, names: list[str]) -> Any:
    """A CSV file, in which columns of numbers that are text otherwise may have decimal commas."""
    import pyarrow as pa
    import pyarrow.csv

    def read(**options: Any) -> Any:
        parse, convert = pyarrow.csv.ParseOptions(delimiter=separator), pyarrow.csv.ConvertOptions(**options)
        return pyarrow.csv.read_csv(path, parse_options=parse, convert_options=convert)

    table = read()
    texts = [name for name in names[1:] if name in table.column_names and pa.types.is_string(table[name].type)]
    if texts:
        other = read(decimal_point=",", include_columns=texts)
        for name in texts:
            table = table.set_column(table.column_names.index(name), name, other[name])
    return table


def check_columns(table: Any, columns: Mapping[str, str]) -> None:
    """Refuse a table without its columns, all of which are named at once."""
    own = [columns.get(name, name) for name in COLUMNS]
    missing = [name for name in own if name not in table.column_names]
    if not missing:
        return
    there = [str(name) for name in table.column_names]
    if any(re.fullmatch(r"\s*[-+]?[\d.,]+\s*|", name) for name in there):
        found = "Its first row seems to be one of numbers, and must have the names of the columns."
    else:
        found = f"It has {', '.join(there)}. Name yours with --column user=patient, one option for each."
        if len(there) == 1:
            found += " If these are several, name the character between them with --separator."
    raise GridError(f"The table has no column {', '.join(missing)}. {found}")
