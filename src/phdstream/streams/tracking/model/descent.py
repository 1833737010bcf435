"""Walks from the root that follow a split tree by its links: where nodes are in it, and what they hold. Public."""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Bools, Floats, Ints, positions
from phdstream.domains import ROOT
from phdstream.streams.tracking.model.split_tree import SplitTree
from phdstream.streams.tracking.model.walk import Halve, Opens

__all__ = ["Places", "descend", "masses"]


class Places:
    """Where the nodes of a walk from the root are in a split tree, level by level; of the unknown: its number of nodes.

    Found by pointers, unless a node may be known below an unknown one.
    """

    def __init__(self, splits: SplitTree) -> None:
        self._splits, self._opened = splits, np.zeros(0, np.int64)
        self.at = self._opened
        """Those of the present level."""

    def go_on(self, nodes: Ints) -> Bools:
        """Go on to these nodes, all halves of those opened last; return which are known."""
        if self._splits.links.closed and self._opened.size:
            self.at = self._splits.links.halves[self._opened].ravel()
            return np.asarray(self.at < self._splits.node.size)
        at, known = self._splits.find(nodes)
        self.at = np.where(known, at, self._splits.node.size)
        return known

    def open(self, opened: Ints) -> Ints:
        """Open some nodes of the level, by their positions; return where they are."""
        self._opened = self.at[opened]
        return self._opened


def descend(splits: SplitTree, amounts: Floats, opens: Opens, halve: Halve) -> None:
    """Walk from the root as `walk` does, with nodes named by where they are in the tree; only known ones are opened."""
    at, bits = positions(splits.node[:1] == ROOT), 0
    while at.size:
        opened = positions(opens(at, amounts, bits) & (at < splits.node.size))
        at, amounts = at[opened], amounts.take(opened, axis=1)
        if opened.size:
            amounts = halve(at, amounts, bits).reshape(len(amounts), -1)
            at, bits = splits.links.halves[at].ravel(), bits + 1


def masses(splits: SplitTree, total: float) -> Floats:
    """Return how many points each known node holds; nothing for one below a node that is not known.

    A half never holds more than the whole, so forgetting the lightest nodes forgets whole subtrees.
    """
    mass = np.zeros(splits.node.size + 1)

    def note(at: Ints, amounts: Floats, bits: int) -> Bools:
        mass[at] = amounts[0]
        return np.ones(at.size, dtype=bool)

    def halve(at: Ints, amounts: Floats, bits: int) -> Floats:
        contrast = splits.contrast[at]
        return np.stack([amounts * (1 + contrast) / 2, amounts * (1 - contrast) / 2], axis=2)

    descend(splits, np.array([[total]]), note, halve)
    return mass[:-1]
