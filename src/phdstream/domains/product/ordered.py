"""`Bins`: a number in one of some public ranges. `TimeOfDay` and `DayOfWeek`: what comes round again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints
from phdstream.domains.columns import floats
from phdstream.domains.product.attribute import MISSING, UNKNOWN, Attribute
from phdstream.errors import InputError, check_whole, did_you_mean, shown

__all__ = ["DAYS", "Bins", "DayOfWeek", "TimeOfDay"]

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MOST_BINS = 1 << 16
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_CLOCK = r"^\s*([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d*)?)?\s*$"
_HOUR_US, _DAY_US = 3_600_000_000, 86_400_000_000


class Bins(Attribute):
    """A number in one of some ranges: an age, an amount. ``edges`` are public; what lies outside them counts nowhere.

    A number on an edge belongs to the range above it, the last edge to the last range. Synthetic rows hold numbers
    spread evenly within their range (round them down for whole years).

    >>> age = Bins("age", [0, 18, 65, 120])
    >>> age.read(pa.array([18, 17.9, 121, None])).round(2).tolist()
    [1.0, 0.99, -1.0, nan]
    """

    json_kind = float

    def __init__(self, name: str, edges: Sequence[float]) -> None:
        try:
            array = floats(edges)
        except InputError:
            array = np.empty(0)
        if array.ndim != 1 or not 3 <= array.size <= _MOST_BINS or not np.isfinite(array).all():
            raise InputError(f"the edges of {shown(name)} must be at least three finite numbers, such as [0, 18, 65].")
        if (np.diff(array) <= 0).any():
            raise InputError(f"the edges of {shown(name)} must grow: each must be above the one before it.")
        self.edges = array
        super().__init__(name, [(str(i),) for i in range(array.size - 1)])

    def read(self, column: pa.Array) -> Floats:
        """Return the positions of numbers; text is read as a number if it is one. See `Attribute.read`."""
        return self._positions(_numbers(column, self.name))

    def _positions(self, numbers: Floats) -> Floats:
        last = self.edges.size - 2
        at = np.clip(np.searchsorted(self.edges, numbers, side="right") - 1, 0, last)
        low, high = self.edges[at], self.edges[at + 1]
        within = np.minimum((numbers - low) / (high - low), np.nextafter(1, 0))
        with np.errstate(invalid="ignore"):
            outside = (numbers < self.edges[0]) | (numbers > self.edges[-1])
        return np.where(outside, UNKNOWN, np.minimum(at + within, np.nextafter(at + 1, 0)))

    def values(self, positions: Floats) -> NDArray[Any]:
        """Return the numbers."""
        at = positions.astype(np.int64)
        low, high = self.edges[at], self.edges[at + 1]
        return np.clip(low + (positions - at) * (high - low), low, np.nextafter(high, low))

    def label(self, first: int, past: int) -> str:
        """Return a range of numbers."""
        return f"{self.edges[first]:g} to {self.edges[past]:g}"

    def intervals(self, wanted: Any) -> list[tuple[float, float]]:
        """Return the positions of ranges of numbers, one pair (low, high) or a list of them."""
        return [self._range(low, high) for low, high in _pairs(wanted, self.name)]

    def _range(self, low: float, high: float) -> tuple[float, float]:
        ends = np.clip([low, high], self.edges[0], self.edges[-1])
        first, past = np.interp(ends, self.edges, np.arange(self.edges.size))
        return float(first), float(past)

    def to_dict(self) -> dict[str, Any]:
        """Return the attribute as plain data."""
        return {"type": "bins", "name": self.name, "edges": self.edges.tolist()}

    def __repr__(self) -> str:
        return f"Bins({self.name!r}, {self.edges.tolist()})"


class TimeOfDay(Attribute):
    """The time of day, in ``bins`` equal parts of 24 hours; midnight stands beside midnight.

    A row holds a moment (its own time, say: ``column="time"``), a time of day, or hours since midnight as a number
    below 24. Moments without a time zone are taken as they are; those with one are told in ``zone``, such as
    "America/New_York" (UTC unless given). Synthetic rows hold hours, as a number.

    >>> from datetime import datetime
    >>> hour = TimeOfDay("hour")
    >>> hour.read(pa.array([datetime(2024, 5, 31, 17, 30), None])).tolist()
    [17.5, nan]
    >>> hour.intervals((22, 2))                                     # through midnight
    [(22.0, 24.0), (0.0, 2.0)]
    """

    json_kind = float
    of_moments = True

    def __init__(self, name: str, bins: int = 24, *, column: str | None = None, zone: str | None = None) -> None:
        check_whole("bins", bins, least=2, most=1440)
        self.zone = _checked_zone(zone)
        super().__init__(name, [(str(i),) for i in range(int(bins))], column)

    def read(self, column: pa.Array) -> Floats:
        """Return the positions of times of day. See `Attribute.read`."""
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            hours = _clock_hours(column)
        elif pa.types.is_time(column.type):
            hours = _microseconds(pc.cast(column, pa.time64("us"), safe=False)) / _HOUR_US
        elif pa.types.is_timestamp(column.type):
            hours = np.mod(_microseconds(_local(column, self.zone)), _DAY_US) / _HOUR_US
        else:
            hours = _numbers(column, self.name)
        return self._positions(hours)

    def _positions(self, hours: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            outside = (hours < 0) | (hours >= 24)
        return np.where(outside, UNKNOWN, np.minimum(hours * (len(self) / 24), np.nextafter(len(self), 0)))

    def values(self, positions: Floats) -> NDArray[Any]:
        """Return hours since midnight."""
        return np.minimum(positions * (24 / len(self)), np.nextafter(24, 0))

    def label(self, first: int, past: int) -> str:
        """Return from when until when."""
        return " to ".join(_clock(end * 1440 / len(self)) for end in (first, past))

    def intervals(self, wanted: Any) -> list[tuple[float, float]]:
        """Return the positions of times from and until, in hours: (7, 9.5), or (22, 2) through midnight; or a list."""
        found = []
        for start, end in _pairs(wanted, self.name, falling=True):
            low, high = (min(max(hour, 0.0), 24.0) * len(self) / 24 for hour in (start, end))
            found += [(low, high)] if low <= high else [(low, float(len(self))), (0.0, high)]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the attribute as plain data."""
        zone = {} if self.zone is None else {"zone": self.zone}
        return {"type": "time_of_day", "bins": len(self)} | self._told() | zone

    def __repr__(self) -> str:
        return f"TimeOfDay({self.name!r}, {len(self)} bins)"


