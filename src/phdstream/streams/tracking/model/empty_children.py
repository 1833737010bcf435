"""Halves that hold next to nothing, judged by the other halves of their length and by their neighbours. Public.

`Emptiness` judges a half by its node alone: is its share within noise? Two things more tell. Where halves that are not
empty hold hundreds of points, one that seems to hold ten within its noise is likely empty; where many hold ten it is
not. And what is empty lies together (water, desert, the inside of a ring): a half whose neighbours hold little (the
one on the other side from its sibling, and those on either side of it along the next coordinate) is far more often
empty than one whose neighbours hold much.

So level by level, from the root down, among the halves whose node holds enough to tell, apart for each number of
neighbours with little: which **part** is empty follows from how many hold less than half their standard deviation, and
how much the others **typically** hold from those that stand out. A half is then empty with odds ``part/(1-part)`` times
the density of its count if it is (normal around 0) over that if it is not (``1/typical``). If they exceed 1, its points
are taken to be in the other half. (The part of a small group is drawn towards that of all.) Nothing is decided where
few halves stand out, nor ever against the larger half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints, positions
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.descent import descend
from phdstream.streams.tracking.model.emptiness import limit, within_limits
from phdstream.streams.tracking.model.neighbours import Neighbours
from phdstream.streams.tracking.model.split_tree import SplitTree
from phdstream.streams.tracking.parameters import EmptyChildren, EmptyHalves

__all__ = ["empty_children"]

_LOW, _EMPTY_IS_LOW = 0.5, 0.69
"""A count below this many deviations is low; how often that of an empty half is, by the normal distribution."""


def empty_children(
    rules: tuple[EmptyHalves, EmptyChildren], tree: BinaryTree, splits: SplitTree, total: float, emptied: Bools
) -> tuple[SplitTree, Bools]:
    """Return the splits with halves taken to be empty where that is likely, and at which nodes one is.

    ``emptied`` says at which nodes the smaller half was decided to be empty already.
    """
    contrast = np.where(emptied, np.sign(splits.contrast), splits.contrast)
    if not rules[1].on:
        return splits.replaced(contrast, splits.variance), emptied
    judge = _Judge(rules, tree, splits.replaced(contrast, splits.variance), emptied.copy())
    descend(splits, np.array([[total], [0.0]]), judge.opens, judge.halve)
    return judge.splits, judge.emptied


class _Judge:
    """Descends the tree; the rows of amounts are the masses and their variances."""

    def __init__(
        self, rules: tuple[EmptyHalves, EmptyChildren], tree: BinaryTree, splits: SplitTree, emptied: Bools
    ) -> None:
        self._limits, self._rule = rules
        self._tree, self.splits, self.emptied = tree, splits, emptied
        self._neighbours = Neighbours(tree)

    def opens(self, at: Ints, amounts: Floats, bits: int) -> Bools:
        """Say which nodes to judge: those that are known and hold enough."""
        judged: Bools = (at < self.splits.node.size) & (amounts[0] > self._rule.thin)
        self._neighbours.go_on(at.size, positions(judged))
        return judged

    def halve(self, at: Ints, amounts: Floats, bits: int) -> Floats:
        """Judge the nodes' smaller halves, and return what all halves hold."""
        mass, variance = amounts
        contrast = self.splits.contrast[at]
        split_variance = mass**2 * np.minimum(self.splits.variance[at], 1) / 4
        shares = _shares(contrast)
        variances = shares**2 * variance[:, None] + split_variance[:, None]
        inside = shares * mass[:, None]
        empty = self._empty(at, bits, mass, contrast, inside, np.sqrt(np.maximum(variances, 1e-9)))
        self.emptied[at[empty]] = True
        contrast[empty] = decided = np.sign(contrast[empty])
        self.splits.contrast[at] = contrast
        inside[empty] = _shares(decided) * mass[empty, None]
        return np.stack([inside, variances])

    def _empty(self, at: Ints, bits: int, mass: Floats, contrast: Floats, inside: Floats, deviation: Floats) -> Ints:
        """Return which nodes' smaller half is likely empty."""
        rule = self._rule
        visible = (mass / 2 > rule.visible * np.maximum(*deviation.T))[:, None]
        told = positions((visible & _possible(self._tree, self.splits.node[at], bits)).ravel())
        held, width = inside.ravel()[told], deviation.ravel()[told]
        solid = held[positions(held > rule.stands_out * width)]
        empty = np.zeros(inside.shape, dtype=bool)
        if solid.size < rule.enough:
            return told[:0]
        count, width = held / width, float(np.median(solid)) / width
        bare, overall = self._bare_sides(bits, mass, inside).ravel()[told], self._part_empty(count, width)
        for sides in range(bare.max() + 1):
            group = positions(bare == sides)
            if (size := group.size) > 0:
                alike, wide = count[group], width[group]
                part = (size * self._part_empty(alike, wide) + rule.enough * overall) / (size + rule.enough)
                empty.ravel()[told[group]] = alike < limit(self._limits, part, wide)
        first, second = empty.T
        return positions(np.where(contrast > 0, second & ~first, first & ~second & (contrast < 0)))

    def _part_empty(self, count: Floats, width: Floats) -> float:
        return within_limits(self._limits, part_empty(count, width))

    def _bare_sides(self, bits: int, mass: Floats, inside: Floats) -> NDArray[np.int8]:
        """Return how many neighbours of each half hold little, or are not divided.

        A half's neighbours are its node's, on its side, along the coordinate halved here, and, of the half's own
        length, both along the coordinate halved next.
        """
        tree = self._tree
        bare: NDArray[np.int8] = np.zeros(inside.shape, dtype=np.int8)
        if not tree.axes:
            return bare
        little, held = self._rule.little * mass, np.append(mass, 0.0)  # at -1: of a neighbour that is not there
        for side, beside in enumerate(self._neighbours.among_opened(tree.axes[bits])):
            bare[:, side] += held[beside] < little
        if bits + 1 < tree.total_bits and tree.axes[bits] != tree.axes[bits + 1]:
            held = np.append(inside, np.zeros((1, 2)), axis=0)
            for beside in self._neighbours.among_opened(tree.axes[bits + 1]):
                bare += held[beside] < little[:, None] / 2
        return bare


def part_empty(count: Floats, width: Floats) -> float:
    """Return which part of some halves is empty, from their counts and how much others hold, in deviations.

    >>> rng = np.random.default_rng(1)
    >>> counts = np.concatenate([np.maximum(rng.normal(size=600), 0), rng.uniform(0, 100, 400)])
    >>> round(part_empty(counts, np.full(1000, 50.0)), 1)
    0.6
    """
    others = float(np.minimum(_LOW / width, 1).mean())
    low = float((count < _LOW).mean())
    return (low - others) / (_EMPTY_IS_LOW - others) if others < _EMPTY_IS_LOW else 0.0


def _shares(contrast: Floats) -> Floats:
    both: Floats = np.stack([(1 + contrast) / 2, (1 - contrast) / 2], axis=1)
    return both


def _possible(tree: BinaryTree, nodes: Ints, bits: int) -> Bools:
    """Return which halves have a measure, and so can hold points."""
    if tree.even:
        return np.ones((nodes.size, 2), dtype=bool)
    first = tree.first_share(nodes, bits)
    return np.stack([first > 0, first < 1], axis=1)
