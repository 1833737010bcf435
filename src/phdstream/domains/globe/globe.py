"""`Globe`: the whole Earth, in S2 cells: six quadtrees whose codes follow a Hilbert curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.arguments import check_depth, check_names
from phdstream.domains.chunks import in_chunks
from phdstream.domains.codes import ROOT, child_nodes, hash_uniform
from phdstream.domains.domain import CoveredShare, Domain
from phdstream.domains.globe.cell_bounds import WORLD, cell_bounds, drawn_corners, face_bounds
from phdstream.domains.globe.overlap import cut_shares, inside_and_touched
from phdstream.domains.globe.s2 import Cells, cells_of, codes_of, grid_position, spherical_area, to_face
from phdstream.domains.globe.s2_ids import nodes_from_s2_ids, s2_ids
from phdstream.domains.globe.uniform import grid_in, points_in
from phdstream.domains.resolution import METRES_PER_DEGREE, Resolution, levels_for
from phdstream.errors import InputError

__all__ = ["Globe"]

_RADIUS = 6371.0071809
"""Kilometres: the radius of the sphere with as much surface as the Earth (WGS 84)."""
_FACES = 6
_FACE_METRES = 9_219_800.0
"""The side of a square as large as a face: a sixth of the Earth's surface."""
_DEPTH_LIMIT = 29
"""S2 level 28: cells of 3 cm, some ten million times the rounding error of a longitude in degrees."""
_PAIRS_AT_ONCE = 4096
_FLAT_LEVEL = 5
"""From this level on a cell is so small that an even grid of it is even by area, within a few percent."""


