"""Points uniform by area in a region's nodes: whole rectangles by the box, cut ones by triangles of their pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import shapely

from phdstream.arrays import Floats, Ints
from phdstream.domains.apportion import divide_among_children, repeated
from phdstream.domains.box import Box
from phdstream.domains.region.clipping import ClippedNodes
from phdstream.domains.shapes.projection import Projection

__all__ = ["RegionSampler"]

_ATTEMPTS, _ANCHOR_LEVELS = 8, 4


class _Tree(Protocol):
    """What the sampler needs of a region's tree."""

    @property
    def depth(self) -> int: ...
    def levels(self, nodes: Ints) -> Ints: ...
    def children(self, nodes: Ints) -> tuple[Ints, Ints, Floats]: ...


class RegionSampler:
    """Places points in nodes of a box cut to polygons (``source``, in users' coordinates), never outside them."""

    def __init__(self, box: Box, clipped: ClippedNodes, source: Any, projection: Projection) -> None:
        self._box, self._clipped, self._source, self._projection = box, clipped, source, projection

    def apportion_to_anchors(self, tree: _Tree, nodes: Ints, counts: Ints, key: int) -> tuple[Ints, Ints]:
        """Apportion the points of cut nodes down to every fourth level, where they are placed.

        So a cut node and its children mostly share their points, at the price of a few nodes more to clip.
        """
        done: list[tuple[Ints, Ints]] = []
        levels = tree.levels(nodes)
        here, number = nodes[:0], counts[:0]
        for level in range(tree.depth + 1):
            here = np.concatenate([here, nodes[levels == level]])
            number = np.concatenate([number, counts[levels == level]])
            stays = self._clipped.whole(here) | (level % _ANCHOR_LEVELS == 0) | (level == tree.depth)
            done.append((here[stays], number[stays]))
            here, number = here[~stays], number[~stays]
            if level < tree.depth:
                children, parent, share = tree.children(here)
                number = divide_among_children(number, parent, share, here, key)
                here, number = children[number > 0], number[number > 0]
        return tuple(np.concatenate(part) for part in zip(*done, strict=True))  # type: ignore[return-value]

    def placed(self, nodes: Ints, counts: Ints, key: int) -> Iterator[Floats]:
        """Yield the points of whole nodes, then those of cut ones, piece by piece."""
        whole = self._clipped.whole(nodes)
        for even in self._box.sampled(nodes[whole], counts[whole], key):
            yield self._projection.backward(even)
        for cut, index in repeated(nodes[~whole], counts[~whole]):
            yield self._place_in_cut(cut, index, key)

    def place(self, codes: Ints, finest: Ints, index: Ints, key: int) -> Floats:
        """Return one point in the finest node of each code."""
        whole = self._clipped.whole(finest)
        points = self._projection.backward(self._box.place(codes, index, key))
        points[~whole] = self._place_in_cut(finest[~whole], index[~whole], key)
        return points

    def _place_in_cut(self, nodes: Ints, index: Ints, key: int) -> Floats:
        """Return points in cut nodes. Their pieces' edges are straight on the tree's map, the polygons' on the users':
        where the two differ by a hair and a point falls between, it is drawn again.
        """
        points = np.empty((nodes.size, 2))
        wrong = np.arange(nodes.size)
        for attempt in range(_ATTEMPTS):
            draw = index[wrong] + attempt * (1 << 40)
            points[wrong] = self._projection.backward(self._clipped.place(nodes[wrong], draw, key))
            wrong = wrong[~shapely.intersects_xy(self._source, points[wrong, 0], points[wrong, 1])]
            if not wrong.size:
                return points
        pieces = shapely.transform(self._clipped.pieces(nodes[wrong]), self._projection.backward)
        inner = shapely.intersection(pieces, self._source)
        points[wrong] = shapely.get_coordinates(shapely.point_on_surface(inner))
        return points
