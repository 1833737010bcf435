"""What one row says: a place, a time, a sign, a user; or why it says nothing. Private.

Every row is judged for itself: nothing here uses one row to decide about another.
"""

from __future__ import annotations

import json
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.columns import plain_column
from phdstream.domains.product import Attribute, attribute_from_dict
from phdstream.domains.shapes.projection import Projection
from phdstream.errors import InputError
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.geometry import COLUMNS, KIND
from phdstream.io.sources.moments import read_moments
from phdstream.io.sources.reading import CRS, IMPLIED_DEGREES, Reading, Rows, text_column
from phdstream.privacy.user_ids import LONGEST_ID

__all__ = ["RowReader"]

_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^(?i:[-+]?inf(inity)?)$"
_MISSING = r"^(?i:nan?|n/a|#n/a|null|none|-)?$"
_DEGREES = "EPSG:4326"
_EXACT = 2.0**53
"""Below it floating point tells all whole numbers apart."""


class RowReader:
    """Turns the columns of a batch into those of events; knows where it stands, for messages.

    Each method marks as bad, in ``good``, the rows it can make nothing of: the first one stops it with a message,
    unless bad rows are to be left out; then ``bad`` says how many there were and why.
    """

    def __init__(self, source: str, first_row: int, columns: Columns, reading: Reading) -> None:
        self.source, self.first_row, self.columns, self.reading = source, first_row, columns, reading
        self.bad: dict[str, int] = {}

    def broken(self, rows: Rows) -> None:
        """Take note of lines that are no rows at all."""
        if rows.broken:
            self._complain(rows.complaint, self.first_row + rows.first_broken, rows.broken)

    def points(self, batch: pa.RecordBatch, good: Bools) -> NDArray[Any]:
        """Return the coordinates, one column each, in the coordinate system that is wanted; or the names of places.

        Where rows have attributes, the positions of their values follow (`phdstream.domains.product`).
        """
        places = self._points(batch, good)
        if not self.columns.attributes:
            return places
        return np.column_stack([places, *(self._values(batch, each, good) for each in self.columns.attributes)])

    def _values(self, batch: pa.RecordBatch, spec: dict[str, Any], good: Bools) -> Floats:
        """Return the positions of an attribute's values. A row without one is bad; one not in the list is outside."""
        attribute = _attribute(json.dumps(spec))
        column = plain_column(batch.column(attribute.column))
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            column = text_column(column)
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if text and attribute.json_kind is float and self.reading.decimal != ".":
            column = pc.replace_substring(column, self.reading.decimal, ".")
        positions = attribute.read(column)
        if text and attribute.of_moments:
            positions = np.where(
                np.isnan(positions), attribute.read(self._moments(column, attribute.column)), positions
            )
        self._expect(good, ~np.isnan(positions), f"column '{attribute.column}' has rows without a value")
        return positions

    def _moments(self, text: pa.Array, name: str) -> pa.Array:
        """Return text as moments; what is none is missing."""
        moments, complaints = read_moments(self.source, text, name, self.reading)
        wrong = reduce(np.logical_or, [rows for _, rows in complaints])
        numbers = pa.array(moments, pa.int64(), mask=wrong)
        return numbers.cast(pa.timestamp("us", "UTC" if self.reading.zone else None))

    def _points(self, batch: pa.RecordBatch, good: Bools) -> NDArray[Any]:
        if KIND in batch.schema.names:
            self._geometries(batch.column(KIND), good)
        if self.columns.names:
            return self._places(batch, good)
        points: Floats = np.column_stack([self._numbers(batch, name, good) for name in self.columns.coordinates])
        return self._converted(batch, points) if KIND in batch.schema.names else points

    def _geometries(self, kinds: pa.Array, good: Bools) -> None:
        self._expect(good, _bools(kinds.is_valid()), "the geometry is missing or empty")
        single = pc.fill_null(pc.is_in(kinds, pa.array(["Point", COLUMNS])), True)
        self._expect(good, _bools(single), "the geometry is not a single point but a line, an area or several points")

    def _converted(self, batch: pa.RecordBatch, points: Floats) -> Floats:
        """Return points of geometries in the system wanted. Two systems that cannot be compared are an error."""
        wanted, stated = self.reading.crs, (batch.schema.metadata or {}).get(CRS, b"").decode()
        if wanted is None and stated not in ("", IMPLIED_DEGREES):
            raise InputError(
                f"{self.source} is in the coordinate system {stated}, but that of the domain is not known: say crs in "
                "[domain]."
            )
        if wanted is None or not stated:
            return points
        projection = _projection(_DEGREES if stated in (IMPLIED_DEGREES, "OGC:CRS84") else stated, wanted)
        if projection.identity:
            return points
        if points.shape[1] != 2:
            raise InputError(f"{self.source} is not in {wanted}, the domain's system: convert it first.")
        of_geometry = _bools(pc.fill_null(pc.equal(batch.column(KIND), "Point"), False))
        points[of_geometry] = projection.forward(points[of_geometry])
        return points

    def _places(self, batch: pa.RecordBatch, good: Bools) -> NDArray[Any]:
        """Return the names of places, one row each; names in several columns are joined to a path."""
        parts = [self._names(batch, name) for name in self.columns.coordinates]
        nowhere = reduce(pc.and_, [part.is_null() for part in parts])
        parts[0] = pc.if_else(nowhere, "", parts[0])  # Arrow 26 leaves out, in skipping, a row in which all are null
        paths = pc.binary_join_element_wise(*parts, "/", null_handling="skip")
        self._expect(good, _bools(pc.not_equal(paths, "")), "there is no name of a place")
        known = pc.less_equal(pc.binary_length(paths), LONGEST_ID)  # a longer one names no place
        names: NDArray[Any] = pc.if_else(known, paths, "").to_numpy(zero_copy_only=False)
        return names.reshape(-1, 1)

    def _names(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        column = plain_column(batch.column(name))
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            return text_column(column)
        try:
            return pc.cast(column, pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(f"{self.source}: column '{name}' holds {column.type}, not names of places.") from None

    def _numbers(self, batch: pa.RecordBatch, name: str, good: Bools) -> Floats:
        """Return a column as floats; what is missing or not a number is a bad row."""
        column = plain_column(batch.column(name))
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            floats = self._parsed(column, name, good)
        else:
            try:
                floats = pc.cast(column, pa.float64(), safe=False)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise InputError(f"{self.source}: column '{name}' holds {column.type}, not numbers.") from None
        numbers: Floats = pc.fill_null(floats, np.nan).to_numpy(zero_copy_only=False)
        self._expect(good, ~np.isnan(numbers), f"column '{name}' has rows without a number")
        return np.array(numbers)

    def _parsed(self, column: pa.Array, name: str, good: Bools) -> pa.Array:
        """Return text as floats; what is missing is null."""
        decimal = self.reading.decimal
        try:
            return pc.cast(column if decimal == "." else pc.replace_substring(column, decimal, "."), pa.float64())
        except pa.ArrowInvalid:
            text = pc.utf8_trim_whitespace(column)
        text = text if decimal == "." else pc.replace_substring(text, decimal, ".")
        missing = pc.fill_null(pc.match_substring_regex(text, _MISSING), True)
        readable = pc.fill_null(pc.match_substring_regex(text, _NUMBER), False)
        self._expect(good, _bools(pc.or_(readable, missing)), self._no_number(text, name))
        # As Python reads them: the same numbers as Arrow's, and also those it will not have, such as +1.
        return pa.array(
            [None if t is None else float(t) for t in pc.if_else(readable, text, None).to_pylist()], pa.float64()
        )

    def _no_number(self, text: pa.Array, name: str) -> str:
        comma = self.reading.decimal == "." and pc.any(pc.match_substring_regex(text, r"^-?\d+,\d+$")).as_py()
        hint = ' (with a comma: is decimal = "," meant?)' if comma and not self.reading.drop_bad else ""
        return f"column '{name}' has text where a number belongs{hint}"

    def signs(self, batch: pa.RecordBatch, good: Bools) -> NDArray[np.int8]:
        """Return +1 and -1; anything else is a bad row. Without such a column all are +1."""
        name = self.columns.sign
        if name is None:
            return np.ones(batch.num_rows, np.int8)
        column = batch.column(name)
        whole = pa.types.is_integer(column.type) and not column.null_count
        sign: NDArray[Any] = column.to_numpy() if whole else self._numbers(batch, name, good)
        self._expect(good, (sign == 1) | (sign == -1), f"column '{name}' must be +1 or -1")
        return np.where(sign == -1, np.int8(-1), np.int8(1))

    def times(self, batch: pa.RecordBatch, good: Bools) -> Ints | None:
        """Return the times in microseconds since 1970; a row without one is bad."""
        name = self.columns.time
        if name is None:
            return None
        moments, complaints = read_moments(self.source, plain_column(batch.column(name)), name, self.reading)
        for complaint, wrong in complaints:
            self._expect(good, ~wrong, complaint)
        return moments

    def users(self, batch: pa.RecordBatch, good: Bools) -> pa.Array | None:
        """Return the users' ids, exactly as they are written; a whole number is its digits."""
        name = self.columns.user
        if name is None:
            return None
        column = plain_column(batch.column(name))
        if pa.types.is_floating(column.type):  # what other tools make of whole numbers where some are missing
            column = self._whole_numbers(column, name, good)
        if pa.types.is_integer(column.type):
            column = pc.cast(column, pa.string())
        try:
            ids = pc.cast(column, pa.large_binary())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(
                f"{self.source}: column '{name}' holds {column.type}; users are whole numbers or text."
            ) from None
        length = pc.fill_null(pc.binary_length(ids), 0).to_numpy(zero_copy_only=False)
        self._expect(
            good, length > 0, f"column '{name}' has rows without a user, or one that is not UTF-8 (see encoding)"
        )
        self._expect(good, length <= LONGEST_ID, f"column '{name}' has a user's id of more than {LONGEST_ID} bytes")
        return ids

    def _whole_numbers(self, column: pa.Array, name: str, good: Bools) -> pa.Array:
        """Return floating-point ids as the whole numbers they are; any that need not be exact is a bad row."""
        numbers = pc.fill_null(pc.cast(column, pa.float64()), np.nan).to_numpy(zero_copy_only=False)
        there = ~np.isnan(numbers)
        with np.errstate(invalid="ignore"):
            exact = (np.abs(numbers) < _EXACT) & (numbers == np.floor(numbers))
        self._expect(good, exact | ~there, f"column '{name}' has a user's id that is no exact whole number")
        return pa.array(np.where(exact, numbers, 0).astype(np.int64), mask=~exact)

    def _expect(self, good: Bools, expected: Bools, complaint: str) -> None:
        wrong = good & ~expected
        if wrong.any():
            self._complain(complaint, self.first_row + int(wrong.argmax()), int(wrong.sum()))
        good &= expected

    def _complain(self, complaint: str, row: int, rows: int) -> None:
        if not self.reading.drop_bad:
            raise InputError(
                f"{self.source}: {complaint}, first in data row {row}. Mend the file, or set "
                'bad_rows = "drop" to leave such rows out. (Do not publish this message.)'
            )
        self.bad[complaint] = self.bad.get(complaint, 0) + rows


@lru_cache(maxsize=64)
def _attribute(description: str) -> Attribute:
    return attribute_from_dict(json.loads(description))


@lru_cache(maxsize=8)
def _projection(stated: str, wanted: str) -> Projection:
    """Return the way from one system to the other; to find it may take longer than to read a batch."""
    return Projection(stated, wanted)


def _bools(column: pa.Array) -> Bools:
    marks: Bools = column.to_numpy(zero_copy_only=False)
    return marks
