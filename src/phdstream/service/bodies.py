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
from phdstream.io.sources.features import text_rows
from phdstream.io.sources.gathering import event_batch, parts_by_tick
from phdstream.io.sources.reading import Reading, Rows
from phdstream.service.journal import Part

__all__ = ["ARROW", "KINDS", "NDJSON", "OUTSIDE", "Body", "BodyReader"]

NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
KINDS = {NDJSON: NDJSON, "application/jsonl": NDJSON, "application/ndjson": NDJSON, ARROW: ARROW}
"""The media types that are taken, and what they stand for."""
_LONGEST = 1 << 20
"""No line is as long as this many bytes: one that is, is no row."""
OUTSIDE = "the place is outside the domain"
"""Why a row that could be read is left out."""
_NOT_THE_USUAL = (msgspec.DecodeError, RecursionError, OverflowError, ValueError)


@dataclass
class Body:
    """The events of a body by tick and sign, and how many rows were left out, by reason. ``rows``: how many it has."""

    rows: int = 0
    parts: list[Part] = field(default_factory=list)
    rejected: dict[str, int] = field(default_factory=dict)

    def reject(self, why: str, number: int) -> None:
        """Count rows that are left out."""
        if number:
            self.rejected[why] = self.rejected.get(why, 0) + number


class BodyReader:
    """Reads bodies for one stream: knows its columns, its domain and its clock, all public."""

    def __init__(self, domain: Domain, clock: Clock, columns: Columns, reading: Reading) -> None:
        self._domain, self._clock, self._columns = domain, clock, columns
        self._reading = replace(reading, drop_bad=True, decimal=".")
        kinds: dict[str, Any] = dict.fromkeys(columns.coordinates, str if columns.names else float)
        kinds |= {columns.time: str} if columns.time else {}
        kinds |= {columns.sign: int} if columns.sign else {}
        kinds |= {columns.user: int | str} if columns.user else {}
        self._kinds = kinds
        fields = [(f"f{i}", kind) for i, kind in enumerate(kinds.values())]
        rename = dict(zip((name for name, _ in fields), kinds, strict=True))
        self._decode = msgspec.json.Decoder(msgspec.defstruct("Row", fields, rename=rename, gc=False)).decode

    def read(self, kind: str, content: bytes | bytearray | memoryview) -> Body:
        """Return what a body of a kind says; refuse one that is not of its kind."""
        body = Body()
        for rows in self._arrow(content) if kind == ARROW else self._ndjson(content):
            body.rows += rows.lines
            self._take(rows_to_events("the body", 1, rows, self._columns, self._reading), body)
        return body

    def _take(self, events: Events, body: Body) -> None:
        for why, number in events.bad.items():
            body.reject(why, number)
        codes, inside = self._domain.encode(events.points)
        body.reject(OUTSIDE, int((~inside).sum()))
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

    def _ndjson(self, content: Any) -> list[Rows]:
        """Return lines as rows, each decoded for itself: decoding all at once would let an object run over lines.

        A line with just the usual types is decoded quickly; any other as a line of a file is. Both say the same of a
        line (tests compare them), and which way one takes depends on that line alone.
        """
        usual, others = [], []
        decode = self._decode
        for line in bytes(content).split(b"\n"):
            try:
                usual.append(decode(line))
            except _NOT_THE_USUAL:
                if line := line.strip(b"\x1e \t\r"):
                    others.append(line)
        rows = [Rows(self._batch(usual))] if usual else []
        return [*rows, text_rows(others, self._columns, _LONGEST)] if others else rows

    def _batch(self, rows: list[Any]) -> pa.RecordBatch:
        columns = {}
        for i, (name, kind) in enumerate(self._kinds.items()):
            values = [getattr(row, f"f{i}") for row in rows]
            if kind is int:  # a sign: whatever is not +1 or -1 is told from them, however large
                columns[name] = pa.array([x if -1 <= x <= 1 else 0 for x in values], pa.int64())
            elif kind is float:
                columns[name] = pa.array(values, pa.float64())
            else:
                columns[name] = pa.array([x if x.__class__ is str else str(x) for x in values], pa.string())
        return pa.RecordBatch.from_pydict(columns)
