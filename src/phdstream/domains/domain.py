"""What every domain can do: name the nodes of its tree, and say where they are and how large."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.apportion import collected, divide_among_children, groups, repeated
from phdstream.domains.codes import ROOT, child_nodes
from phdstream.domains.points import points_array, rectangles_array
from phdstream.errors import InputError

__all__ = ["CoveredShare", "Domain"]

CoveredShare: TypeAlias = Callable[[Ints, NDArray[Any], Bools], Floats]
"""From nodes, queries and where to be exact, to the share of each node's measure inside the query at its position."""

_SPREAD = 64


class Domain(ABC):
    """A place Ω with a fixed tree of nested parts, each named by a 64-bit node (see `phdstream.domains.codes`).

    The tree is public and fixed before any data is seen. All methods work on whole arrays. ``level_bits``: the bits of
    the code that each level takes; ``fanout``: the most children a node can have; ``crs``: users' coordinate system.

    A domain that can compare nodes with queries pair by pair defines ``covered(nodes, queries, exact)``: the share of
    each node's measure inside the query at the same position, 0 and 1 always exact, parts where ``exact`` says so; and
    `covered_by` for polygons. Both make queries on large trees fast. Otherwise all nodes are compared with all queries.
    """

    dimension: int
    fanout: int
    names: tuple[str, ...]
    level_bits: tuple[int, ...]
    crs: str | None = None
    attributes: tuple[Any, ...] = ()
    """What events have besides their place (`Product`)."""
    covered: CoveredShare | None = None

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the domain that `to_dict` described, ``type`` left out: here, from the constructor's arguments."""
        return cls(**fields)

    @property
    def cell_metres(self) -> float | None:
        """How wide the finest cells are in metres (a square of their area), if units are known."""
        return None

    @property
    def location(self) -> Domain:
        """The domain of places alone: itself, unless events have attributes besides (`Product`)."""
        return self

    @property
    def grid_axes(self) -> int:
        """How many coordinates the bits of a code halve in turn; 0 if the tree is not a grid's."""
        return 0

    @property
    def bit_axes(self) -> tuple[int, ...]:
        """The coordinate that each bit of a code halves, -1 for none; empty if the tree is not a grid's."""
        return tuple(bit % self.grid_axes for bit in range(self.total_bits)) if self.grid_axes else ()

    @property
    def even(self) -> bool:
        """Whether all children of a node have the same measure; then all nodes have some."""
        return type(self).children is Domain.children

    @property
    def depth(self) -> int:
        """The number of levels below the root."""
        return len(self.level_bits)

    @cached_property
    def bits_through(self) -> Ints:
        """How many bits of the code name a node of level 0, 1, 2, ..."""
        return np.cumsum((0, *self.level_bits)).astype(np.int64)

    @property
    def total_bits(self) -> int:
        """The length of a code."""
        return int(self.bits_through[-1])

    def points(self, data: Any) -> NDArray[Any]:
        """Return points as `encode` takes them, from what a user holds: here, an array (n, d) of coordinates.

        One row that comes is one row of the answer; what is missing is NaN. See `phdstream.domains.points`.
        """
        return points_array(data, self.names, self.crs)

    def queries(self, data: Any) -> NDArray[Any]:
        """Return queries as `overlap` takes them, from what a user holds; here, rectangles (n, 2d).

        None is one query, for everything.
        """
        return rectangles_array(self.bounds(self.first_nodes[:1]) if data is None else data, self.dimension)

    @abstractmethod
    def encode(self, points: Any) -> tuple[Ints, Bools]:
        """Return each point's code, and whether it lies in the domain (the code of one outside means nothing)."""

    @abstractmethod
    def bounds(self, nodes: Ints) -> Floats:
        """Return the bounding boxes of nodes, (n, 2d): all minima, then all maxima."""

    @abstractmethod
    def measure(self, nodes: Ints) -> Floats:
        """Return the size of each node: volume, or number of atoms."""

    def has_measure(self, nodes: Ints) -> Bools:
        """Return which nodes have any measure."""
        if self.even:
            return np.ones(nodes.size, dtype=bool)
        return np.asarray(self.measure(nodes) > 0)

    @abstractmethod
    def overlap(self, nodes: Ints, rectangles: Any) -> Floats:
        """Return, for each query (rows) and node (columns), the share of the node's measure inside it."""

    def overlap_shapes(self, nodes: Ints, shapes: NDArray[Any]) -> Floats:
        """Return the share of each node's measure (columns) inside each polygon of users' coordinates (rows).

        Unless a domain knows better: by a number of points spread evenly over each node.
        """
        import shapely

        share, points = np.zeros((shapes.size, nodes.size)), self.spread(nodes)
        owner = np.repeat(np.arange(nodes.size), points.shape[1])
        row, point = shapely.STRtree(shapely.points(points.reshape(-1, 2))).query(shapes, predicate="intersects")
        np.add.at(share, (row, owner[point]), 1 / points.shape[1])
        return share

    def covered_by(self, shapes: NDArray[Any]) -> CoveredShare | None:
        """Return what tells the share of nodes inside polygons, named by their positions in ``shapes``, in pairs."""
        return None

    def spread(self, nodes: Ints) -> Floats:
        """Return a number of points spread evenly over each of some different nodes: (nodes, points, d)."""
        spread, levels = np.empty((nodes.size, _SPREAD, self.dimension)), self.levels(nodes)
        for level in np.unique(levels).tolist():  # nodes of one level do not overlap, so a code tells whose a point is
            of_level = np.flatnonzero(levels == level)
            points = self.sample(nodes[of_level], np.full(of_level.size, _SPREAD), key=0)
            owner = np.argsort(self.nodes_of(self.encode(points)[0], level), kind="stable")
            spread[of_level[np.argsort(nodes[of_level])]] = points[owner].reshape(-1, _SPREAD, self.dimension)
        return spread

    @abstractmethod
    def place(self, codes: Ints, index: Ints, key: int) -> NDArray[Any]:
        """Return one point, uniform in the finest node of each code; ``index`` tells points of one node apart."""

    def geometry(self, nodes: Ints) -> NDArray[Any]:
        """Return the shapes of nodes in users' coordinates, for maps of the plane: here, their bounding boxes."""
        import shapely

        return np.atleast_1d(shapely.box(*self.bounds(nodes).T))

    def rows(self, points: NDArray[Any]) -> NDArray[Any]:
        """Return points as users read them: here, as they are."""
        return points

    def within(self, where: Mapping[str, Any]) -> Callable[[Ints], Floats]:
        """Return what tells the share of each node that has the values of attributes asked for (`Product`)."""
        raise InputError(f"where= asks for values of attributes; {self!r} has none: make it part of a Product.")

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the domain as plain data, for state and manifest."""

    def summary(self) -> dict[str, Any]:
        """Return the domain as a manifest states it: short, and enough to recognise it."""
        return self.to_dict()

    def cell_columns(self, nodes: Ints) -> dict[str, NDArray[Any]]:
        """Return what a table of cells says about where they are: here, their bounds."""
        bounds = self.bounds(nodes)
        sides = [f"{name}_min" for name in self.names] + [f"{name}_max" for name in self.names]
        return {side: bounds[:, i] for i, side in enumerate(sides)}

    def levels(self, nodes: Ints) -> Ints:
        """Return the depth of each node in the tree; the root has level 0."""
        return self.first_nodes.searchsorted(nodes, side="right").astype(np.int64) - 1

    @cached_property
    def first_nodes(self) -> Ints:
        """The first node of level 0, 1, 2, ..."""
        return np.int64(ROOT) << self.bits_through

    def code_range(self, nodes: Ints, level: int | None = None) -> tuple[Ints, Ints]:
        """Return the first code of each node and the first one past it; quicker if all are of one given level."""
        bits = self.bits_through[self.levels(nodes) if level is None else level]
        prefixes, rest = nodes - (np.int64(ROOT) << bits), self.total_bits - bits
        return prefixes << rest, (prefixes + 1) << rest

    def nodes_of(self, codes: Ints, level: int) -> Ints:
        """Return the nodes of a level that hold the codes."""
        bits = int(self.bits_through[level])
        return (codes >> (self.total_bits - bits)) | (ROOT << bits)

    def children(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the children of nodes, the position of each one's parent, and its share of the parent's measure.

        The nodes are of one level, above the last. A child of measure zero is not in the tree and is left out.
        """
        children = child_nodes(nodes, (self.fanout - 1).bit_length(), self.fanout).ravel()
        parents = np.repeat(np.arange(nodes.size), self.fanout)
        return children, parents, np.full(children.size, 1 / self.fanout)

    def sample(self, nodes: Ints, counts: Ints, key: int) -> NDArray[Any]:
        """Return ``counts[i]`` points spread evenly over ``nodes[i]``, always the same ones for the same key.

        Points are apportioned down the tree: each node divides its points among its children by measure, up to a
        random rounding that belongs to the node and never changes. So asking for more points of a node adds some and
        keeps the others, and a node's points are mostly those of its children.
        """
        return collected(self.sampled(nodes, counts, key), int(counts.sum()))

    def sampled(self, nodes: Ints, counts: Ints, key: int) -> Iterator[NDArray[Any]]:
        """Yield the points of `sample` piece by piece, at least one: what it takes besides the points stays small."""
        for group in groups(*self.code_range(nodes), counts):
            codes, number = self._apportion(nodes[group], counts[group], key)
            for finest, index in repeated(codes, number):
                yield self.place(finest, index, key)

    def _apportion(self, nodes: Ints, counts: Ints, key: int) -> tuple[Ints, Ints]:
        """Return the codes of the finest nodes that get points, in order, and how many."""
        levels = self.levels(nodes)
        here, number = nodes[levels == 0], counts[levels == 0]
        for level in range(1, self.depth + 1):
            here, number = here[number > 0], number[number > 0]
            children, parent, share = self.children(here)
            number = divide_among_children(number, parent, share, here, key)
            here = np.concatenate([children, nodes[levels == level]])
            number = np.concatenate([number, counts[levels == level]])
        codes = self.code_range(here)[0]
        order = np.argsort(codes, kind="stable")
        return codes[order], number[order]
