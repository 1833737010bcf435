"""What a request's body says: rows of NDJSON or Arrow, as events by tick. **Private.**

Every row is judged for itself, as those of files are (`phdstream.io.sources.rows`): a row that cannot be read, or lies
outside the domain, is left out and its sender told; no other row is touched. Only a body that is not of its stated kind
as a whole is refused as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from phdstream.domains import Domain
from phdstream.errors import InputError
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import Events, rows_to_events
from phdstream.io.sources.gathering import event_batch, parts_by_tick
from phdstream.io.sources.reading import Reading, Rows
from phdstream.service.journal import Part

__all__ = ["ARROW", "KINDS", "NDJSON", "Body", "BodyReader"]

NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
KINDS = {NDJSON: NDJSON, "application/jsonl": NDJSON, "application/ndjson": NDJSON, ARROW: ARROW}
"""The media types that are taken, and what they stand for."""
_LONGEST = 1 << 20
"""No line is as long as this many bytes: one that is, is no row."""
_UNDECODABLE = (msgspec.DecodeError, RecursionError, OverflowError, ValueError)


@dataclass
class Body:
    """The events of a body by tick and sign, and how many rows were left out, by reason."""

    parts: list[Part] = field(default_factory=list)
    rejected: dict[str, int] = field(default_factory=dict)


class BodyReader:
    """Reads bodies for one stream: knows its columns, its domain and its clock, all public."""

    def __init__(self, domain: Domain, clock: Clock, columns: Columns, reading: Reading) -> None:
        self._domain, self._clock, self._columns = domain, clock, columns
        self._reading = replace(reading, drop_bad=True)
        number = str if columns.names else float
        kinds: dict[str, Any] = dict.fromkeys(columns.coordinates, number)
        kinds |= {columns.time: str} if columns.time else {}
        kinds |= {columns.sign: float} if columns.sign else {}
        kinds |= {columns.user: int | str} if columns.user else {}
        self._names = list(kinds)
        fields = [(f"f{i}", kind) for i, kind in enumerate(kinds.values())]
        rename = dict(zip((name for name, _ in fields), self._names, strict=True))
        row = msgspec.defstruct("Row", fields, rename=rename, array_like=False, gc=False)
        self._decoder = msgspec.json.Decoder(row, strict=False)

    def read(self, kind: str, content: bytes | bytearray | memoryview) -> Body:
        """Return what a body of a kind says; refuse one that is not of its kind."""
        body = Body()
        for rows in self._arrow(content) if kind == ARROW else [self._ndjson(content)]:
            self._take(rows_to_events("the body", 1, rows, self._columns, self._reading), body)
        return body

    def _take(self, events: Events, body: Body) -> None:
        for why, number in events.bad.items():
            body.rejected[why] = body.rejected.get(why, 0) + number
        codes, inside = self._domain.encode(events.points)
        if not inside.all():
            outside = "the place is outside the domain"
            body.rejected[outside] = body.rejected.get(outside, 0) + int((~inside).sum())
        assert events.time is not None
        ticks = self._clock.tick_of(events.time)
        for (tick, sign), rows in parts_by_tick(ticks, events.sign, np.flatnonzero(inside)):
            content = event_batch(events, codes, rows).serialize().to_pybytes()
            body.parts.append(Part(tick, sign, rows.size, content))

    def _arrow(self, content: Any) -> list[Rows]:
        try:
            with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
                found = self._columns.find("the body", stream.schema.names, geometry=False, show=False)
                batches = [batch.select(found.columns) for batch in stream]
            for batch in batches:
                batch.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("the body is not a whole Arrow IPC stream with the columns of this stream.") from None
        return [Rows(batch) for batch in batches if batch.num_rows]

    def _ndjson(self, content: Any) -> Rows:
        """Return lines as rows, each decoded for itself: decoding all at once would let an object run over lines."""
        each = [self._row(line) for line in bytes(content).split(b"\n") if line.strip()]
        rows = [row for row in each if row is not None]
        broken = [place for place, row in enumerate(each) if row is None]
        columns = {name: [getattr(row, f"f{i}") for row in rows] for i, name in enumerate(self._names)}
        why = "a line is not a JSON object with this stream's columns" if broken else ""
        return Rows(self._batch(columns), len(broken), min(broken, default=0), why)

    def _row(self, line: bytes) -> Any:
        if len(line) > _LONGEST:
            return None
        try:
            return self._decoder.decode(line)
        except _UNDECODABLE:
            return None

    def _batch(self, columns: dict[str, list[Any]]) -> pa.RecordBatch:
        user = self._columns.user
        arrays = {
            name: _column([str(x) for x in values] if name == user else values) for name, values in columns.items()
        }
        return pa.RecordBatch.from_pydict(arrays)


def _column(values: list[Any]) -> pa.Array:
    return pa.array(values, pa.float64() if values and isinstance(values[0], float) else pa.string())
