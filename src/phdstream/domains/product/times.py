"""`TimeOfDay` and `DayOfWeek`: what comes round again."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints
from phdstream.domains.product.attribute import MISSING, UNKNOWN, Attribute
from phdstream.domains.product.numbers import matches, read_numbers, read_pairs
from phdstream.errors import InputError, check_whole, did_you_mean, shown

__all__ = ["DAYS", "DayOfWeek", "TimeOfDay"]

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_CLOCK = r"^\s*([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d*)?)?\s*$"
_HOUR_US, _DAY_US = 3_600_000_000, 86_400_000_000


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
            hours = read_numbers(column, self.name)
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
        for start, end in read_pairs(wanted, self.name, falling=True):
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


def _clock_hours(column: pa.Array) -> Floats:
    """Return text such as 17:30, or 17.5, as hours; anything else is missing."""
    hours = np.array(read_numbers(column, ""))
    for place in np.flatnonzero(matches(column, _CLOCK).to_numpy(zero_copy_only=False)).tolist():
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
