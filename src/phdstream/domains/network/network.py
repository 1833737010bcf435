"""`Network`: points on lines, such as streets; the tree halves the plane, and the measure is length."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.box import Box
from phdstream.domains.codes import ROOT, child_nodes, hash_uniform
from phdstream.domains.domain import Domain
from phdstream.domains.network.clipped_segments import ClippedSegments
from phdstream.domains.network.line_input import box_around, check_planar, check_snap, project, read_binary, read_lines
from phdstream.domains.network.nearest import NearestSegment
from phdstream.domains.network.overlap import open_outward, share_inside, tiles_of
from phdstream.domains.network.segments import Segments, straight_segments
from phdstream.domains.network.tiled_lines import TiledLines
from phdstream.domains.resolution import Resolution
from phdstream.domains.shapes.projection import Projection, is_geographic
from phdstream.errors import InputError

__all__ = ["Network"]


class Network(Domain):
    """The points of lines, such as a city's streets. Points beside them are moved to the nearest line.

    Parameters
    ----------
    lines: Shapely lines, a GeoSeries, the path of a file of them, or an OSMnx graph. Both directions of a street, or a
        segment given twice, count once; lines side by side, or one on the other with other vertices, stay two.
    snap: how far from a line a point may be, in units of ``tree_crs``; farther points are outside.
    crs, tree_crs: of lines and points, and the planar system for lengths, such as ``crs="EPSG:4326",
        tree_crs="EPSG:32618"``. Without any, coordinates are taken as planar.
    depth, resolution, fanout: of the tree, as for `Box`, in units of ``tree_crs``.
    bounds: what is halved, ``[(x low, high), (y low, high)]`` in ``tree_crs``; by default just around the lines.

    A node is the part of the lines in a node of a `Box`; one without lines is not in the tree. Lengths are whole
    numbers of grains (see `phdstream.domains.network.segments`), so they add up exactly.

    >>> street = Network([shapely.LineString([(0, 0), (100, 0), (100, 60)])], snap=5)
    >>> street.encode(np.array([[10.0, 3.0], [10.0, 30.0]]))[1].tolist()
    [True, False]
    >>> street.measure(np.array([1])).tolist(), street.overlap(np.array([1]), np.array([[0, -1, 40, 1]])).tolist()
    ([160.0], [[0.25]])
    >>> bool(street.sample(np.array([1]), np.array([3]), key=1)[:, 1].max() <= 60)
    True
    """

    dimension = 2

    def __init__(
        self,
        lines: Any,
        *,
        snap: float,
        crs: Any = None,
        tree_crs: Any = None,
        depth: int | None = None,
        fanout: int = 2,
        names: Sequence[str] | None = None,
        bounds: Sequence[Sequence[float]] | None = None,
        resolution: Resolution = None,
    ) -> None:
        self.snap = check_snap(snap)
        self._lines, own = read_lines(lines, crs)
        self._projection = Projection(own, tree_crs)
        self.crs, self.tree_crs = self._projection.crs, self._projection.tree_crs
        check_planar(self._projection, self._lines)
        ends = project(straight_segments(self._lines), self._projection, self.snap / 100)
        names = ("lon", "lat") if names is None and is_geographic(own) else names
        tree = {"fanout": fanout, "depth": depth, "resolution": resolution, "names": names, "crs": self.tree_crs}
        self._box = box_around(ends, bounds, tree)
        self.names, self.fanout, self.level_bits = self._box.names, self._box.fanout, self._box.level_bits
        self._halves = Box(self._box.to_dict()["bounds"], depth=self.total_bits)
        self._segments = Segments(ends, self._blur(ends.reshape(-1, 2)))
        self._tree = ClippedSegments(self._segments, self._halves)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the network that `to_dict` described, or one read from the file that ``lines`` names."""
        others = {name: value for name, value in fields.items() if name != "type"}
        lines = others.pop("lines", None)
        if isinstance(lines, str) and not Path(lines).suffix:
            lines = read_binary(lines)
        return cls(lines, **others)

    def _blur(self, points: Floats) -> float:
        """Return how far a point may move on its way to the users' system and back."""
        there_and_back = self._projection.forward(self._projection.backward(points))
        return float(np.abs(there_and_back - points).max())

    @cached_property
    def _nearest(self) -> NearestSegment:
        return NearestSegment(self._segments, self.snap)

    def encode(self, points: Floats) -> tuple[Ints, Bools]:
        """Return the code of the place on the lines nearest to each point, and whether it is within ``snap``."""
        segment, at = self._nearest(self._projection.forward(points))
        inside, codes = segment >= 0, np.zeros(len(points), dtype=np.int64)
        there = np.flatnonzero(inside)
        rows = segment[there]
        size = self._segments.grains[rows]
        grain = np.minimum((at[there] * size).astype(np.int64), size - 1)
        codes[there] = self._tree.codes(rows, grain)
        return codes, inside

    @property
    def cell_metres(self) -> float | None:
        """How wide the finest cells are, in metres."""
        return self._box.cell_metres

    def measure(self, nodes: Ints) -> Floats:
        """Return the length of line in each node, in units of ``tree_crs``."""
        return self._tree.grains(nodes).astype(np.float64) * self._segments.grain

    def children(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the children that have lines in them, the position of each one's parent, and its share of length."""
        children, parent, whole = nodes, np.arange(nodes.size), self._tree.grains(nodes)
        grains = whole
        for _ in range(self.level_bits[0]):
            children, parent = child_nodes(children, bits=1).ravel(), np.repeat(parent, 2)
            grains = self._tree.grains(children)
            there = np.flatnonzero(grains)
            children, parent, grains = children[there], parent[there], grains[there]
        return children, parent, grains / whole[parent]

    def bounds(self, nodes: Ints) -> Floats:
        """Return the bounding boxes of the nodes' squares, (n, 4), in users' coordinates."""
        corners = self._halves.bounds(nodes)
        if self._projection.identity:
            return corners
        (x0, y0, x1, y1), xm, ym = corners.T, corners[:, ::2].mean(axis=1), corners[:, 1::2].mean(axis=1)
        xs, ys = (x0, xm, x1, x1, x1, xm, x0, x0), (y0, y0, y0, ym, y1, y1, y1, ym)
        around = self._projection.backward(np.column_stack([np.ravel(xs), np.ravel(ys)])).reshape(8, -1, 2)
        return np.hstack([around.min(axis=0), around.max(axis=0)])

    def place(self, codes: Ints, index: Ints, key: int) -> Floats:
        """Return one point on the lines of each code's finest node: the centre of one of its grains."""
        nodes, which = np.unique(codes | (ROOT << self.total_bits), return_inverse=True)
        grains = self._tree.grains(nodes)
        if (grains == 0).any():
            raise InputError("there are no points in a cell without lines: it is not in the tree.")
        _, segment, low, high = self._tree.pieces(nodes)
        ends, size = np.cumsum(high - low), grains[which]
        chosen = np.minimum((hash_uniform(key, nodes[which], index + 1) * size).astype(np.int64), size - 1)
        rank = chosen + (np.cumsum(grains) - grains)[which]
        piece = np.searchsorted(ends, rank, side="right")
        grain = high[piece] - (ends[piece] - rank)
        return self._projection.backward(self._segments.along(segment[piece], grain + 0.5))

    def overlap(self, nodes: Ints, rectangles: Floats) -> Floats:
        """Return the share of each node's length (columns) inside each rectangle (rows) of users' coordinates.

        A line along a rectangle's upper side is not inside, unless the network ends there: rectangles that tile it
        add up to one.
        """
        return self._share(nodes, open_outward(rectangles, shapely.total_bounds(self._lines)), TiledLines.inside)

    def overlap_shapes(self, nodes: Ints, shapes: NDArray[Any]) -> Floats:
        """Return the share of each node's length inside each polygon of users' coordinates, its border included."""
        return self._share(nodes, shapes, TiledLines.inside_shapes)

    def _share(self, nodes: Ints, queries: NDArray[Any], inside: Callable[..., Floats]) -> Floats:
        """Compare the queries with disjoint tiles of the nodes, and add these up."""
        tiles = tiles_of(self._tree, self._halves, nodes)
        if not tiles.size:
            return np.zeros((len(queries), nodes.size))
        lines = TiledLines(*self._drawn(tiles))
        return share_inside(self._tree, self._halves, nodes, tiles, queries, lambda some: inside(lines, some))

    def _drawn(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return all pieces of nodes: the node's position, the grains, and the ends (n, 2, 2) in users' coordinates."""
        owner, segment, low, high = self._tree.pieces(nodes)
        ends = [self._segments.along(segment, at) for at in (low, high)]
        drawn = self._projection.backward(np.concatenate(ends))
        return owner, high - low, np.stack(np.split(drawn, 2), axis=1)

    def geometry(self, nodes: Ints) -> NDArray[Any]:
        """Return the lines of each node as a MultiLineString in users' coordinates."""
        owner, _, ends = self._drawn(nodes)
        drawn = np.full(nodes.size, shapely.MultiLineString(), dtype=object)
        if owner.size:
            shapely.multilinestrings(shapely.linestrings(ends), indices=owner, out=drawn)
        return drawn

    def boundary(self) -> Any:
        """Return all lines as one MultiLineString in users' coordinates."""
        return shapely.multilinestrings(self._lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the network as plain data, with all its lines."""
        return (
            self._box.to_dict()
            | {"type": "network", "lines": bytes(shapely.to_wkb(self.boundary(), byte_order=1)).hex()}
            | self._shared()
        )

    def summary(self) -> dict[str, Any]:
        """Return what identifies the network, in short; the digest is of the lines' well-known binary."""
        return dict(self._summary)

    @cached_property
    def _summary(self) -> dict[str, Any]:
        everything = np.array([ROOT])
        size = {"length": float(self.measure(everything)[0]), "bounds": self.bounds(everything)[0].tolist()}
        digest = {"digest": hashlib.sha256(bytes(shapely.to_wkb(self.boundary(), byte_order=1))).hexdigest()}
        return self._box.to_dict() | {"type": "network"} | self._shared() | size | digest

    def _shared(self) -> dict[str, Any]:
        return {"crs": self.crs, "tree_crs": self.tree_crs, "snap": self.snap}

    def __repr__(self) -> str:
        length = float(self.measure(np.array([ROOT]))[0])
        return f"Network({len(self._lines)} lines, length={length:g}, snap={self.snap:g}, depth={self.depth})"
