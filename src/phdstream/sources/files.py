"""Events from files and tables, batch by batch: never more than a batch of a file in memory. Private."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.errors import InputError
from phdstream.sources.columns import Columns
from phdstream.sources.formats import file_batches, is_parquet
from phdstream.sources.frames import frame_batches, source_name
from phdstream.sources.geometry import KIND
from phdstream.sources.spans import parquet_times

__all__ = ["Columns", "Events", "read_events", "read_times"]

_BATCH_ROWS = 1 << 17
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$|^\s*(?i:nan|[-+]?inf(inity)?)\s*$"
_TIME = pa.timestamp("us")
_SLASHES = r"^(\d{4})/(\d{2})/(\d{2})"  # how GDAL writes dates into shapefiles


@dataclass
class Events:
    """A batch of events: time (microseconds, or None), points, sign (+1 or -1), users (or None)."""

    time: Ints | None
    points: NDArray[Any]
    sign: NDArray[np.signedinteger[Any]]
    users: NDArray[Any] | None
    bad: int = 0

    def __len__(self) -> int:
        return len(self.points)

    def only(self, rows: slice | Bools) -> Events:
        """Return some of the events: a slice, or those marked."""
        pick = _slicer(rows) if isinstance(rows, slice) else _taker(np.flatnonzero(rows))
        return Events(pick(self.time), pick(self.points), pick(self.sign), pick(self.users))


def _slicer(rows: slice) -> Callable[[Any], Any]:
    return lambda column: None if column is None else column[rows]


def _taker(rows: Ints) -> Callable[[Any], Any]:
    """Return what takes rows by number, which for points is ten times as fast as by marks."""
    return lambda column: None if column is None else column.take(rows, axis=0)


def read_events(sources: Sequence[Any], columns: Columns, zone: bool, drop_bad: bool) -> Iterator[Events]:
    """Yield all events of files (paths) or tables (pandas, GeoPandas, Polars, Arrow), in order.

    A row that cannot be read (no time, text where a number belongs, a geometry that is no point, a sign that is neither
    +1 nor -1, no user) stops the reading with a message, or is left out and counted in ``bad``.
    """
    for source in sources:
        first_row = 1
        for batch in _batches(source, columns):
            yield _Reader(source_name(source), first_row, zone, drop_bad).events(batch, columns)
            first_row += batch.num_rows


def read_times(
    sources: Sequence[Any], column: str, zone: bool, enough: Callable[[Ints], bool] = lambda ends: False
) -> Iterator[Ints]:
    """Yield the times of all rows, in order; used to check them before anything is released.

    Where a file itself states the earliest and latest time of a stretch of rows and these are ``enough``, they alone
    are yielded, and the rows are not read.
    """
    for source in sources:
        first_row = 1
        for batch, rows in _time_batches(source, column, zone, enough):
            times, good = _Reader(source_name(source), first_row, zone, drop_bad=False).times(batch, column)
            yield times[good]
            first_row += rows


def _time_batches(
    source: Any, column: str, zone: bool, enough: Callable[[Ints], bool]
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield batches of times, and for how many rows each stands."""
    if not isinstance(source, str | Path) or not is_parquet(Path(source)):
        yield from ((batch, batch.num_rows) for batch in _batches(source, Columns((), time=column)))
        return

    def stated_suffice(ends: pa.RecordBatch) -> bool:
        return enough(_Reader(source_name(source), 1, zone, drop_bad=False).times(ends, column)[0])

    yield from parquet_times(Path(source), column, _BATCH_ROWS, stated_suffice)


def _batches(source: Any, columns: Columns) -> Iterator[pa.RecordBatch]:
    if isinstance(source, str | Path):
        return file_batches(Path(source), columns, _BATCH_ROWS)
    return frame_batches(source, columns, _BATCH_ROWS)


