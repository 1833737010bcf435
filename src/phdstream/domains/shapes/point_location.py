"""Which of many points lie in a polygon: a grid tells for most, geometry is asked only along the edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints

__all__ = ["PointLocator"]

_TOP_BITS, _LOW_BITS = 8, 6
"""The grid has 256 squares a side, and those that the edge cuts have 64 a side themselves."""
_UNKNOWN, _OUTSIDE, _INSIDE, _CUT = range(4)
_HAIR = 1e-9
"""By this part of its side, and some rounding errors, a square is drawn larger: points of it are surely in it."""


class PointLocator:
    """Tells which points lie in a polygon, its boundary included: what `shapely.intersects_xy` says, but quicker.

    A square of the grid is wholly inside, outside or cut. That is worked out when a point first falls into it, exactly,
    and kept: 4 KB for each of the 256 x 256 squares that is cut and visited. In a square that is not cut all points
    are alike, so no answer depends on other points.

    >>> locator = PointLocator(shapely.Polygon([(0, 0), (1, 0), (0, 1)]))
    >>> locator(np.array([[0.2, 0.2], [0.5, 0.5], [0.9, 0.9], [np.nan, 0.0]])).tolist()
    [True, True, False, False]
    """

    def __init__(self, shape: Any) -> None:
        self._shape = shape
        shapely.prepare(shape)
        self._low, self._high = np.hsplit(shapely.bounds(shape), 2)
        self._step = np.maximum(self._high - self._low, np.finfo(float).tiny) / (1 << _TOP_BITS + _LOW_BITS)
        self._hair = _HAIR * self._step + 4 * np.spacing(np.maximum(np.abs(self._low), np.abs(self._high)))
        self._top = np.full(1 << 2 * _TOP_BITS, _UNKNOWN, dtype=np.uint8)
        self._block = np.zeros(self._top.size, dtype=np.int32)  # where in _fine the squares of a cut one begin
        self._fine = np.zeros((0, 1 << 2 * _LOW_BITS), dtype=np.uint8)

    def __call__(self, points: Floats) -> Bools:
        """Return which points (n, 2) are in the polygon."""
        (x, y), (west, south), (east, north) = points.T, self._low, self._high
        inside = np.asarray((x >= west) & (x <= east) & (y >= south) & (y <= north))
        rows = np.flatnonzero(inside)
        kind = self._kinds(*(self._column(points[rows, axis], axis) for axis in (0, 1)))
        inside[rows] = kind == _INSIDE
        edge = rows[kind == _CUT]
        inside[edge] = shapely.intersects_xy(self._shape, points[edge, 0], points[edge, 1])
        return inside

    def _column(self, x: Floats, axis: int) -> Ints:
        column: Ints = ((x - self._low[axis]) / self._step[axis]).astype(np.int64)
        return np.minimum(column, (1 << _TOP_BITS + _LOW_BITS) - 1)

    def _kinds(self, i: Ints, j: Ints) -> NDArray[np.uint8]:
        mask = (1 << _LOW_BITS) - 1
        top, low = i >> _LOW_BITS << _TOP_BITS | j >> _LOW_BITS, (i & mask) << _LOW_BITS | j & mask
        self._learn_top(top)
        kind: NDArray[np.uint8] = self._top[top]
        cut = np.flatnonzero(kind == _CUT)
        self._learn_fine(top[cut], low[cut])
        kind[cut] = self._fine[self._block[top[cut]], low[cut]]
        return kind

    def _learn_top(self, top: Ints) -> None:
        new = np.unique(top[self._top[top] == _UNKNOWN])
        if not new.size:
            return
        self._top[new] = self._classified(np.column_stack(np.divmod(new, 1 << _TOP_BITS)) << _LOW_BITS, 1 << _LOW_BITS)
        cut = new[self._top[new] == _CUT]
        self._block[cut] = len(self._fine) + np.arange(cut.size)
        self._fine = np.concatenate([self._fine, np.full((cut.size, self._fine.shape[1]), _UNKNOWN, dtype=np.uint8)])

    def _learn_fine(self, top: Ints, low: Ints) -> None:
        unknown = self._fine[self._block[top], low] == _UNKNOWN
        if not unknown.any():
            return
        new = np.unique(top[unknown] << 2 * _LOW_BITS | low[unknown])
        top, low = new >> 2 * _LOW_BITS, new & ((1 << 2 * _LOW_BITS) - 1)
        upper, lower = np.divmod(top, 1 << _TOP_BITS), np.divmod(low, 1 << _LOW_BITS)
        ij = np.column_stack(upper) << _LOW_BITS | np.column_stack(lower)
        self._fine[self._block[top], low] = self._classified(ij, 1)

    def _classified(self, ij: Ints, width: int) -> NDArray[np.uint8]:
        """Return what squares are that begin at columns and rows ``ij`` of the finest grid and are so many wide."""
        low, high = self._low + ij * self._step - self._hair, self._low + (ij + width) * self._step + self._hair
        squares = shapely.box(*low.T, *high.T)
        kind = np.where(shapely.intersects(self._shape, squares), _CUT, _OUTSIDE).astype(np.uint8)
        kind[shapely.covers(self._shape, squares)] = _INSIDE
        return kind
