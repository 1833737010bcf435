"""Numbers, and ranges of them, from what users hold: for attributes that are told from numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from phdstream.arrays import Floats
from phdstream.domains.columns import floats
from phdstream.errors import InputError, shown

__all__ = ["matches", "read_numbers", "read_pairs"]

_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"


def read_numbers(column: pa.Array, name: str) -> Floats:
    """Return numbers, NaN where there is none or text is none."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.if_else(matches(column, _NUMBER), pc.utf8_trim_whitespace(column), None)
        try:
            column = pc.cast(column, pa.float64())
        except pa.ArrowInvalid:  # it will not have some forms, such as +1; those it has it reads as Python does
            column = pa.array([None if text is None else float(text) for text in column.to_pylist()], pa.float64())
    try:
        found = pc.cast(column, pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"the column of '{name}' holds {column.type}, not numbers.") from None
    return np.asarray(pc.fill_null(found, np.nan).to_numpy(zero_copy_only=False))


def matches(column: pa.Array, pattern: str) -> pa.Array:
    """Return where text matches a pattern; nowhere where it is missing."""
    return pc.fill_null(pc.match_substring_regex(column, pattern), False)


def read_pairs(wanted: Any, name: str, falling: bool = False) -> list[tuple[float, float]]:
    """Return a pair of numbers, or a list of pairs, as a list of pairs."""
    try:
        array = floats(wanted)
    except InputError:
        array = np.empty(0)
    array = array.reshape(1, -1) if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != 2 or np.isnan(array).any():
        raise InputError(
            f"'{name}' is asked for by a range (low, high) of numbers, or a list of them, not {shown(wanted)}."
        )
    if not falling and (array[:, 0] > array[:, 1]).any():
        raise InputError(f"a range of '{name}' must have its lower end first.")
    return [(float(low), float(high)) for low, high in array]
