"""Tables in memory (pandas, GeoPandas, Polars, Arrow), read in the same way as files. Private.

They are recognised by what they offer, with `hasattr`, so that their libraries need not be installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from phdstream.domains.shapes.projection import crs_name
from phdstream.errors import InputError
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.geometry import Geometry, find_geometry, with_coordinates
from phdstream.io.sources.reading import Rows

__all__ = ["frame_rows", "source_name"]


def source_name(source: Any) -> str:
    """Return what to call a source in messages.

    >>> source_name(Path("a.csv")), source_name(pa.table({"x": [1]}))
    ('a.csv', 'the pyarrow Table')
    """
    if isinstance(source, str | Path):
        return str(source)
    return f"the {type(source).__module__.split('.')[0]} {type(source).__name__}"


def frame_rows(frame: Any, columns: Columns, rows: int) -> Iterator[Rows]:
    """Yield the rows of a table in order, at most ``rows`` at a time, with the columns needed."""
    name, names = source_name(frame), _names(frame)
    geometry = _geometry(name, frame) if columns.coordinates else None
    others = [column for column in names if geometry is None or column != geometry.column]
    found = columns.find(name, others, geometry is not None)
    table = _arrow(name, frame, [*found.columns, *([geometry.column] if geometry and found.xy else [])])
    for batch in table.to_batches(max_chunksize=rows):
        yield Rows(batch if geometry is None else with_coordinates(name, batch, geometry, found))


def _names(frame: Any) -> list[str]:
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return list(frame.schema.names)
    if hasattr(frame, "columns") and hasattr(frame, "__arrow_c_stream__"):  # pandas, GeoPandas, Polars
        return [str(name) for name in frame.columns]
    raise InputError(
        f"events come from a file's path or a table (pandas, GeoPandas, Polars, Arrow), not from {source_name(frame)}."
    )


def _geometry(name: str, frame: Any) -> Geometry | None:
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return find_geometry(name, frame.schema)
    active: str | None = getattr(frame, "active_geometry_name", None)  # of a GeoDataFrame
    return None if active is None else Geometry(active).in_system(crs_name(frame.crs))


def _arrow(name: str, frame: Any, names: list[str]) -> pa.Table:
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return frame.select(names)
    part = frame[names]
    try:
        return pa.table(part.to_arrow(index=False) if hasattr(part, "to_wkb") else part)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise InputError(f"{name}: one of {', '.join(names)} holds values of different kinds in one column.") from None
