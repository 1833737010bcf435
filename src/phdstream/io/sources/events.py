"""Events from files and tables, batch by batch: never more than a batch of a file in memory. Private."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from phdstream.arrays import Bools, Ints
from phdstream.io.sources.apart import rows_apart
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.frames import frame_rows, source_name
from phdstream.io.sources.reading import Reading, Rows
from phdstream.io.sources.rows import RowReader

__all__ = ["BATCH_ROWS", "Events", "read_events", "rows_and_good", "rows_to_events"]

BATCH_ROWS = 1 << 17


@dataclass
class Events:
    """A batch of events: time (microseconds, or None), points, sign (+1 or -1), users (exact ids, or None).

    ``bad`` says of how many rows no event came, and why.
    """

    time: Ints | None
    points: NDArray[Any]
    sign: NDArray[np.signedinteger[Any]]
    users: pa.Array | None
    bad: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.points)

    def only(self, rows: Bools) -> Events:
        """Return the events that are marked."""
        at = np.flatnonzero(rows)
        time = None if self.time is None else self.time[at]
        users = None if self.users is None else self.users.take(pa.array(at))
        return Events(time, self.points.take(at, axis=0), self.sign[at], users, self.bad)


def read_events(
    sources: Sequence[Any], columns: Columns, reading: Reading, notes: list[str] | None = None
) -> Iterator[Events]:
    """Yield all events of files (paths) or tables (pandas, GeoPandas, Polars, Arrow), in the order they are there.

    A row that cannot be read (no time, no coordinate, text where a number belongs, a geometry that is no point, a sign
    that is neither +1 nor -1, no user) stops the reading with a message, or is left out and counted in ``bad``. What
    becomes of a row depends on that row and on ``columns`` and ``reading`` alone. ``notes`` is told what was guessed.
    """
    for source in sources:
        first_row = 1
        for rows in _rows(source, columns, reading, [] if notes is None else notes):
            yield rows_to_events(source_name(source), first_row, rows, columns, reading)
            first_row += rows.lines


def _rows(source: Any, columns: Columns, reading: Reading, notes: list[str]) -> Iterator[Rows]:
    if isinstance(source, str | Path):
        return rows_apart(Path(source), columns, reading, BATCH_ROWS, notes)
    return frame_rows(source, columns, BATCH_ROWS)


def rows_to_events(source: str, first_row: int, rows: Rows, columns: Columns, reading: Reading) -> Events:
    """Return the events of some rows, of which ``first_row`` is the number of the first; see `read_events`."""
    events, good = rows_and_good(source, first_row, rows, columns, reading)
    return events if good.all() else events.only(good)


def rows_and_good(source: str, first_row: int, rows: Rows, columns: Columns, reading: Reading) -> tuple[Events, Bools]:
    """Return what all rows say, and which of them can be read: of the others it means nothing."""
    reader = RowReader(source, first_row, columns, reading)
    good = np.ones(rows.batch.num_rows, dtype=bool)
    reader.broken(rows)
    points = reader.points(rows.batch, good)
    time = reader.times(rows.batch, good)
    sign = reader.signs(rows.batch, good)
    users = reader.users(rows.batch, good)
    return Events(time, points, sign, users, reader.bad), good
