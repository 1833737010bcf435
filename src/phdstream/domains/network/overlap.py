"""How much of the lines of a network's nodes lies inside queries.

The nodes asked for may be nested and have many pieces. So they are made up of disjoint *tiles* with few pieces each,
the tiles are compared with the queries, and the tiles of a node, which stand together in the order of codes, are added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.box import Box
from phdstream.domains.codes import ROOT, child_nodes
from phdstream.domains.domain import Domain
from phdstream.domains.network.clipped_segments import ClippedSegments
from phdstream.domains.network.segments import NUMBERS_AT_ONCE

__all__ = ["open_outward", "share_inside", "tiles_of"]

_PIECES_IN_A_TILE = 64

Inside = Callable[[NDArray[Any]], Floats]
"""From queries (rows) to how many grains of each tile (columns) lie inside."""


def share_inside(
    tree: ClippedSegments, box: Box, nodes: Ints, tiles: Ints, queries: NDArray[Any], inside: Inside
) -> Floats:
    """Return the share of each node's length (columns) inside each query (rows), from its tiles."""
    share = np.zeros((len(queries), nodes.size))
    starts = box.code_range(tiles)[0]
    first, past = (np.searchsorted(starts, codes) for codes in box.code_range(nodes))
    total, rows = np.maximum(tree.grains(nodes), 1), max(1, NUMBERS_AT_ONCE // tiles.size)
    for i in range(0, len(queries), rows):
        up_to = np.cumsum(np.pad(inside(queries[i : i + rows]), ((0, 0), (1, 0))), axis=1)
        share[i : i + rows] = (up_to[:, past] - up_to[:, first]) / total
    return np.clip(share, 0, 1)


def open_outward(rectangles: Floats, bounds: Floats) -> Floats:
    """Return rectangles whose sides beyond which there are no lines are moved to infinity."""
    low, high = np.hsplit(np.asarray(rectangles, dtype=np.float64), 2)
    least, most = np.hsplit(bounds, 2)
    return np.hstack([np.where(low <= least, -np.inf, low), np.where(high >= most, np.inf, high)])


def tiles_of(tree: ClippedSegments, box: Box, nodes: Ints) -> Ints:
    """Return disjoint nodes with few pieces each, in the order of codes, of which the given nodes are made up."""
    known, done = _Among(box, nodes), [nodes[:0]]
    tiles = np.array([ROOT])[: nodes.size]
    covered = np.zeros(tiles.size, dtype=bool)
    while tiles.size:
        covered, above = covered | known.has(tiles), known.is_above(tiles)
        many = (tree.number(tiles) > _PIECES_IN_A_TILE) & (tiles < ROOT << box.total_bits)
        splits = above | (covered & many)
        done.append(tiles[covered & ~splits])
        tiles, covered = child_nodes(tiles[splits], bits=1).ravel(), np.repeat(covered[splits], 2)
        there = tree.grains(tiles) > 0
        tiles, covered = tiles[there], covered[there]
    found = np.concatenate(done)
    return found[np.argsort(box.code_range(found)[0])]


class _Among:
    """Tells which nodes of a binary tree are among given ones, and which are above some of them."""

    def __init__(self, tree: Domain, nodes: Ints) -> None:
        self._tree, self._nodes = tree, np.unique(nodes)
        first, past = tree.code_range(self._nodes)
        order = np.lexsort((-past, first))  # of nodes that start together, the smallest comes last
        self._first, self._width = first[order], (past - first)[order]

    def has(self, nodes: Ints) -> Bools:
        at = np.minimum(np.searchsorted(self._nodes, nodes), self._nodes.size - 1)
        return np.equal(self._nodes[at], nodes)

    def is_above(self, nodes: Ints) -> Bools:
        first, past = self._tree.code_range(nodes)
        last = np.searchsorted(self._first, past) - 1
        return (last >= 0) & (self._first[last] >= first) & (self._width[last] < past - first)
