"""Nodes of a box cut to polygons: computed when first needed, and kept."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints, found_in
from phdstream.domains.box import Box
from phdstream.domains.codes import ROOT, hash_uniform
from phdstream.domains.shapes.cover import ShapeCover

__all__ = ["CUT", "WHOLE", "ClippedNodes"]

_GRID_BITS = 16
"""Codes are sorted into nodes of at most this many halvings, before any geometry is asked."""
_UNKNOWN, _EMPTY, WHOLE, CUT = range(4)
_WHOLE_SHARE = 1 - 1e-9
"""A piece with this share of its rectangle's area is taken as the whole rectangle."""


class _Known(NamedTuple):
    """Nodes of one level in order, with their areas, and whether they are cut."""

    nodes: Ints
    area: Floats
    cut: Bools

    @classmethod
    def nothing(cls) -> _Known:
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool))

    def has(self, nodes: Ints) -> Bools:
        return found_in(self.nodes, nodes)

    def with_new(self, nodes: Ints, area: Floats, cut: Bools) -> _Known:
        at = np.searchsorted(self.nodes, nodes)
        return _Known(*(np.insert(old, at, new) for old, new in zip(self, (nodes, area, cut), strict=True)))


class ClippedNodes:
    """What of each node's rectangle lies inside a shape. A node is *whole* (all inside), cut, or empty; whole nodes
    need no geometry.

    Per visited node the cache holds its area and, for a cut node, its piece: memory grows with the visited part of the
    shape's boundary.
    """

    def __init__(self, box: Box, shape: Any) -> None:
        self._box = box
        self._piece: dict[int, Any] = {ROOT: shape}  # of cut nodes
        self._known = [_Known.nothing() for _ in range(box.depth + 1)]
        self._known[0] = _Known(np.array([ROOT]), np.array([shapely.area(shape)]), np.array([True]))
        self._triangles: dict[int, tuple[Floats, Floats]] = {}
        self._grid_level = int(np.searchsorted(box.bits_through, _GRID_BITS, side="right")) - 1
        self._kind = np.full(2 << int(box.bits_through[self._grid_level]), _UNKNOWN, dtype=np.uint8)

    def areas(self, nodes: Ints) -> Floats:
        """Return the area of each node inside the shape."""
        return self._found(nodes)[0]

    def _found(self, nodes: Ints) -> tuple[Floats, Bools]:
        """Return each node's area, and whether it is cut. What is not known yet is clipped."""
        levels = self._box.levels(nodes)
        if nodes.size and levels.min() == levels.max():
            return self._of_level(int(levels[0]), nodes)
        area, cut = np.empty(nodes.size), np.empty(nodes.size, dtype=bool)
        for level in np.unique(levels).tolist():
            rows = levels == level
            area[rows], cut[rows] = self._of_level(level, nodes[rows])
        return area, cut

    def _of_level(self, level: int, nodes: Ints) -> tuple[Floats, Bools]:
        missing = ~self._known[level].has(nodes)
        if missing.any():
            self._clip(level, np.unique(nodes[missing]))
        known_nodes, area, cut = self._known[level]
        at = np.searchsorted(known_nodes, nodes)
        return area[at], cut[at]

    def _clip(self, level: int, nodes: Ints) -> None:
        """Cut new nodes' rectangles to their parents' pieces, and keep what is left.

        Always to the parents', which are clipped first if they are new: so a node's area is the same to the last bit
        whatever was asked before. Points are asked about when they are encoded, and these are private.
        """
        parents = nodes >> self._box.level_bits[level - 1]
        above, some = self._of_level(level - 1, parents)
        corners = self._box.bounds(nodes)
        full = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        origin = [self._piece[node] for node in parents[some].tolist()]
        pieces = shapely.intersection(origin, shapely.box(*corners[some].T))
        area, cut = np.where(above > 0, full, 0.0), some.copy()
        area[some] = shapely.area(pieces)
        cut &= (area < full * _WHOLE_SHARE) & (area > 0)
        self._piece |= zip(nodes[cut].tolist(), pieces[cut[some]], strict=True)
        self._known[level] = self._known[level].with_new(nodes, area, cut)

    def whole(self, nodes: Ints) -> Bools:
        """Return which nodes are all inside."""
        area, cut = self._found(nodes)
        return ~cut & (area > 0)

    def pieces(self, nodes: Ints) -> NDArray[Any]:
        """Return the part of each node inside the shape."""
        self._found(nodes)
        rectangles = shapely.box(*self._box.bounds(nodes).T)
        known = [self._piece.get(node) for node in nodes.tolist()]
        return np.array([r if p is None else p for p, r in zip(known, np.atleast_1d(rectangles), strict=True)])

    def kinds(self, codes: Ints) -> tuple[Bools, Bools]:
        """Return which codes are in a node of the grid's level that is whole, and which in one that is cut."""
        nodes = self._box.nodes_of(codes, self._grid_level)
        new = np.unique(nodes[self._kind[nodes] == _UNKNOWN])
        area, cut = self._found(new)
        self._kind[new] = np.where(cut, CUT, np.where(area > 0, WHOLE, _EMPTY))
        kind = self._kind[nodes]
        return kind == WHOLE, kind == CUT

    def all_kinds(self) -> tuple[int, bytes]:
        """Return the bits of the grid's level, and for each of its codes whether it is `WHOLE`, `CUT` or neither."""
        bits = int(self._box.bits_through[self._grid_level])
        self.kinds(np.arange(1 << bits) << (self._box.total_bits - bits))
        return bits, self._kind[1 << bits :].tobytes()

    def covered(self, nodes: Ints, shapes: NDArray[Any], exact: Bools) -> Floats:
        """Return the share of each node's area inside the shape at the same position.

        Where it need not be exact, any number between 0 and 1 stands for a part.
        """
        different, which = np.unique(nodes, return_inverse=True)
        pieces, area = self.pieces(different), self.areas(different)
        edges, limits = shapely.bounds(pieces)[which], shapely.bounds(shapes)
        meets = (edges[:, :2] <= limits[:, 2:]).all(axis=1) & (edges[:, 2:] >= limits[:, :2]).all(axis=1)
        within = (edges[:, :2] >= limits[:, :2]).all(axis=1) & (edges[:, 2:] <= limits[:, 2:]).all(axis=1)
        within[within] = shapely.covers(shapes[within], shapely.box(*edges[within].T))
        share = np.where(within, 1.0, np.where(meets, 0.5, 0.0))
        cut = np.flatnonzero(meets & ~within & exact)
        inside = shapely.area(shapely.intersection(shapes[cut], pieces[which[cut]])) / area[which[cut]]
        share[cut] = np.where(inside > _WHOLE_SHARE, 1.0, inside)
        return share

    def covered_by(self, cover: ShapeCover, nodes: Ints, at: Ints, exact: Bools) -> Floats:
        """Return the same for the polygons at positions ``at`` of a cover: of whole nodes from their corners alone."""
        different, which = np.unique(nodes, return_inverse=True)
        whole = self.whole(different)[which]
        share = np.empty(nodes.size)
        share[whole] = cover.share(self._box.bounds(nodes[whole]), at[whole], exact[whole])
        share[~whole] = self.covered(nodes[~whole], cover.shapes[at[~whole]], exact[~whole])
        return share

    def overlap(self, nodes: Ints, shapes: NDArray[Any]) -> Floats:
        """Return the share of each node's area (columns) inside each shape (rows)."""
        pieces, area = self.pieces(nodes), self.areas(nodes)
        share = np.zeros((shapes.size, nodes.size))
        row, column = shapely.STRtree(pieces).query(shapes, predicate="intersects")
        within = shapely.contains_properly(shapes[row], shapely.box(*shapely.bounds(pieces[column]).T))
        share[row[within], column[within]] = 1.0
        row, column = row[~within], column[~within]
        share[row, column] = shapely.area(shapely.intersection(shapes[row], pieces[column])) / area[column]
        return np.minimum(share, 1.0)

    def place(self, nodes: Ints, index: Ints, key: int) -> Floats:
        """Return point ``index`` of each node: a triangle of its piece by area, and a place in the triangle."""
        points = np.empty((nodes.size, 2))
        if not nodes.size:
            return points
        pick, a, b = (hash_uniform(key, nodes, (index + 1) * 3 + axis) for axis in range(3))
        flip = a + b > 1
        a, b = np.where(flip, 1 - a, a), np.where(flip, 1 - b, b)
        order = np.argsort(nodes, kind="stable")
        different, begins = np.unique(nodes[order], return_index=True)
        for node, rows in zip(different.tolist(), np.split(order, begins[1:]), strict=True):
            corners, until = self._triangulation(node)
            chosen = corners[np.minimum(np.searchsorted(until, pick[rows], side="right"), len(until) - 1)]
            first, second = chosen[:, 1] - chosen[:, 0], chosen[:, 2] - chosen[:, 0]
            spot = chosen[:, 0] + a[rows, None] * first + b[rows, None] * second
            points[rows] = self._inside(node, spot, chosen.mean(axis=1))
        return points

    def _triangulation(self, node: int) -> tuple[Floats, Floats]:
        """Return a piece's triangles (n, 3, 2) and the cumulative share of its area."""
        if node not in self._triangles:
            pieces = shapely.get_parts(self.pieces(np.array([node])))
            pieces = pieces[shapely.area(pieces) > 0]
            triangles = shapely.get_parts(shapely.constrained_delaunay_triangles(pieces))
            corners = shapely.get_coordinates(triangles).reshape(-1, 4, 2)[:, :3]
            until = np.cumsum(shapely.area(triangles))
            self._triangles[node] = corners, until / until[-1]
        return self._triangles[node]

    def _inside(self, node: int, points: Floats, centres: Floats) -> Floats:
        """Move the few points that rounding put just outside a little toward the middle of their triangle."""
        piece = self.pieces(np.array([node]))[0]
        for step in (1e-9, 1e-6, 1e-3, 1.0):
            outside = ~shapely.intersects_xy(piece, points[:, 0], points[:, 1])
            if not outside.any():
                break
            points[outside] += (centres[outside] - points[outside]) * step
        outside = ~shapely.intersects_xy(piece, points[:, 0], points[:, 1])
        points[outside] = shapely.get_coordinates(shapely.point_on_surface(piece))
        return points
