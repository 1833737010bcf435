"""Points from what users hold: one row is one event, whatever it is a row of.

That is part of the promise: an event is protected by ε because it counts once. So a row gives one point, at its own
position, or a missing one (NaN, which is counted nowhere); a row that is more than one point is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Floats
from phdstream.domains.columns import column_names, floats, is_missing, named_column
from phdstream.domains.shapes.projection import Projection, crs_name
from phdstream.errors import InputError

__all__ = ["points_array", "rectangles_array"]

_POINT = int(shapely.GeometryType.POINT)


def points_array(data: Any, names: Sequence[str], crs: str | None = None) -> Floats:
    """Return points as an array of floats with one row for each row that came, and one column for each of ``names``.

    Takes None for no points; frames and tables (pandas, Polars, Arrow, dictionaries of columns), read by the names of
    their columns; Shapely points, a GeoSeries or a GeoDataFrame, converted to ``crs``; and what NumPy reads as an
    array (n, d) of numbers. Missing, masked and empty entries are NaN.

    >>> points_array([(0.5, 0.25)], ("x", "y"))
    array([[0.5 , 0.25]])
    >>> points_array({"y": [1, None], "id": [7, 8], "x": [3.0, 4.0]}, ("x", "y"))
    array([[ 3.,  1.],
           [ 4., nan]])
    >>> points_array([shapely.Point(1, 2), None, shapely.Point()], ("x", "y"))
    array([[ 1.,  2.],
           [nan, nan],
           [nan, nan]])
    """
    if data is None:
        return np.empty((0, len(names)))
    if hasattr(data, "to_crs"):  # GeoPandas: a series, an array, or a frame with a geometry
        return _converted(*_geometry_of(data), names, crs)
    there = column_names(data)
    if there is not None:
        columns = [floats(named_column(data, there, name, names)) for name in names]
        return _stacked(columns)
    shapes = _shapes(data)
    return _checked(data, len(names)) if shapes is None else _coordinates(shapes, names)


def _geometry_of(data: Any) -> tuple[NDArray[Any], Any]:
    """Return the geometries of what GeoPandas holds, and their coordinate system."""
    try:
        series = data.geometry if hasattr(data, "columns") else data
        return np.asarray(series, dtype=object), data.crs
    except AttributeError:
        raise InputError("this GeoDataFrame has no active geometry: name one with set_geometry(...).") from None


def _converted(shapes: NDArray[Any], own: Any, names: Sequence[str], crs: str | None) -> Floats:
    points = _coordinates(shapes, names)
    stated = crs_name(own)
    if stated is None or stated == crs:
        return points
    if crs is None:
        raise InputError(
            f"the points are in {stated}, but the domain names no coordinate system, so they cannot be placed: "
            "say crs=... in the domain."
        )
    there = ~np.isnan(points).any(axis=1)
    points[there] = Projection(stated, crs).forward(points[there])
    return points


def _shapes(data: Any) -> NDArray[Any] | None:
    """Return what came as an array of Shapely geometries; None if it is not that."""
    if isinstance(data, shapely.Geometry):
        raise InputError("points come as a list, an array or a series, one for each event: this is a single geometry.")
    listed = isinstance(data, list | tuple) or getattr(data, "dtype", None) == np.dtype(object)
    if not listed or not any(isinstance(item, shapely.Geometry) for item in data):
        return None
    array = np.empty(len(data), dtype=object)
    array[:] = [item if isinstance(item, shapely.Geometry) else None for item in data]
    if not all(map(is_missing, (item for item, shape in zip(data, array, strict=True) if shape is None))):
        raise InputError("every event must be a Shapely point; in some rows there is something else.")
    return array


def _coordinates(shapes: NDArray[Any], names: Sequence[str]) -> Floats:
    """Return one row for each geometry; missing and empty ones are NaN."""
    if len(names) != 2:
        raise InputError(f"geometries have two coordinates, x and y; this domain's points have {len(names)}.")
    kinds, there = shapely.get_type_id(shapes), ~(shapely.is_missing(shapes) | shapely.is_empty(shapes))
    others = np.unique(kinds[there & (kinds != _POINT)])
    if others.size:
        kind = shapely.GeometryType(int(others[0])).name.title()
        raise InputError(
            f"every event is one point, but some rows hold another geometry (such as a {kind}). Turn each row into "
            "one point first: explode() what has several parts, or take each one's centroid or representative_point()."
        )
    points = np.full((shapes.size, 2), np.nan)
    points[there] = shapely.get_coordinates(shapes[there])
    return points


def _stacked(columns: list[Floats]) -> Floats:
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        raise InputError("the coordinates' columns must be one-dimensional and equally long.")
    return np.column_stack(columns)


def _checked(data: Any, dimension: int) -> Floats:
    array = floats(data)
    if array.shape == (0,):
        return np.empty((0, dimension))
    if array.ndim != 2 or (array.shape[1] != dimension and len(array)):
        raise InputError(
            f"points must have shape (n, {dimension}), one column a coordinate of the domain; "
            f"what came has {array.ndim} dimension(s)"
            + (f" and {array.shape[1]} column(s)." if array.ndim == 2 else ".")
        )
    return array.reshape(-1, dimension)


def rectangles_array(rectangles: Any, dimension: int) -> Floats:
    """Return rectangles as an array (n, 2·dimension): all minima, then all maxima."""
    try:
        array = floats(rectangles)
    except InputError:
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] != 2 * dimension:
        raise InputError(
            f"rectangles must be an array (n, {2 * dimension}) of numbers: the {dimension} minima, then the maxima."
        )
    if np.isnan(array).any() or (array[:, :dimension] > array[:, dimension:]).any():
        raise InputError("every rectangle needs its minima at or below its maxima, and no NaN.")
    return array