class Globe(Domain):
    """The whole Earth, in the cells of Google's S2. Points are (longitude, latitude) in degrees.

    The root has six children, the faces of a cube around the Earth, and every other node has four, in the order of
    S2's Hilbert curve: a node of level ℓ is an S2 cell of level ℓ - 1. Cells of one level differ in area by a factor
    of at most 2.1. Longitudes run from -180 to 180, which are one meridian, and latitudes from -90 to 90. The finest
    cells are of about 10 m unless ``resolution`` ("1 km", or a number of degrees) or ``depth`` says otherwise.

    Geometry is on the sphere: longitude and latitude are taken as spherical ones, as S2 does, and areas are in km²
    on the sphere with as much surface as the Earth. The true ellipsoidal area of a cell differs by less than 1%.

    >>> earth = Globe(depth=10)
    >>> codes, inside = earth.encode(np.array([[-0.1276, 51.5072], [139.6917, 35.6895], [200.0, 0.0]]))
    >>> inside.tolist()
    [True, True, False]
    >>> london = earth.nodes_of(codes[:1], level=9)
    >>> hex(earth.to_s2_ids(london)[0]), earth.bounds(london).round(2).tolist()
    ('0x4876100000000000', [[-0.38, 51.35, 0.0, 51.68]])
    >>> round(float(earth.measure(np.array([ROOT]))[0]))
    510065622
    """

    dimension = 2
    fanout = _FACES

    crs = "EPSG:4326"

    def __init__(
        self, *, depth: int | None = None, names: Sequence[str] | None = None, resolution: Resolution = None
    ) -> None:
        self.names = ("lon", "lat") if names is None else check_names(names, self.dimension)
        face, degree = np.full(2, _FACE_METRES / METRES_PER_DEGREE), np.full(2, METRES_PER_DEGREE)
        below = None if depth is None else max(1, check_depth(depth, 1, _DEPTH_LIMIT) - 1)
        levels = levels_for(below, resolution, face, degree, bits=2, limit=_DEPTH_LIMIT - 1)
        self.level_bits = (3,) + (2,) * (0 if depth == 1 else levels)

    @property
    def cell_metres(self) -> float:
        """How wide the finest cells are, in metres: on average."""
        return _FACE_METRES / (1 << self._finest)

    @property
    def _finest(self) -> int:
        """The S2 level of the finest cells."""
        return self.depth - 1

    def encode(self, points: Floats) -> tuple[Ints, Bools]:
        """Return each point's code and whether it is on the globe; NaN and infinity, or 181 degrees, are not."""
        inside = np.asarray((np.abs(points) <= (180, 90)).all(axis=1))
        codes = np.empty(len(points), dtype=np.int64)

        def encode_some(rows: slice) -> None:
            face, u, v = to_face(*np.where(inside[rows, None], points[rows], 0.0).T)
            i, j = grid_position(u, self._finest), grid_position(v, self._finest)
            codes[rows] = codes_of(face, i, j, self._finest)

        in_chunks(encode_some, len(points))
        return codes, inside

    def children(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the children of nodes of one level, the position of each one's parent, and its share of the area."""
        top = nodes.size > 0 and bool(nodes[0] == ROOT)
        number, bits = (_FACES, 3) if top else (4, 2)
        children = child_nodes(nodes, bits, number).ravel()
        area = np.ones((nodes.size, number)) if top else self._areas(children).reshape(-1, number)
        share: Floats = (area / area.sum(axis=1, keepdims=True)).ravel()
        return children, np.repeat(np.arange(nodes.size), number), share

    def measure(self, nodes: Ints) -> Floats:
        """Return the area of each node in km², exact up to rounding."""
        return _RADIUS**2 * np.where(nodes == ROOT, 4 * np.pi, self._areas(nodes))

    def has_measure(self, nodes: Ints) -> Bools:
        """Return which nodes are cells of the six faces: all of those have an area."""
        return np.asarray((nodes == ROOT) | (self.code_range(nodes)[0] >> (self.total_bits - 3) < _FACES))

    def _areas(self, nodes: Ints) -> Floats:
        cells = self._cells(nodes)
        return spherical_area(cells.u, cells.v, cells.du, cells.dv)

    def _cells(self, nodes: Ints) -> Cells:
        """Return the S2 cells of nodes; the root, which is none, comes out as the first face."""
        s2_level = np.maximum(self.levels(nodes) - 1, 0)
        return cells_of(self.code_range(nodes)[0], self._finest, self._finest - s2_level)

    def vertices(self, nodes: Ints) -> Floats:
        """Return the corners of cells, (n, 4, 2) in degrees, counter-clockwise; the root has none.

        A cell's longitudes are within 180 degrees of its middle's, so that it can be drawn in one piece: those of face
        3, the only cell across the antimeridian but away from a pole, run from 135 to 225. A corner at a pole has the
        middle's longitude. The sides are great circles.
        """
        if (nodes == ROOT).any():
            raise InputError("the root is the whole Earth and has no corners: ask for nodes of level 1 or below.")
        return np.stack(drawn_corners(self._cells(nodes)), axis=2)

    def geometry(self, nodes: Ints) -> NDArray[Any]:
        """Return the cells as Shapely polygons of longitudes and latitudes, for drawing (sides are drawn straight)."""
        import shapely

        shapes = np.full(nodes.size, shapely.box(-180, -90, 180, 90), dtype=object)
        cells = nodes > ROOT
        shapes[cells] = shapely.polygons(self.vertices(nodes[cells]))
        return shapes

    def bounds(self, nodes: Ints) -> Floats:
        """Return longitudes and latitudes that hold the nodes, (n, 4): west, south, east, north.

        A cell at a pole, and one across the antimeridian, has all longitudes. Boxes are wider than the cells by 1e-12
        degrees, more than rounding in `encode` can do; only longitude ±180 may be on the wrong end (a cell that begins
        at -180 holds the points written with 180).
        """
        levels, cells = self.levels(nodes)[:, None], self._cells(nodes)
        below = np.where(levels == 1, face_bounds(cells), cell_bounds(cells))
        return np.asarray(np.where(levels == 0, WORLD, below))

    def overlap(self, nodes: Ints, rectangles: Floats) -> Floats:
        """Return the share of each node's area (columns) inside each rectangle (rows: west, south, east, north).

        What a rectangle has beyond ±180 degrees holds nothing: cut one across the antimeridian in two. Shares are
        exactly 1 and 0 for cells whose `bounds` are inside and outside. For cells that are cut they are exact up to
        a rounding error below 1e-5, usually far smaller; only those finer than S2 level 16 (a hundred metres), if the
        tree goes so deep, are counted out in 16 x 16 parts, which may be wrong by a row of them in each direction.
        """
        rectangles = np.clip(rectangles, -np.abs(WORLD), np.abs(WORLD))
        inside, touched = inside_and_touched(self.bounds(nodes), rectangles)
        share = inside.astype(np.float64)
        rows, columns = np.nonzero(touched & ~inside)
        for i in range(0, rows.size, _PAIRS_AT_ONCE):
            row, cut = rows[i : i + _PAIRS_AT_ONCE], nodes[columns[i : i + _PAIRS_AT_ONCE]]
            some = cut_shares(self._cells(cut), self.levels(cut) - 1, rectangles[row])
            share[row, columns[i : i + _PAIRS_AT_ONCE]] = some
        return share

    def spread(self, nodes: Ints) -> Floats:
        """Return points spread evenly over each node, (nodes, points, 2): a grid of each cell; see `Domain.spread`."""
        if (nodes == ROOT).any() or (self.levels(nodes) < _FLAT_LEVEL).any():
            return super().spread(nodes)
        return grid_in(self._cells(nodes))

    def _spread_by_level(self, nodes: Ints) -> Floats:
        different, which = np.unique(nodes, return_inverse=True)
        coarse = self.levels(different) < _FLAT_LEVEL
        return np.concatenate([self.spread(different[coarse]), self.spread(different[~coarse])])[which]

    def covered_by(self, shapes: NDArray[Any]) -> CoveredShare:
        """Return what tells the share of nodes inside polygons, pair by pair: parts by points spread over the node."""
        import shapely

        from phdstream.domains.shapes.cover import ShapeCover

        cover = ShapeCover(shapes)

        def covered(nodes: Ints, at: Ints, exact: Bools) -> Floats:
            share = cover.rough(self.bounds(nodes), at)
            cut = np.flatnonzero(exact & (share == 0.5))
            x, y = np.moveaxis(self._spread_by_level(nodes[cut]), 2, 0)
            share[cut] = shapely.intersects_xy(shapes[at[cut], None], x, y).mean(axis=1)
            return share

        return covered

    def place(self, codes: Ints, index: Ints, key: int) -> Floats:
        """Return one point in the finest cell of each code, uniform by area, and clear of the cell's edges."""
        first, second = (hash_uniform(key, codes, (index + ROOT) * self.dimension + axis) for axis in (0, 1))
        margin = 2.0 ** (self._finest - 44)  # some fifty times what rounding moves a point by
        return points_in(cells_of(codes, self._finest), first, second, margin)

    def to_s2_ids(self, nodes: Ints) -> NDArray[np.uint64]:
        """Return the S2 cell ids of nodes; the root has none.

        >>> earth = Globe()
        >>> earth.from_s2_ids(earth.to_s2_ids(np.array([8, 13]))).tolist()
        [8, 13]
        """
        if (nodes == ROOT).any():
            raise InputError("the root is the whole Earth and no S2 cell: ask for nodes of level 1 or below.")
        return s2_ids(nodes, self.bits_through[self.levels(nodes)])

    def from_s2_ids(self, ids: Any) -> Ints:
        """Return the nodes that have these S2 cell ids, which may also be written as signed integers."""
        return nodes_from_s2_ids(ids, self.total_bits)

    def to_dict(self) -> dict[str, Any]:
        """Return the globe as plain data."""
        return {"type": "globe", "depth": self.depth, "names": list(self.names)}

    def __repr__(self) -> str:
        return f"Globe(depth={self.depth})"
