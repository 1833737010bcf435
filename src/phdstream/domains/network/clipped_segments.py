"""Segments cut to the nodes of a box: worked out when first needed, and kept."""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Bools, Ints, found_in, ragged
from phdstream.domains.box import Box
from phdstream.domains.codes import ROOT, child_nodes
from phdstream.domains.network.segments import Segments

__all__ = ["ClippedSegments"]


class ClippedSegments:
    """Which grains of which segments lie in each node of a box halved again and again.

    A node is worked out when first asked for, from its parent's pieces, and kept: 24 bytes for each piece of line in
    it and 32 for the node. A level holds about as many pieces as there are segments, plus one for each crossing of a
    border; so all of Manhattan, 41,000 segments in squares of 20 metres, takes 40 MB if every node is visited.
    """

    def __init__(self, segments: Segments, box: Box) -> None:
        self._segments, self._box = segments, box
        size = segments.grains.size
        self._pool = np.column_stack([np.arange(size), np.zeros(size, np.int64), segments.grains])
        self._used = size
        self._nodes = [np.array([ROOT])] + [np.zeros(0, np.int64)] * box.depth  # by level, in order
        self._table = [np.array([[0, size, segments.grains.sum()]])] + [np.zeros((0, 3), np.int64)] * box.depth

    def grains(self, nodes: Ints) -> Ints:
        """Return how many grains each node has."""
        return self._rows(nodes)[:, 2]

    def number(self, nodes: Ints) -> Ints:
        """Return how many pieces each node has."""
        return self._rows(nodes)[:, 1]

    def pieces(self, nodes: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Return all pieces: the position of the node, the segment, its first grain in the node and the one past."""
        first, number, _ = self._rows(nodes).T
        owner, within = ragged(number)
        segment, low, high = self._pool[first[owner] + within].T
        return owner, segment, low, high

    def codes(self, segment: Ints, grain: Ints) -> Ints:
        """Return the code of the finest node that holds each grain. Its length is positive: the grain is in it.

        A grain that lies clear of all borders has the code of its surroundings; others are followed down the tree.
        """
        low, high = np.hsplit(self._box.bounds(np.array([ROOT]))[0], 2)
        middle, beside = self._segments.along(segment, grain + 0.5), 1.25 * self._segments.grain
        codes = self._box.encode(np.maximum(middle - beside, low))[0]
        others = self._box.encode(np.minimum(middle + beside, high))[0]
        unsure = np.flatnonzero(codes != others)
        if unsure.size:
            codes[unsure] = self._followed_down(segment[unsure], grain[unsure])
        return codes

    def _followed_down(self, segment: Ints, grain: Ints) -> Ints:
        nodes, each = np.full(segment.size, ROOT), np.arange(segment.size)
        for _ in range(self._box.depth):
            before, up = self._cuts(nodes, each, segment)
            nodes = 2 * nodes + ((grain >= before) == up)
        return nodes - (ROOT << self._box.depth)

    def _rows(self, nodes: Ints) -> Ints:
        """Return where each node's pieces begin, their number and their grains."""
        levels = self._box.levels(nodes)
        if nodes.size and levels.min() == levels.max():
            return self._rows_of(int(levels[0]), nodes)
        rows = np.empty((nodes.size, 3), np.int64)
        for level in np.unique(levels).tolist():
            rows[levels == level] = self._rows_of(level, nodes[levels == level])
        return rows

    def _rows_of(self, level: int, nodes: Ints) -> Ints:
        missing = ~found_in(self._nodes[level], nodes)
        if missing.any():
            self._split(level - 1, np.unique(nodes[missing] >> 1))
        return np.asarray(self._table[level][np.searchsorted(self._nodes[level], nodes)])

    def _split(self, level: int, nodes: Ints) -> None:
        """Divide the pieces of nodes of a level between their halves; both halves are kept, also if one is empty."""
        owner, segment, low, high = self.pieces(nodes)
        before, up = self._cuts(nodes, owner, segment)
        cut = np.clip(before, low, high)
        child = np.concatenate([2 * owner + ~up, 2 * owner + up])
        pieces = np.concatenate([np.column_stack([segment, low, cut]), np.column_stack([segment, cut, high])])
        there = pieces[:, 1] < pieces[:, 2]
        order = np.argsort(child[there], kind="stable")
        self._keep(level + 1, child_nodes(nodes, bits=1).ravel(), child[there][order], pieces[there][order])

    def _cuts(self, nodes: Ints, owner: Ints, segment: Ints) -> tuple[Ints, Bools]:
        """Return where segments are cut by the border between their node's halves, and whether they rise there."""
        axis = self._box.levels(nodes) % 2
        border = self._box.bounds(2 * nodes + 1)[np.arange(nodes.size), axis]
        before = self._segments.grains_before(segment, axis[owner], border[owner])
        return before, self._segments.rising(segment, axis[owner])

    def _keep(self, level: int, nodes: Ints, child: Ints, pieces: Ints) -> None:
        number = np.bincount(child, minlength=nodes.size)
        grains = np.bincount(child, weights=pieces[:, 2] - pieces[:, 1], minlength=nodes.size).astype(np.int64)
        rows = np.column_stack([self._used + np.cumsum(number) - number, number, grains])
        at = np.searchsorted(self._nodes[level], nodes)
        self._table[level] = np.insert(self._table[level], at, rows, axis=0)
        self._nodes[level] = np.insert(self._nodes[level], at, nodes)
        if self._used + len(pieces) > len(self._pool):
            room = np.empty((max(self._used + len(pieces), 2 * len(self._pool)), 3), np.int64)
            room[: self._used] = self._pool[: self._used]
            self._pool = room
        self._pool[self._used : self._used + len(pieces)] = pieces
        self._used += len(pieces)
