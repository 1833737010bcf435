"""How each node's points divide between its two halves: one normalised Haar coefficient for every split of the tree.

The **split contrast** of a node is the first half's points minus the second's, over their sum: 1 if all are in the
first. (The Haar wavelet coefficient of the node, normalised by its mass.) With it goes the **contrast variance**. A
node never measured divides as the domain's measure does, with variance `UNKNOWN`. With a total, the contrasts give a
density on the whole tree: ``mass(half) = mass(node) · (1 ± contrast)/2``. Public.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from phdstream.arrays import Bools, Floats, Ints, positions
from phdstream.domains.binary_tree import BinaryTree
from phdstream.domains.prefixes import prefix_length
from phdstream.streams.state import Arrays
from phdstream.streams.tracking.model.links import Links
from phdstream.streams.tracking.model.walk import Halve

__all__ = ["UNIFORM", "UNKNOWN", "Density", "SplitTree", "by_contrast"]

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
        known, contrast, variance = positions(found), np.zeros(nodes.size), np.full(nodes.size, UNKNOWN)
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
        known, new = positions(found), positions(~found)
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
            at = positions(lengths == bits)
            measure, unknown = UNIFORM.of(tree, self.node[at], bits)
            contrast[at] = np.where(lost[at] | (np.abs(measure) == 1), measure, contrast[at])
            variance[at] = np.where(lost[at], unknown, variance[at])
        return self.replaced(contrast, variance)


UNIFORM = SplitTree.empty()
"""The density of the measure: every node divides as its measure does."""


def by_contrast(tree: BinaryTree, densities: tuple[Density, ...]) -> Halve:
    """Return what divides rows of amounts between halves, each row by its own density."""

    def halve(nodes: Ints, amounts: Floats, bits: int) -> Floats:
        halves = np.empty((len(densities), nodes.size, 2))
        for row, density in enumerate(densities):
            if density is UNIFORM and tree.even:
                halves[row] = (amounts[row] / 2)[:, None]
            else:
                contrast = density.of(tree, nodes, bits)[0]
                halves[row, :, 0] = amounts[row] * (1 + contrast) / 2
                halves[row, :, 1] = amounts[row] * (1 - contrast) / 2
        return halves

    return halve
