"""What a Parquet file states about its own times: the earliest and the latest of every row group. Private."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from phdstream.sources.columns import Columns
from phdstream.sources.formats import file_batches, open_parquet, reading

__all__ = ["parquet_times"]

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


def parquet_times(
    path: Path, column: str, rows: int, enough: Callable[[pa.RecordBatch], bool]
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield a file's times in order, each batch with the number of rows it stands for.

    Of a row group whose two stated ends are ``enough``, only these are yielded; of any other, all rows.
    """
    groups = _groups(path, column)
    if groups is None:  # what is wrong with the file or the column, reading it all will say
        yield from ((batch, batch.num_rows) for batch in file_batches(path, Columns((), time=column), rows))
        return
    with reading(path), open_parquet(path) as file:
        for group, ends in enumerate(groups):
            if ends is not None and enough(ends):
                yield ends, file.metadata.row_group(group).num_rows
            else:
                batches = file.iter_batches(batch_size=rows, row_groups=[group], columns=[column])
                yield from ((batch, batch.num_rows) for batch in batches)


def _groups(path: Path, column: str) -> list[pa.RecordBatch | None] | None:
    """Return the stated ends of every row group (None where there are none), or None if the column has no times."""
    try:
        with open_parquet(path) as file:
            names = [file.schema.column(i).path for i in range(len(file.schema))]
            kind = file.schema_arrow.field(column).type if names.count(column) == 1 else None
            if kind is None or not pa.types.is_timestamp(kind):
                return None
            at, meta = names.index(column), file.metadata
            if _unit(file.schema.column(at)) != kind.unit:
                return None
            return [_ends(meta.row_group(g).column(at).statistics, column, kind) for g in range(meta.num_row_groups)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        return None


def _unit(column: Any) -> str | None:
    """Return the unit in which a column's times are stored as whole numbers, or None if they are not."""
    logical = json.loads(column.logical_type.to_json())
    return _UNITS.get(logical.get("timeUnit")) if column.physical_type == "INT64" else None


def _ends(statistics: Any, column: str, kind: pa.DataType) -> pa.RecordBatch | None:
    """Return the two stated ends of a row group in which every row has a time, or None."""
    if statistics is None or not statistics.has_min_max or not statistics.has_null_count or statistics.null_count:
        return None
    ends = pa.array([statistics.min_raw, statistics.max_raw], pa.int64())
    return pa.RecordBatch.from_arrays([ends.view(kind)], [column])
