"""Columns of tables as numbers and as ids, for any kind of table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_rl_gym.wrappers.visits import plain_id

__all__ = ["COLUMNS", "columns_of", "ids_of", "is_id", "is_text", "numbers_in", "real", "whole"]

COLUMNS = ("user", "stage", "state", "action", "reward", "next_state")
"""Names of the columns of a table."""

EXACT = 2.0**53
"""The numbers below it are whole numbers in double precision, if they have no fraction."""


def columns_of(given: Any, names: Sequence[str]) -> list[Any]:
    """Return the columns with these names.

    They are Arrow columns, or lists if Arrow cannot hold the values together.
    """
    import pyarrow as pa

    try:
        table = given if isinstance(given, pa.Table) else pa.table(given)
        there, get = list(table.column_names), table.column
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # its message shows values
        if not isinstance(getattr(given, "columns", given), Iterable) or not hasattr(given, "__getitem__"):
            raise TypeError("The table cannot be read: a column has no type, or columns differ in length.") from None
        there, get = list(getattr(given, "columns", given)), lambda name: _column(given[name])
    missing = [name for name in names if name not in there]
    if missing:
        raise TypeError(
            f"The table has no column {', '.join(missing)}. Each row is one step, in columns {', '.join(COLUMNS)}; "
            "name yours with columns={'user': 'patient', ...} (--column user=patient)."
        )
    columns = [get(name) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise TypeError("The columns of the table differ in length: each has one entry for each row.")
    return columns


def _column(values: Any) -> Any:
    """Return an Arrow column of these values, or a list.

    It is a list where their types differ, or numbers are too large.
    """
    import pyarrow as pa

    try:
        return pa.chunked_array([pa.array(values)])
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return list(values)


# Ids -----------------------------------------------------------------------------------------------------------------


def ids_of(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the users in a column of ids, and the place of each row's user.

    The place is -1 where a row has no user. Ids that are compared as equal are one user.
    Blank text, what is not a number, and what is neither a number, a text nor a tuple of these, is no id.
    """
    import pyarrow as pa

    if isinstance(column, list):
        return _merged(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or is_text(column.type)):
        return _merged(column.to_pylist())
    if pa.types.is_floating(column.type):
        column = pa.chunked_array([pa.array(column.to_numpy(), from_pandas=True)])
    encoded = column.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    ids = encoded.dictionary.to_pylist()
    if pa.types.is_integer(column.type):  # no two of them are compared as equal
        return ids, codes
    merged, places = _merged(ids)
    return merged, np.where(codes < 0, -1, np.append(places, -1)[codes])


def _merged(ids: Sequence[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different ids, and the place of each given id among them.

    The place is -1 for a value that is no id.
    """
    place_of: dict[bytes, int] = {}
    different: list[Any] = []
    places = np.full(len(ids), -1, dtype=np.int64)
    for row, identity in enumerate(ids):
        if not is_id(identity):
            continue
        usual = type(identity) is str and identity[:1].isalpha()
        plain = identity.encode(errors="surrogatepass") if usual else plain_id(identity)
        places[row] = place_of.setdefault(plain, len(place_of))
        if len(place_of) > len(different):
            different.append(identity)
    return different, places


def is_id(identity: Any) -> bool:
    """Return whether this is an id.

    An id is a number, a text that is not blank, or a tuple of these.
    """
    if isinstance(identity, str | bytes):
        return bool(identity.strip())
    if isinstance(identity, tuple | list):
        return bool(identity) and all(map(is_id, identity))
    if not isinstance(identity, Number):
        return False
    try:
        return not math.isnan(identity)  # type: ignore[arg-type]
    except OverflowError:  # a number above all floats
        return True
    except (TypeError, ValueError):  # a complex number, or a decimal that is none
        return False


# Numbers -------------------------------------------------------------------------------------------------------------


def numbers_in(column: Any, name: str) -> NDArray[Any]:
    """Return a column as an array of numbers.

    It is an array of objects where types differ. A missing entry is NaN or None.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, list):
        array = np.empty(len(column), dtype=object)
        array[:] = column
        return array
    if is_text(column.type) and pc.all(pc.equal(pc.utf8_trim_whitespace(column), "")).as_py() is not False:
        column = pa.chunked_array([pa.nulls(len(column))])
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    if not any(kind(column.type) for kind in kinds):
        remedy = "Write them with a decimal point" if name == "reward" else "Number what it names, from 0 on"
        raise TypeError(f"Column {name} holds {column.type}: it must hold numbers. {remedy}.")
    if pa.types.is_null(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(column.to_numpy())


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is a text type."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def real(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return numbers, with NaN for missing values and infinity for other values."""
    if values.dtype.kind == "O":
        values = _each(values)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} holds {values.dtype}: it must hold numbers.")
    return values.astype(np.float64, copy=False)


def whole(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return whole numbers, with NaN for missing values and infinity for other values."""
    numbers = real(values, name)
    if values.dtype.kind in "bi":
        return numbers
    exact = (np.abs(numbers) < EXACT) & (numbers == np.floor(numbers))
    return np.where(exact | np.isnan(numbers), numbers, np.inf)


def _each(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers from objects of several types."""
    numbers = np.full(len(values), np.inf)
    for place, value in enumerate(values):
        if value is None or (isinstance(value, str) and not value.strip()):
            numbers[place] = np.nan
        elif isinstance(value, Number) and not isinstance(value, complex):
            try:
                numbers[place] = float(value)  # type: ignore[arg-type]
            except (OverflowError, TypeError, ValueError):
                continue
    return numbers