@dataclass
class _Reader:
    """Turns one batch into events; knows where it stands, for messages."""

    source: str
    first_row: int
    zone: bool
    drop_bad: bool

    def events(self, batch: pa.RecordBatch, columns: Columns) -> Events:
        good = np.ones(batch.num_rows, dtype=bool)
        if KIND in batch.schema.names:
            self.geometries(batch.column(KIND), good)
        points = self.places(batch, columns) if columns.names else self.points(batch, columns, good)
        time = sign = users = None
        if columns.time is not None:
            time, known = self.times(batch, columns.time)
            good &= known
        if columns.sign is not None:
            sign = self.signs(batch, columns.sign, good)
        if columns.user is not None:
            users = self.users(_plain(batch.column(columns.user)), columns.user, good)
        sign = np.ones(batch.num_rows, np.int8) if sign is None else sign
        events = Events(time, points, sign, users)
        if not good.all():
            events = events.only(good)
            events.bad = int((~good).sum())
        return events

    def geometries(self, kinds: pa.Array, good: Bools) -> None:
        """Mark the rows whose geometry is not a point as bad."""
        there = kinds.is_valid().to_numpy(zero_copy_only=False)
        self._expect(good, there, "the geometry is missing or empty")
        points = pc.fill_null(pc.equal(kinds, "Point"), True).to_numpy(zero_copy_only=False)
        self._expect(good, points, "the geometry is not a single point but a line, an area or several points")

    def points(self, batch: pa.RecordBatch, columns: Columns, good: Bools) -> Floats:
        """Return the coordinates, one column each."""
        return np.column_stack([self.numbers(batch, name, good) for name in columns.coordinates])

    def places(self, batch: pa.RecordBatch, columns: Columns) -> NDArray[Any]:
        """Return the names of places, one row each; names in several columns are joined to a path."""
        parts = [pc.cast(_plain(batch.column(name)), pa.string()) for name in columns.coordinates]
        paths = pc.binary_join_element_wise(*parts, "/", null_handling="skip")
        return np.asarray(pc.fill_null(paths, "").to_numpy(zero_copy_only=False), dtype=np.str_).reshape(-1, 1)

    def numbers(self, batch: pa.RecordBatch, name: str, good: Bools) -> Floats:
        """Return a column as floats; what is missing is NaN, what is not a number is a bad row."""
        column = _plain(batch.column(name))
        try:
            floats = pc.cast(column, pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
                raise InputError(f"{self.source}: column '{name}' holds {column.type}, not numbers.") from None
            readable = pc.fill_null(pc.match_substring_regex(column, _NUMBER), True)
            complaint = f"column '{name}' has text where a number belongs"
            self._expect(good, readable.to_numpy(zero_copy_only=False), complaint)
            floats = pc.cast(pc.utf8_trim_whitespace(pc.if_else(readable, column, None)), pa.float64())
        numbers: Floats = pc.fill_null(floats, np.nan).to_numpy(zero_copy_only=False)
        return numbers

    def signs(self, batch: pa.RecordBatch, name: str, good: Bools) -> NDArray[np.int8]:
        """Return a column of +1 and -1; anything else is a bad row."""
        column = batch.column(name)
        whole = pa.types.is_integer(column.type) and not column.null_count
        sign: NDArray[Any] = column.to_numpy() if whole else self.numbers(batch, name, good)
        self._expect(good, (sign == 1) | (sign == -1), f"column '{name}' must be +1 or -1")
        return np.where(sign == -1, np.int8(-1), np.int8(1))

    def times(self, batch: pa.RecordBatch, name: str) -> tuple[Ints, Bools]:
        """Return a column as microseconds, and where there is a time."""
        column = _plain(batch.column(name))
        good = np.ones(len(column), dtype=bool)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = self._parse_times(column, name, good)
        elif not pa.types.is_temporal(column.type):
            raise InputError(
                f"{self.source}: column '{name}' holds {column.type}, not times (such as 2024-05-31 18:00)."
            )
        if pa.types.is_timestamp(column.type) and (column.type.tz is not None) != self.zone:
            raise InputError(
                f"{self.source}: the times in '{name}' {'have' if column.type.tz else 'have no'} time zone, but the "
                f"start of the ticks {'has one' if self.zone else 'has none'}: write both in the same way."
            )
        self._expect(good, column.is_valid().to_numpy(zero_copy_only=False), f"column '{name}' has rows without a time")
        stamps = pc.cast(column, pa.timestamp("us", getattr(column.type, "tz", None)), safe=False)
        return pc.fill_null(stamps.view(pa.int64()), 0).to_numpy(zero_copy_only=False), good

    def _parse_times(self, column: pa.Array, name: str, good: Bools) -> pa.Array:
        kind = pa.timestamp("us", "UTC") if self.zone else _TIME
        column = pc.replace_substring_regex(column, _SLASHES, r"\1-\2-\3")
        try:
            return pc.cast(column, kind)
        except pa.ArrowInvalid:
            parsed = [_parse_time(text, kind) for text in column.to_pylist()]
            readable = np.array([p is not None or t is None for p, t in zip(parsed, column.to_pylist(), strict=True)])
            zone = "with" if self.zone else "without"
            complaint = f"column '{name}' has text that is not a time such as 2024-05-31 18:00, {zone} a zone"
            self._expect(good, readable, complaint)
            return pa.array(parsed, pa.int64()).view(kind)

    def users(self, column: pa.Array, name: str, good: Bools) -> NDArray[Any]:
        """Return a column of users as integers or text."""
        self._expect(good, column.is_valid().to_numpy(zero_copy_only=False), f"column '{name}' has rows without a user")
        if pa.types.is_integer(column.type):
            users: NDArray[Any] = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
            return users
        text = pc.fill_null(pc.cast(column, pa.string()), "")
        return np.asarray(text.to_numpy(zero_copy_only=False), dtype=np.str_)

    def _expect(self, good: Bools, expected: Bools, complaint: str) -> None:
        wrong = good & ~expected
        if wrong.any() and not self.drop_bad:
            raise InputError(
                f"{self.source}: {complaint}, first in data row {self.first_row + int(wrong.argmax())}. "
                'Mend the file, or set bad_rows = "drop" to leave such rows out. (Do not publish this message.)'
            )
        good &= expected


def _plain(column: pa.Array) -> pa.Array:
    """Return categories as what they stand for, and text in the form that all of Arrow computes with."""
    if pa.types.is_dictionary(column.type):
        return _plain(column.dictionary).take(column.indices)
    return pc.cast(column, pa.string()) if pa.types.is_string_view(column.type) else column


def _parse_time(text: str | None, kind: pa.DataType) -> int | None:
    try:
        return None if text is None else int(pc.cast(pa.array([text]), kind).view(pa.int64())[0].as_py())
    except pa.ArrowInvalid:
        return None
