"""Gowalla: six million check-ins around the world, as SNAP publishes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from benchmarks.reproduction.event_table import EventTable, inside, replay, subsample
from benchmarks.reproduction.tables import existing, on_earth, reason
from phdstream.domains.outlines import land
from phdstream.errors import InputError

__all__ = ["gowalla", "gowalla_stream"]

_WHERE = (
    "Gowalla's check-ins are published by SNAP, the Stanford Network Analysis Project, as the data set 'loc-gowalla': "
    "get loc-gowalla_totalCheckins.txt.gz there and give its path. Cite Cho, Myers and Leskovec (KDD 2011)."
)
_COLUMNS = {
    "user": pa.int64(),
    "time": pa.timestamp("us", "UTC"),
    "y": pa.float64(),
    "x": pa.float64(),
    "location": pa.int64(),
}


def gowalla(path: str | Path) -> Iterator[pa.RecordBatch]:
    """Return the check-ins of SNAP's ``loc-gowalla_totalCheckins.txt.gz`` (or unpacked), batch by batch.

    Get it from SNAP, the Stanford Network Analysis Project: data set "loc-gowalla". Each row is user, time (UTC),
    latitude, longitude and location, separated by tabs, without a header; the order is by user, not by time.

    Columns: ``time``, ``x`` (longitude), ``y`` (latitude), ``user``, ``location``. Rows that are nowhere on Earth (the
    file has a few) are left out; a file of another form is refused.
    """
    return _batches(existing(path, _WHERE))


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    try:
        with pyarrow.csv.open_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(column_names=list(_COLUMNS)),
            parse_options=pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(column_types=_COLUMNS),
        ) as file:
            for batch in file:
                yield _events(on_earth(batch, str(path)))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"{path} is not SNAP's Gowalla file, or not all of it ({reason(error)}). Each row must be user, time such "
            f"as 2010-10-19T23:55:27Z, latitude, longitude, location, separated by tabs. {_WHERE}"
        ) from None


def _events(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = {name: batch.column(name) for name in ("time", "x", "y", "user", "location")}
    return pa.RecordBatch.from_pydict(columns | {"time": columns["time"].cast(pa.timestamp("us"))})


def gowalla_stream(
    path: str | Path, *, points: int = 200_000, deletion: bool = False, within: Any = None, seed: int = 0
) -> EventTable:
    """Return the paper's Gowalla: check-ins on land without Antarctica (or ``within`` a polygon), a tick a day.

    ``points`` of them are drawn, each time keeping its share. With ``deletion`` a check-in is deleted after 30 days,
    which is the paper's "Gowalla with deletion".
    """
    events = inside(gowalla(path), land() if within is None else within)
    lifetime = timedelta(days=30) if deletion else None
    return replay(subsample(events, points, seed), timedelta(days=1), lifetime=lifetime)
