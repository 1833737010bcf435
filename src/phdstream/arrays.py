"""Names for the array types that pass between rooms, and the reading of points from what users hold."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from phdstream.errors import InputError

__all__ = ["Bools", "Floats", "Ints", "points_array", "rectangles_array"]

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


def points_array(points: Any, dimension: int) -> Floats:
    """Return points as an array (n, dimension) of floats.

    Takes anything NumPy reads as numbers, a pandas or Polars frame or Arrow table of coordinate
    columns in order, a GeoSeries of points, or None for no points.

    >>> points_array([(0.5, 0.25)], 2)
    array([[0.5 , 0.25]])
    >>> points_array(None, 3).shape
    (0, 3)
    """
    if points is None:
        return np.empty((0, dimension))
    if hasattr(points, "get_coordinates"):  # a GeoSeries or GeoDataFrame
        points = points.get_coordinates().to_numpy()
    elif isinstance(points, pa.Table | pa.RecordBatch):
        points = [column.to_numpy(zero_copy_only=False) for column in _arrow_columns(points)]
        points = np.column_stack(points) if points else np.empty((0, 0))
    elif hasattr(points, "to_numpy"):
        points = points.to_numpy()
    return _checked(points, dimension)


def _arrow_columns(table: pa.Table | pa.RecordBatch) -> list[pa.Array]:
    return [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in table.columns]


def _checked(points: Any, dimension: int) -> Floats:
    try:
        array: Floats = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"points must be numbers, an array of shape (n, {dimension}); what came could not be read as numbers."
        ) from None
    if array.size == 0:
        return np.empty((0, dimension))
    if array.ndim != 2 or array.shape[1] != dimension:
        raise InputError(
            f"points must have shape (n, {dimension}), one column a coordinate of the domain; "
            f"what came has {array.ndim} dimension(s)"
            + (f" and {array.shape[1]} column(s)." if array.ndim == 2 else ".")
        )
    return array


def rectangles_array(rectangles: Any, dimension: int) -> Floats:
    """Return rectangles as an array (n, 2·dimension): all minima, then all maxima."""
    try:
        array: Floats = np.asarray(rectangles, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] != 2 * dimension:
        raise InputError(
            f"rectangles must be an array (n, {2 * dimension}) of numbers: the {dimension} minima, then the maxima."
        )
    if np.isnan(array).any() or (array[:, :dimension] > array[:, dimension:]).any():
        raise InputError("every rectangle needs its minima at or below its maxima, and no NaN.")
    return array
