"""Straight segments in the plane, measured in whole grains.

A *grain* is a bit of line about a ten-millionth of a metre long (for streets in metres). Every segment is a row of
whole grains, and a border cuts it between two of them. So lengths are integers: the parts of a node add up exactly, in
whatever order they were worked out; and a place on a line, once named by its segment and grain, lies in one node of
every level, and that node has some length, however close to a border it is. Nodes are half-open, as those of `Box`
are: a segment along a dividing line belongs to the upper one.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints

__all__ = ["NUMBERS_AT_ONCE", "Segments", "straight_segments"]

NUMBERS_AT_ONCE = 4_000_000
"""Tables of queries by nodes or pieces are worked through in parts of this size."""

_GRAIN_IN_ULPS = 64


def straight_segments(lines: NDArray[Any]) -> Floats:
    """Return the straight segments (x0, y0, x1, y1) of lines, each once whatever its direction, in a fixed order.

    >>> there, back = shapely.LineString([(0, 0), (1, 0)]), shapely.LineString([(1, 0), (0, 0), (0, 0)])
    >>> straight_segments(np.array([there, back]))
    array([[0., 0., 1., 0.]])
    """
    points, line = shapely.get_coordinates(lines, return_index=True)
    points += 0.0  # no negative zeros
    ends = np.hstack([points[:-1], points[1:]])[line[1:] == line[:-1]]
    x0, y0, x1, y1 = ends.T
    back = (x0 > x1) | ((x0 == x1) & (y0 > y1))
    ends[back] = ends[back][:, [2, 3, 0, 1]]
    return np.unique(ends[(ends[:, :2] != ends[:, 2:]).any(axis=1)], axis=0)


class Segments:
    """Straight segments as rows of grains; ``blur`` is the error with which points can be told, at most."""

    def __init__(self, ends: Floats, blur: float = 0.0) -> None:
        self.start, self.step = ends[:, :2], ends[:, 2:] - ends[:, :2]
        length = np.hypot(*self.step.T)
        least = max(_GRAIN_IN_ULPS * np.spacing(np.abs(ends).max()), 16 * blur, length.sum() * 2.0**-50)
        self.grain = float(2.0 ** np.ceil(np.log2(least)))
        self.grains = np.maximum(np.rint(length / self.grain), 1).astype(np.int64)

    def along(self, rows: Ints, position: NDArray[Any]) -> Floats:
        """Return points (n, 2), ``position`` grains from the start of each segment."""
        x0, y0, dx, dy, _ = self._table.take(rows, axis=0).T
        share, points = position / self.grains[rows], np.empty((2, len(rows)))
        points[0], points[1] = x0 + share * dx, y0 + share * dy
        return points.T

    def rising(self, rows: Ints, axis: Ints) -> Bools:
        """Return whether segments do not fall along a coordinate."""
        return self.step[rows, axis] >= 0

    def grains_before(self, rows: Ints, axis: Ints, border: Floats) -> Ints:
        """Return how many grains a segment has on its starting side of a dividing line.

        The starting side is below ``border`` for a segment that rises along the axis or keeps to it, and at or above
        it for one that falls. Never falls (or rises, for a segment that falls) as the border moves up, also in
        floating point; and a segment through the corner of a node is cut in one place by both borders.
        """
        start, step, size = self.start[rows, axis], self.step[rows, axis], self.grains[rows]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            crossing = np.where(step == 0, start < border, (border - start) / step)
        before: Ints = np.rint(np.clip(crossing, 0, 1) * size).astype(np.int64)
        return before

    def offsets(self, x: Floats, y: Floats, rows: Ints) -> tuple[Floats, Floats]:
        """Return each point's squared distance from a segment, and where its nearest point is: from 0 to 1."""
        x0, y0, dx, dy, inverse_square = self._table.take(rows, axis=0).T
        x, y = x - x0, y - y0
        t = np.clip((x * dx + y * dy) * inverse_square, 0, 1)
        squared: Floats = (x - t * dx) ** 2 + (y - t * dy) ** 2
        return squared, t

    @cached_property
    def _table(self) -> Floats:
        """What `offsets` needs of a segment, side by side."""
        squared = np.maximum((self.step**2).sum(axis=1), np.finfo(float).tiny)
        return np.ascontiguousarray(np.column_stack([self.start, self.step, 1 / squared]))
