"""Events gathered by tick, before any of them is counted. Private.

A row goes to the tick of its own time, whatever the order of rows and files: so all are read before the first tick is
handed over, as codes (8 bytes each) and, where users are bounded, with their ids and times. What does not fit into the
memory that was stated is spilled to a private file without a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from phdstream.arrays import Bools, Ints
from phdstream.domains import Domain
from phdstream.errors import StateError
from phdstream.io.sources.clock import Clock, RowClock
from phdstream.io.sources.counted_inputs import FileRecord
from phdstream.io.sources.events import Events
from phdstream.io.sources.tally import Tally
from phdstream.privacy.user_ids import UserIds
from phdstream.streams.durable.stream import DurableStream
from phdstream.streams.intake import EncodedEvents

__all__ = ["Gathered", "event_batch", "joined", "parts_by_tick"]

_Key = tuple[int, int]
"""A tick, and +1 for inserts or -1 for deletes."""
_TRIED = 1000
"""How many points outside are tried with their coordinates swapped, of each batch: enough to tell."""
_OVERHEAD = 1000
"""About how many bytes a batch takes besides what it holds: rows in no order make many small ones."""
_SHOWN = 20_000
"""How many points are kept, inside and outside each, to draw a picture of."""


class Gathered:
    """The events of ticks ``first`` to ``last``; `take` adds some, `tick` hands a tick's over and forgets them.

    ``memory`` is how many bytes are kept before events are spilled to the file that ``spill`` opens. ``further`` may be
    set to a function that returns more events of a tick and sign, from elsewhere.
    """

    def __init__(
        self,
        domain: Domain,
        clock: Clock | RowClock,
        first: int,
        last: int,
        memory: int,
        spill: Callable[[], IO[bytes]],
    ) -> None:
        self._domain, self._clock, self._first, self._last = domain, clock, first, last
        self._memory, self._open = memory, spill
        self._file: IO[bytes] | None = None
        self._in_memory: dict[_Key, list[pa.RecordBatch]] = {}
        self._spilled: dict[_Key, list[tuple[int, int]]] = {}
        self._bytes = 0
        self._schema: pa.Schema | None = None
        self.tally, self.per_tick = Tally(), Counter[int]()
        self.sample: dict[bool, list[Any]] = {True: [], False: []}
        self.further: Callable[[int, int], list[pa.RecordBatch]] = lambda tick, sign: []

    def take(self, events: Events, record: FileRecord) -> None:
        """Add a batch of events; ``record`` is told of those inside, of whichever tick they are, and of the others."""
        self.tally.bad.update(events.bad)
        ticks = self._ticks(events)
        codes, inside = self._domain.encode(events.points)
        self._note_places(events.points, inside)
        record.dropped += Counter(unreadable=sum(events.bad.values()), outside=int((~inside).sum()))
        if not inside.all():
            events, codes, ticks = events.only(inside), codes[inside], ticks[inside]
        record.add(ticks, _told_apart_by(events, codes))
        wanted = np.flatnonzero(self._sort_out(ticks))
        for (tick, sign), rows in parts_by_tick(ticks, events.sign, wanted):
            self.per_tick[tick] += rows.size
            self._add((tick, sign), events, codes, rows)
        if self._bytes > self._memory:
            self._spill()

    def _ticks(self, events: Events) -> Ints:
        if isinstance(self._clock, RowClock):
            return self._clock.next_ticks(len(events))
        assert events.time is not None
        return self._clock.tick_of(events.time)

    def _sort_out(self, ticks: Ints) -> Bools:
        """Count the rows by what becomes of them, and return which are to be counted now."""
        end = np.iinfo(np.int64).max if self._clock.count is None else self._clock.count
        before, after = ticks < 1, ticks > end
        late, early = ~before & (ticks < self._first), ~after & (ticks > self._last)
        wanted: Bools = ~(before | after | late | early)
        for name, rows in (("before", before), ("after", after), ("late", late), ("early", early), ("usable", wanted)):
            setattr(self.tally, name, getattr(self.tally, name) + int(rows.sum()))
        return wanted

    def _note_places(self, points: Any, inside: Bools) -> None:
        self.tally.outside += int((~inside).sum())
        place = self._domain.location
        if place.dimension == 2 and points.dtype != object:
            points = points[:, :2]
            tried = points[~inside][:_TRIED]
            self.tally.tried += len(tried)
            self.tally.swapped += int(place.encode(tried[:, ::-1])[1].sum()) if len(tried) else 0
            for which in (True, False):
                if sum(map(len, self.sample[which])) < _SHOWN:
                    some = points[inside == which]
                    self.sample[which].append(some[:: max(1, len(some) // 2000)])

    def _add(self, key: _Key, events: Events, codes: Ints, rows: Ints) -> None:
        batch = event_batch(events, codes, rows)
        self._schema = batch.schema
        self._in_memory.setdefault(key, []).append(batch)
        self._bytes += batch.nbytes + _OVERHEAD

    def _spill(self) -> None:
        self._file = self._file or self._open()
        try:
            for key, batches in self._in_memory.items():
                content = pa.concat_batches(batches).serialize()
                self._spilled.setdefault(key, []).append((self._file.seek(0, 2), content.size))
                self._file.write(content)
            self._file.flush()
        except OSError as error:
            raise StateError(
                f"there is no room in the state folder for events that do not fit into memory ({error.strerror}). "
                "Nothing was spent. Make room, or raise [input] memory."
            ) from None
        self._in_memory, self._bytes = {}, 0

    def tick(self, number: int, keep: bool = False) -> tuple[EncodedEvents, EncodedEvents]:
        """Return the inserts and the deletes of a tick, and let go of them unless they are to be kept."""
        come, gone = self._events((number, 1)), self._events((number, -1))
        for key in () if keep else ((number, 1), (number, -1)):
            self._in_memory.pop(key, None)
            self._spilled.pop(key, None)
        return come, gone

    def _events(self, key: _Key) -> EncodedEvents:
        read = [self._read(*place) for place in self._spilled.get(key, ())]
        return joined([*read, *self._in_memory.get(key, []), *self.further(*key)])

    def _read(self, start: int, size: int) -> pa.RecordBatch:
        assert self._file is not None
        self._file.seek(start)
        return pa.ipc.read_record_batch(pa.py_buffer(self._file.read(size)), self._schema)

    def counted(self, stream: DurableStream) -> None:
        """Do nothing: what `tick` handed over is forgotten already."""

    def close(self) -> None:
        """Let go of everything."""
        self._in_memory, self._spilled = {}, {}
        if self._file is not None:
            self._file.close()


def parts_by_tick(ticks: Ints, sign: NDArray[Any], wanted: Ints) -> Iterator[tuple[_Key, Ints]]:
    """Yield the wanted rows by tick and sign, in their order."""
    kind = 2 * ticks[wanted] + (sign[wanted] < 0)
    if kind.size and kind.max() - kind.min() < 1 << 16:  # so small numbers are sorted by radix, several times as fast
        kind = (kind - kind.min()).astype(np.uint16)
    order = np.argsort(kind, kind="stable")
    ends = np.flatnonzero(np.diff(kind[order])) + 1
    for rows in np.split(wanted[order], ends) if wanted.size else []:
        yield (int(ticks[rows[0]]), int(sign[rows[0]])), rows


def event_batch(events: Events, codes: Ints, rows: Ints) -> pa.RecordBatch:
    """Return some events as they are kept until their tick: codes, and where users are bounded their times and ids."""
    columns: dict[str, pa.Array] = {"code": pa.array(codes[rows])}
    if events.users is not None:
        time = np.zeros(codes.size, np.int64) if events.time is None else events.time
        columns |= {"time": pa.array(time[rows]), "user": events.users.take(pa.array(rows))}
    return pa.RecordBatch.from_pydict(columns)


def _told_apart_by(events: Events, codes: Ints) -> list[Any]:
    """Return columns of 64 bits that tell an event from another: its place, time, sign and user."""
    points = [codes] if events.points.dtype == object else [*np.asarray(events.points, np.float64).T]
    parts = [*points, events.sign.astype(np.int64)] + ([] if events.time is None else [events.time])
    if events.users is not None and len(events.users):
        each = events.users.dictionary_encode()
        hashes = [int.from_bytes(blake2b(user, digest_size=8).digest()) for user in each.dictionary.to_pylist()]
        parts.append(np.array(hashes, np.uint64)[each.indices.to_numpy()])
    return parts


def joined(batches: list[pa.RecordBatch]) -> EncodedEvents:
    """Return one tick's events of one sign. With users they are put into the order of their time, then of their place.

    So which of a user's events are within the bound does not depend on the order of rows or files.
    """
    if not batches:
        return EncodedEvents(np.zeros(0, np.int64), UserIds("text", pa.array([], pa.large_binary())))
    table = pa.Table.from_batches(batches)
    codes: Ints = table["code"].to_numpy()
    if "user" not in table.column_names:
        return EncodedEvents(codes, UserIds("text", pa.array([], pa.large_binary())))
    order = np.lexsort((codes, table["time"].to_numpy()))
    users = table["user"].combine_chunks().take(pa.array(order))
    return EncodedEvents(codes[order], UserIds("text", users))
