"""Timed points, replayed tick by tick, with the users they belong to.

Loaders give *events*: Arrow batches with the columns ``time``, ``x``, ``y`` and, where there are any, ``user``. The
functions here restrict, thin and replay them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints
from phdstream.errors import InputError, check_whole

__all__ = ["EventBatches", "EventTable", "EventTick", "between", "inside", "replay", "subsample"]

EventBatches: TypeAlias = pa.Table | Iterable[pa.RecordBatch]
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1)
_HELD = 4
"""How many times more points than asked for are held while thinning."""
_OWN = 0x7468696E
"""Sets the draws apart from those of simulated data made with the same seed."""


@dataclass(frozen=True)
class EventTick:
    """What happens in one tick, as `update` of a stream takes it: points that appear and vanish, and whose they are."""

    inserts: Floats
    deletes: Floats
    users: NDArray[Any] | None = None
    delete_users: NDArray[Any] | None = None


@dataclass(frozen=True)
class EventTable:
    """Points in order of time (microseconds since 1970), and the clock to replay them by.

    With a ``lifetime`` each point is deleted that long after it came.
    """

    time: Ints
    points: Floats
    users: NDArray[Any] | None
    start: datetime
    every: timedelta
    count: int
    lifetime: timedelta | None = None

    def ticks(self) -> Iterator[EventTick]:
        """Yield the ticks in order, those in which nothing happens too."""
        edges = _us(self.start) + (self.every // _MICROSECOND) * np.arange(self.count + 1)
        come = np.searchsorted(self.time, edges)
        gone = np.searchsorted(self.time, edges - self.lifetime // _MICROSECOND) if self.lifetime else 0 * come
        for t in range(self.count):
            new, old = slice(come[t], come[t + 1]), slice(gone[t], gone[t + 1])
            users = (None, None) if self.users is None else (self.users[new], self.users[old])
            yield EventTick(self.points[new], self.points[old], *users)


def replay(
    events: EventBatches,
    every: timedelta,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    lifetime: timedelta | None = None,
) -> EventTable:
    """Return events as a table with a tick ``every`` so often.

    It runs from ``start`` (the midnight before the first event) to ``end`` (the end of the tick of the last event);
    both come from the data unless given, which is for experiments only.

    >>> times = pa.array([datetime(2020, 1, 1, 9), datetime(2020, 1, 3, 9)], pa.timestamp("us"))
    >>> days = replay(pa.table({"time": times, "x": [0.1, 0.2], "y": [0.5, 0.6]}), timedelta(days=1))
    >>> [len(tick.inserts) for tick in days.ticks()]
    [1, 0, 1]
    """
    table = _sorted(events)
    time: Ints = pc.cast(table["time"], pa.int64()).to_numpy()
    begin = start or _midnight(time[0])
    last = end or _EPOCH + int(time[-1] + 1) * _MICROSECOND
    if every <= timedelta(0) or last <= begin or (lifetime is not None and lifetime <= timedelta(0)):
        raise InputError("every and lifetime must be longer than nothing, and the end must come after the start.")
    points = np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()])
    rows = slice(*np.searchsorted(time, [_us(begin), _us(last)]).tolist())
    users = _users(table["user"])[rows] if "user" in table.column_names else None
    return EventTable(time[rows], points[rows], users, begin, every, -((begin - last) // every), lifetime)


def _sorted(events: EventBatches) -> pa.Table:
    table = events if isinstance(events, pa.Table) else pa.Table.from_batches(list(events) or [_no_events()])
    if table.num_rows == 0:
        raise InputError("there are no events to replay.")
    return table.take(pc.sort_indices(table, [("time", "ascending")]))


def _no_events() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"time": pa.array([], pa.timestamp("us"))})


def _us(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _midnight(time: Any) -> datetime:
    first = _EPOCH + int(time) * _MICROSECOND
    return datetime(first.year, first.month, first.day)


def _users(column: pa.ChunkedArray) -> NDArray[Any]:
    values = column.to_numpy()
    return values if values.dtype.kind in "iu" else np.array(column.to_pylist(), dtype=np.str_)


def inside(events: EventBatches, polygon: Any) -> Iterator[pa.RecordBatch]:
    """Yield the events that lie in a (Shapely) polygon."""
    shapely.prepare(polygon)
    for batch in _batches(events):
        x, y = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("x", "y"))
        yield batch.filter(pa.array(shapely.intersects_xy(polygon, x, y)))


def between(events: EventBatches, start: datetime, end: datetime) -> Iterator[pa.RecordBatch]:
    """Yield the events from ``start`` on and before ``end``."""
    first, last = (pa.scalar(moment, pa.timestamp("us")) for moment in (start, end))
    for batch in _batches(events):
        time = batch.column("time")
        yield batch.filter(pc.and_(pc.greater_equal(time, first), pc.less(time, last)))


def subsample(events: EventBatches, points: int, seed: int = 0) -> pa.Table:
    """Return ``points`` of the events (all, if there are no more), each set of that size as likely as any other.

    So each time keeps its share of all events, as in the paper. Holds a few times ``points`` events at most, beside a
    batch; the same seed gives the same events, however they come in batches.
    """
    check_whole("points", points)
    rng = np.random.default_rng((seed, _OWN))
    kept, keys = None, np.empty(0)
    for batch in _batches(events):
        more = pa.Table.from_batches([batch])
        kept = more if kept is None else pa.concat_tables([kept, more])
        keys = np.concatenate([keys, rng.random(batch.num_rows)])
        if keys.size > _HELD * points:
            kept, keys = _lowest(kept, keys, points)
    return pa.table({}) if kept is None else _lowest(kept, keys, points)[0]


def _batches(events: EventBatches) -> Iterable[pa.RecordBatch]:
    return events.to_batches() if isinstance(events, pa.Table) else events


def _lowest(table: pa.Table, keys: Floats, number: int) -> tuple[pa.Table, Floats]:
    """Return the rows with the lowest keys, in order."""
    if keys.size <= number:
        return table, keys
    low = keys <= np.partition(keys, number - 1)[number - 1]
    return table.filter(pa.array(low)).combine_chunks(), keys[low]
