"""Straight segments in the plane, measured in whole grains: which is nearest to a point, and which lie in a cell.

A *grain* is a bit of line about a ten-millionth of a metre long (for streets in metres). Every segment is a row of
whole grains, and a border cuts it between two of them. So lengths are integers: the parts of a node add up exactly, in
whatever order they were worked out; and a place on a line, once named by its segment and grain, lies in one cell of
every level, and that cell has some length, however close to a border it is. Cells are half-open, as those of `Box`
are: a segment along a dividing line belongs to the upper one.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.box import Box
from phdstream.domains.codes import ROOT

__all__ = [
    "NUMBERS_AT_ONCE",
    "ClippedSegments",
    "NearestSegment",
    "Segments",
    "TiledLines",
    "halves_of",
    "ragged",
    "straight_segments",
]

NUMBERS_AT_ONCE = 4_000_000
"""Tables of queries by cells or pieces are worked through in parts of this size."""

_GRAIN_IN_ULPS = 64
_MOST_SQUARES_PER_SIDE = 1 << 18


def ragged(counts: Ints) -> tuple[Ints, Ints]:
    """Return the owner of each element of a ragged array, and the element's position within its owner.

    >>> [a.tolist() for a in ragged(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    owner = np.repeat(np.arange(counts.size), counts)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)


def halves_of(nodes: Ints) -> Ints:
    """Return both children of each node of a binary tree.

    >>> halves_of(np.array([1, 5])).tolist()
    [2, 3, 10, 11]
    """
    return np.stack([2 * nodes, 2 * nodes + 1], axis=1).ravel()


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
        points: Floats = self.start[rows] + (position / self.grains[rows])[:, None] * self.step[rows]
        return points

    def rising(self, rows: Ints, axis: Ints) -> Bools:
        """Return whether segments do not fall along a coordinate."""
        return self.step[rows, axis] >= 0

    def grains_before(self, rows: Ints, axis: Ints, border: Floats) -> Ints:
        """Return how many grains a segment has on its starting side of a dividing line.

        The starting side is below ``border`` for a segment that rises along the axis or keeps to it, and at or above
        it for one that falls. Never falls (or rises, for a segment that falls) as the border moves up, also in
        floating point; and a segment through the corner of a cell is cut in one place by both borders.
        """
        start, step, size = self.start[rows, axis], self.step[rows, axis], self.grains[rows]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            crossing = np.where(step == 0, start < border, (border - start) / step)
        before: Ints = np.rint(np.clip(crossing, 0, 1) * size).astype(np.int64)
        return before

    def offsets(self, x: Floats, y: Floats, rows: Ints) -> tuple[Floats, Floats]:
        """Return each point's squared distance from a segment, and where its nearest point is: from 0 to 1."""
        x0, y0, dx, dy, inverse_square = (column[rows] for column in self._columns)
        x, y = x - x0, y - y0
        t = np.clip((x * dx + y * dy) * inverse_square, 0, 1)
        squared: Floats = (x - t * dx) ** 2 + (y - t * dy) ** 2
        return squared, t

    @cached_property
    def _columns(self) -> tuple[Floats, ...]:
        squared = np.maximum((self.step**2).sum(axis=1), np.finfo(float).tiny)
        return *self.start.T.copy(), *self.step.T.copy(), 1 / squared


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


class ClippedSegments:
    """Which grains of which segments lie in each node of a box halved again and again.

    A node is worked out when first asked for, from its parent's pieces, and kept: 24 bytes for each piece of line in
    it and 32 for the node. A level holds about as many pieces as there are segments, plus one for each crossing of a
    border; so all of Manhattan, 41,000 segments in cells of 20 metres, takes 40 MB if every node is visited.
    """

    def __init__(self, segments: Segments, box: Box) -> None:
        self._segments, self._box = segments, box
        size = segments.grains.size
        self._pool = np.column_stack([np.arange(size), np.zeros(size, np.int64), segments.grains])
        self._used = size
        self._table = np.array([[ROOT, 0, size, segments.grains.sum()]])

    def grains(self, nodes: Ints) -> Ints:
        """Return how many grains each node has."""
        return self._rows(nodes)[:, 3]

    def number(self, nodes: Ints) -> Ints:
        """Return how many pieces each node has."""
        return self._rows(nodes)[:, 2]

    def pieces(self, nodes: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Return all pieces: the position of the node, the segment, its first grain in the node and the one past."""
        _, first, number, _ = self._rows(nodes).T
        owner, within = ragged(number)
        segment, low, high = self._pool[first[owner] + within].T
        return owner, segment, low, high

    def codes(self, segment: Ints, grain: Ints) -> Ints:
        """Return the code of the finest cell that holds each grain. Its length is positive: the grain is in it.

        A grain that lies clear of all borders has the code of its ends; others are followed down the tree.
        """
        ends = self._segments.along(segment, grain), self._segments.along(segment, grain + 1)
        low, high = np.hsplit(self._box.bounds(np.array([ROOT]))[0], 2)
        hair = self._segments.grain / 4
        corners = np.minimum(*ends) - hair, np.maximum(*ends) + hair
        codes, others = (self._box.encode(np.clip(corner, low, high))[0] for corner in corners)
        unsure = codes != others
        codes[unsure] = self._followed_down(segment[unsure], grain[unsure])
        return codes

    def _followed_down(self, segment: Ints, grain: Ints) -> Ints:
        nodes, each = np.full(segment.size, ROOT), np.arange(segment.size)
        for _ in range(self._box.depth):
            before, up = self._cuts(nodes, each, segment)
            nodes = 2 * nodes + ((grain >= before) == up)
        return nodes - (ROOT << self._box.depth)

    def _rows(self, nodes: Ints) -> Ints:
        known = self._table[:, 0]
        at = np.minimum(np.searchsorted(known, nodes), known.size - 1)
        missing = known[at] != nodes
        if not missing.any():
            return self._table[at]
        self._split(np.unique(nodes[missing] >> 1))
        return self._rows(nodes)

    def _split(self, nodes: Ints) -> None:
        """Divide the pieces of nodes between their halves; both halves are kept, also if one is empty."""
        owner, segment, low, high = self.pieces(nodes)
        before, up = self._cuts(nodes, owner, segment)
        cut = np.clip(before, low, high)
        child = np.concatenate([2 * owner + ~up, 2 * owner + up])
        pieces = np.concatenate([np.column_stack([segment, low, cut]), np.column_stack([segment, cut, high])])
        there = pieces[:, 1] < pieces[:, 2]
        order = np.argsort(child[there], kind="stable")
        self._keep(halves_of(nodes), child[there][order], pieces[there][order])

    def _cuts(self, nodes: Ints, owner: Ints, segment: Ints) -> tuple[Ints, Bools]:
        """Return where segments are cut by the border between their node's halves, and whether they rise there."""
        axis = self._box.levels(nodes) % 2
        border = self._box.bounds(2 * nodes + 1)[np.arange(nodes.size), axis]
        before = self._segments.grains_before(segment, axis[owner], border[owner])
        return before, self._segments.rising(segment, axis[owner])

    def _keep(self, nodes: Ints, child: Ints, pieces: Ints) -> None:
        number = np.bincount(child, minlength=nodes.size)
        grains = np.bincount(child, weights=pieces[:, 2] - pieces[:, 1], minlength=nodes.size).astype(np.int64)
        rows = np.column_stack([nodes, self._used + np.cumsum(number) - number, number, grains])
        self._table = np.insert(self._table, np.searchsorted(self._table[:, 0], nodes), rows, axis=0)
        if self._used + len(pieces) > len(self._pool):
            room = np.empty((max(self._used + len(pieces), 2 * len(self._pool)), 3), np.int64)
            room[: self._used] = self._pool[: self._used]
            self._pool = room
        self._pool[self._used : self._used + len(pieces)] = pieces
        self._used += len(pieces)


class TiledLines:
    """Straight pieces of line that belong to tiles, for asking how much of each tile lies in something.

    ``owner`` is each piece's tile, in order, and each tile has some; ``ends`` is an array (n, 2, 2).
    """

    def __init__(self, owner: Ints, grains: Ints, ends: Floats) -> None:
        self._owner, self._grains, self._ends = owner, grains, ends
        self._number = np.bincount(owner)
        self._first = np.cumsum(self._number) - self._number
        self._total = np.add.reduceat(grains, self._first)
        self._low = np.minimum.reduceat(ends.min(axis=1), self._first)
        self._high = np.maximum.reduceat(ends.max(axis=1), self._first)

    def inside(self, rectangles: Floats) -> Floats:
        """Return how many grains of each tile (columns) lie in each rectangle (rows); only cut tiles are clipped."""
        whole = np.ones((len(rectangles), self._number.size), dtype=bool)
        apart = ~whole
        for axis in (0, 1):
            low, high = rectangles[:, axis, None], rectangles[:, 2 + axis, None]
            whole &= (low <= self._low[:, axis]) & (self._high[:, axis] < high)
            apart |= (self._high[:, axis] < low) | (self._low[:, axis] >= high)
        inside: Floats = np.where(whole, self._total, 0.0)
        rows, tiles = np.nonzero(~(whole | apart))
        batch = np.cumsum(self._number[tiles]) // NUMBERS_AT_ONCE
        for some in np.split(np.arange(rows.size), np.flatnonzero(np.diff(batch)) + 1):
            inside[rows[some], tiles[some]] = self._clip(rectangles[rows[some]], tiles[some])
        return inside

    def _clip(self, rectangles: Floats, tiles: Ints) -> Floats:
        """Clip each tile's pieces to the rectangle of its row (Liang and Barsky 1984) and add up what is left."""
        owner, within = ragged(self._number[tiles])
        piece = self._first[tiles[owner]] + within
        enters, leaves = np.zeros(piece.size), np.ones(piece.size)
        for axis in (0, 1):
            start, step = self._ends[piece, 0, axis], np.diff(self._ends[piece, :, axis])[:, 0]
            low, high = rectangles[owner, axis], rectangles[owner, 2 + axis]
            slope = np.where(step == 0, 1, step)
            with np.errstate(over="ignore"):
                one, other = (low - start) / slope, (high - start) / slope
            level = np.where((low <= start) & (start < high), np.inf, -np.inf)
            enters = np.maximum(enters, np.where(step == 0, -level, np.minimum(one, other)))
            leaves = np.minimum(leaves, np.where(step == 0, level, np.maximum(one, other)))
        kept = np.clip(leaves - enters, 0, 1) * self._grains[piece]
        return np.asarray(np.bincount(owner, weights=kept, minlength=tiles.size), dtype=np.float64)

    def inside_shapes(self, shapes: NDArray[Any]) -> Floats:
        """Return how many grains of each tile (columns) lie in each polygon (rows); only cut pieces are clipped."""
        lines = shapely.linestrings(self._ends)
        tree = shapely.STRtree(lines)
        met, whole = (tree.query(shapes, predicate=how) for how in ("intersects", "covers"))
        cut = np.setdiff1d(met[0] * lines.size + met[1], whole[0] * lines.size + whole[1], assume_unique=True)
        row, piece = np.divmod(cut, lines.size)
        length = shapely.length(lines[piece])
        kept = shapely.length(shapely.intersection(shapes[row], lines[piece])) / np.where(length > 0, length, 1)
        inside = np.zeros((len(shapes), self._number.size))
        np.add.at(inside, (row, self._owner[piece]), kept * self._grains[piece])
        np.add.at(inside, (whole[0], self._owner[whole[1]]), self._grains[whole[1]])
        return inside
