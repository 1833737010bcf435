"""What a request's body says: rows of NDJSON or Arrow, as events by tick. **Private.**

Every row is judged for itself, as those of files are (`phdstream.io.sources.rows`): a row that cannot be read, or lies
outside the domain, is left out and its sender told; no other row is touched. Only a body that is not of its stated kind
as a whole is refused as a whole.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from phdstream.domains import Domain
from phdstream.domains.product import attribute_from_dict
from phdstream.errors import InputError
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import Events, rows_to_events
from phdstream.io.sources.features import LONGEST_LINE, text_rows
from phdstream.io.sources.gathering import event_batch, parts_by_tick
from phdstream.io.sources.reading import Reading, Rows, text_column
from phdstream.service.journal import Part

__all__ = ["ARROW", "KINDS", "NDJSON", "OUTSIDE", "Body", "BodyReader"]

NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
KINDS = {NDJSON: NDJSON, "application/jsonl": NDJSON, "application/ndjson": NDJSON, ARROW: ARROW}
"""The media types that are taken, and what they stand for."""
_PIECE, _NESTED = 1 << 18, 100
"""Bytes of lines that are decoded together, and brackets that may be nested in a line which is."""
_BLANK = b"\x1e \t\r\n"
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
        told = {each.get("column", each["name"]): attribute_from_dict(each) for each in columns.attributes}
        kinds |= {name: attribute.json_kind for name, attribute in told.items()}
        kinds |= {columns.time: str} if columns.time else {}
        kinds |= {columns.sign: int} if columns.sign else {}
        kinds |= {columns.user: int | str} if columns.user else {}
        self._kinds = kinds
        fields = [(f"f{i}", kind) for i, kind in enumerate(kinds.values())]
        rename = dict(zip((name for name, _ in fields), kinds, strict=True))
        decoder = msgspec.json.Decoder(msgspec.defstruct("Row", fields, rename=rename, gc=False))
        self._decode, self._decode_all = decoder.decode, decoder.decode_lines
        users = [name for name, kind in fields if kind == int | str]
        self._user = attrgetter(users[0]) if users else None

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
                batches = [_checked(batch.select(found.columns)) for batch in stream]
        except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("the body is not a whole Arrow IPC stream with the columns of this stream.") from None
        return [Rows(batch) for batch in batches if batch.num_rows]

    def _ndjson(self, content: Any) -> list[Rows]:
        """Return lines as rows. A file's reader says what a line is: where it ends, how long it may be, what it means.

        Lines with just the usual types are decoded quickly; any other as a line of a file is. Both say the same of a
        line (tests compare them), and what becomes of one depends on that line alone.
        """
        text = bytes(content).removeprefix(BOM_UTF8)
        usual: list[Any] = []
        others: list[bytes] = []
        for piece in _pieces(text):
            rows = self._all_usual(piece)
            if rows is None:
                self._line_by_line(piece, usual, others)
            else:
                usual += rows
        found = [Rows(self._batch(usual))] if usual else []
        return [*found, text_rows(others, self._columns)] if others else found

    def _all_usual(self, piece: bytes) -> list[Any] | None:
        """Return the rows of some lines, decoded together; None unless each line is one usual object for sure.

        ``}`` and ``{`` with only a line's end between them stand side by side nowhere within JSON, so every line's end
        is between two objects; and with as many objects as lines there is one in each.
        """
        ends = piece.count(b"\n")
        if piece.count(b"}\n{") != ends or b"\r" in piece or len(piece) >= LONGEST_LINE:
            return None
        if piece.count(b"{") + piece.count(b"[") > ends + 1 + _NESTED:
            return None
        try:
            rows = self._decode_all(piece)
        except _NOT_THE_USUAL:
            return None
        return rows if len(rows) == ends + 1 and not self._user_is_zero(rows) else None

    def _line_by_line(self, piece: bytes, usual: list[Any], others: list[bytes]) -> None:
        for line in piece.splitlines():
            if not line.strip(_BLANK):
                continue
            try:
                if len(line) < LONGEST_LINE and line.count(b"{") + line.count(b"[") <= _NESTED:
                    row = self._decode(line)
                    if not (self._user_is_zero([row]) and b"-0" in line):
                        usual.append(row)
                        continue
            except _NOT_THE_USUAL:
                pass
            others.append(line)

    def _user_is_zero(self, rows: list[Any]) -> bool:
        """Whether a user is the number 0, which may be written -0: another name to a file's reader."""
        return self._user is not None and 0 in map(self._user, rows)

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


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose buffers are all sound. Text that is not UTF-8 is missing: it spoils its own row only."""
    return pa.RecordBatch.from_arrays([_checked_column(column) for column in batch.columns], batch.schema.names)


def _checked_column(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        values = _checked_column(column.dictionary)
        column.indices.validate(full=True)
        return values.take(column.indices)  # which checks that there is a value for each
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.binary_view()).cast(pa.large_binary())
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary())
    else:
        column.validate(full=True)
        return column
    column.validate(full=True)
    return text_column(column)


def _pieces(text: bytes) -> Iterator[bytes]:
    """Yield lines, many at a time, without the end of the last of them."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start + _PIECE)
        end = len(text) if end < 0 else end
        yield text[start:end].removesuffix(b"\n")
        start = end + 1
