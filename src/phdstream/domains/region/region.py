"""`Region`: polygons (land, a state, a city), split like a `Box` (Morton codes), with everything outside cut away."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.apportion import collected
from phdstream.domains.box import Box
from phdstream.domains.chunks import in_chunks
from phdstream.domains.codes import ROOT
from phdstream.domains.domain import CoveredShare, Domain
from phdstream.domains.region.clipping import ClippedNodes
from phdstream.domains.region.sampling import RegionSampler
from phdstream.domains.resolution import Resolution, metres_wide
from phdstream.domains.shapes.cover import ShapeCover
from phdstream.domains.shapes.geometries import check_valid, geometry_parts, project_geometries, read_geometries
from phdstream.domains.shapes.point_location import PointLocator
from phdstream.domains.shapes.projection import EQUAL_AREA, Projection, is_geographic
from phdstream.errors import InputError

__all__ = ["Region"]

_COST = 5
"""Projecting and encoding a point takes about so many times as long as encoding one of a `Box`."""


class Region(Domain):
    """The points inside polygons, however many and however shaped.

    ``polygons`` is a Shapely polygon or a list of them, a GeoSeries, or a path (GeoJSON, GeoPackage,
    shapefile, GeoParquet). A node of the tree is a rectangle cut to the polygons; one with no area inside is
    not in the tree; a node's count is spread by area. The rectangles are those of a `Box`: with ``fanout=4``
    this is a region quadtree. Points in degrees (a geographic ``crs``) are put on an equal-area map unless
    ``tree_crs`` names another. Clipping happens when a node is first visited, and is kept. ``depth`` and
    ``resolution`` are as for `Box`, in units of ``tree_crs``. ``rectangles`` is that `Box`, and
    ``projection`` the way there.

    >>> triangle = Region(shapely.Polygon([(0, 0), (1, 0), (0, 1)]), depth=8)
    >>> triangle.encode(np.array([[0.2, 0.2], [0.9, 0.9]]))[1].tolist()
    [True, False]
    >>> triangle.measure(np.array([1]))
    array([0.5])
    """

    dimension = 2

    def __init__(
        self,
        polygons: Any,
        *,
        crs: Any = None,
        tree_crs: Any = None,
        fanout: int = 2,
        depth: int | None = None,
        names: Sequence[str] | None = None,
        resolution: Resolution = None,
    ) -> None:
        geometries, crs = read_geometries(polygons, crs)
        parts = geometry_parts(geometries, "Polygon")
        check_valid(parts)
        if tree_crs is None and is_geographic(crs):
            tree_crs = EQUAL_AREA
        self.projection, self._source = Projection(crs, tree_crs), shapely.multipolygons(parts)
        self.crs = self.projection.crs
        self._locator = PointLocator(self._source)
        shape = shapely.union_all(project_geometries(parts, self.projection))
        west, south, east, north = shapely.bounds(shape)
        names = ("lon", "lat") if names is None and is_geographic(crs) else names
        bounds, planar = [(west, east), (south, north)], self.projection.tree_crs
        self.rectangles = Box(bounds, fanout=fanout, depth=depth, names=names, crs=planar, resolution=resolution)
        self.fanout, self.level_bits, self.names = (
            self.rectangles.fanout,
            self.rectangles.level_bits,
            self.rectangles.names,
        )
        self._clipped = ClippedNodes(self.rectangles, shape)
        self._sampler = RegionSampler(self.rectangles, self._clipped, self._source, self.projection)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the region that `to_dict` described, or one read from the file that ``polygons`` names."""
        others = dict(fields)
        polygons = others.pop("polygons", None)
        if isinstance(polygons, str) and not Path(polygons).suffix:
            polygons = _read_binary(polygons)
        return cls(polygons, **others)

    @property
    def cell_metres(self) -> float | None:
        """How wide the finest cells are, in metres."""
        return self.rectangles.cell_metres

    @property
    def grid_axes(self) -> int:
        """How many coordinates the bits of a code halve in turn: both."""
        return 2

    def encode(self, points: Floats) -> tuple[Ints, Bools]:
        """Return each point's code, and whether it lies in the polygons (their boundary included)."""
        codes, inside = np.empty(len(points), dtype=np.int64), np.empty(len(points), dtype=bool)

        def encode_some(rows: slice) -> None:
            codes[rows], inside[rows] = self.rectangles.encode(self.projection.forward(points[rows]))

        in_chunks(encode_some, len(points), cost=_COST)
        rows = np.flatnonzero(inside)
        inside[rows], cut = self._clipped.kinds(codes[rows])
        edge = rows[cut]
        inside[edge] = self._locator(points[edge])
        return codes, inside

    def coarse_kinds(self) -> tuple[int, bytes]:
        """Return how many first bits of a code name a cell of a coarse grid, and of what kind each such cell is.

        A byte for each: `WHOLE`, `CUT` by a boundary, or outside.
        """
        return self._clipped.all_kinds()

    def children(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the children that have area inside; shares are by that area. See `Domain.children`."""
        children, parent, _ = self.rectangles.children(nodes)
        area = self._clipped.areas(children)
        there = area > 0
        children, parent, area = children[there], parent[there], area[there]
        return children, parent, area / np.bincount(parent, weights=area, minlength=nodes.size)[parent]

    def measure(self, nodes: Ints) -> Floats:
        """Return the area of each node inside the polygons, in the units of the tree's coordinate system."""
        return self._clipped.areas(nodes)

    def bounds(self, nodes: Ints) -> Floats:
        """Return the corners of the nodes' rectangles in users' coordinates, (n, 4)."""
        if self.projection.identity:
            return self.rectangles.bounds(nodes)
        rectangles = shapely.box(*self.rectangles.bounds(nodes).T)
        return np.asarray(shapely.bounds(shapely.transform(_with_midpoints(rectangles), self.projection.backward)))

    def geometry(self, nodes: Ints) -> NDArray[Any]:
        """Return the nodes' rectangles cut to the polygons, in users' coordinates, for drawing."""
        return np.asarray(shapely.transform(self._clipped.pieces(nodes), self.projection.backward))

    def outline(self) -> Any:
        """Return the polygons, as they were given."""
        return self._source

    def overlap(self, nodes: Ints, rectangles: Floats) -> Floats:
        """Return the share of each node's area inside each rectangle of users' coordinates."""
        return self.overlap_shapes(nodes, self._shapes(rectangles))

    def overlap_shapes(self, nodes: Ints, shapes: NDArray[Any]) -> Floats:
        """Return the share of each node's area inside each polygon of users' coordinates."""
        return self._clipped.overlap(nodes, self._mapped(shapes))

    def covered(self, nodes: Ints, rectangles: Floats, exact: Bools) -> Floats:
        """Return the share of each node's area inside the rectangle at the same position; see `Domain`."""
        return self._clipped.covered(nodes, self._mapped(self._shapes(rectangles)), exact)

    def covered_by(self, shapes: NDArray[Any]) -> CoveredShare:
        """Return what tells the share of nodes' areas inside polygons, pair by pair; see `Domain`."""
        cover = ShapeCover(self._mapped(shapes))
        return lambda nodes, at, exact: self._clipped.covered_by(cover, nodes, at, exact)

    def _shapes(self, rectangles: Floats) -> NDArray[Any]:
        low, high = self.bounds(np.array([ROOT]))[0].reshape(2, 2)
        inside = np.clip(rectangles, np.r_[low, low], np.r_[high, high])
        shapes = np.full(len(inside), shapely.Polygon(), dtype=object)
        has_area = (inside[:, 2:] > inside[:, :2]).all(axis=1)
        shapes[has_area] = _with_midpoints(shapely.box(*inside[has_area].T))
        return shapes

    def _mapped(self, shapes: NDArray[Any]) -> NDArray[Any]:
        if self.projection.identity:
            return shapes
        mapped = np.asarray(shapely.transform(shapes, self.projection.forward))
        if not np.isfinite(shapely.get_coordinates(mapped)).all():
            raise InputError(
                f"some polygon reaches where {self.crs} ends (beyond 90 degrees of latitude, say): cut it there."
            )
        return mapped

    def sample(self, nodes: Ints, counts: Ints, key: int) -> Floats:
        """Return points uniform by area in the nodes, never outside the polygons; more points keep the first ones."""
        nodes, counts = self._sampler.apportion_to_anchors(self, nodes, counts, key)
        return collected(self._sampler.placed(nodes, counts, key), int(counts.sum()))

    def place(self, codes: Ints, index: Ints, key: int) -> Floats:
        """Return one point in the finest node of each code."""
        return self._sampler.place(codes, self.nodes_of(codes, self.depth), index, key)

    def to_dict(self) -> dict[str, Any]:
        """Return the region as plain data, polygons included."""
        return {"type": "region", "polygons": shapely.to_wkb(self._source, hex=True), **self._shared()}

    def summary(self) -> dict[str, Any]:
        """Return what a manifest says of the region: its bounds and area, and a digest of the polygons."""
        return dict(self._summary)

    @cached_property
    def _summary(self) -> dict[str, Any]:
        digest = hashlib.sha256(shapely.to_wkb(self._source)).hexdigest()
        bounds = self.bounds(np.array([ROOT]))[0].tolist()
        area = float(self.measure(np.array([ROOT]))[0])
        return {"type": "region", "bounds": bounds, "area": area, "sha256": digest, **self._shared()}

    def _shared(self) -> dict[str, Any]:
        crs = {"crs": self.projection.crs, "tree_crs": self.projection.tree_crs}
        return crs | {"fanout": self.fanout, "depth": self.depth, "names": list(self.names)}

    def __repr__(self) -> str:
        metres, number = self.cell_metres, len(self._source.geoms)
        area = float(self.measure(np.array([ROOT]))[0])
        size = f"area {area:.4g}" if metres is None else f"finest cells about {metres_wide(metres)}"
        return f"Region({number} polygon{'s' * (number != 1)}, {size}, fanout={self.fanout}, depth={self.depth})"


def _with_midpoints(rectangles: NDArray[Any]) -> NDArray[Any]:
    """Return rectangles with points along their sides, so that a curved image keeps its shape."""
    x0, y0, x1, y1 = shapely.bounds(rectangles).T
    longest = np.maximum(x1 - x0, y1 - y0)
    return np.asarray(shapely.segmentize(rectangles, np.where(longest > 0, longest / 16, 1)))


def _read_binary(polygons: str) -> Any:
    try:
        return shapely.from_wkb(polygons)
    except (shapely.errors.ShapelyError, TypeError, ValueError):
        raise InputError("polygons must name a file, or be well-known binary in hexadecimal.") from None
