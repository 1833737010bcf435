"""Columns and numbers from what users hold: tables of any make, arrays, lists. Nothing but numbers becomes a number.

Objects of other libraries (pandas, Polars, GeoPandas, networkx) are recognised by what they offer, with `hasattr`, here
and in the other modules that read them: so none of these libraries need be installed, nor imported to ask.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from phdstream.arrays import Floats
from phdstream.errors import InputError

__all__ = ["column_names", "floats", "is_missing", "named_column", "plain_column"]

_NUMBERS = "biuf"
"""NumPy's kinds of yes or no, whole and floating-point numbers."""


def column_names(data: Any) -> list[Any] | None:
    """Return the names of a table's columns; None if what came is not a table.

    >>> column_names({"x": [1]}), column_names(pa.table({"a": [1]})), column_names([1])
    (['x'], ['a'], None)
    """
    if isinstance(data, Mapping):
        return list(data)
    if isinstance(data, pa.Table | pa.RecordBatch):
        return list(data.column_names)
    if isinstance(data, np.ndarray):
        return None if data.dtype.names is None else list(data.dtype.names)
    if hasattr(data, "collect_schema") and hasattr(data, "collect"):  # Polars, not yet computed
        raise InputError("the table is lazy: collect() it first.")
    columns = getattr(data, "columns", None)  # pandas, Polars and their kin
    return None if columns is None or callable(columns) else list(columns)


def named_column(data: Any, there: list[Any], name: str, wanted: Sequence[str]) -> Any:
    """Return a table's column; if it is not there, say what to do.

    Names are shown only if they are close, or the table has another of the columns wanted: those of a table without a
    header may be a private record.
    """
    if there.count(name) == 1:
        return data[name]
    if name in there:
        raise InputError(f"the table has more than one column '{name}': give each its own name.")
    known = [column for column in there if isinstance(column, str)]
    hint = "give the domain the table's own: Box(..., names=(...))."
    if close := get_close_matches(name, known, n=1):
        hint = f"did you mean '{close[0]}'? Rename it, or {hint}"
    elif any(other in known for other in wanted):
        hint = f"there are {', '.join(sorted(known))}. Rename one, or {hint}"
    else:
        hint = f"rename its columns, or {hint} (Without names, pass an array of coordinates.)"
    raise InputError(f"the table has no column '{name}', which the domain's names ask for: {hint}")


def _plain_values(column: Any) -> Any:
    """Return a column as something NumPy reads: Arrow's and pandas' missing numbers become NaN."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return _from_arrow(column)
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind in _NUMBERS and hasattr(column, "array"):  # pandas; its missing numbers need to be told what to become
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def _from_arrow(column: Any) -> NDArray[Any]:
    kind, types = column.type, pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind):
        column = column.cast(pa.float64(), safe=False)
    array: NDArray[Any] = (
        column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    )
    return array


def floats(data: Any) -> Floats:
    """Return numbers as an array of floats; missing and masked ones are NaN. Text is not a number.

    >>> floats([1, None, 2.5])
    array([1. , nan, 2.5])
    """
    values = _plain_values(data)
    try:
        if isinstance(values, list | tuple) and any(isinstance(item, np.ma.MaskedArray) for item in values):
            values = np.ma.array(values)
        if isinstance(values, np.ma.MaskedArray):
            return np.where(np.ma.getmaskarray(values), np.nan, floats(np.ma.getdata(values)))
        array = _quietly_array(values) if isinstance(values, list | tuple) else np.asarray(values)
        if array.dtype == object:
            array = np.array([_number(item) for item in array.ravel()], dtype=np.float64).reshape(array.shape)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        array = np.empty(0, dtype=np.str_)
    if array.dtype.kind not in _NUMBERS:
        raise InputError(
            "points must be numbers that floating point can hold, in rows of equal length; "
            "what came could not be read as such."
        )
    return array.astype(np.float64, copy=False)


def _quietly_array(values: Any) -> NDArray[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a masked number in a list becomes NaN, as it should
        return np.asarray(values)


def is_missing(item: Any) -> bool:
    """Whether a value says that there is none: None, NaN, or pandas' and NumPy's words for that.

    >>> is_missing(None), is_missing(float("nan")), is_missing(0)
    (True, True, False)
    """
    if item is None or item is np.ma.masked or type(item).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(item, float | np.floating) and bool(np.isnan(item))


def _number(item: Any) -> float:
    if is_missing(item):
        return np.nan
    if not isinstance(item, Real | Decimal):
        raise TypeError
    return float(item)


def plain_column(column: pa.Array) -> pa.Array:
    """Return categories as what they stand for, extension types as what they are stored as, and text as plain text."""
    if isinstance(column, pa.ExtensionArray):
        return plain_column(column.storage)
    if pa.types.is_dictionary(column.type):
        return plain_column(column.dictionary).take(column.indices)
    if pa.types.is_binary_view(column.type):
        return pc.cast(column, pa.binary())
    return pc.cast(column, pa.string()) if pa.types.is_string_view(column.type) else column
