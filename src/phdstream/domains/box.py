"""`Box`: an axis-parallel box in any dimension, halved again and again: a k-d tree or quadtree with Morton codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.arguments import check_bounds, check_fanout, check_names, most_halvings
from phdstream.domains.chunks import in_chunks
from phdstream.domains.codes import MAX_BITS, ROOT, compress_bits, hash_uniform, spread_bits
from phdstream.domains.domain import CoveredShare, Domain
from phdstream.domains.resolution import Resolution, ground_units, levels_for
from phdstream.domains.shapes.projection import crs_name
from phdstream.errors import InputError

__all__ = ["Box"]


class Box(Domain):
    """The points between given bounds, split in halves.

    With ``fanout=2`` each level halves one coordinate, in turn (a k-d tree that splits in the middle); with ``2**d`` it
    halves all d at once (in the plane, a quadtree); any power of two works. A code is the point's Morton code: the
    bits of its position along each coordinate, interleaved (see `phdstream.domains.codes`).

    ``crs`` says in what coordinate system the bounds are: points and layers in another one are converted, and maps and
    files name it. A point on a dividing line belongs to the upper part; the outer upper bound belongs to the box.

    The finest cells are about as wide as ``resolution`` says: "10 m", "0.5 km", or a number of the box's units; or
    ``depth`` is given. By default they are of 10 m if the box is in degrees or metres, by its ``crs`` or because its
    coordinates are called longitude and latitude, and a box in other units has ten halvings a coordinate.

    >>> city = Box([(-74.3, -73.7), (40.5, 41.0)], names=("lon", "lat"))
    >>> city.depth, round(city.cell_metres)
    (25, 9)
    >>> codes, inside = city.encode(np.array([[-74.0, 40.7], [0.0, 0.0]]))
    >>> inside.tolist()
    [True, False]
    >>> Box([(0, 1), (0, 1)], fanout=4, depth=8)
    Box([(0.0, 1.0), (0.0, 1.0)], fanout=4, depth=8)
    """

    def __init__(
        self,
        bounds: Sequence[Sequence[float]],
        *,
        fanout: int = 2,
        depth: int | None = None,
        names: Sequence[str] | None = None,
        crs: Any = None,
        resolution: Resolution = None,
    ) -> None:
        self.crs = crs_name(crs)
        self._low, self._high = check_bounds(bounds)
        self.dimension = self._low.size
        self.names = check_names(names, self.dimension)
        bits = check_fanout(fanout)
        self.fanout = 1 << bits
        limit = min(MAX_BITS, most_halvings(self._low, self._high)) // bits
        if limit < 1:
            raise InputError("bounds are too narrow to be split: floating point has hardly a number between them.")
        extent, self._metres = self._high - self._low, ground_units(self.crs, self.names, self._low, self._high)
        self.level_bits = (bits,) * levels_for(depth, resolution, extent, self._metres, bits, limit)
        self._halvings = [len(range(axis, self.total_bits, self.dimension)) for axis in range(self.dimension)]
        self._step = (self._high - self._low) / 2.0 ** np.array(self._halvings)

    @property
    def grid_axes(self) -> int:
        """How many coordinates the bits of a code halve in turn: all."""
        return self.dimension

    @property
    def cell_metres(self) -> float | None:
        """How wide the finest cells are, in metres."""
        return None if self._metres is None else float(np.sqrt(np.prod(self._step * self._metres)))

    def encode(self, points: Floats) -> tuple[Ints, Bools]:
        """Return each point's code and whether it is in the box; NaN and infinity are not."""
        codes, inside = np.empty(points.shape[0], dtype=np.int64), np.empty(points.shape[0], dtype=bool)

        def encode_some(rows: slice) -> None:
            codes[rows], inside[rows] = self._encode(points[rows])

        in_chunks(encode_some, points.shape[0])
        return codes, inside

    def _encode(self, points: Floats) -> tuple[Ints, Bools]:
        columns = np.ascontiguousarray(points.T)
        with np.errstate(invalid="ignore"):
            inside = np.all((columns >= self._low[:, None]) & (columns <= self._high[:, None]), axis=0)
        if not inside.all():
            columns = np.where(inside, columns, self._low[:, None])
        codes = np.zeros(points.shape[0], dtype=np.int64)
        for axis, halvings in enumerate(self._halvings):
            if halvings:
                steps = self._steps_from_low(columns[axis], axis)
                codes |= spread_bits(steps, halvings, self.dimension) << self._lowest_bit(axis)
        return codes, inside

    def _steps_from_low(self, x: Floats, axis: int) -> Ints:
        """Return which slice holds x: exactly the one whose edges, as `bounds` gives them, enclose it."""
        low, step, last = self._low[axis], self._step[axis], float((1 << self._halvings[axis]) - 1)
        k: Floats = np.minimum(np.floor((x - low) / step), last)  # whole numbers, exact in floating point
        k -= x < low + k * step
        k += x >= low + (k + 1) * step
        return np.minimum(k, last).astype(np.int64)

    def _lowest_bit(self, axis: int) -> int:
        return self.total_bits - 1 - ((self._halvings[axis] - 1) * self.dimension + axis)

    def grid(self) -> list[tuple[float, float, float, int]]:
        """Return, for each coordinate, its bounds, the width of the finest slices, and how often it is halved.

        With `code_bits` this is all that `encode` uses: for engines that say it in a language of their own.
        """
        columns = (self._low.tolist(), self._high.tolist(), self._step.tolist(), self._halvings)
        return list(zip(*columns, strict=True))

    def code_bits(self, axis: int) -> list[tuple[int, int]]:
        """Return, for each bit of a coordinate's slice, its place in the code.

        >>> Box([(0, 1), (0, 1)], depth=3).code_bits(0)
        [(0, 0), (1, 2)]
        """
        halvings = self._halvings[axis]
        return [(i, self._lowest_bit(axis) + i * self.dimension) for i in range(halvings)]

    def bounds(self, nodes: Ints) -> Floats:
        """Return the corners of nodes, (n, 2d): all minima, then all maxima."""
        first, past = self.code_range(nodes)
        corners = np.empty((nodes.size, 2 * self.dimension))
        for axis in range(self.dimension):
            corners[:, axis] = self._edge(self._slices(first, axis), axis)
            corners[:, self.dimension + axis] = self._edge(self._slices(past - 1, axis) + 1, axis)
        return corners

    def _slices(self, codes: Ints, axis: int) -> Ints:
        if not self._halvings[axis]:
            return np.zeros_like(codes)
        return compress_bits(codes >> self._lowest_bit(axis), self._halvings[axis], self.dimension)

    def _edge(self, k: Ints, axis: int) -> Floats:
        edge: Floats = self._low[axis] + k * self._step[axis]
        return np.where(k == 1 << self._halvings[axis], self._high[axis], edge)

    def edges(self, axis: int) -> Floats:
        """Return the edges of the finest nodes along one coordinate, the outer bounds included."""
        return self._edge(np.arange((1 << self._halvings[axis]) + 1), axis)

    def measure(self, nodes: Ints) -> Floats:
        """Return the volume of each node."""
        volume: Floats = np.prod(self._high - self._low) * np.exp2(-self.bits_through[self.levels(nodes)])
        return volume

    def overlap(self, nodes: Ints, rectangles: Floats) -> Floats:
        """Return the share of each node's volume (columns) inside each rectangle (rows)."""
        return self._inside(self.bounds(nodes), rectangles[:, None, :])

    def covered(self, nodes: Ints, rectangles: Floats, exact: Bools) -> Floats:
        """Return the share of each node's volume inside the rectangle at the same position."""
        return self._inside(self.bounds(nodes), rectangles)

    def _inside(self, corners: Floats, rectangles: Floats) -> Floats:
        share: Floats = np.ones(1)
        for axis in range(self.dimension):
            low, high = corners[..., axis], corners[..., self.dimension + axis]
            upper, lower = rectangles[..., self.dimension + axis], rectangles[..., axis]
            share = share * (np.clip(np.minimum(upper, high) - np.maximum(lower, low), 0, None) / (high - low))
        return np.minimum(share, 1.0)

    def overlap_shapes(self, nodes: Ints, shapes: NDArray[Any]) -> Floats:
        """Return the share of each node's area inside each polygon; for boxes in the plane."""
        if self.dimension != 2:
            raise InputError(f"polygons can be counted in a plane only; this box has {self.dimension} dimensions.")
        import shapely

        boxes = self.geometry(nodes)
        share = np.zeros((shapes.size, nodes.size))
        row, column = shapely.STRtree(boxes).query(shapes, predicate="intersects")
        inside = shapely.area(shapely.intersection(shapes[row], boxes[column]))
        share[row, column] = inside / shapely.area(boxes)[column]
        return np.minimum(share, 1.0)

    def covered_by(self, shapes: NDArray[Any]) -> CoveredShare:
        """Return what tells the share of nodes' areas inside polygons, pair by pair; see `Domain`."""
        from phdstream.domains.shapes.cover import ShapeCover

        cover = ShapeCover(shapes)
        return lambda nodes, at, exact: cover.share(self.bounds(nodes), at, exact)

    def place(self, codes: Ints, index: Ints, key: int) -> Floats:
        """Return one point in the finest node of each code."""
        points = np.empty((codes.size, self.dimension))
        for axis in range(self.dimension):
            k = self._slices(codes, axis)
            low, high = self._edge(k, axis), self._edge(k + 1, axis)
            u = hash_uniform(key, codes, (index + ROOT) * self.dimension + axis)
            points[:, axis] = np.minimum(low + u * (high - low), np.nextafter(high, low))
        return points

    def to_dict(self) -> dict[str, Any]:
        """Return the box as plain data."""
        return {
            "type": "box",
            "bounds": [[float(a), float(b)] for a, b in zip(self._low, self._high, strict=True)],
            "fanout": self.fanout,
            "depth": self.depth,
            "names": list(self.names),
            **({} if self.crs is None else {"crs": self.crs}),
        }

    def __repr__(self) -> str:
        pairs = [(float(a), float(b)) for a, b in zip(self._low, self._high, strict=True)]
        return f"Box({pairs}, fanout={self.fanout}, depth={self.depth})"
