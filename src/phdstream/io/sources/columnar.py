"""Formats that C libraries read: Parquet by Arrow, GeoPackage and shapefiles by GDAL. Private.

They run in a process of their own (`phdstream.io.sources.apart`), since a damaged file can take a C library down.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet

from phdstream.domains.shapes.projection import crs_name, need
from phdstream.errors import InputError
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.geometry import check_kinds, find_geometry, may_be_points, with_coordinates
from phdstream.io.sources.reading import Rows

__all__ = ["read_parquet", "read_vector"]

_READ_AT_ONCE = 1 << 20
_LOCKED_IN = {
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": "none",
    "OGR_SQLITE_LOAD_EXTENSIONS": "NO",
    "OGR_GPKG_STREAM_BASE_IMPL": "YES",
}
"""GDAL fetches nothing and loads nothing, should a file ask for it; and it reads rows one by one, since its quicker way
gives some of them twice if a GeoPackage's own count of rows is wrong."""


def read_parquet(path: Path, columns: Columns, rows: int) -> Iterator[Rows]:
    """Read a Parquet file a little at a time (Arrow would fetch all in advance); what it states of itself is not."""
    with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_READ_AT_ONCE) as file:
        schema = file.schema_arrow
        geometry = find_geometry(str(path), schema) if columns.coordinates else None
        names = [name for name in schema.names if geometry is None or name != geometry.column]
        found = columns.find(str(path), names, geometry is not None)
        extra = [geometry.column] if geometry and found.xy else []
        for batch in file.iter_batches(batch_size=rows, columns=[*found.columns, *extra]):
            yield Rows(batch if geometry is None else with_coordinates(str(path), batch, geometry, found))


def read_vector(path: Path, columns: Columns, rows: int) -> Iterator[Rows]:
    """Read what GDAL reads. Times come as text, since only so GDAL tells those with a zone from those without."""
    pyogrio = need("pyogrio")
    pyogrio.set_gdal_config_options(_LOCKED_IN)
    try:
        layer = _point_layer(pyogrio, path)
        info = pyogrio.read_info(path, layer=layer)
        found = columns.find(str(path), info["fields"].tolist(), geometry=True)
        options = {"layer": layer, "columns": found.columns, "read_geometry": found.xy is not None}
        with pyogrio.open_arrow(path, batch_size=rows, use_pyarrow=True, datetime_as_string=True, **options) as (
            _,
            reader,
        ):
            geometry = find_geometry(str(path), reader.schema)
            if geometry is not None:
                geometry = geometry.in_system(None if info["crs"] is None else crs_name(info["crs"]))
            for batch in reader:
                yield Rows(batch if geometry is None else with_coordinates(str(path), batch, geometry, found))
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError):
        beside = " Its .shx and .dbf must lie beside it." if path.suffix.lower() == ".shp" else ""
        raise InputError(f"{path} is not a whole file: GDAL cannot open it. Is it cut off?{beside}") from None


def _point_layer(pyogrio: Any, path: Path) -> str:
    """Return the layer to read: the only one, or the only one of points."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GDAL's remarks on files it reads nevertheless
        layers = [(str(name), str(kind)) for name, kind in pyogrio.list_layers(path) if kind is not None]
    points = [name for name, kind in layers if may_be_points(kind)]
    if len(layers) == 1:
        check_kinds(str(path), [layers[0][1]])
        return layers[0][0]
    if len(points) != 1:
        names = ", ".join(f"{name} ({kind})" for name, kind in layers) or "none with geometries"
        raise InputError(f"{path} must have one layer of points, but has: {names}. Save that layer as its own file.")
    return points[0]
