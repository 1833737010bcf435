"""Nodes in order, linked to their halves, so that a walk from the root searches for nothing. Public."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from phdstream.arrays import Bools, Ints, positions
from phdstream.domains import ROOT

__all__ = ["Links"]


class Links:
    """Where nodes, given in order, have their halves: found once, and followed by every walk from the root."""

    def __init__(self, node: Ints) -> None:
        self._node = node

    @classmethod
    def of_walk(cls, node: Ints, slots: Ints) -> Links:
        """Return the links of the nodes that a walk opened; ``slots`` says which of all halves of nodes they are.

        The first node is the root, and no half.
        """
        links, size = cls(node), node.size
        halves = np.full(2 * (size + 1), size)
        halves[slots] = np.arange(1, size)
        links._found = halves.reshape(-1, 2), True
        return links

    def find(self, nodes: Ints) -> tuple[Ints, Bools]:
        """Return where each of other nodes is among the nodes, and whether it is."""
        if not self._node.size:
            return np.zeros(nodes.size, np.int64), np.zeros(nodes.size, dtype=bool)
        at = np.minimum(np.searchsorted(self._node, nodes), self._node.size - 1)
        return at, self._node[at] == nodes

    @property
    def halves(self) -> Ints:
        """Where each node's halves are among the nodes, (nodes + 1, 2); of one that is not: the number of nodes.

        So with ``at = halves[at].ravel()`` a walk from the root goes from level to level without searching; what is not
        known is at the last row, and so are its halves.
        """
        return self._found[0]

    @property
    def closed(self) -> bool:
        """Whether the parents of all nodes are known, up to the root: then nothing is known below an unknown node."""
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[Ints, bool]:
        size, (at, there) = self._node.size, self.find(self._node >> 1)
        halves, known = np.full((size + 1, 2), size), positions(there)
        halves[at[known], self._node[known] & 1] = known
        return halves, not size or bool(self._node[0] == ROOT and there[1:].all())
