"""Releases as files: Parquet, GeoParquet, GeoJSON, CSV. Public.

What a release may claim about privacy goes with it: in Parquet's metadata, in the member ``privacy`` of GeoJSON, and
for CSV, which has no place for it, in a file beside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from phdstream.domains import Domain
from phdstream.domains.shapes.projection import need
from phdstream.errors import InputError, did_you_mean
from phdstream.io.sinks.encoding import CSV_NOTE, with_geometry, write_csv, write_geojson, write_parquet
from phdstream.release import Release
from phdstream.release.columns import locations_of, point_columns
from phdstream.release.maps import cell_shapes, check_planar, check_released
from phdstream.streams.state import replace_file

__all__ = [
    "FORMATS",
    "Encoder",
    "check_format",
    "encode_cells",
    "encode_changes",
    "encode_points",
    "write_cells",
    "write_points",
]

FORMATS = {"parquet": ".parquet", "geoparquet": ".parquet", "geojson": ".geojson", "csv": ".csv"}
"""The formats, and the ending of their files' names."""
Encoder = Callable[[IO[bytes]], None]
"""Writes a file's content."""
_PUBLIC = 0o644
_DEGREES = {"EPSG:4326", "OGC:CRS84"}
_AT_ONCE = 10_000
_ROW_GROUP = 1 << 20
"""Rows written at a time: Parquet's own default for a group of rows."""


def write_points(release: Release, path: str | Path) -> None:
    """Write a release's synthetic points to a file, whole or not at all; its name's ending decides the format.

    ``.parquet`` is GeoParquet 1.1 if points have two coordinates, and plain Parquet otherwise. ``.geojson`` is
    longitude and latitude by its standard: a domain in another coordinate system is written with the older member
    ``crs`` that GDAL and QGIS heed. ``.csv`` comes with ``NAME.csv-metadata.json``, which states the promise; a text
    that a spreadsheet would run (it begins with = + - @, a tab or a carriage return) gets an apostrophe before it, and
    numbers are as they are.
    """
    _write(release, Path(path), encode_points)


def write_cells(release: Release, path: str | Path) -> None:
    """Write a release's cells with their counts, as polygons where the format has them; see `write_points`."""
    _write(release, Path(path), encode_cells)


def _write(release: Release, path: Path, encode: Callable[[Release, str], Encoder]) -> None:
    form = _format_of(path, release.domain)
    encoder = encode(release, form)
    try:
        if form == "csv":
            metadata = json.dumps(release.metadata | {"csv": CSV_NOTE}, indent=2, ensure_ascii=False).encode()
            replace_file(path.with_name(f"{path.name}-metadata.json"), lambda file: file.write(metadata), _PUBLIC)
        replace_file(path, encoder, _PUBLIC)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or type(error).__name__}.") from None


def _format_of(path: Path, domain: Domain) -> str:
    by_ending = {
        ".parquet": "geoparquet" if domain.location.dimension == 2 else "parquet",
        ".geojson": "geojson",
        ".csv": "csv",
    }
    if path.suffix.lower() not in by_ending:
        raise InputError(f"{path}: the name must end in one of {', '.join(by_ending)}, which says the format.")
    return by_ending[path.suffix.lower()]


def check_format(form: str, domain: Domain) -> str:
    """Return a format, or say why releases of the domain cannot be written in it."""
    if form not in FORMATS:
        raise InputError(f"unknown format {form!r}: {did_you_mean(str(form), FORMATS)}")
    if form in ("geoparquet", "geojson"):
        check_planar(domain)
    if form == "geojson":
        _geojson_crs(domain.crs)
    return form


@dataclass(frozen=True)
class _Rows:
    """What is written: so many rows, of which any run can be had as a table, and as shapes."""

    number: int
    table: Callable[[slice], pa.Table]
    shapes: Callable[[slice], NDArray[Any]]
    kinds: Callable[[], tuple[list[str], list[float]]]

    def pieces(self, rows: int) -> Iterator[slice]:
        """Yield runs of rows, at least one."""
        return (slice(start, start + rows) for start in range(0, max(self.number, 1), rows))


def encode_points(release: Release, form: str) -> Encoder:
    """Return what writes the synthetic points in a format: columns ``tick`` and the coordinates.

    Files are written piece by piece, so that little memory is needed besides the points themselves.
    """
    points, names, places = release.sample(), release.domain.names, release.domain.location.names

    def table(rows: slice) -> pa.Table:
        return pa.table({name: pa.array(column) for name, column in point_columns(points[rows], names).items()})

    def shapes(rows: slice) -> NDArray[Any]:
        return np.atleast_1d(shapely.points(locations_of(points[rows], places)))

    return _encoder(release, _Rows(len(points), table, shapes, _kinds_of(points, places)), form, places)