class DayOfWeek(Attribute):
    """The day of the week, Mon to Sun. A row holds a moment or a date (``column="time"``), or a day's English name.

    Numbers are refused: tools count days from 0 or 1, from Monday or Sunday. Time zones are as for `TimeOfDay`.

    >>> DayOfWeek("weekday").read(pa.array(["Monday", "sun", "8"])).tolist()
    [0.0, 6.0, nan]
    """

    of_moments = True

    def __init__(self, name: str, *, column: str | None = None, zone: str | None = None) -> None:
        self.zone = _checked_zone(zone)
        super().__init__(name, [(day,) for day in DAYS], column)

    def read(self, column: pa.Array) -> Floats:
        """Return the positions of days. See `Attribute.read`."""
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return _named_days(column)
        if pa.types.is_date(kind):
            column = pc.cast(pc.cast(column, pa.date32()), pa.timestamp("us"))
        elif pa.types.is_null(kind):
            return np.full(len(column), MISSING)
        elif not pa.types.is_timestamp(kind):
            raise InputError(f"the column of '{self.name}' holds {kind}, not moments or names of days (Mon to Sun).")
        days = np.floor(_microseconds(_local(column, self.zone)) / _DAY_US)
        of_week: Floats = np.mod(days + 3, 7)  # 1970 began on a Thursday
        return of_week

    def values(self, positions: Floats) -> NDArray[Any]:
        """Return the names of days."""
        return np.array(DAYS)[positions.astype(np.int64)]

    def label(self, first: int, past: int) -> str:
        """Return a day, or the first and last of a run of days."""
        return DAYS[first] if past == first + 1 else f"{DAYS[first]} .. {DAYS[past - 1]}"

    def intervals(self, wanted: Any) -> list[tuple[float, float]]:
        """Return the positions of days, one or a list of them."""
        days = [_day(day) for day in (wanted if isinstance(wanted, list | tuple | set) else [wanted])]
        for day, name in zip(days, wanted if isinstance(wanted, list | tuple | set) else [wanted], strict=True):
            if day is None:
                raise InputError(f"'{self.name}' has no day {shown(name)}: {did_you_mean(str(name)[:20], DAYS)}")
        return [(float(day), float(day + 1)) for day in days if day is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return the attribute as plain data."""
        return {"type": "day_of_week"} | self._told() | ({} if self.zone is None else {"zone": self.zone})

    def __repr__(self) -> str:
        return f"DayOfWeek({self.name!r})"


def _checked_zone(zone: Any) -> str | None:
    try:
        if zone is not None:
            ZoneInfo(zone)
    except (ValueError, TypeError, OSError, KeyError):
        raise InputError(
            f"zone must be the name of a time zone such as 'America/New_York', not {shown(zone)}."
        ) from None
    return zone if zone is None else str(zone)


def _local(column: pa.Array, zone: str | None) -> pa.Array:
    """Return moments as a clock on the wall shows them: in a zone, or as they are if they name none themselves."""
    if column.type.tz is None:
        return column
    return pc.local_timestamp(pc.cast(column, pa.timestamp(column.type.unit, zone or "UTC")))


def _microseconds(column: pa.Array) -> Floats:
    """Return times as numbers, NaN where there is none."""
    kind = column.type
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    numbers: Ints = pc.fill_null(column.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    there = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(there, numbers * (10**6 / per_second), MISSING)


def _numbers(column: pa.Array, name: str) -> Floats:
    """Return numbers, NaN where there is none or text is none."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.if_else(_matches(column, _NUMBER), pc.utf8_trim_whitespace(column), None)
        try:
            column = pc.cast(column, pa.float64())
        except pa.ArrowInvalid:  # it will not have some forms, such as +1; those it has it reads as Python does
            column = pa.array([None if text is None else float(text) for text in column.to_pylist()], pa.float64())
    try:
        found = pc.cast(column, pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"the column of '{name}' holds {column.type}, not numbers.") from None
    return np.asarray(pc.fill_null(found, np.nan).to_numpy(zero_copy_only=False))


def _matches(column: pa.Array, pattern: str) -> pa.Array:
    return pc.fill_null(pc.match_substring_regex(column, pattern), False)


def _clock_hours(column: pa.Array) -> Floats:
    """Return text such as 17:30, or 17.5, as hours; anything else is missing."""
    hours = np.array(_numbers(column, ""))
    for place in np.flatnonzero(_matches(column, _CLOCK).to_numpy(zero_copy_only=False)).tolist():
        hour, minute, *second = column[place].as_py().split(":")
        hours[place] = int(hour) + int(minute) / 60 + float(second[0] if second else 0) / 3600
    return hours


def _named_days(column: pa.Array) -> Floats:
    """Return the days that texts name; what is no day is missing (it may be a moment)."""
    texts = pc.cast(column, pa.large_string()).dictionary_encode()
    known = [MISSING if day is None else float(day) for day in map(_day, texts.dictionary.to_pylist())]
    at = pc.fill_null(texts.indices, len(known)).to_numpy(zero_copy_only=False)
    found: Floats = np.array([*known, MISSING], dtype=np.float64)[at]
    return found


def _day(name: Any) -> int | None:
    """Return the number of a day by its English name, long or of three letters."""
    text = name.strip().lower() if isinstance(name, str) else ""
    whole = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    return next((i for i, day in enumerate(whole) if text in (day, day[:3])), None)


def _clock(minutes: float) -> str:
    """Return minutes since midnight as a clock shows them.

    >>> _clock(1050)
    '17:30'
    """
    whole = round(minutes)
    return f"{whole // 60:02d}:{whole % 60:02d}"


def _pairs(wanted: Any, name: str, falling: bool = False) -> list[tuple[float, float]]:
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
