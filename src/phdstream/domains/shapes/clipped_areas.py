"""The area of polygons inside rectangles, for very many pairs of them, without cutting any polygon.

By Green's theorem the area of a polygon inside a rectangle is a sum over its edges: of the integral, over the part of
the edge between the rectangle's sides, of its height above the rectangle's lower side, cut off at the upper side; edges
that run back count negative. Only edges above or below the rectangle or in it take part. To find these, each polygon
is divided into vertical slabs, and a slab lists the edges in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints, ragged

__all__ = ["ClippedAreas"]

_EDGES_IN_A_SLAB = 4
_MOST_SLABS = 1 << 14
_PAIRS_AT_ONCE = 1 << 16


class ClippedAreas:
    """Polygons, of which the area inside rectangles is asked. Memory: some ten numbers an edge.

    >>> areas = ClippedAreas(np.array([shapely.Polygon([(0, 0), (2, 0), (0, 2)])]))
    >>> areas.inside(np.array([[0, 0, 1, 1], [1.0, 0, 9, 9]]), np.array([0, 0]))
    array([1. , 0.5])
    """

    def __init__(self, shapes: NDArray[Any]) -> None:
        owner, ends = _oriented_edges(shapes)
        self._low, high = shapely.bounds(shapes)[:, ::2].T
        number = np.bincount(owner, minlength=shapes.size)
        slabs = np.clip(number // _EDGES_IN_A_SLAB, 1, _MOST_SLABS)
        self._last, self._first_slab = slabs - 1, np.cumsum(slabs) - slabs
        self._width = np.maximum(high - self._low, np.finfo(float).tiny) / slabs
        left, right = (self._slab(np.sort(ends[:, ::2])[:, side], owner) for side in (0, 1))
        edge, within = ragged(right - left + 1)
        slab, shape = left[edge] + within, owner[edge]
        order = np.argsort(self._first_slab[shape] + slab, kind="stable")
        self._edge, self._sides = edge[order], self._slab_sides(slab[order], shape[order])
        self._begins = np.searchsorted((self._first_slab[shape] + slab)[order], np.arange(slabs.sum() + 1))
        x0, y0, x1, y1 = ends.T
        self._x, self._y, self._slope = x0, y0, (y1 - y0) / (x1 - x0)
        self._extent, self._sign = np.sort(ends[:, ::2]), np.sign(x1 - x0)
        self._top = np.maximum(y0, y1)[self._edge]

    def _slab(self, x: Floats, shape: Ints) -> Ints:
        steps = np.clip((x - self._low[shape]) / self._width[shape], 0, self._last[shape])
        return np.asarray(steps.astype(np.int64))

    def _slab_sides(self, slab: Ints, shape: Ints) -> Floats:
        """Return where slabs begin and end; the outermost have no end."""
        left, right = (self._low[shape] + (slab + side) * self._width[shape] for side in (0, 1))
        return np.column_stack([np.where(slab == 0, -np.inf, left), np.where(slab == self._last[shape], np.inf, right)])

    def work(self, rectangles: Floats, shape: Ints) -> Ints:
        """Return how many edges must be looked at for each pair."""
        first, past = self._range(rectangles, shape)
        return past - first

    def _range(self, rectangles: Floats, shape: Ints) -> tuple[Ints, Ints]:
        left, right = (self._first_slab[shape] + self._slab(rectangles[:, side], shape) for side in (0, 2))
        return self._begins[left], self._begins[right + 1]

    def inside(self, rectangles: Floats, shape: Ints) -> Floats:
        """Return the area inside each rectangle (x low, y low, x high, y high) of the polygon at position ``shape``."""
        first, past = self._range(rectangles, shape)
        area, pairs = np.zeros(shape.size), np.cumsum(past - first) // _PAIRS_AT_ONCE
        for rows in np.split(np.arange(shape.size), np.flatnonzero(np.diff(pairs)) + 1):
            owner, within = ragged((past - first)[rows])
            at = first[rows][owner] + within
            above = np.flatnonzero(self._top[at] > rectangles[rows, 1][owner])  # under other edges there is nothing
            owner, at = owner[above], at[above]
            area[rows] = np.bincount(owner, self._under(at, rectangles[rows][owner]), rows.size)
        return area

    def _under(self, at: Ints, rectangles: Floats) -> Floats:
        """Return the signed area in the rectangle under each edge, as far as the edge is in its slab."""
        edge, (x_low, y_low, x_high, y_high) = self._edge[at], rectangles.T
        left = np.maximum(np.maximum(x_low, self._extent[edge, 0]), self._sides[at, 0])
        right = np.minimum(np.minimum(x_high, self._extent[edge, 1]), self._sides[at, 1])
        width, height = np.maximum(right - left, 0), y_high - y_low
        start, end = (self._y[edge] + (x - self._x[edge]) * self._slope[edge] - y_low for x in (left, right))
        rise, cut_start, cut_end = end - start, np.clip(start, 0, height), np.clip(end, 0, height)
        level = np.abs(rise) <= 1e-12 * height
        rise = np.where(level, 1, rise)
        between = (cut_end - cut_start) / rise * (cut_start + cut_end) / 2
        above = (np.maximum(end, height) - np.maximum(start, height)) / rise * height
        return np.asarray(self._sign[edge] * width * np.where(level, (cut_start + cut_end) / 2, between + above))


def _oriented_edges(shapes: NDArray[Any]) -> tuple[Ints, Floats]:
    """Return the edges (x0, y0, x1, y1) that are not vertical, with the area below them, and each one's polygon."""
    parts, of_part = shapely.get_parts(shapes, return_index=True)
    rings, of_ring = shapely.get_rings(parts, return_index=True)
    points, ring = shapely.get_coordinates(rings, return_index=True)
    ends = np.hstack([points[:-1], points[1:]])[ring[1:] == ring[:-1]]
    ring = ring[1:][ring[1:] == ring[:-1]]
    outer = np.diff(of_ring, prepend=-1) > 0
    clockwise = ~shapely.is_ccw(rings)
    back = (clockwise != outer)[ring]
    ends[back] = ends[back][:, [2, 3, 0, 1]]
    there = ends[:, 0] != ends[:, 2]
    return of_part[of_ring[ring]][there], ends[there]
