"""How much of a rectangle lies in a polygon, pair by pair: whole and not at all always, parts where asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.shapes.clipped_areas import ClippedAreas

__all__ = ["ShapeCover"]

_WHOLE = 1 - 1e-9
_NOTHING = 1e-12
_FEW_EDGES = 64
"""With no more edges than this to look at, an area is as quick as asking whether there is any."""


class ShapeCover:
    """Polygons to compare rectangles with. Pairs are given by the rectangle and the position of the polygon.

    >>> cover = ShapeCover(np.array([shapely.box(0, 0, 2, 1)]))
    >>> cover.share(np.array([[0.0, 0, 1, 1], [1, 0, 3, 1]]), np.array([0, 0]), np.array([True, True]))
    array([1. , 0.5])
    """

    def __init__(self, shapes: NDArray[Any]) -> None:
        self.shapes, self._limits = shapes, shapely.bounds(shapes)
        shapely.prepare(shapes)
        self._areas = ClippedAreas(shapes)

    def share(self, rectangles: Floats, at: Ints, exact: Bools) -> Floats:
        """Return the share of each rectangle inside its polygon: 0.5 for any part where it need not be ``exact``."""
        share, near = np.zeros(at.size), np.flatnonzero(self._meets(rectangles, at))
        quick = self._areas.work(rectangles[near], at[near]) <= _FEW_EDGES
        rest = near[~quick]
        share[rest] = self._rough(rectangles[rest], at[rest])
        asked = np.concatenate([near[quick], rest[exact[rest] & (share[rest] == 0.5)]])
        inside = self._inside(rectangles[asked], at[asked])
        share[asked] = np.where((inside < 1) & (inside > 0) & ~exact[asked], 0.5, inside)
        return share

    def rough(self, rectangles: Floats, at: Ints) -> Floats:
        """Return 1 for a rectangle inside its polygon, 0 for one outside, and 0.5 for others."""
        share, near = np.zeros(at.size), np.flatnonzero(self._meets(rectangles, at))
        share[near] = self._rough(rectangles[near], at[near])
        return share

    def _meets(self, rectangles: Floats, at: Ints) -> Bools:
        limits = self._limits[at]
        meets = (rectangles[:, :2] <= limits[:, 2:]) & (rectangles[:, 2:] >= limits[:, :2])
        return np.asarray(meets.all(axis=1))

    def _inside(self, rectangles: Floats, at: Ints) -> Floats:
        share = self._areas.inside(rectangles, at) / np.prod(rectangles[:, 2:] - rectangles[:, :2], axis=1)
        return np.where(share > _WHOLE, 1.0, np.where(share < _NOTHING, 0.0, share))

    def _rough(self, rectangles: Floats, at: Ints) -> Floats:
        boxes, shapes = np.atleast_1d(shapely.box(*rectangles.T)), self.shapes[at]
        some = np.where(shapely.intersects(shapes, boxes), 0.5, 0.0)
        return np.where(shapely.covers(shapes, boxes), 1.0, some)
