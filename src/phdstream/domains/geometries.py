"""Reading polygons and lines from what users hold: Shapely, GeoPandas, or a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.domains.projection import Projection, crs_name, need
from phdstream.errors import InputError

__all__ = ["geometry_parts", "project_geometries", "read_geometries"]


def read_geometries(source: Any, crs: Any = None) -> tuple[NDArray[Any], str | None]:
    """Return an array of Shapely geometries and the name of their coordinate system (None if unknown).

    ``source`` is a Shapely geometry, a list of them, a GeoSeries or GeoDataFrame, or the path of a file that GeoPandas
    reads (GeoJSON, GeoPackage, shapefile, GeoParquet). A ``crs`` that is given must agree with the source's own.
    """
    own = None
    if isinstance(source, str | Path):
        source = _read_file(Path(source))
    if hasattr(source, "geometry") and hasattr(source, "crs"):  # GeoDataFrame or GeoSeries
        own, source = crs_name(source.crs), source.geometry.to_numpy()
    if isinstance(source, shapely.Geometry):
        source = [source]
    stated = crs_name(crs)
    if own is not None and stated is not None and own != stated:
        raise InputError(f"the geometries are in {own}, but crs={stated} was given: leave crs out, or convert them.")
    return _as_array(source), own or stated


def _read_file(path: Path) -> Any:
    geopandas = need("geopandas")
    if not path.exists():
        raise InputError(f"there is no file {path}.")
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return geopandas.read_parquet(path)
        return geopandas.read_file(path, **_line_layer(path))
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} cannot be read as geometries: {reason}") from None


def _line_layer(path: Path) -> dict[str, str]:
    """Return the layer to read: an OSMnx GeoPackage has nodes and edges, and the edges are meant."""
    if path.suffix.lower() != ".gpkg":
        return {}
    layers = [str(name) for name, _ in need("pyogrio").list_layers(path)]
    return {"layer": "edges"} if "edges" in layers else {}


def _as_array(source: Any) -> NDArray[Any]:
    if not isinstance(source, Iterable):
        raise InputError(f"expected geometries (Shapely, GeoSeries, or a path to a file), not {type(source).__name__}.")
    array = np.array(list(source), dtype=object)
    if not all(isinstance(g, shapely.Geometry) for g in array):
        raise InputError("every geometry must be a Shapely geometry; some are missing or of another kind.")
    if array.size == 0 or shapely.is_empty(array).all():
        raise InputError("there is no geometry: all are empty.")
    there: NDArray[Any] = array[~shapely.is_empty(array)]
    return there


def geometry_parts(geometries: NDArray[Any], kind: str) -> NDArray[Any]:
    """Return the single polygons or lines of geometries; refuse any other kind among them.

    >>> len(geometry_parts(np.array([shapely.box(0, 0, 1, 1)]), "Polygon"))
    1
    """
    parts: NDArray[Any] = shapely.get_parts(geometries)
    while (nested := shapely.get_type_id(parts) >= 4).any():
        parts = np.concatenate([parts[~nested], shapely.get_parts(parts[nested])])
    found = sorted({str(g.geom_type) for g in parts})
    if kind == "LineString":
        found = ["LineString" if name == "LinearRing" else name for name in found]
    if set(found) - {kind}:
        raise InputError(f"expected {kind}s only, but there are also {', '.join(sorted(set(found) - {kind}))}s.")
    return parts


def _fine(geometries: NDArray[Any]) -> float:
    """Return a length so small that a straight side of it is as good as straight on any map."""
    west, south, east, north = shapely.total_bounds(geometries)
    return float(max(east - west, north - south)) / 2000


def project_geometries(geometries: NDArray[Any], projection: Projection) -> NDArray[Any]:
    """Return geometries in the tree's coordinate system; what cannot be mapped there is refused."""
    if projection.identity:
        return geometries
    mapped = shapely.transform(shapely.segmentize(geometries, _fine(geometries)), projection.forward)
    if not np.isfinite(shapely.get_coordinates(mapped)).all():
        raise InputError(f"some of the geometry has no place in {projection.tree_crs}: choose another tree_crs.")
    return np.asarray(mapped)
