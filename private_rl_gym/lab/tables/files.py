"""Parquet and CSV files as Arrow tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from private_rl_gym.lab.registry import GridError
from private_rl_gym.wrappers.sources import COLUMNS

__all__ = ["check_columns", "read_table_file", "trimmed"]


def read_table_file(path: Path, separator: str | None = None, columns: Mapping[str, str] | None = None) -> Any:
    """Return the Arrow table in a Parquet or CSV file.

    Args:
        path: The file.
        separator: The character between the cells of a CSV file; by default the one that its first line has most of.
        columns: The table's own names of columns, of which those that hold numbers may have decimal commas.
    """
    if not path.is_file():
        raise GridError(f"There is no file {path}.")
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise GridError(f"--separator {separator!r}: it is one character, such as ';'.")
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path)
        if path.suffix == ".csv":
            return _csv(path, separator, [(columns or {}).get(name, name) for name in COLUMNS])
    except Exception as error:  # noqa: BLE001 - a file may be anything, and messages show rows
        hint = (
            " A CSV file is text in UTF-8 with a row of names, and as many cells in each row."
            if path.suffix == ".csv"
            else ""
        )
        raise GridError(f"{path} cannot be read as a table ({type(error).__name__}).{hint}") from None
    raise GridError(f"{path} has an unknown format: give a .parquet or a .csv file.")


def _csv(path: Path, separator: str | None, names: list[str]) -> Any:
    """Return the table in a CSV file.

    Columns of numbers that would be text otherwise may have decimal commas.
    """
    import pyarrow as pa
    import pyarrow.csv

    if separator is None:
        with path.open(encoding="utf-8", errors="replace") as file:
            separator = max(",;\t|", key=file.readline(2**16).count)  # a comma, if there is none

    def read(**options: Any) -> Any:
        parse, convert = pyarrow.csv.ParseOptions(delimiter=separator), pyarrow.csv.ConvertOptions(**options)
        return pyarrow.csv.read_csv(path, parse_options=parse, convert_options=convert)

    table = read()
    texts = [name for name in names[1:] if name in table.column_names and pa.types.is_string(table[name].type)]
    if texts:
        other = read(decimal_point=",", include_columns=texts)
        for name in texts:
            table = table.set_column(table.column_names.index(name), name, _without_blanks(other[name]))
    return table


def _without_blanks(column: Any) -> Any:
    """Return a column in which blank text is missing.

    If only numbers are left, it is a column of numbers.
    """
    import pyarrow as pa

    if not pa.types.is_string(column.type):
        return column
    text = trimmed(column)
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:
        return text


def check_columns(table: Any, columns: Mapping[str, str]) -> None:
    """Raise if columns are missing, and name all of them at once."""
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


def trimmed(column: Any) -> Any:
    """Return a column of text without surrounding blanks; blank text is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
