"""Reading polygons and lines from what users hold: Shapely, GeoPandas, or a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools
from phdstream.domains.shapes.files import read_geometry_file
from phdstream.domains.shapes.projection import Projection, crs_name
from phdstream.errors import InputError

__all__ = ["check_valid", "geometry_parts", "project_geometries", "read_geometries", "read_layer"]

_POLYGONS = ("Polygon", "MultiPolygon")
_FARTHEST = 1e30
"""No coordinate is larger: areas and squares of lengths must be numbers too."""


def read_geometries(source: Any, crs: Any = None) -> tuple[NDArray[Any], str | None]:
    """Return an array of Shapely geometries and the name of their coordinate system (None if unknown).

    ``source`` is a Shapely geometry, a list of them, a GeoSeries or GeoDataFrame, or the path of a file (see
    `phdstream.domains.shapes.files`). A ``crs`` that is given must agree with the source's own. Empty ones are left
    out.
    """
    array, own = _read(source)
    stated = crs_name(crs)
    if own is not None and stated is not None and own != stated:
        raise InputError(f"the geometries are in {own}, but crs={stated} was given: leave crs out, or convert them.")
    if shapely.is_missing(array).any():
        raise InputError("every geometry must be a Shapely geometry; some are missing or of another kind.")
    there: NDArray[Any] = array[~shapely.is_empty(array)]
    if not there.size:
        raise InputError("there is no geometry: all are empty.")
    _check_finite(there, _FARTHEST)
    return there, own or stated


def read_layer(source: Any) -> tuple[NDArray[Any], str | None]:
    """Return the polygons of a layer, one for each row, and the name of their coordinate system.

    A missing or empty one is an empty polygon; one that is not valid (it crosses itself, its parts overlap) is mended.
    """
    array, own = _read(source)
    missing = shapely.is_missing(array) | shapely.is_empty(array)
    array = np.where(missing, shapely.Polygon(), array)
    kinds = {str(g.geom_type) for g in array} - set(_POLYGONS)
    if kinds:
        raise InputError(f"a layer to count in must hold polygons, not {', '.join(sorted(kinds))}s.")
    _check_finite(array, _FARTHEST)  # with larger ones GEOS may never end
    for i in np.flatnonzero(~_valid(array)).tolist():
        array[i] = _mended(array[i])
    return array, own


def _valid(geometries: NDArray[Any]) -> Bools:
    """Return which geometries are valid; one of which GEOS cannot even tell that is not."""
    try:
        return np.asarray(shapely.is_valid(geometries))
    except shapely.errors.GEOSException:
        if geometries.size == 1:
            return np.zeros(1, dtype=bool)
        return np.concatenate([_valid(geometries[i : i + 1]) for i in range(geometries.size)])


def _mended(shape: Any) -> Any:
    """Return what a polygon that is not valid covers: each part made valid, together as one."""
    try:
        parts = shapely.get_parts(shapely.make_valid(shapely.get_parts(shape)))
        return shapely.union_all(parts[np.isin(shapely.get_type_id(parts), (3, 6))])
    except shapely.errors.GEOSException:
        raise InputError("a polygon is not valid and cannot be mended: draw it anew, or leave it out.") from None


def _check_finite(geometries: NDArray[Any], farthest: float = np.inf) -> None:
    coordinates = shapely.get_coordinates(geometries)
    if not np.isfinite(coordinates).all() or (np.abs(coordinates) > farthest).any():
        limit = f" of at most {farthest:g}" if np.isfinite(farthest) else ""
        raise InputError(f"every coordinate of a geometry must be a finite number{limit}.")


def _read(source: Any) -> tuple[NDArray[Any], str | None]:
    """Return geometries, None where there is none, and the name of their coordinate system."""
    if isinstance(source, str | Path):
        return read_geometry_file(Path(source))
    own = None
    if hasattr(source, "to_crs"):  # GeoPandas
        try:
            own, source = crs_name(source.crs), source.geometry if hasattr(source, "geometry") else source
        except AttributeError:
            raise InputError("this GeoDataFrame has no active geometry: name one with set_geometry(...).") from None
    if isinstance(source, shapely.Geometry):
        source = [source]
    if not isinstance(source, Iterable) or getattr(source, "shape", None) == ():
        raise InputError(f"expected geometries (Shapely, GeoSeries, or a path to a file), not {type(source).__name__}.")
    listed = list(source)
    if not all(item is None or isinstance(item, shapely.Geometry) for item in listed):
        raise InputError("every geometry must be a Shapely geometry; some are missing or of another kind.")
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array, own


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


def check_valid(polygons: NDArray[Any]) -> None:
    """Refuse polygons that cross themselves, and such as have no area."""
    invalid = ~shapely.is_valid(polygons)
    if invalid.any():
        reason = shapely.is_valid_reason(polygons[invalid])[0]
        raise InputError(
            f"{int(invalid.sum())} of {polygons.size} polygons are not valid ({reason}). Mend them first, for "
            "instance with shapely.make_valid or QGIS's 'Fix geometries'."
        )
    if shapely.area(polygons).sum() <= 0:
        raise InputError("the polygons have no area.")


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
