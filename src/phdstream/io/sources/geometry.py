"""Point geometries as two columns of coordinates and one that says what kind of geometry each row has."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from phdstream.domains.shapes.projection import crs_name
from phdstream.errors import InputError
from phdstream.io.sources.columns import Found
from phdstream.io.sources.reading import CRS, IMPLIED_DEGREES

__all__ = ["COLUMNS", "KIND", "Geometry", "check_kinds", "find_geometry", "may_be_points", "with_coordinates"]

KIND = "phdstream:kind of geometry"
"""The column that says what a row's geometry is: "Point", another kind, or nothing if it is missing or empty."""
COLUMNS = "columns"
"""That kind if a row's place is in columns, not in its geometry."""
_MAY_BE_POINTS = {"Point", "Point Z", "Point M", "Point ZM", "2.5D Point", "3D Point", "Unknown"}
_SEVERAL = ["MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection"]
_NAMES = np.array(["", "Point", "LineString", "LinearRing", "Polygon", *_SEVERAL])
"""The name of each kind, at one more than Shapely's number for it."""
_EXTENSION = b"ARROW:extension:name"


@dataclass(frozen=True)
class Geometry:
    """The column that holds geometries, and the name of their coordinate system (empty if it is not said)."""

    column: str
    crs: str = ""

    def in_system(self, crs: str | None) -> Geometry:
        """Return the same column, in a coordinate system that the source states elsewhere."""
        return replace(self, crs=crs or "")


def find_geometry(source: str, schema: pa.Schema) -> Geometry | None:
    """Return the geometry column, or None; refuse a file that says it holds no points.

    It is the primary column of GeoParquet's metadata, or the first column marked as one of GeoArrow's types.
    """
    geo = (schema.metadata or {}).get(b"geo")
    if geo is not None:
        return _of_geoparquet(source, geo, schema.names)
    marked = [field for field in schema if _extension_name(field).startswith(("geoarrow.", "ogc.wkb"))]
    return Geometry(marked[0].name, _of_geoarrow(marked[0])) if marked else None


def _of_geoarrow(field: pa.Field) -> str:
    """Return the coordinate system that GeoArrow's metadata names, if any."""
    stated = (field.metadata or {}).get(b"ARROW:extension:metadata", b"{}")
    try:
        return _system(json.loads(stated or b"{}").get("crs"))
    except (ValueError, AttributeError, RecursionError):
        return ""


def _system(crs: Any) -> str:
    """Return the name of a stated coordinate system; nothing if there is none. PROJJSON names itself by its id."""
    identity = crs.get("id") if isinstance(crs, dict) else None
    if isinstance(identity, dict) and {"authority", "code"} <= set(identity):
        return f"{identity['authority']}:{identity['code']}"
    return (crs_name(crs) or "") if crs else ""


def _extension_name(field: pa.Field) -> str:
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    return str((field.metadata or {}).get(_EXTENSION, b"").decode())


def _of_geoparquet(source: str, geo: bytes, names: list[str]) -> Geometry:
    try:
        meta = json.loads(geo)
        name = str(meta["primary_column"])
        column = meta["columns"][name]
        kinds = [str(kind) for kind in column.get("geometry_types", [])]
        crs = _system(column["crs"]) if "crs" in column else IMPLIED_DEGREES
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{source} calls itself GeoParquet, but its description of the geometry is damaged.") from None
    if name not in names:
        raise InputError(f"{source} says its geometry is in the column '{name}', but there is none of that name.")
    check_kinds(source, kinds)
    return Geometry(name, crs)


def check_kinds(source: str, kinds: list[str]) -> None:
    """Refuse a source whose description says that it holds other geometries only.

    >>> check_kinds("a.gpkg", ["Point Z"])
    """
    if kinds and not any(map(may_be_points, kinds)):
        raise InputError(f"{source} holds {_listed(kinds)} geometries, but every event is a point. {_remedy(kinds)}")


