"""How each node's points divide between its two halves: one normalised Haar coefficient for every split of the tree.

The **split contrast** of a node is the first half's points minus the second's, over their sum: 1 if all are in the
first. (The Haar wavelet coefficient of the node, normalised by its mass.) With it goes the **contrast variance**. A
node never measured divides as the domain's measure does, with variance `UNKNOWN`. With a total, the contrasts give a
density on the whole tree: ``mass(half) = mass(node) · (1 ± contrast)/2``. Public.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.binary_tree import BinaryTree
from phdstream.domains.prefixes import prefix_length
from phdstream.streams.tracking.model.walk import Halve, walk

__all__ = ["UNIFORM", "UNKNOWN", "Density", "SplitTree", "by_contrast", "masses"]

UNKNOWN = 20.0
"""The contrast variance of a node about which nothing is known: far more than any contrast can differ from another."""


class Density(Protocol):
    """What says how nodes divide between their halves."""

    def of(self, tree: BinaryTree, nodes: Ints, bits: int) -> tuple[Floats, Floats]:
        """Return the contrasts, and their variances, of nodes of one length, in order and all different."""


@dataclass(frozen=True)
class SplitTree:
    """Contrasts and variances of the measured nodes, in order of the nodes; a value that is never changed in place."""

    node: Ints
    contrast: Floats
    variance: Floats

    @classmethod
    def empty(cls) -> SplitTree:
        """Return what is known before anything was measured."""
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))

    def of(self, tree: BinaryTree, nodes: Ints, bits: int) -> tuple[Floats, Floats]:
        """Return the contrasts, and their variances, of nodes of one length, in order and all different."""
        at, known = self.find(nodes)
        contrast, variance = np.zeros(nodes.size), np.full(nodes.size, UNKNOWN)
        if not known.all() and not tree.even:
            contrast[~known] = 2 * tree.first_share(nodes[~known], bits) - 1
        contrast[known], variance[known] = self.contrast[at[known]], self.variance[at[known]]
        return contrast, variance

    def find(self, nodes: Ints) -> tuple[Ints, Bools]:
        """Return where each node is among the measured ones, and whether it is."""
        if not self.node.size:
            return np.zeros(nodes.size, np.int64), np.zeros(nodes.size, dtype=bool)
        at = np.minimum(np.searchsorted(self.node, nodes), self.node.size - 1)
        return at, self.node[at] == nodes

    def updated(self, node: Ints, contrast: Floats, variance: Floats) -> SplitTree:
        """Return the tree with some nodes' contrasts replaced or added."""
        rest = ~np.isin(self.node, node, assume_unique=True)
        nodes = np.concatenate([self.node[rest], node])
        order = np.argsort(nodes, kind="stable")  # two runs in order: quickly merged
        contrast = np.concatenate([self.contrast[rest], contrast])
        variance = np.concatenate([self.variance[rest], variance])
        return SplitTree(nodes[order], contrast[order], variance[order])

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
        return SplitTree(self.node, contrast, variance)


UNIFORM = SplitTree.empty()
"""The density of the measure: every node divides as its measure does."""


def by_contrast(tree: BinaryTree, densities: tuple[Density, ...]) -> Halve:
    """Return what divides rows of amounts between halves, each row by its own density."""

    def halve(nodes: Ints, amounts: Floats, bits: int) -> Floats:
        contrast = np.stack([density.of(tree, nodes, bits)[0] for density in densities])
        return np.stack([amounts * (1 + contrast) / 2, amounts * (1 - contrast) / 2], axis=2)

    return halve


def masses(tree: BinaryTree, splits: SplitTree, total: float) -> Floats:
    """Return how many points each known node holds; one below a forgotten node is reached by measure.

    A half never holds more than the whole, so forgetting the lightest nodes forgets whole subtrees.
    """
    mass = np.zeros(splits.node.size)

    def note(nodes: Ints, amounts: Floats, bits: int) -> Bools:
        at, known = splits.find(nodes)
        mass[at[known]] = amounts[0, known]
        return known

    walk(tree.total_bits, np.array([1]), np.array([[total]]), note, by_contrast(tree, (splits,)))
    return mass
