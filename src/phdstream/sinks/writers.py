"""Releases as files: Parquet, GeoParquet, GeoJSON, CSV. Public.

What a release may claim about privacy goes with it: in Parquet's metadata, in the member ``privacy`` of GeoJSON, and
for CSV, which has no place for it, in a file beside.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import shapely
from numpy.typing import NDArray

from phdstream.domains import Domain
from phdstream.domains.projection import need
from phdstream.errors import InputError, did_you_mean
from phdstream.maps import cell_shapes, check_planar, domain_crs
from phdstream.release import Release
from phdstream.state import replace_file

__all__ = ["FORMATS", "Encoder", "check_format", "encode_cells", "encode_points", "write_cells", "write_points"]

FORMATS = {"parquet": ".parquet", "geoparquet": ".parquet", "geojson": ".geojson", "csv": ".csv"}
"""The formats, and the ending of their files' names."""
Encoder = Callable[[IO[bytes]], None]
"""Writes a file's content."""
_PUBLIC = 0o644
_DEGREES = {"EPSG:4326", "OGC:CRS84"}
_AT_ONCE = 10_000
_REPEATED = ["tick", "level"]
"""Columns whose values repeat; a dictionary of all coordinates would only cost memory."""


def write_points(release: Release, path: str | Path) -> None:
    """Write a release's synthetic points to a file, whole or not at all; its name's ending decides the format.

    ``.parquet`` is GeoParquet 1.1 if points have two coordinates, and plain Parquet otherwise. ``.geojson`` is
    longitude and latitude by its standard: a domain in another coordinate system is written with the older member
    ``crs`` that GDAL and QGIS heed. ``.csv`` comes with ``NAME.csv-metadata.json``, which states the promise.
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
            facts = json.dumps(release.facts, indent=2, ensure_ascii=False).encode()
            replace_file(path.with_name(f"{path.name}-metadata.json"), lambda file: file.write(facts), _PUBLIC)
        replace_file(path, encoder, _PUBLIC)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or type(error).__name__}.") from None


def _format_of(path: Path, domain: Domain) -> str:
    by_ending = {".parquet": "geoparquet" if domain.dimension == 2 else "parquet", ".geojson": "geojson", ".csv": "csv"}
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
        _geojson_crs(domain_crs(domain))
    return form


def encode_points(release: Release, form: str) -> Encoder:
    """Return what writes the synthetic points in a format: columns ``tick`` and the coordinates."""
    points, names = release.sample(), release.domain.names
    table = pa.table({name: pa.array(points[:, i]) for i, name in enumerate(names)})
    return _encoder(release, table, form, names, lambda: shapely.points(points.astype(np.float64)))


def encode_cells(release: Release, form: str) -> Encoder:
    """Return what writes the cells in a format: columns ``tick`` and those of `Release.cells`."""
    return _encoder(release, release.cells(), form, (), lambda: cell_shapes(release.domain, release.leaves))


def _encoder(
    release: Release, table: pa.Table, form: str, coordinates: tuple[str, ...], shapes: Callable[[], NDArray[Any]]
) -> Encoder:
    """Return what writes a table with its shapes; ``coordinates`` need not be said again where shapes have them."""
    check_format(form, release.domain)
    if release.held:
        raise InputError("nothing is released yet: the stream is still collecting events for its start.")
    crs = domain_crs(release.domain)
    metadata = {"phdstream": json.dumps(release.facts), "privacy": release.privacy}
    table = table.add_column(0, "tick", pa.array(np.full(table.num_rows, release.tick, dtype=np.int64)))
    table = table.replace_schema_metadata(metadata)
    if form == "csv":
        return lambda file: pyarrow.csv.write_csv(table, file)
    if form == "geojson":
        properties = table.drop_columns(list(coordinates))
        return lambda file: _write_geojson(file, properties, shapes(), _head(release, crs))
    if form == "geoparquet":
        table = _with_geometry(table, shapes(), crs)
    return lambda file: pyarrow.parquet.write_table(table, file, use_dictionary=_REPEATED)


def _with_geometry(table: pa.Table, shapes: NDArray[Any], crs: str | None) -> pa.Table:
    """Return a table with a geometry column, as GeoParquet 1.1 describes it."""
    column: dict[str, Any] = {"encoding": "WKB", "crs": _projjson(crs)}
    column["geometry_types"] = sorted({str(shape.geom_type) for shape in shapes})
    if len(shapes):
        column["bbox"] = shapely.total_bounds(shapes).tolist()
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    table = table.append_column("geometry", pa.array(shapely.to_wkb(shapes), pa.binary()))
    return table.replace_schema_metadata((table.schema.metadata or {}) | {b"geo": json.dumps(geo).encode()})


def _projjson(crs: str | None) -> Any:
    return None if crs is None else need("pyproj").CRS.from_user_input(crs).to_json_dict()


def _head(release: Release, crs: str | None) -> dict[str, Any]:
    return {"privacy": release.privacy, "phdstream": release.facts} | _geojson_crs(crs)


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


def _write_geojson(file: IO[bytes], table: pa.Table, shapes: NDArray[Any], head: dict[str, Any]) -> None:
    file.write(b'{"type": "FeatureCollection", ' + json.dumps(head, ensure_ascii=False)[1:-1].encode())
    file.write(b', "features": [')
    for start in range(0, len(shapes), _AT_ONCE):
        rows = table.slice(start, _AT_ONCE).to_pylist()
        lines = map(_feature, rows, shapely.to_geojson(shapes[start : start + _AT_ONCE]))
        file.write((",\n" if start else "\n").encode() + ",\n".join(lines).encode())
    file.write(b"\n]}\n")


def _feature(row: dict[str, Any], geometry: str) -> str:
    known = {name: None if isinstance(x, float) and not np.isfinite(x) else x for name, x in row.items()}
    return f'{{"type": "Feature", "properties": {json.dumps(known, ensure_ascii=False)}, "geometry": {geometry}}}'
