"""Uber's pickups in New York, as they came out by freedom of information: a month in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from benchmarks.reproduction.tables import existing, on_earth, reason
from phdstream.errors import InputError

__all__ = ["uber_pickups"]

_WHERE = (
    "Uber's pickups of April 2014 came out by a request to New York's TLC; FiveThirtyEight publishes them as "
    "'uber-tlc-foil-response': get uber-raw-data-apr14.csv there and give its path."
)
_NAMES = {"Date/Time": "time", "Lon": "x", "Lat": "y"}
_COLUMNS = {"Date/Time": pa.timestamp("us"), "Lon": pa.float64(), "Lat": pa.float64()}


def uber_pickups(path: str | Path) -> Iterator[pa.RecordBatch]:
    """Return the pickups of ``uber-raw-data-apr14.csv``, batch by batch; columns ``time``, ``x``, ``y``.

    Each row is a local time such as 4/1/2014 0:11:00, a latitude, a longitude and a base.
    """
    return _batches(existing(path, _WHERE))


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    options = pyarrow.csv.ConvertOptions(
        include_columns=list(_COLUMNS), column_types=_COLUMNS, timestamp_parsers=["%m/%d/%Y %H:%M:%S"]
    )
    try:
        with pyarrow.csv.open_csv(path, convert_options=options) as file:
            for batch in file:
                columns = {new: batch.column(old) for old, new in _NAMES.items()}
                yield on_earth(pa.RecordBatch.from_pydict(columns), str(path))
    except (pa.ArrowException, KeyError, OSError) as error:
        raise InputError(f"{path} is not a whole file of Uber's pickups ({reason(error)}). {_WHERE}") from None
