"""Times as microseconds since 1970, from timestamps, dates and text. Private."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from phdstream.arrays import Bools, Ints
from phdstream.errors import InputError
from phdstream.io.sources.reading import Reading

__all__ = ["read_moments"]

_DAY = r"\d{4}-\d{2}-\d{2}"
_HOUR = r"([ T]\d{2}:?\d{2}(:?\d{2}([.,]\d{1,9})?)?)?"
_ZONE = r"\s*(Z|z|[+-]\d{2}(:?\d{2})?)"
_NAIVE, _WITH_ZONE = f"^{_DAY}{_HOUR}$", f"^{_DAY}{_HOUR}{_ZONE}$"
_SLASHES = r"^(\d{4})/(\d{2})/(\d{2})"  # how GDAL writes dates into shapefiles
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FARTHEST = 1 << 61
"""No time is farther from 1970, in microseconds: beyond it sums with ticks would not fit."""
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
Complaints = list[tuple[str, Bools]]


def read_moments(source: str, column: pa.Array, name: str, reading: Reading) -> tuple[Ints, Complaints]:
    """Return the times of a column, and what is wrong with which of its rows."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _from_text(column, name, reading)
    if pa.types.is_date(column.type):
        column = pc.cast(pc.cast(column, pa.date32()), pa.timestamp("s"))
    if not pa.types.is_timestamp(column.type):
        raise InputError(f"{source}: column '{name}' holds {column.type}, not times (such as 2024-05-31 18:00).")
    if (column.type.tz is not None) != reading.zone:
        raise InputError(f"{source}: {_zones(name, column.type.tz is not None)}.")
    missing = ~column.is_valid().to_numpy(zero_copy_only=False)
    moments, far = _microseconds(pc.fill_null(column.view(pa.int64()), 0).to_numpy(zero_copy_only=False), column.type)
    return moments, [_missing(name, missing), (f"column '{name}' has a time out of all range", far)]


def _zones(name: str, given: bool) -> str:
    """Return what to do about times with a zone where the start of the ticks has none, or the reverse."""
    have, has, do = ("have a", "has none", "a zone, such as") if given else ("have no", "has one", "no zone, as in")
    example = "2024-05-31T00:00:00Z" if given else "2024-05-31"
    return f"the times in '{name}' {have} time zone, but [ticks] start {has}: give start {do} {example}"


def _missing(name: str, rows: Bools) -> tuple[str, Bools]:
    return f"column '{name}' has rows without a time", rows


def _microseconds(numbers: Ints, kind: pa.DataType) -> tuple[Ints, Bools]:
    per_second = _PER_SECOND[kind.unit]
    if per_second > 1_000_000:
        numbers, factor = numbers // (per_second // 1_000_000), 1
    else:
        factor = 1_000_000 // per_second
    far = (numbers > _FARTHEST // factor) | (numbers < -(_FARTHEST // factor))
    return np.where(far, 0, numbers) * factor, far


def _from_text(column: pa.Array, name: str, reading: Reading) -> tuple[Ints, Complaints]:
    text = pc.fill_null(pc.utf8_trim_whitespace(column), "")
    missing = pc.equal(text, "").to_numpy(zero_copy_only=False)
    if reading.time_format is not None:
        form = f"column '{name}' has text that is not a time written as {reading.time_format}"
        moments, known = _by_format(text, reading)
        return moments, [_missing(name, missing), (form, ~known & ~missing)]
    text = pc.replace_substring_regex(text, _SLASHES, r"\1-\2-\3")
    other = pc.match_substring_regex(text, _NAIVE if reading.zone else _WITH_ZONE).to_numpy(zero_copy_only=False)
    looks_right = pc.match_substring_regex(text, _WITH_ZONE if reading.zone else _NAIVE)
    looks_right = pc.and_(looks_right, pc.invert(pc.starts_with(text, "0000")))  # a year to Arrow, not to `datetime`
    moments, known = _by_iso(text, looks_right, reading.zone)
    form = f"column '{name}' has text that is not a time such as 2024-05-31 18:00 (other ways: see time_format)"
    return moments, [_missing(name, missing), (_zones(name, not reading.zone), other), (form, ~known & ~missing)]


def _by_iso(text: pa.Array, looks_right: pa.Array, zone: bool) -> tuple[Ints, Bools]:
    """Return what is written as ISO 8601 says, and where it is."""
    kind = pa.timestamp("us", "UTC") if zone else pa.timestamp("us")
    some = pc.if_else(looks_right, text, None)
    try:
        parsed = pc.cast(some, kind)
    except pa.ArrowInvalid:  # a 13th month, say, or a short form that Arrow does not know
        parsed = pa.array([_one(value, zone) for value in some.to_pylist()], pa.int64()).view(kind)
    return _known(parsed)


def _one(text: str | None, zone: bool) -> int | None:
    """Return one time as Arrow reads it, which is how all are read if it can read all, or else as `datetime` does."""
    if text is None:
        return None
    try:
        kind = pa.timestamp("us", "UTC") if zone else pa.timestamp("us")
        return int(pc.cast(pa.array([text]), kind).view(pa.int64())[0].as_py())
    except pa.ArrowInvalid:
        pass
    try:
        moment = datetime.fromisoformat(text.replace(",", "."))
        if (moment.tzinfo is None) == zone:
            return None
        return ((moment if zone else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None


def _by_format(text: pa.Array, reading: Reading) -> tuple[Ints, Bools]:
    """Return what is written as the format says, and where it is; each different text is read once."""
    each = text.dictionary_encode()
    parsed = [_of_format(value, str(reading.time_format), reading.zone) for value in each.dictionary.to_pylist()]
    return _known(pa.array(parsed, pa.int64()).view(pa.timestamp("us")).take(each.indices))


def _of_format(text: str, form: str, zone: bool) -> int | None:
    try:
        moment = datetime.strptime(text, form)
        if (moment.tzinfo is None) == zone:
            return None
        return ((moment if zone else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None


def _known(parsed: pa.Array) -> tuple[Ints, Bools]:
    known = parsed.is_valid().to_numpy(zero_copy_only=False)
    return pc.fill_null(parsed.view(pa.int64()), 0).to_numpy(zero_copy_only=False), known