def may_be_points(kind: str) -> bool:
    """Return whether geometries declared to be of a kind can be points."""
    return kind in _MAY_BE_POINTS


def _listed(kinds: list[str]) -> str:
    return " and ".join(sorted(set(kinds)))


def _remedy(kinds: list[str]) -> str:
    if all(kind.startswith(("MultiPoint", "3D MultiPoint")) for kind in kinds):
        return "Split them into single points (in QGIS: Multipart to singleparts)."
    return "Turn each into a point first (in QGIS: Centroids), or give the file that has the points."


def with_coordinates(source: str, batch: pa.RecordBatch, geometry: Geometry, found: Found) -> pa.RecordBatch:
    """Return the columns found, the x and y of the geometry under the names of the coordinates, and `KIND`."""
    columns = {name: batch.column(name) for name in found.columns}
    if found.xy is not None:
        points, kinds = _points(source, batch.column(geometry.column))
        columns |= {found.xy[0]: pa.array(points[:, 0]), found.xy[1]: pa.array(points[:, 1]), KIND: kinds}
    return pa.RecordBatch.from_pydict(columns).replace_schema_metadata({CRS: geometry.crs.encode()})


def _points(source: str, column: pa.Array) -> tuple[NDArray[np.float64], pa.Array]:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_struct(column.type) and column.type.get_field_index("y") >= 0:
        return _of_coordinates(column, pc.struct_field(column, "x"), pc.struct_field(column, "y"))
    if pa.types.is_fixed_size_list(column.type):
        return _of_coordinates(column, pc.list_element(column, 0), pc.list_element(column, 1))
    if any(is_kind(column.type) for is_kind in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)):
        return _of_wkb(column.to_numpy(zero_copy_only=False))
    raise InputError(f"{source}: the geometry is stored as {column.type}, neither as WKB nor as points.")


def _of_coordinates(column: pa.Array, x: pa.Array, y: pa.Array) -> tuple[NDArray[np.float64], pa.Array]:
    points = np.column_stack([pc.fill_null(part, np.nan).to_numpy(zero_copy_only=False) for part in (x, y)])
    there = column.is_valid().to_numpy(zero_copy_only=False) & ~np.isnan(points).any(axis=1)
    return points, _kinds(np.where(there, "Point", ""))


def _of_wkb(wkb: NDArray[Any]) -> tuple[NDArray[np.float64], pa.Array]:
    points = np.array([is_point(value) for value in wkb], dtype=bool)
    readable = wkb.copy()
    readable[~points] = None  # what is no point is not even read
    shapes = shapely.from_wkb(readable, on_invalid="ignore")
    types = shapely.get_type_id(shapes)
    empty = shapely.is_empty(shapes)
    kinds = np.where(points, np.where(empty, "", _NAMES[types + 1]), [_other(value) for value in wkb])
    shapes[empty] = None  # which have no x
    return np.column_stack([shapely.get_x(shapes), shapely.get_y(shapes)]), _kinds(kinds)


def is_point(wkb: Any) -> bool:
    """Whether well-known binary says of itself that it is a point, of whatever dimension.

    >>> is_point(shapely.to_wkb(shapely.Point(1, 2))), is_point(shapely.to_wkb(shapely.MultiPoint([(1, 2)])))
    (True, False)
    """
    if not isinstance(wkb, bytes) or len(wkb) < 5 or wkb[0] > 1:
        return False
    kind = int.from_bytes(wkb[1:5], "little" if wkb[0] else "big")
    return kind % 0x10000000 % 1000 == 1


def _other(wkb: Any) -> str:
    """Return that well-known binary is another kind of geometry; nothing if it is missing or empty."""
    return "other" if isinstance(wkb, bytes) and len(wkb) > 9 else ""


def _kinds(kinds: NDArray[Any]) -> pa.Array:
    return pa.array(kinds, pa.string(), mask=kinds == "")
