"""From events to ticks. A tick is an interval of time fixed in advance; the clock alone decides what falls where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from phdstream.arrays import Ints
from phdstream.errors import ConfigError, InputError
from phdstream.sources.files import Events

__all__ = ["Clock", "Tick", "check_order", "parse_duration", "ticks_by_rows", "ticks_by_time"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_EPOCH = datetime(1970, 1, 1)


def parse_duration(text: Any) -> timedelta:
    """Return a length of time written as a number and a unit.

    >>> parse_duration("6h"), parse_duration("1d")
    (datetime.timedelta(seconds=21600), datetime.timedelta(days=1))
    """
    match = re.fullmatch(r"\s*(\d+)\s*([smhdw])\s*", text) if isinstance(text, str) else None
    if not match or int(match[1]) == 0:
        raise ConfigError(
            f"{text!r} is not a length of time: write a number and s, m, h, d or w, such as '6h' or '1d'."
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@dataclass(frozen=True)
class Clock:
    """Ticks 1, 2, ..., ``count``: tick k covers ``[start + (k-1)·every, start + k·every)``. All public.

    >>> clock = Clock.between(date(2014, 4, 1), date(2014, 4, 8), "1d")
    >>> clock.count, clock.tick_of(np.array([clock.first_us, clock.first_us + 86_400_000_000]))
    (7, array([1, 2]))
    """

    start: datetime
    every: timedelta
    count: int

    @classmethod
    def between(cls, start: Any, end: Any, every: Any) -> Clock:
        """Return the clock from ``start`` to ``end``, which must be a whole number of ticks apart."""
        first, last, length = _moment(start, "start"), _moment(end, "end"), parse_duration(every)
        if (first.tzinfo is None) != (last.tzinfo is None):
            raise ConfigError("[ticks] start and end must both have a time zone, or neither.")
        count, rest = divmod(last - first, length)
        if count < 1 or rest:
            raise ConfigError(f"[ticks] end must be a whole number of ticks ({every}) after start.")
        return cls(first, length, count)

    @property
    def zone(self) -> bool:
        """Whether times carry a zone."""
        return self.start.tzinfo is not None

    @property
    def first_us(self) -> int:
        """The start in microseconds since 1970."""
        start = self.start.astimezone(UTC).replace(tzinfo=None) if self.zone else self.start
        return (start - _EPOCH) // timedelta(microseconds=1)

    def tick_of(self, time: Ints) -> Ints:
        """Return the tick of each time; below 1 or above ``count`` if there is none."""
        return (time - self.first_us) // (self.every // timedelta(microseconds=1)) + 1

    def one_tick(self, times: Ints) -> bool:
        """Return whether all times between the least and the largest of these are of one tick, or off the clock."""
        ticks = np.clip(self.tick_of(np.array([times.min(), times.max()])), 0, self.count + 1)
        return bool(ticks[0] == ticks[1])

    def to_dict(self) -> dict[str, Any]:
        """The clock as plain data, for the manifest."""
        end = self.start + self.every * self.count
        return {"start": self.start.isoformat(), "end": end.isoformat(), "every_seconds": self.every.total_seconds()}


@dataclass
class Tick:
    """One tick's events, in parts, and how many rows were left out on the way to it (for the operator only)."""

    number: int
    parts: list[Events]
    late: int = 0
    outside: int = 0
    bad: int = 0

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def split(self) -> tuple[Events, Events]:
        """Return the inserts and the deletes, and let go of the parts on the way: a tick can be large."""
        come: list[Events] = []
        gone: list[Events] = []
        while self.parts:
            part = self.parts.pop(0)
            come.append(part.only(part.sign > 0))
            gone.append(part.only(part.sign < 0))
        inserts = _join(come)
        come.clear()
        return inserts, _join(gone)


def check_order(times: Iterable[Ints], clock: Clock) -> None:
    """Refuse rows that come after rows of a later tick: by then that tick would have been released without them."""
    latest = 0
    for batch in times:
        ticks = np.clip(clock.tick_of(batch), 0, clock.count + 1)
        if ticks.size and (ticks[0] < latest or (np.diff(ticks) < 0).any()):
            raise InputError(
                "the times are out of order: a row comes after rows of a later tick. Sort the rows by time (over all "
                'files), or set bad_rows = "drop" to leave late rows out. Nothing was released.'
            )
        latest = int(ticks[-1]) if ticks.size else latest


def ticks_by_time(batches: Iterable[Events], clock: Clock) -> Iterator[Tick]:
    """Yield every tick of the clock in order, empty ones too. Late rows are left out and counted."""
    now, template = 1, _none()
    tick = Tick(0, [])
    for batch in batches:
        template = batch.only(slice(0))
        for number, part in _cut(batch, clock, now, tick):
            while now < number:
                yield replace(tick, number=now, parts=tick.parts or [template])
                now, tick = now + 1, Tick(0, [])
            tick.parts.append(part)
    while now <= clock.count:
        yield replace(tick, number=now, parts=tick.parts or [template])
        now, tick = now + 1, Tick(0, [])


def _cut(batch: Events, clock: Clock, now: int, tick: Tick) -> list[tuple[int, Events]]:
    """Return a batch's events by tick, from tick ``now`` on, without their times; tell ``tick`` what is left out."""
    assert batch.time is not None
    tick.bad += batch.bad
    if not len(batch):
        return []
    times = batch.time[:1] if clock.one_tick(batch.time) else batch.time  # nearly always one tick: ask once
    ticks = clock.tick_of(times)
    each = len(batch) // times.size
    tick.outside += each * int(((ticks < 1) | (ticks > clock.count)).sum())
    tick.late += each * int(((ticks < now) & (ticks >= 1)).sum())
    wanted = np.unique(ticks[(ticks >= now) & (ticks <= clock.count)]).tolist()
    timeless = replace(batch, time=None, bad=0)
    return [(number, timeless if times.size == 1 else timeless.only(ticks == number)) for number in wanted]


def ticks_by_rows(batches: Iterable[Events], rows: int) -> Iterator[Tick]:
    """Yield ticks of ``rows`` rows each. **Not private**: one row more moves every later row to another tick."""
    number, bad = 1, 0
    waiting: list[Events] = []
    for batch in batches:
        bad += batch.bad
        waiting.append(batch)
        while sum(map(len, waiting)) >= rows:
            together = _join(waiting)
            yield Tick(number, [together.only(slice(0, rows))], bad=bad)
            number, waiting, bad = number + 1, [together.only(slice(rows, None))], 0
    if sum(map(len, waiting)):
        yield Tick(number, waiting, bad=bad)


def _join(parts: list[Events]) -> Events:
    if len(parts) == 1:
        return parts[0]
    time = None if parts[0].time is None else np.concatenate([p.time for p in parts if p.time is not None])
    users = None if parts[0].users is None else np.concatenate([p.users for p in parts if p.users is not None])
    return Events(time, np.concatenate([p.points for p in parts]), np.concatenate([p.sign for p in parts]), users)


def _none() -> Events:
    return Events(None, np.zeros((0, 0)), np.zeros(0, np.int64), None)


def _moment(value: Any, name: str) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    raise ConfigError(
        f"[ticks] {name} must be a date or time without quotes, such as 2014-04-01 or 2014-04-01T06:00:00."
    )