def _kinds_of(points: NDArray[Any], places: tuple[str, ...]) -> Callable[[], tuple[list[str], list[float]]]:
    """Return what tells the kinds of points' geometries, and their bounds."""

    def kinds() -> tuple[list[str], list[float]]:
        at = locations_of(points, places)
        return (["Point"], [*at.min(axis=0), *at.max(axis=0)]) if len(at) else ([], [])

    return kinds


def encode_changes(release: Release, form: str) -> Encoder:
    """Return what writes the synthetic changes since the tick before: as points, with ``sign`` (+1, -1)."""
    changes, places = release.changes().to_table(), release.domain.location.names
    points = np.column_stack([changes[name].to_numpy() for name in places])

    def shapes(rows: slice) -> NDArray[Any]:
        return np.atleast_1d(shapely.points(points[rows].astype(np.float64)))

    rows = _Rows(len(points), lambda rows: changes[rows], shapes, _kinds_of(points, places))
    return _encoder(release, rows, form, places)


def encode_cells(release: Release, form: str) -> Encoder:
    """Return what writes the cells in a format: columns ``tick`` and those of `Release.cells`."""
    cells, drawn = release.cells(), cache(lambda: cell_shapes(release.domain, release.leaves))

    def kinds() -> tuple[list[str], list[float]]:
        there = sorted({str(shape.geom_type) for shape in drawn()})
        return there, shapely.total_bounds(drawn()).tolist() if there else []

    rows = _Rows(cells.num_rows, lambda rows: cells[rows], lambda rows: drawn()[rows], kinds)
    return _encoder(release, rows, form, ())


def _encoder(release: Release, rows: _Rows, form: str, coordinates: tuple[str, ...]) -> Encoder:
    """Return what writes rows with their shapes; ``coordinates`` need not be said again where shapes have them."""
    check_format(form, release.domain)
    check_released(release)
    crs = release.domain.crs
    metadata: dict[str, Any] = {"phdstream": json.dumps(release.metadata), "privacy": release.privacy}
    if form == "geoparquet":
        metadata["geo"] = json.dumps(_geo_metadata(rows, crs))

    def table(some: slice) -> pa.Table:
        columns = rows.table(some)
        ticks = pa.array(np.full(columns.num_rows, release.tick, dtype=np.int64))
        return columns.add_column(0, "tick", ticks).replace_schema_metadata(metadata)

    if form == "csv":
        return lambda file: write_csv(file, map(table, rows.pieces(_ROW_GROUP)))
    if form == "geojson":
        return lambda file: write_geojson(
            file,
            ((table(some).drop_columns(list(coordinates)), rows.shapes(some)) for some in rows.pieces(_AT_ONCE)),
            _head(release, crs),
        )
    if form == "geoparquet":
        return lambda file: write_parquet(
            file, (with_geometry(table(some), rows.shapes(some)) for some in rows.pieces(_ROW_GROUP))
        )
    return lambda file: write_parquet(file, map(table, rows.pieces(_ROW_GROUP)))


def _geo_metadata(rows: _Rows, crs: str | None) -> dict[str, Any]:
    """Return what GeoParquet 1.1 says of the geometry column."""
    kinds, bounds = rows.kinds()
    column: dict[str, Any] = {"encoding": "WKB", "crs": _projjson(crs), "geometry_types": kinds}
    if bounds:
        column["bbox"] = [float(side) for side in bounds]
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}


def _projjson(crs: str | None) -> Any:
    return None if crs is None else need("pyproj").CRS.from_user_input(crs).to_json_dict()


def _head(release: Release, crs: str | None) -> dict[str, Any]:
    return {"privacy": release.privacy, "phdstream": release.metadata} | _geojson_crs(crs)


def _geojson_crs(crs: str | None) -> dict[str, Any]:
    """Return GeoJSON's older member ``crs`` for a system other than longitude and latitude."""
    if crs is None or crs in _DEGREES:
        return {}
    authority, _, code = crs.partition(":")
    if not code.isalnum():
        raise InputError(
            "GeoJSON can only name a coordinate system that has a code such as EPSG:25832: use geoparquet."
        )
    return {"crs": {"type": "name", "properties": {"name": f"urn:ogc:def:crs:{authority}::{code}"}}}
