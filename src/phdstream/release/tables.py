"""Tables of what was released, in the library that was asked for. Public.

One rule for all: what has rows takes ``to=``. Without it a table is Arrow's, points are an array and counts are
`Counts`; a GeoDataFrame that comes in goes out as one, with columns added. Columns have the same names everywhere.
Arrow's tables state in their metadata what they may claim about privacy, frames of pandas and GeoPandas in ``attrs``;
Polars has no place for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from phdstream.errors import InputError, did_you_mean, shown

__all__ = ["arrow_table", "check_kind", "table_as"]

_NEEDED = {"arrow": "pyarrow", "pandas": "pandas", "polars": "polars", "geopandas": "geopandas"}
Shapes = Callable[[], tuple[NDArray[Any], str | None]]
"""The shapes of a table's rows and their coordinate system, worked out when they are asked for."""


def arrow_table(columns: dict[str, Any], metadata: dict[str, Any]) -> pa.Table:
    """Return an Arrow table that carries the release's metadata, above all what it may claim about privacy."""
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    return table.replace_schema_metadata(
        {"phdstream": json.dumps(metadata), "privacy": str(metadata.get("privacy", ""))}
    )


def check_kind(to: Any) -> None:
    """Refuse a kind of table that there is not, and one whose library is not installed."""
    if not isinstance(to, str) or to not in _NEEDED:
        hint = did_you_mean(to, _NEEDED) if isinstance(to, str) else f"use one of {', '.join(_NEEDED)}."
        raise InputError(f"a table cannot be made with to={shown(to)}: {hint}")
    try:
        import_module(_NEEDED[to])
    except ImportError:
        extra = "phdstream[geo]" if to == "geopandas" else to
        raise InputError(f"to={to!r} needs {to}: install it with  pip install '{extra}'.") from None


def table_as(to: Any, columns: dict[str, Any], metadata: dict[str, Any], shapes: Shapes | None = None) -> Any:
    """Return columns as a table of some kind; with GeoPandas, beside their shapes.

    >>> table_as("pandas", {"a": [1, 2]}, {"privacy": "simulated"}).attrs["privacy"]
    'simulated'
    >>> table_as("geopandas", {"a": [1, 2]}, {})
    Traceback (most recent call last):
    phdstream.errors.InputError: these rows have no shapes, so they make no GeoDataFrame: use another kind.
    """
    check_kind(to)
    if to == "geopandas" and shapes is None:
        raise InputError("these rows have no shapes, so they make no GeoDataFrame: use another kind.")
    if to == "geopandas" and shapes is not None:
        geometry, crs = shapes()
        frame = import_module(_NEEDED[to]).GeoDataFrame(columns, geometry=geometry, crs=crs)
        return with_metadata(frame, metadata)
    table = arrow_table(columns, metadata)
    if to == "polars":
        return import_module("polars").from_arrow(table)
    return table if to == "arrow" else with_metadata(table.to_pandas(), metadata)


def with_metadata(frame: Any, metadata: dict[str, Any]) -> Any:
    """Return a frame of pandas or GeoPandas with a release's metadata in its ``attrs``."""
    frame.attrs |= {"phdstream": metadata, "privacy": metadata.get("privacy", "")}
    return frame
