"""How each node's points divide between its two halves: one normalised Haar coefficient for every split of the tree.

The **split contrast** of a node is the first half's points minus the second's, over their sum: 1 if all are in the
first. (The Haar wavelet coefficient of the node, normalised by its mass.) With it goes the **contrast variance**. A
node never measured divides as the domain's measure does, with variance `UNKNOWN`. With a total, the contrasts give a
density on the whole tree: ``mass(half) = mass(node) · (1 ± contrast)/2``. Public.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT
from phdstream.domains.binary_tree import BinaryTree
from phdstream.domains.prefixes import prefix_length
from phdstream.streams.state import Arrays
from phdstream.streams.tracking.model.walk import Halve, Opens

__all__ = ["UNIFORM", "UNKNOWN", "Density", "Places", "SplitTree", "by_contrast", "descend", "masses"]

UNKNOWN = 20.0
"""The contrast variance of a node about which nothing is known: far more than any contrast can differ from another."""


class Density(Protocol):
    """What says how nodes divide between their halves."""

    def of(self, tree: BinaryTree, nodes: Ints, bits: int) -> tuple[Floats, Floats]:
        """Return the contrasts, and their variances, of nodes of one length, in order and all different."""


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
        links.halves, links.closed = halves.reshape(-1, 2), True
        return links

    def find(self, nodes: Ints) -> tuple[Ints, Bools]:
        """Return where each of other nodes is among the nodes, and whether it is."""
        if not self._node.size:
            return np.zeros(nodes.size, np.int64), np.zeros(nodes.size, dtype=bool)
        at = np.minimum(np.searchsorted(self._node, nodes), self._node.size - 1)
        return at, self._node[at] == nodes

    @cached_property
    def _parents(self) -> tuple[Ints, Bools]:
        return self.find(self._node >> 1)

    @cached_property
    def halves(self) -> Ints:
        """Where each node's halves are among the nodes, (nodes + 1, 2); of one that is not: the number of nodes.

        So with ``at = halves[at].ravel()`` a walk from the root goes from level to level without searching; what is not
        known is at the last row, and so are its halves.
        """
        size, (at, there) = self._node.size, self._parents
        halves = np.full((size + 1, 2), size)
        known = np.flatnonzero(there)
        halves[at[known], self._node[known] & 1] = known
        return halves

    @cached_property
    def closed(self) -> bool:
        """Whether the parents of all nodes are known, up to the root: then nothing is known below an unknown node."""
        return not self._node.size or bool(self._node[0] == ROOT and self._parents[1][1:].all())


@dataclass(frozen=True)
class SplitTree:
    """Contrasts and variances of the measured nodes, in order of the nodes; a value that is never changed in place."""

    node: Ints
    contrast: Floats
    variance: Floats
    links: Links = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", Links(self.node))

    @classmethod
    def linked(cls, links: Links, node: Ints, contrast: Floats, variance: Floats) -> SplitTree:
        """Return a tree whose links are known."""
        tree = cls(node, contrast, variance)
        object.__setattr__(tree, "links", links)
        return tree

    @classmethod
    def empty(cls) -> SplitTree:
        """Return what is known before anything was measured."""
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))

    def of(self, tree: BinaryTree, nodes: Ints, bits: int) -> tuple[Floats, Floats]:
        """Return the contrasts, and their variances, of nodes of one length, in order and all different."""
        at, found = self.find(nodes)
        known, contrast, variance = np.flatnonzero(found), np.zeros(nodes.size), np.full(nodes.size, UNKNOWN)
        if known.size < nodes.size and not tree.even:
            contrast[~found] = 2 * tree.first_share(nodes[~found], bits) - 1
        at = at[known]
        contrast[known], variance[known] = self.contrast[at], self.variance[at]
        return contrast, variance

    def to_arrays(self) -> Arrays:
        """Return the tree as plain arrays."""
        return {"node": self.node, "contrast": self.contrast, "variance": self.variance}

    def find(self, nodes: Ints) -> tuple[Ints, Bools]:
        """Return where each node is among the measured ones, and whether it is."""
        return self.links.find(nodes)

    def updated(self, node: Ints, contrast: Floats, variance: Floats) -> SplitTree:
        """Return the tree with some nodes' contrasts replaced or added."""
        at, found = self.find(node)
        known, new = np.flatnonzero(found), np.flatnonzero(~found)
        columns = [self.contrast.copy(), self.variance.copy()]
        for column, values in zip(columns, (contrast, variance), strict=True):
            column[at[known]] = values[known]
        if not new.size:
            return self.replaced(*columns)
        nodes = np.append(self.node, node[new])
        order = np.argsort(nodes, kind="stable")  # two runs in order: quickly merged
        contrasts, variances = (
            np.append(column, values[new])[order] for column, values in zip(columns, (contrast, variance), strict=True)
        )
        return SplitTree(nodes[order], contrasts, variances)

    def replaced(self, contrast: Floats, variance: Floats) -> SplitTree:
        """Return a tree of the same nodes."""
        return SplitTree.linked(self.links, self.node, contrast, variance)

    def only(self, kept: Bools) -> SplitTree:
        """Return some of the nodes."""
        return SplitTree(self.node[kept], self.contrast[kept], self.variance[kept])

    def sound(self) -> bool:
        """Whether every contrast lies between -1 and 1 and every variance is a number that is not negative."""
        finite = np.isfinite(self.variance).all()
        return bool((np.abs(self.contrast) <= 1).all() and (self.variance >= 0).all() and finite)

    def mended(self, tree: BinaryTree) -> SplitTree:
        """Return a sound tree of the same nodes: contrasts within their limits, and nothing in zero-measure halves.

        Where a contrast or a variance is no number, the node divides as the measure does.
        """
        contrast, variance = np.clip(self.contrast, -1, 1), np.clip(self.variance, 0, UNKNOWN)
        lost = ~(np.isfinite(self.contrast) & np.isfinite(self.variance))
        lengths = prefix_length(self.node)
        for bits in np.unique(lengths).tolist():
            at = np.flatnonzero(lengths == bits)
            measure, unknown = UNIFORM.of(tree, self.node[at], bits)
            contrast[at] = np.where(lost[at] | (np.abs(measure) == 1), measure, contrast[at])
            variance[at] = np.where(lost[at], unknown, variance[at])
        return self.replaced(contrast, variance)


UNIFORM = SplitTree.empty()
"""The density of the measure: every node divides as its measure does."""


def by_contrast(tree: BinaryTree, densities: tuple[Density, ...]) -> Halve:
    """Return what divides rows of amounts between halves, each row by its own density."""

    def halve(nodes: Ints, amounts: Floats, bits: int) -> Floats:
        contrast = np.stack([density.of(tree, nodes, bits)[0] for density in densities])
        return np.stack([amounts * (1 + contrast) / 2, amounts * (1 - contrast) / 2], axis=2)

    return halve


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
    at, bits = np.flatnonzero(splits.node[:1] == ROOT), 0
    while at.size:
        opened = np.flatnonzero(opens(at, amounts, bits) & (at < splits.node.size))
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
