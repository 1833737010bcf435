"""`Globe`: the whole Earth, in S2 cells."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.codes import ROOT, hash_uniform
from phdstream.domains.domain import Domain, check_depth, check_names
from phdstream.domains.globe.overlap import share_of_equatorial, share_of_parts, share_of_polar, share_of_sphere
from phdstream.domains.globe.s2 import (
    Cells,
    cells_of,
    codes_of,
    corners,
    grid_position,
    spherical_area,
    to_face,
    to_lon_lat,
)
from phdstream.errors import InputError

__all__ = ["Globe"]

_RADIUS = 6371.0071809
"""Kilometres: the radius of the sphere with as much surface as the Earth (WGS 84)."""
_FACES = 6
_DEPTH_BY_DEFAULT = 14
"""S2 level 13: cells of 1.3 km² on average."""
_DEPTH_LIMIT = 29
"""S2 level 28: cells of 3 cm, some ten million times the rounding error of a longitude in degrees."""
_LIMIT = np.array([180.0, 90.0, 180.0, 90.0])
_OUTWARD = np.array([-1, -1, 1, 1])
_ROUNDING = 1e-12
"""Degrees of arc by which rounding may carry a point over the edge of a cell; far more than it ever does."""
_FACE_LATITUDE = float(np.degrees(np.arcsin(1 / np.sqrt(3))))
_FACE_BOUNDS = np.array(
    [
        [-45.0, -45.0, 45.0, 45.0],
        [45.0, -45.0, 135.0, 45.0],
        [-180.0, _FACE_LATITUDE, 180.0, 90.0],
        [-180.0, -45.0, 180.0, 45.0],
        [-135.0, -45.0, -45.0, 45.0],
        [-180.0, -90.0, 180.0, -_FACE_LATITUDE],
    ]
)
_CLOSED_FORM_LEVEL = 16
"""The finest S2 level at which the area cut out of a cell is taken by its formula, whose rounding error is absolute."""
_PAIRS_AT_ONCE = 4096
_FLAT_LEVEL = 5
"""From this level on a cell is so small that an even grid of it is even by area, within a few percent."""
_NEWTON_STEPS = 3


class Globe(Domain):
    """The whole Earth, in the cells of Google's S2. Points are (longitude, latitude) in degrees.

    The root has six children, the faces of a cube around the Earth, and every other node has four, in the order of
    S2's Hilbert curve: a node of level ℓ is an S2 cell of level ℓ - 1. Cells of one level differ in area by a factor
    of at most 2.1. Longitudes run from -180 to 180, which are one meridian, and latitudes from -90 to 90. The finest
    cells are of about 1 km unless ``depth`` says otherwise; each level more halves them.

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

    def __init__(self, *, depth: int | None = None, names: Sequence[str] | None = None) -> None:
        self.names = ("lon", "lat") if names is None else check_names(names, self.dimension)
        self.level_bits = (3,) + (2,) * (check_depth(depth, _DEPTH_BY_DEFAULT, _DEPTH_LIMIT) - 1)

    @property
    def _finest(self) -> int:
        """The S2 level of the finest cells."""
        return self.depth - 1

    def encode(self, points: Floats) -> tuple[Ints, Bools]:
        """Return each point's code and whether it is on the globe; NaN and infinity, or 181 degrees, are not."""
        lon, lat = points[:, 0], points[:, 1]
        inside: Bools = (np.abs(lon) <= 180) & (np.abs(lat) <= 90)
        lon, lat = np.where(inside, lon, 0.0), np.where(inside, lat, 0.0)
        face, u, v = to_face(np.where(lon == 180, -180.0, lon), lat)  # one meridian, but rounding parts the two
        return codes_of(face, grid_position(u, self._finest), grid_position(v, self._finest), self._finest), inside

    def children(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the children of nodes of one level, the position of each one's parent, and its share of the area."""
        top = nodes.size > 0 and bool(nodes[0] == ROOT)
        number, bits = (_FACES, 3) if top else (4, 2)
        children = (nodes[:, None] << bits | np.arange(number)).ravel()
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
        return np.stack(_drawn_corners(self._cells(nodes)), axis=2)

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
        lon, lat = _drawn_corners(cells)
        south, north = lat.min(axis=1), lat.max(axis=1)
        slack = _ROUNDING / np.cos(np.radians(np.maximum(-south, north)))
        box = np.stack([lon.min(axis=1) - slack, south - _ROUNDING, lon.max(axis=1) + slack, north + _ROUNDING], axis=1)
        box = np.where(levels == 1, _FACE_BOUNDS[cells.face] + _ROUNDING * _OUTWARD, box)
        return np.asarray(np.where(levels == 0, _LIMIT * _OUTWARD, np.clip(box, -_LIMIT, _LIMIT)))

    def overlap(self, nodes: Ints, rectangles: Floats) -> Floats:
        """Return the share of each node's area (columns) inside each rectangle (rows: west, south, east, north).

        What a rectangle has beyond ±180 degrees holds nothing: cut one across the antimeridian in two. Shares are
        exactly 1 and 0 for cells whose `bounds` are inside and outside. For cells that are cut they are exact up to
        a rounding error below 1e-5, usually far smaller; only those finer than S2 level 16 (a hundred metres), if the
        tree goes so deep, are counted out in 16 x 16 parts, which may be wrong by a row of them in each direction.
        """
        box, rectangles = self.bounds(nodes), np.clip(rectangles, -_LIMIT, _LIMIT)
        inside, touched = np.ones((2, rectangles.shape[0], nodes.size), dtype=bool)
        for low, high in ((0, 2), (1, 3)):
            inside &= (rectangles[:, low, None] <= box[:, low]) & (box[:, high] <= rectangles[:, high, None])
            touched &= (rectangles[:, low, None] < box[:, high]) & (box[:, low] < rectangles[:, high, None])
        share = inside.astype(np.float64)
        rows, columns = np.nonzero(touched & ~inside)
        for i in range(0, rows.size, _PAIRS_AT_ONCE):
            row, column = rows[i : i + _PAIRS_AT_ONCE], columns[i : i + _PAIRS_AT_ONCE]
            share[row, column] = self._cut_shares(nodes[column], rectangles[row])
        return share

    def _cut_shares(self, nodes: Ints, rectangles: Floats) -> Floats:
        """Return the share of each node inside the rectangle of its row."""
        cells, share = self._cells(nodes), np.empty(nodes.size)
        root, fine = nodes == ROOT, self.levels(nodes) - 1 > _CLOSED_FORM_LEVEL
        polar = (cells.face % 3 == 2) & ~root & ~fine
        rules = {share_of_sphere: root, share_of_parts: fine, share_of_polar: polar}
        for rule, rows in (rules | {share_of_equatorial: ~(root | fine | polar)}).items():
            share[rows] = rule(Cells(*(column[rows] for column in cells)), rectangles[rows])
        return np.clip(share, 0, 1)

    def spread(self, nodes: Ints) -> Floats:
        """Return points spread evenly over each node, (nodes, points, 2): a grid of each cell; see `Domain.spread`."""
        if (nodes == ROOT).any() or (self.levels(nodes) < _FLAT_LEVEL).any():
            return super().spread(nodes)
        cells, (across, up) = self._cells(nodes), (np.indices((8, 8)).reshape(2, -1) + 0.5) / 8
        u, v = (start[:, None] + at * side[:, None] for start, at, side in
                ((cells.u, across, cells.du), (cells.v, up, cells.dv)))  # fmt: skip
        face = np.repeat(cells.face, across.size)
        return np.stack(to_lon_lat(face, u.ravel(), v.ravel()), axis=1).reshape(nodes.size, across.size, 2)

    def _spread_by_level(self, nodes: Ints) -> Floats:
        different, which = np.unique(nodes, return_inverse=True)
        coarse = self.levels(different) < _FLAT_LEVEL
        return np.concatenate([self.spread(different[coarse]), self.spread(different[~coarse])])[which]

    def covered_shapes(self, nodes: Ints, shapes: NDArray[Any], exact: Bools) -> Floats:
        """Return the share of each node inside the polygon at the same position; see `Domain`.

        Parts are found by points spread evenly over the node.
        """
        import shapely

        from phdstream.domains.shapes.cover import covered_by_shapes

        def part(rows: Ints) -> Floats:
            points = self._spread_by_level(nodes[rows])
            inside = shapely.intersects_xy(shapes[rows, None], points[:, :, 0], points[:, :, 1])
            return np.asarray(inside.mean(axis=1))

        return covered_by_shapes(self.bounds(nodes), shapes, exact, part)

    def place(self, codes: Ints, index: Ints, key: int) -> Floats:
        """Return one point in the finest cell of each code, uniform by area, and clear of the cell's edges."""
        cells = cells_of(codes, self._finest)
        first, second = (hash_uniform(key, codes, (index + ROOT) * self.dimension + axis) for axis in (0, 1))
        margin = 2.0 ** (self._finest - 44)  # some fifty times what rounding moves a point by
        across = margin + (1 - 2 * margin) * _fraction_across(cells, first)
        u = cells.u + across * cells.du
        up = margin + (1 - 2 * margin) * _fraction_up(cells, u, second)
        return np.stack(to_lon_lat(cells.face, u, cells.v + up * cells.dv), axis=1)

    def to_s2_ids(self, nodes: Ints) -> NDArray[np.uint64]:
        """Return the S2 cell ids of nodes; the root has none.

        >>> earth = Globe()
        >>> earth.from_s2_ids(earth.to_s2_ids(np.array([8, 13]))).tolist()
        [8, 13]
        """
        if (nodes == ROOT).any():
            raise InputError("the root is the whole Earth and no S2 cell: ask for nodes of level 1 or below.")
        bits = self.bits_through[self.levels(nodes)]
        marked = (nodes - (np.int64(ROOT) << bits)) << 1 | 1
        return marked.astype(np.uint64) << (63 - bits).astype(np.uint64)

    def from_s2_ids(self, ids: Any) -> Ints:
        """Return the nodes that have these S2 cell ids, which may also be written as signed integers."""
        array = _read_ids(ids)
        zeros = np.bitwise_count(~array & (array - np.uint64(1))).astype(np.int64)  # below the mark
        bits = 63 - zeros
        prefixes = (array >> np.uint64(1) >> zeros.astype(np.uint64)).astype(np.int64)
        known = (zeros % 2 == 0) & (bits >= 3) & (prefixes >> np.maximum(bits - 3, 0) < _FACES)
        if not known.all():
            raise InputError("some numbers are not ids of S2 cells.")
        if (bits > self.total_bits).any():
            raise InputError(f"some S2 cells are finer than this tree's, of level {self._finest}: take their parents.")
        return prefixes | np.int64(ROOT) << bits

    def to_dict(self) -> dict[str, Any]:
        """Return the globe as plain data."""
        return {"type": "globe", "depth": self.depth, "names": list(self.names)}

    def __repr__(self) -> str:
        return f"Globe(depth={self.depth})"


def _read_ids(ids: Any) -> NDArray[np.uint64]:
    try:
        array = np.asarray(ids)
        if array.dtype.kind not in "iu":  # NumPy makes floats of a list with numbers below and above 2^63
            array = np.array([operator.index(i) for i in ids], dtype=np.uint64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise InputError("S2 cell ids are whole numbers of 64 bits, in a one-dimensional array.")
    return array.astype(np.uint64)


def _drawn_corners(cells: Cells) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of corners, (n, 4) each, all longitudes within 180 degrees of the middle's."""
    lon, lat = corners(cells)
    middle = to_lon_lat(cells.face, cells.u + cells.du / 2, cells.v + cells.dv / 2)[0][:, None]
    from_middle = (lon - middle + 180) % 360 - 180
    return middle + np.where(np.abs(lat) == 90, 0, from_middle), lat


# --- uniform points in a cell ---


def _fraction_across(cells: Cells, share: Floats) -> Floats:
    """Return how far across u a cell has this share of its area behind: by Newton's method, as many steps for all."""
    _, u, v, du, dv = cells
    wanted, fraction = share * spherical_area(u, v, du, dv), share
    for _ in range(_NEWTON_STEPS):
        x = u + fraction * du
        steps = (_strip(x, v + dv) - _strip(x, v)) * du
        fraction = np.clip(fraction - (spherical_area(u, v, fraction * du, dv) - wanted) / steps, 0, 1)
    return fraction


def _strip(u: Floats, v: Floats) -> Floats:
    """Return the area per width of the strip at u from 0 to v."""
    return v / ((1 + u * u) * np.sqrt(1 + u * u + v * v))


def _fraction_up(cells: Cells, u: Floats, share: Floats) -> Floats:
    """Return how far up v the line at u has this share of its strip below."""
    square = 1 + u * u
    low, high = (v / np.sqrt(square + v * v) for v in (cells.v, cells.v + cells.dv))
    sine = low + share * (high - low)
    fraction: Floats = (sine * np.sqrt(square / (1 - sine * sine)) - cells.v) / cells.dv
    return np.clip(fraction, 0, 1)
