"""Synthetic points as columns: coordinates, and attributes where events have them. Public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Floats
from phdstream.domains import Domain

__all__ = ["locations_of", "names_beside_shapes", "point_columns"]


def point_columns(points: NDArray[Any], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the columns of points, by name: those of rows with named fields, or of an array (n, d).

    >>> point_columns(np.array([[1.0, 2.0]]), ("x", "y"))
    {'x': array([1.]), 'y': array([2.])}
    """
    if points.dtype.names is not None:
        return {name: points[name] for name in names}
    return {name: points[:, i] for i, name in enumerate(names)}


def names_beside_shapes(domain: Domain) -> tuple[str, ...]:
    """Return what rows have besides their place, where that is a shape: the names of attributes."""
    return tuple(attribute.name for attribute in domain.attributes)


def locations_of(points: NDArray[Any], names: Sequence[str]) -> Floats:
    """Return the coordinates of points that are called as the place's ``names`` say, an array (n, 2) in the plane."""
    if points.dtype.names is not None:
        return np.column_stack([points[name] for name in names]).astype(np.float64)
    return points.astype(np.float64)
