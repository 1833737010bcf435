"""The segment nearest to each of many points, within a reach."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import shapely

from phdstream.arrays import Floats, Ints, ragged
from phdstream.domains.network.segments import Segments

__all__ = ["NearestSegment"]

_MOST_SQUARES_PER_SIDE = 1 << 18


class NearestSegment:
    """Finds the segment nearest to each point, up to a distance.

    The plane is a grid of squares, and each lists the few segments that may be nearest to a point in it. Points
    farther from all lines than a square is wide are rare, and go to Shapely's tree. Memory is about 20 numbers a
    segment.
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
        low = self._square(np.minimum(*ends) - self._near).astype(np.int64)
        width = self._square(np.maximum(*ends) + self._near).astype(np.int64) - low + 1
        owner, within = ragged(width.prod(axis=1))
        ij = low[owner] + np.column_stack(np.divmod(within, width[owner, 1]))
        pairs = np.unique((ij[:, 0] * self._shape[1] + ij[:, 1]) * length.size + segment[owner])
        return np.divmod(pairs, length.size)

    def _square(self, points: Floats) -> Floats:
        with np.errstate(over="ignore"):
            squares: Floats = np.floor((points - self._origin) / self._side)
        return squares

    def _list(self, square: Ints, segment: Ints) -> None:
        """Keep, for each square, the segments that are nearest to some point of it and near enough."""
        x, y = (
            o + (k + 0.5) * self._side for o, k in zip(self._origin, np.divmod(square, self._shape[1]), strict=True)
        )
        distance = np.sqrt(self._segments.offsets(x, y, segment)[0])
        first = np.flatnonzero(np.diff(square, prepend=-1))
        least = np.repeat(np.minimum.reduceat(distance, first), np.diff(first, append=square.size))
        radius = self._side * np.sqrt(0.5) * (1 + 1e-6)
        keep = (distance <= self._near + radius) & (distance <= least + 2 * radius)
        self._candidates = segment[keep]
        self._squares, self._first, self._number = np.unique(square[keep], return_index=True, return_counts=True)

    def __call__(self, points: Floats) -> tuple[Ints, Floats]:
        """Return the nearest segment, -1 where none is within reach, and where on it: from 0 to 1."""
        segment, at = np.full(len(points), -1), np.zeros(len(points))
        finite = np.flatnonzero(np.isfinite(points).all(axis=1))
        segment[finite], at[finite] = self._among_candidates(points[finite])
        if self._near < self._reach:
            far = finite[segment[finite] < 0]
            segment[far], at[far] = self._by_tree(points[far])
        return segment, at

    def _among_candidates(self, points: Floats) -> tuple[Ints, Floats]:
        """Try each point's first candidate, then its second, ...; points with most candidates come first."""
        first, number = self._candidates_of(points)
        order = np.argsort(-number, kind="stable")
        (x, y), first, number = points[order].T.copy(), first[order], number[order]
        best, found, where = np.full(order.size, np.inf), np.full(order.size, -1), np.zeros(order.size)
        for k, still in enumerate(np.searchsorted(-number, -np.arange(number.max(initial=0)))):
            rows = self._candidates[first[:still] + k]
            squared, at = self._segments.offsets(x[:still], y[:still], rows)
            nearer = np.flatnonzero(squared < best[:still])
            best[nearer], found[nearer], where[nearer] = squared[nearer], rows[nearer], at[nearer]
        found[best > self._near**2] = -1
        back = np.argsort(order)
        return found[back], where[back]

    def _candidates_of(self, points: Floats) -> tuple[Ints, Ints]:
        ij = self._square(points)
        on_grid = ((ij >= 0) & (ij < self._shape)).all(axis=1)
        square = np.where(on_grid, ij[:, 0] * self._shape[1] + ij[:, 1], -1).astype(np.int64)
        at = np.minimum(np.searchsorted(self._squares, square), self._squares.size - 1)
        return self._first[at], np.where(self._squares[at] == square, self._number[at], 0)

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
