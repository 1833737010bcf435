"""The segment nearest to each of many points, within a reach."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import shapely

from phdstream.arrays import Bools, Floats, Ints, ragged
from phdstream.domains.chunks import in_order
from phdstream.domains.network.segments import Segments

__all__ = ["NearestSegment"]

_MOST_SQUARES_PER_SIDE = 1 << 18
_MOST_INDEXED = 1 << 21
"""A grid of up to so many squares has an index of all; in a larger one, squares near lines are searched for."""
_PARTS = 8
"""Parts of a square along each side."""
_USUAL = 6
"""Most points have no more candidates; the others' are looked at together, since every turn has its price."""


class NearestSegment:
    """Finds the segment nearest to each point, up to a distance.

    The plane is a grid of squares, and each lists the segments that may be nearest to a point in it; each of its
    64 parts, when a point first falls into it, the few of these that may be nearest there. Points farther from all
    lines than a square is wide are rare, and go to Shapely's tree. Memory is about 20 numbers a segment, and 128 for
    each square that is visited.
    """

    def __init__(self, segments: Segments, reach: float) -> None:
        self._segments, self._reach = segments, reach
        ends = np.concatenate([segments.start, segments.start + segments.step])
        extent = ends.max(axis=0) - ends.min(axis=0)
        length = np.hypot(*segments.step.T)
        spacing = np.sqrt(extent.prod() / length.size)
        self._side = max(length.mean(), min(reach, spacing), extent.max() / _MOST_SQUARES_PER_SIDE)
        self._near = min(reach, self._side)
        self._origin = ends.min(axis=0) - self._near - self._side
        self._shape = np.ceil((extent + 2 * self._near) / self._side).astype(np.int64) + 3
        self._list(*self._pairs(length))

    def _pairs(self, length: Floats) -> tuple[Ints, Ints]:
        """Return squares and segments that may come near each other, in order."""
        segment, part = ragged(np.ceil(length / self._side).astype(np.int64))
        parts = np.ceil(length / self._side)[segment]
        start, step = self._segments.start[segment], self._segments.step[segment]
        ends = [start + (at / parts)[:, None] * step for at in (part, part + 1)]
        near = np.minimum(*ends).T - self._near, np.maximum(*ends).T + self._near
        low, high = (
            np.stack([self._square(corner[axis], axis) for axis in (0, 1)]).astype(np.int64) for corner in near
        )
        width = high - low + 1
        owner, within = ragged(width.prod(axis=0))
        i, j = np.divmod(within, width[1, owner])
        pairs = np.sort(((low[0, owner] + i) * self._shape[1] + low[1, owner] + j) * length.size + segment[owner])
        return np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], length.size)

    def _square(self, x: Floats, axis: int) -> Floats:
        """Return how many squares each x (or y) is from the origin of the grid."""
        with np.errstate(over="ignore"):
            squares: Floats = (x - self._origin[axis]) / self._side
        return squares

    def _list(self, square: Ints, segment: Ints) -> None:
        """Keep, for each square, the segments that are nearest to some point of it and near enough."""
        i, j = np.divmod(square, self._shape[1])
        keep = self._may_be_nearest(square, i + 0.5, j + 0.5, segment, self._side)
        self._candidates = segment[keep]
        self._squares, self._first, self._number = np.unique(square[keep], return_index=True, return_counts=True)
        self._part_of = np.full(self._squares.size, -1)
        self._parts, self._used = np.zeros((0, 2), dtype=np.int32), 0
        self._index = None
        if self._shape.prod() <= _MOST_INDEXED:
            self._index = np.full(self._shape.prod(), -1)
            self._index[self._squares] = np.arange(self._squares.size)

    def _may_be_nearest(self, square: Ints, i: Floats, j: Floats, segment: Ints, side: float) -> Bools:
        """Return which pairs, in order of squares, may be nearest; i, j: the square's centre in units of ``_side``."""
        distance = np.empty(square.size)

        def measure_some(rows: slice) -> None:
            x, y = self._origin[0] + i[rows] * self._side, self._origin[1] + j[rows] * self._side
            distance[rows] = np.sqrt(self._segments.offsets(x, y, segment[rows])[0])

        in_order(measure_some, 0, square.size)
        first = np.flatnonzero(np.diff(square, prepend=-1))
        least = np.repeat(np.minimum.reduceat(distance, first), np.diff(first, append=square.size))
        radius = side * np.sqrt(0.5) * (1 + 1e-6)
        return np.asarray((distance <= self._near + radius) & (distance <= least + 2 * radius))

    def __call__(self, points: Floats) -> tuple[Ints, Floats]:
        """Return the nearest segment, -1 where none is within reach, and where on it: from 0 to 1.

        Each point is compared with its candidates one after the other; of those equally near the first counts.
        """
        (x, y), size = points.T, len(points)
        segment, at, least = np.full(size, -1), np.zeros(size), np.full(size, np.nextafter(self._near**2, np.inf))
        first, number = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)

        def compare(some: Ints, turns: range) -> None:
            for turn in turns:
                some = some[np.flatnonzero(number[some] > turn)]
                rows = self._candidates[first[some] + turn]
                squared, where = self._segments.offsets(x[some], y[some], rows)
                nearer = np.flatnonzero(squared < least[some])
                better = some[nearer]
                least[better], segment[better], at[better] = squared[nearer], rows[nearer], where[nearer]

        def find_some(rows: slice) -> None:
            first[rows], number[rows] = self._candidates_of(points[rows])
            compare(np.arange(rows.start, rows.stop), range(_USUAL))

        in_order(find_some, 0, size)
        compare(np.arange(size), range(_USUAL, int(number.max(initial=0))))
        if self._near < self._reach:
            far = np.flatnonzero((segment < 0) & np.isfinite(points).all(axis=1))
            segment[far], at[far] = self._by_tree(points[far])
        return segment, at

    def _candidates_of(self, points: Floats) -> tuple[Ints, Ints]:
        """Return where the candidates of each point's part of a square begin, and how many they are.

        None for what is no place: comparisons with NaN are false.
        """
        i, j = (self._square(points[:, axis], axis) for axis in (0, 1))
        rows = np.flatnonzero((i >= 0) & (i < self._shape[0]) & (j >= 0) & (j < self._shape[1]))
        across, up = ((column[rows] * _PARTS).astype(np.int64) for column in (i, j))
        at = self._position(across // _PARTS * self._shape[1] + up // _PARTS)
        listed = np.flatnonzero(at >= 0)
        rows, at, part = rows[listed], at[listed], (across % _PARTS * _PARTS + up % _PARTS)[listed]
        self._make_room(np.unique(at[self._part_of[at] < 0]))
        slot = self._part_of[at] * _PARTS**2 + part
        unknown = self._parts[slot, 1] < 0
        if unknown.any():
            new, one = np.unique(slot[unknown], return_index=True)
            self._learn(new, at[unknown][one], part[unknown][one])
        first, number = np.zeros(len(points), dtype=np.int64), np.zeros(len(points), dtype=np.int64)
        first[rows], number[rows] = self._parts.take(slot, axis=0).T
        return first, number

    def _position(self, square: Ints) -> Ints:
        """Return where squares stand in the list, -1 for those that are not in it."""
        if self._index is not None:
            return np.asarray(self._index[square])
        at = np.minimum(np.searchsorted(self._squares, square), self._squares.size - 1)
        return np.where(self._squares[at] == square, at, -1)

    def _learn(self, slot: Ints, at: Ints, part: Ints) -> None:
        """Work out the candidates of parts of squares that are asked for the first time."""
        owner, within = ragged(self._number[at])
        segment = self._candidates[self._first[at][owner] + within]
        corners = np.divmod(self._squares[at], self._shape[1]), np.divmod(part, _PARTS)
        i, j = (whole + (some + 0.5) / _PARTS for whole, some in zip(*corners, strict=True))
        keep = self._may_be_nearest(owner, i[owner], j[owner], segment, self._side / _PARTS)
        number = np.bincount(owner[keep], minlength=at.size)
        self._parts[slot, 0], self._parts[slot, 1] = self._candidates.size + np.cumsum(number) - number, number
        self._candidates = np.concatenate([self._candidates, segment[keep]])

    def _make_room(self, squares: Ints) -> None:
        """Give squares room for their parts, whose candidates are not known yet."""
        self._part_of[squares] = self._used + np.arange(squares.size)
        self._used += squares.size
        if self._used * _PARTS**2 > len(self._parts):
            room = np.full((2 * self._used * _PARTS**2, 2), -1, dtype=np.int32)
            room[: len(self._parts)] = self._parts
            self._parts = room

    def _by_tree(self, points: Floats) -> tuple[Ints, Floats]:
        segment, at = np.full(len(points), -1), np.zeros(len(points))
        who, rows = self._tree.query_nearest(shapely.points(points), max_distance=self._reach, all_matches=False)
        squared, at[who] = self._segments.offsets(points[who, 0], points[who, 1], rows)
        segment[who] = np.where(squared <= self._reach**2, rows, -1)
        return segment, at

    @cached_property
    def _tree(self) -> Any:
        start, end = self._segments.start, self._segments.start + self._segments.step
        return shapely.STRtree(shapely.linestrings(np.stack([start, end], axis=1)))
