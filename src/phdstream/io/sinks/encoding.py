"""Pieces of tables and shapes, written to a file in one format. Public."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import shapely
from numpy.typing import NDArray

__all__ = ["CSV_NOTE", "as_plain_text", "with_geometry", "write_csv", "write_geojson", "write_parquet"]

_FORMULA = r"^[=+\-@\t\r]"
CSV_NOTE = "texts that begin with = + - @, a tab or a carriage return have an apostrophe before them: none is a formula"
_REPEATED = ["tick", "level"]
"""Columns whose values repeat; a dictionary of all coordinates would only cost memory."""


def write_parquet(file: IO[bytes], pieces: Iterator[pa.Table]) -> None:
    """Write tables of one schema as one Parquet file, a group of rows each."""
    first = next(pieces)
    with pyarrow.parquet.ParquetWriter(file, first.schema, use_dictionary=_REPEATED) as writer:
        for piece in chain([first], pieces):
            writer.write_table(piece)


def write_csv(file: IO[bytes], pieces: Iterator[pa.Table]) -> None:
    """Write tables of one schema as one CSV file that no spreadsheet runs; see `as_plain_text`."""
    first = as_plain_text(next(pieces))
    with pyarrow.csv.CSVWriter(file, first.schema) as writer:
        writer.write_table(first)
        for piece in pieces:
            writer.write_table(as_plain_text(piece))


def as_plain_text(table: pa.Table) -> pa.Table:
    """Return a table whose names and texts no spreadsheet takes for formulas: those that it would get an apostrophe.

    >>> as_plain_text(pa.table({"=x": ["=1+1", "Paris"], "y": [-1, 2]})).to_pydict()
    {"'=x": ["'=1+1", 'Paris'], 'y': [-1, 2]}
    """
    columns = {_harmless(name): table.column(name) for name in table.column_names}
    for name, column in columns.items():
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            runs = pc.match_substring_regex(column, _FORMULA)
            columns[name] = pc.if_else(runs, pc.binary_join_element_wise("'", column, ""), column)
    return pa.table(columns)


def _harmless(name: str) -> str:
    return f"'{name}" if re.match(_FORMULA, name) else name


def with_geometry(table: pa.Table, shapes: NDArray[Any]) -> pa.Table:
    """Return a table with a geometry column beside its own."""
    return table.append_column("geometry", pa.array(shapely.to_wkb(shapes), pa.binary()))


def write_geojson(file: IO[bytes], pieces: Iterator[tuple[pa.Table, NDArray[Any]]], head: dict[str, Any]) -> None:
    """Write features as one GeoJSON text, whose head says more."""
    file.write(b'{"type": "FeatureCollection", ' + json.dumps(head, ensure_ascii=False)[1:-1].encode())
    file.write(b', "features": [')
    begun = False
    for table, shapes in pieces:
        lines = list(map(_feature, table.to_pylist(), shapely.to_geojson(shapes)))
        if lines:
            file.write((",\n" if begun else "\n").encode() + ",\n".join(lines).encode())
            begun = True
    file.write(b"\n]}\n")


def _feature(row: dict[str, Any], geometry: str) -> str:
    known = {name: None if isinstance(x, float) and not np.isfinite(x) else x for name, x in row.items()}
    return f'{{"type": "Feature", "properties": {json.dumps(known, ensure_ascii=False)}, "geometry": {geometry}}}'
