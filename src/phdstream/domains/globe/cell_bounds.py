"""Corners and bounding boxes of S2 cells, in degrees."""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Floats
from phdstream.domains.globe.s2 import Cells, corners, to_lon_lat

__all__ = ["WORLD", "cell_bounds", "drawn_corners", "face_bounds"]

_LIMIT = np.array([180.0, 90.0, 180.0, 90.0])
_OUTWARD = np.array([-1, -1, 1, 1])
WORLD = _LIMIT * _OUTWARD
"""West, south, east, north of the whole Earth."""
_ROUNDING = 1e-12
"""Degrees of arc by which rounding may carry a point over the edge of a cell; far more than it ever does."""
_FACE_LATITUDE = float(np.degrees(np.arcsin(1 / np.sqrt(3))))
_FACE_BOUNDS = np.array(
    [
        [-45.0, -45.0, 45.0, 45.0],
        [45.0, -45.0, 135.0, 45.0],
        [-180.0, _FACE_LATITUDE, 180.0, 90.0],
        [-180.0, -45.0, 180.0, 45.0],
        [-135.0, -45.0, -45.0, 45.0],
        [-180.0, -90.0, 180.0, -_FACE_LATITUDE],
    ]
)


def drawn_corners(cells: Cells) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of corners, (n, 4) each, all longitudes within 180 degrees of the middle's."""
    lon, lat = corners(cells)
    middle = to_lon_lat(cells.face, cells.u + cells.du / 2, cells.v + cells.dv / 2)[0][:, None]
    from_middle = (lon - middle + 180) % 360 - 180
    return middle + np.where(np.abs(lat) == 90, 0, from_middle), lat


def cell_bounds(cells: Cells) -> Floats:
    """Return the bounds of cells below the faces, (n, 4), wider than the cells by what rounding can do."""
    lon, lat = drawn_corners(cells)
    south, north = lat.min(axis=1), lat.max(axis=1)
    slack = _ROUNDING / np.cos(np.radians(np.maximum(-south, north)))
    sides = [lon.min(axis=1) - slack, south - _ROUNDING, lon.max(axis=1) + slack, north + _ROUNDING]
    return _within_world(np.stack(sides, axis=1))


def face_bounds(cells: Cells) -> Floats:
    """Return the bounds of the faces on which cells lie."""
    return _within_world(_FACE_BOUNDS[cells.face] + _ROUNDING * _OUTWARD)


def _within_world(box: Floats) -> Floats:
    return np.asarray(np.clip(box, -_LIMIT, _LIMIT))
