"""Yellow taxis of New York, as the Taxi and Limousine Commission (TLC) publishes their trips."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from benchmarks.reproduction.event_table import EventTable, between, inside, replay, subsample
from benchmarks.reproduction.tables import existing, on_earth, reason
from phdstream.domains.outlines import new_york_state
from phdstream.errors import InputError

__all__ = ["yellow_taxi", "yellow_taxi_stream"]

_WHERE = (
    "The trips of New York's yellow taxis are published by the city's Taxi and Limousine Commission (TLC) as 'TLC Trip "
    "Record Data': get yellow_tripdata_2013-01 there, in the edition with coordinates, and give its path."
)
_NAMES = {
    "time": ("pickup_datetime", "tpep_pickup_datetime", "trip_pickup_datetime"),
    "x": ("pickup_longitude", "start_lon"),
    "y": ("pickup_latitude", "start_lat"),
    "dropoff_time": ("dropoff_datetime", "tpep_dropoff_datetime", "trip_dropoff_datetime"),
    "dropoff_x": ("dropoff_longitude", "end_lon"),
    "dropoff_y": ("dropoff_latitude", "end_lat"),
}
"""What columns were called over the years, without regard to case and to spaces around."""
_TIME = pa.timestamp("us")
_BATCH_ROWS = 1 << 17
_NEAR = (-80.0, 39.0, -71.0, 46.0)


def yellow_taxi(path: str | Path) -> Iterator[pa.RecordBatch]:
    """Return the trips of a month of TLC's ``yellow_tripdata`` (CSV, also compressed, or Parquet), batch by batch.

    Get it from the New York City Taxi and Limousine Commission: "TLC Trip Record Data". Coordinates are in the
    editions of trips up to June 2016; later editions, also of earlier months, have taxi zones instead and are refused.

    Columns: ``time``, ``x`` (longitude), ``y`` (latitude) of the pickup, ``dropoff_time``, ``dropoff_x``,
    ``dropoff_y``. Trips whose pickup has no time or no place (zeros, in these files) are left out.
    """
    file = existing(path, _WHERE)
    return _checked(file, _parquet(file) if file.suffix.lower() in (".parquet", ".pq") else _csv(file))


def _checked(path: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        for batch in batches:
            known = pc.and_(pc.not_equal(batch.column("x"), 0.0), pc.is_valid(batch.column("time")))
            located = on_earth(batch.filter(pc.fill_null(known, False)), str(path))
            _check_place(path, located)
            yield located
    except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path} is not a whole file of taxi trips ({reason(error)}). {_WHERE}") from None


def _check_place(path: Path, batch: pa.RecordBatch) -> None:
    x, y = batch.column("x").to_numpy(zero_copy_only=False), batch.column("y").to_numpy(zero_copy_only=False)
    west, south, east, north = _NEAR
    if 2 * ((x > west) & (x < east) & (y > south) & (y < north)).sum() < len(x):
        raise InputError(f"{path}: most pickups are far from New York. Are longitude and latitude swapped?")


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    with pyarrow.parquet.ParquetFile(path) as file:
        names = _match(path, file.schema_arrow.names)
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(names.values())):
            columns = {new: pc.cast(batch.column(old), _kind(new), safe=False) for new, old in names.items()}
            yield pa.RecordBatch.from_pydict(columns)


def _csv(path: Path) -> Iterator[pa.RecordBatch]:
    header = _header(path)
    names = _match(path, header)
    kinds = {old: _kind(new) for new, old in names.items()}
    with pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(column_names=header, skip_rows=1),
        convert_options=pyarrow.csv.ConvertOptions(include_columns=list(kinds), column_types=kinds),
    ) as file:
        for batch in file:
            yield pa.RecordBatch.from_pydict({new: batch.column(old) for new, old in names.items()})


def _header(path: Path) -> list[str]:
    """Return the columns' names; some editions have spaces around them, an empty line after, and unnamed columns."""
    with io.TextIOWrapper(pa.input_stream(path), encoding="utf-8-sig") as file:
        names = [name.strip().strip('"').strip() for name in file.readline().split(",")]
        row = next((line for line in file if line.strip()), "")
    return names + [f"unnamed {i}" for i in range(len(names), row.count(",") + 1 if row else 0)]


def _match(path: Path, header: list[str]) -> dict[str, str]:
    """Return the file's name of each column."""
    there = {name.strip().lower(): name for name in header}
    found = {new: [there[old] for old in olds if old in there] for new, olds in _NAMES.items()}
    missing = [_NAMES[new][0] for new, old in found.items() if not old]
    if missing and "pulocationid" in there:
        raise InputError(f"{path} has taxi zones (PULocationID), not coordinates: a later edition. {_WHERE}")
    if missing:
        raise InputError(f"{path} has no column for {', '.join(missing)}. {_WHERE}")
    return {new: old[0] for new, old in found.items()}


def _kind(name: str) -> pa.DataType:
    return _TIME if name.endswith("time") else pa.float64()


def yellow_taxi_stream(
    path: str | Path,
    *,
    points: int = 100_000,
    within: Any = None,
    start: datetime = datetime(2013, 1, 1),
    end: datetime = datetime(2013, 2, 1),
    seed: int = 0,
) -> EventTable:
    """Return the paper's NY taxi: pickups of January 2013 in New York State (or ``within`` a polygon), every 6 hours.

    ``points`` of them are drawn, each time keeping its share.
    """
    events = inside(between(yellow_taxi(path), start, end), new_york_state() if within is None else within)
    return replay(subsample(events, points, seed), timedelta(hours=6), start=start, end=end)
