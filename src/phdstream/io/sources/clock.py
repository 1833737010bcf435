"""The public schedule: a tick is an interval of time fixed in advance; the clock alone decides what falls where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from phdstream.arrays import Ints
from phdstream.errors import ConfigError

__all__ = ["Clock", "RowClock", "parse_duration", "parse_moment"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_NO_TIME = timedelta(0)
_FIRST_YEAR, _LAST_YEAR = 1000, 9000
_LONGEST = 10_000 * 366
"""Days: no length of time is longer, nor could a calendar hold it."""


def parse_duration(text: Any, least: int = 1) -> timedelta:
    """Return a length of time written as a number and a unit.

    >>> parse_duration("6h"), parse_duration("1d")
    (datetime.timedelta(seconds=21600), datetime.timedelta(days=1))
    """
    match = re.fullmatch(r"\s*(\d{1,12})\s*([smhdw])\s*", text, re.ASCII) if isinstance(text, str) else None
    if match and int(match[1]) >= least:
        try:
            length = timedelta(**{_UNITS[match[2]]: int(match[1])})
        except OverflowError:
            length = timedelta.max
        if length.days <= _LONGEST:
            return length
    raise ConfigError(f"{text!r} is not a length of time: write a number and s, m, h, d or w, such as '6h' or '1d'.")


def parse_moment(value: Any, name: str) -> datetime:
    """Return a date or a time as TOML gives it."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    raise ConfigError(f"{name} must be a date or time without quotes, such as 2014-04-01 or 2014-04-01T06:00:00.")


@dataclass(frozen=True)
class Clock:
    """Ticks 1, 2, ...: tick k covers ``[start + (k-1)·every, start + k·every)``. All public.

    There are ``count`` ticks, or no end to them. A tick is over ``grace`` after its end: so long may events take to
    arrive.

    >>> clock = Clock.between(date(2014, 4, 1), date(2014, 4, 8), "1d")
    >>> clock.count, clock.tick_of(np.array([clock.first_us, clock.first_us + 86_400_000_000]))
    (7, array([1, 2]))
    >>> clock.over(datetime(2014, 4, 3, 12))
    2
    """

    start: datetime
    every: timedelta
    count: int | None
    grace: timedelta = _NO_TIME

    @classmethod
    def between(cls, start: Any, end: Any, every: Any, grace: Any = "0s") -> Clock:
        """Return the clock from ``start`` to ``end`` (None for no end), a whole number of ticks apart."""
        first, length, wait = parse_moment(start, "[ticks] start"), parse_duration(every), parse_duration(grace, 0)
        if not _FIRST_YEAR <= first.year <= _LAST_YEAR:
            raise ConfigError(f"[ticks] start must be in the years {_FIRST_YEAR} to {_LAST_YEAR}.")
        if end is None:
            return cls(first, length, None, wait)
        last = parse_moment(end, "[ticks] end")
        if (first.tzinfo is None) != (last.tzinfo is None):
            raise ConfigError("[ticks] start and end must both have a time zone, or neither.")
        count, rest = divmod(last - first, length)
        if count < 1 or rest:
            raise ConfigError(f"[ticks] end must be a whole number of ticks ({every}) after start.")
        return cls(first, length, count, wait)

    @property
    def zone(self) -> bool:
        """Whether times carry a zone."""
        return self.start.tzinfo is not None

    @property
    def first_us(self) -> int:
        """The start in microseconds since 1970."""
        start = self.start.astimezone(UTC).replace(tzinfo=None) if self.zone else self.start
        return (start - _EPOCH) // _MICROSECOND

    def tick_of(self, time: Ints) -> Ints:
        """Return the tick of each time; below 1 or above ``count`` if there is none."""
        return (time - self.first_us) // (self.every // _MICROSECOND) + 1

    def end_of(self, tick: int) -> datetime | None:
        """Return when a tick ends; None if that is beyond all calendars."""
        try:
            return self.start + self.every * tick
        except OverflowError:
            return None

    def over(self, now: datetime) -> int:
        """Return the last tick that is over at a moment; 0 if none is.

        A start without a zone is compared with the time of day where this runs.
        """
        return self._until(now, self.grace)

    def until(self, moment: datetime) -> int:
        """Return the last tick that ends at or before a moment, whether it is over or not."""
        return self._until(moment, _NO_TIME)

    def _until(self, moment: datetime, wait: timedelta) -> int:
        try:
            if self.zone and moment.tzinfo is None:
                moment = moment.astimezone()
            elif not self.zone and moment.tzinfo is not None:
                moment = moment.astimezone().replace(tzinfo=None)
        except (OverflowError, ValueError, OSError):
            raise ConfigError("that time is beyond what this machine can convert between time zones.") from None
        ticks = max(0, (moment - self.start - wait) // self.every)
        return ticks if self.count is None else min(ticks, self.count)

    def to_dict(self) -> dict[str, Any]:
        """The clock as plain data, for the manifest."""
        end = None if self.count is None else self.end_of(self.count)
        plain = {"start": self.start.isoformat(), "every_seconds": self.every.total_seconds()}
        plain |= {} if end is None else {"end": end.isoformat()}
        return plain | ({"grace_seconds": self.grace.total_seconds()} if self.grace else {})


class RowClock:
    """Ticks of so many rows, in the order they come. **Not private**: one row more moves every later one."""

    count = None

    def __init__(self, rows: int) -> None:
        self._rows, self._seen = rows, 0

    def next_ticks(self, rows: int) -> Ints:
        """Return the ticks of the next rows."""
        ticks = np.arange(self._seen, self._seen + rows, dtype=np.int64) // self._rows + 1
        self._seen += rows
        return ticks

    @property
    def last(self) -> int:
        """The last tick that has a row."""
        return -(-self._seen // self._rows)
