"""Nodes of a box cut to polygons: computed when first needed, and kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.box import Box
from phdstream.domains.codes import ROOT, hash_uniform
from phdstream.domains.shapes.cover import ShapeCover

__all__ = ["ClippedNodes"]

_GRID_BITS = 16
"""Codes are sorted into nodes of at most this many halvings, before any geometry is asked."""
_UNKNOWN, _EMPTY, _WHOLE, _CUT = range(4)
_WHOLE_SHARE = 1 - 1e-9
"""A piece with this share of its rectangle's area is taken as the whole rectangle."""


class ClippedNodes:
    """What of each node's rectangle lies inside a shape. A node is *whole* (all inside), cut, or empty; whole nodes
    need no geometry.

    Per visited node the cache holds its area and, for a cut node, its piece: memory grows with the visited part of the
    shape's boundary.
    """

    def __init__(self, box: Box, shape: Any) -> None:
        self._box = box
        self._piece: dict[int, Any] = {ROOT: shape}  # None for a whole node
        self._area: dict[int, float] = {ROOT: float(shapely.area(shape))}
        self._triangles: dict[int, tuple[Floats, Floats]] = {}
        self._grid_level = int(np.searchsorted(box.bits_through, _GRID_BITS, side="right")) - 1
        self._kind = np.full(2 << int(box.bits_through[self._grid_level]), _UNKNOWN, dtype=np.uint8)

    def areas(self, nodes: Ints, parents: Ints | None = None) -> Floats:
        """Return the area of each node inside the shape; pieces are cut from the parents' where those are known."""
        area = list(map(self._area.get, nodes.tolist()))
        if None in area:
            self._clip(nodes, parents)
            area = list(map(self._area.get, nodes.tolist()))
        return np.array(area, dtype=np.float64)

    def _clip(self, nodes: Ints, parents: Ints | None = None) -> None:
        known = np.array([node in self._area for node in nodes.tolist()], dtype=bool)
        if known.all():
            return
        new = nodes[~known]
        origin = np.full(new.size, ROOT) if parents is None else parents[~known]
        from_piece = np.array([self._piece.get(node, self._piece[ROOT]) for node in origin.tolist()], dtype=object)
        self._note(new, from_piece)

    def _note(self, nodes: Ints, origin: NDArray[Any]) -> None:
        """Cut each node's rectangle to a shape known to hold its part (None: all of it), and keep what is left."""
        corners = self._box.bounds(nodes)
        full = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        cut = np.array([shape is not None for shape in origin], dtype=bool)
        pieces = np.full(nodes.size, None, dtype=object)
        pieces[cut] = shapely.intersection(origin[cut], shapely.box(*corners[cut].T))
        area = full.copy()
        area[cut] = shapely.area(pieces[cut])
        whole = area >= full * _WHOLE_SHARE
        for node, piece, inside, size in zip(nodes.tolist(), pieces, whole.tolist(), area.tolist(), strict=True):
            self._piece[node], self._area[node] = (None if inside or size == 0 else piece), size

    def whole(self, nodes: Ints) -> Bools:
        """Return which nodes are all inside."""
        self._clip(nodes)
        return np.array([self._piece[n] is None and self._area[n] > 0 for n in nodes.tolist()], dtype=bool)

    def pieces(self, nodes: Ints) -> NDArray[Any]:
        """Return the part of each node inside the shape."""
        self._clip(nodes)
        rectangles = shapely.box(*self._box.bounds(nodes).T)
        known = [self._piece[node] for node in nodes.tolist()]
        return np.array([r if p is None else p for p, r in zip(known, np.atleast_1d(rectangles), strict=True)])

    def kinds(self, codes: Ints) -> tuple[Bools, Bools]:
        """Return which codes are in a node of the grid's level that is whole, and which in one that is cut."""
        nodes = self._box.nodes_of(codes, self._grid_level)
        self._classify(np.unique(nodes[self._kind[nodes] == _UNKNOWN]))
        kind = self._kind[nodes]
        return kind == _WHOLE, kind == _CUT

    def _classify(self, nodes: Ints) -> None:
        self._descend(nodes)
        cut = np.array([self._piece[node] is not None for node in nodes.tolist()], dtype=bool)
        there = np.array([self._area[node] > 0 for node in nodes.tolist()], dtype=bool)
        self._kind[nodes] = np.where(cut, _CUT, np.where(there, _WHOLE, _EMPTY))

    def _descend(self, nodes: Ints) -> None:
        """Clip nodes of one level by way of their ancestors: each cut is from a small piece, not the whole shape."""
        path, bits = [nodes], self._box.level_bits[0]
        while path[-1].size and path[-1][0] > ROOT:
            path.append(np.unique(path[-1] >> bits))
        for upper in path[-2::-1]:
            self._clip_below(upper, upper >> bits)

    def _clip_below(self, nodes: Ints, parents: Ints) -> None:
        empty = np.array([self._area[p] == 0 for p in parents.tolist()], dtype=bool)
        for node in nodes[empty].tolist():
            self._piece[node], self._area[node] = None, 0.0
        self._clip(nodes[~empty], parents[~empty])

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
