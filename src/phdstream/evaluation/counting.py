"""Exact range counts, fast: many rectangles against many points, and against a release's cells.

By hand, because no library in the core install counts points in rectangles for thousands of rectangles at once.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.domains import Box
from phdstream.release import Release

__all__ = ["PointCounter", "count_cells", "count_points"]

_PAIRS_AT_ONCE = 4_000_000
_MOST_GRID_CELLS = 1 << 24


class PointCounter:
    """Counts points in rectangles of the plane in O(log n) steps each, all rectangles at once.

    Points are sorted by x, and their ranks by y are kept bit by bit (a wavelet matrix, Claude and Navarro
    2012): level by level, highest bit first, ranks with a 0 go before those with a 1, in order. The number of
    ranks below k among the first i points follows from one look-up a level.

    >>> counter = PointCounter(np.array([[0.1, 0.1], [0.5, 0.5], [0.9, 0.2]]))
    >>> counter.count(np.array([[0, 0, 0.5, 0.5], [0.4, 0, 1, 0.4]])).tolist()
    [2, 1]
    """

    def __init__(self, points: Floats) -> None:
        points = points[np.argsort(points[:, 0], kind="stable")]
        by_y = np.argsort(points[:, 1], kind="stable")
        rank = np.empty(len(points), dtype=np.int64)
        rank[by_y] = np.arange(len(points))
        self._x, self._y = points[:, 0], points[by_y, 1]
        self._zeros_before: list[Ints] = []
        self._bits = max(1, len(points)).bit_length()
        for bit in range(self._bits - 1, -1, -1):
            is_zero = (rank >> bit & 1) == 0
            self._zeros_before.append(np.concatenate([[0], np.cumsum(is_zero)]))
            rank = np.concatenate([rank[is_zero], rank[~is_zero]])

    def count(self, rectangles: Floats) -> Ints:
        """Return how many points lie in each rectangle (minima, then maxima), bounds included."""
        west, south, east, north = np.asarray(rectangles, dtype=np.float64).T
        first, past = np.searchsorted(self._x, west), np.searchsorted(self._x, east, side="right")
        low, high = np.searchsorted(self._y, south), np.searchsorted(self._y, north, side="right")
        past, high = np.maximum(first, past), np.maximum(low, high)
        ends, ranks = np.concatenate([past, first, past, first]), np.concatenate([high, high, low, low])
        below = self._below(ends, ranks).reshape(4, -1)
        counts: Ints = below[0] - below[1] - below[2] + below[3]
        return counts

    def _below(self, first: Ints, rank: Ints) -> Ints:
        """Return how many of the first so many points (by x) have a rank (by y) below the given one."""
        begin, end, counted = np.zeros_like(first), first.astype(np.int64), np.zeros_like(first, dtype=np.int64)
        for level, zeros_before in enumerate(self._zeros_before):
            one = (rank >> (self._bits - 1 - level) & 1) == 1
            from_zero, to_zero, zeros = zeros_before[begin], zeros_before[end], int(zeros_before[-1])
            counted += np.where(one, to_zero - from_zero, 0)
            begin = np.where(one, zeros + begin - from_zero, from_zero)
            end = np.where(one, zeros + end - to_zero, to_zero)
        return counted


def count_points(points: Floats, rectangles: Floats) -> Ints:
    """Return how many points lie in each rectangle, bounds included; any dimension, fastest in the plane."""
    if points.shape[1] == 2:
        return PointCounter(points).count(rectangles)
    d = points.shape[1]
    step = max(1, _PAIRS_AT_ONCE // max(1, len(points)))
    counts = np.zeros(len(rectangles), dtype=np.int64)
    for i in range(0, len(rectangles), step):
        inside = np.ones((len(rectangles[i : i + step]), len(points)), dtype=bool)
        for axis in range(d):
            low, high = rectangles[i : i + step, axis, None], rectangles[i : i + step, d + axis, None]
            inside &= (points[:, axis] >= low) & (points[:, axis] <= high)
        counts[i : i + step] = inside.sum(axis=1)
    return counts


def count_cells(release: Release, rectangles: Floats) -> Floats:
    """Return a release's estimates for rectangles, without their errors: as `Release.count`, and faster where
    it can be.

    On a box in the plane the cells are unions of the finest cells, so the total below and left of any point is a
    summed-area table of those, linear in between.
    """
    domain = release.domain
    if (
        not isinstance(domain, Box)
        or domain.dimension != 2
        or 1 << domain.total_bits > _MOST_GRID_CELLS
        or release.held
    ):
        return release.count(rectangles).value
    table, x, y = _summed_area(release, domain)
    west, south, east, north = rectangles.T
    corners = [_interpolate(table, x, y, a, b) for a, b in ((east, north), (west, north), (east, south), (west, south))]
    return corners[0] - corners[1] - corners[2] + corners[3]


def _summed_area(release: Release, domain: Box) -> tuple[Floats, Floats, Floats]:
    """Return the mass below and left of every corner of the finest grid, and the corners' coordinates."""
    leaf = release.estimate.leaf
    nodes, mass = release.estimate.node[leaf], release.estimate.count[leaf]
    x, y = (domain.edges(axis) for axis in (0, 1))
    corners = domain.bounds(nodes)
    i0, j0, i1, j1 = (np.searchsorted(e, corners[:, k]) for k, e in enumerate((x, y, x, y)))
    density = np.zeros((x.size, y.size))
    height = mass / ((i1 - i0) * (j1 - j0))
    for i, j, sign in ((i0, j0, 1), (i1, j0, -1), (i0, j1, -1), (i1, j1, 1)):
        np.add.at(density, (i, j), sign * height)
    per_cell = density.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    table = np.zeros((x.size, y.size))
    table[1:, 1:] = per_cell.cumsum(axis=0).cumsum(axis=1)
    return table, x, y


def _interpolate(table: Floats, x: Floats, y: Floats, a: Floats, b: Floats) -> Floats:
    """Return the table's value at points between its corners, linear in each coordinate."""
    i, u = _position(x, a)
    j, v = _position(y, b)
    low = table[i, j] * (1 - u) + table[i + 1, j] * u
    high = table[i, j + 1] * (1 - u) + table[i + 1, j + 1] * u
    return low * (1 - v) + high * v


def _position(edges: Floats, at: Floats) -> tuple[Ints, Floats]:
    at = np.clip(at, edges[0], edges[-1])
    i = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, edges.size - 2)
    return i, (at - edges[i]) / (edges[i + 1] - edges[i])
