"""Files of polygons and lines, from anywhere: read by what they are, never by what they say they are.

GDAL picks a driver by a file's content, whatever its name, and some drivers open what the content names: other
files, or addresses on the network. So GeoJSON is read without GDAL, and GDAL is handed a file only if its name and its
first bytes agree that it is a GeoPackage, a shapefile or a FlatGeobuf.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.domains.shapes.projection import crs_name, need
from phdstream.errors import InputError

__all__ = ["read_geometry_file", "read_weighted_file"]

_SQLITE, _GEOPACKAGE, _APPLICATION = b"SQLite format 3\0", (b"GPKG", b"GP10", b"GP11"), slice(68, 72)
_SHAPEFILE, _FLATGEOBUF, _PARQUET = b"\0\0\x27\x0a", (b"fgb\x03", b"fgb"), b"PAR1"
_DEGREES = "EPSG:4326"
_HEAD = 100
_DEEPEST = "its parts are nested too deeply."


_Read: TypeAlias = tuple[NDArray[Any], str | None, Callable[[str], Any]]
"""Geometries, their coordinate system, and what gives a column of the features by its name (KeyError without it)."""


def read_geometry_file(path: Path) -> tuple[NDArray[Any], str | None]:
    """Return a file's geometries, one for each feature (None where there is none), and their coordinate system."""
    geometries, crs, _ = _read_features(path)
    return geometries, crs


def read_weighted_file(path: Path, column: str | None) -> tuple[NDArray[Any], str | None, Any]:
    """Return the same, and a column of numbers (None if none is named)."""
    geometries, crs, columns = _read_features(path)
    if column is None:
        return geometries, crs, None
    try:
        return geometries, crs, np.asarray(columns(column), dtype=np.float64)
    except KeyError:
        raise InputError(f"{path} has no column '{column}' beside its geometries.") from None
    except (TypeError, ValueError):
        raise InputError(f"the column '{column}' of {path} must hold a number for each geometry.") from None


def _read_features(path: Path) -> _Read:
    readers: dict[str, tuple[Callable[[bytes, bytes], bool], Callable[[Path], _Read]]] = {
        ".geojson": (_any, _read_geojson),
        ".json": (_any, _read_geojson),
        ".gpkg": (_is_geopackage, _read_with_gdal),
        ".shp": (lambda head, _: head.startswith(_SHAPEFILE), _read_with_gdal),
        ".fgb": (_is_flatgeobuf, _read_with_gdal),
        ".parquet": (_is_parquet, _read_parquet),
        ".pq": (_is_parquet, _read_parquet),
        ".geoparquet": (_is_parquet, _read_parquet),
    }
    ending = path.suffix.lower()
    if ending not in readers:
        raise InputError(f"{path}: a file of geometries must end in one of {', '.join(readers)}.")
    agrees, read = readers[ending]
    if not agrees(*_ends(path)):
        raise InputError(f"{path} is not what its name says: its content is not that of a {ending} file.")
    try:
        return read(path.resolve())
    except InputError:
        raise
    except RecursionError:
        raise InputError(f"{path} cannot be read as geometries: {_DEEPEST}") from None
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} cannot be read as geometries: {reason}") from None


def _ends(path: Path) -> tuple[bytes, bytes]:
    """Return a file's first and last bytes; what is not a regular file is refused."""
    try:
        if not path.is_file():
            raise InputError(f"there is no file {path}." if not path.exists() else f"{path} is not a regular file.")
        with path.open("rb") as file:
            return file.read(_HEAD), _last(file)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} cannot be opened as a file.") from None


def _last(file: IO[bytes]) -> bytes:
    file.seek(0, 2)
    file.seek(-min(file.tell(), len(_PARQUET)), 2)
    return file.read()


def _any(_: bytes, __: bytes) -> bool:
    return True


def _is_geopackage(head: bytes, _: bytes) -> bool:
    return head.startswith(_SQLITE) and head[_APPLICATION] in _GEOPACKAGE


def _is_flatgeobuf(head: bytes, _: bytes) -> bool:
    return head.startswith(_FLATGEOBUF[0]) and head[4:].startswith(_FLATGEOBUF[1])


def _is_parquet(head: bytes, tail: bytes) -> bool:
    return head.startswith(_PARQUET) and tail == _PARQUET


def _read_with_gdal(path: Path) -> _Read:
    return _geometry_and_crs(need("geopandas").read_file(path, engine="pyogrio", **_line_layer(path)))


def _read_parquet(path: Path) -> _Read:
    return _geometry_and_crs(need("geopandas").read_parquet(path))


def _geometry_and_crs(frame: Any) -> _Read:
    return np.asarray(frame.geometry, dtype=object), crs_name(frame.crs), frame.__getitem__


def _line_layer(path: Path) -> dict[str, str]:
    """Return the layer to read: an OSMnx GeoPackage has nodes and edges, and the edges are meant."""
    if path.suffix.lower() != ".gpkg":
        return {}
    layers = [str(name) for name, _ in need("pyogrio").list_layers(path)]
    return {"layer": "edges"} if "edges" in layers else {}


def _read_geojson(path: Path) -> _Read:
    """Return the geometries of a GeoJSON text: a collection of features, one feature, or one geometry."""
    content = json.loads(path.read_bytes().decode("utf-8-sig"), parse_constant=_no_number)
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise InputError(f"{path} is not GeoJSON: it has no type.")
    features = content.get("features") if content["type"] == "FeatureCollection" else [content]
    if not isinstance(features, list) or not all(isinstance(feature, dict) for feature in features):
        raise InputError(f"{path} is not GeoJSON: its features are not a list of them.")
    found = [f.get("geometry") if f.get("type") == "Feature" else f for f in features]
    texts = np.array([None if geometry is None else json.dumps(geometry) for geometry in found], dtype=object)
    return np.atleast_1d(shapely.from_geojson(texts)), _stated_crs(content), partial(_property, features)


def _property(features: list[dict[str, Any]], name: str) -> list[Any]:
    """Return a property of all features; one that no feature has is not there."""
    found = [f["properties"] if isinstance(f.get("properties"), dict) else {} for f in features]
    if not any(name in each for each in found):
        raise KeyError(name)
    return [each.get(name) for each in found]


def _no_number(name: str) -> None:
    raise InputError(f"a GeoJSON file may not hold {name}.")


def _stated_crs(content: dict[str, Any]) -> str | None:
    """Return the coordinate system that the older member ``crs`` names; without it, degrees."""
    if "crs" not in content:
        return _DEGREES
    stated = content["crs"]
    if stated is None:
        return None
    properties = stated.get("properties") if isinstance(stated, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else None
    if not isinstance(name, str):
        raise InputError("the member crs of a GeoJSON file must name a coordinate system.")
    return _DEGREES if name.endswith(":CRS84") else crs_name(name)
