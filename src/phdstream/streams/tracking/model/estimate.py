"""From a total and splits to what is released: cells with counts, whole points, and errors. Public."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from phdstream.arrays import Bools, Floats, Ints, positions
from phdstream.domains import ROOT, divide_among_children, hash_uniform
from phdstream.domains.binary_tree import BinaryTree
from phdstream.release.estimate import Estimate
from phdstream.streams.tracking.model.descent import Places
from phdstream.streams.tracking.model.split_tree import SplitTree
from phdstream.streams.tracking.model.walk import walk

__all__ = ["to_estimate"]

_WIDEST = 1.0
"""A contrast lies between -1 and 1, so its variance is at most this."""


def to_estimate(
    tree: BinaryTree, splits: SplitTree, total: float, total_variance: float, key: int, thin: float, recent: float = 0.0
) -> Estimate:
    """Return the estimate: the known nodes that hold points, at the domain's own levels.

    Nodes with fewer points than ``thin`` are not divided further: it could not be seen. ``recent`` is how many points
    came or went since the last fine count: taken to be where points are.
    """
    levels = _Levels(tree, splits, thin)
    rows = 3 if tree.even else 4  # where all nodes have measure it is not needed
    start = np.array([[max(total, 0.0)], [total_variance], [total_variance], [1.0]][:rows])
    walk(tree.total_bits, np.array([ROOT]), start, levels.opens, levels.halve)
    parts = _with_points(levels.found, key, tree.even)
    estimate = Estimate(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    estimate.uncounted = estimate.count * min(recent / max(total, 1.0), 1.0)
    return estimate


@dataclass(frozen=True)
class _Level:
    """The nodes of one level of the domain, and where each one's parent stands in the level above."""

    node: Ints
    mass: Floats
    variance: Floats
    in_family: Floats
    leaf: Bools
    above: Ints


class _Levels:
    """Walks down the tree and notes the nodes to release, level by level; zero-measure nodes are left out.

    The rows of amounts are a node's mass, the variance of that, the part of the variance that arises within what its
    parent in the domain holds (``in_family``), and its measure. A count's variance is that of its share of its
    parent's count, plus that of its parent's.
    """

    def __init__(self, tree: BinaryTree, splits: SplitTree, thin: float) -> None:
        self._tree, self._thin, self._places = tree, thin, Places(splits)
        self._contrast = np.append(splits.contrast, 0.0)  # with what is taken for a node that is not known
        self._variance = np.append(np.minimum(splits.variance, _WIDEST), _WIDEST)
        self.found: list[_Level] = []
        self._opened = self._above = np.zeros(1, np.int64)

    def opens(self, nodes: Ints, amounts: Floats, bits: int) -> Bools:
        """Say which nodes to halve; between levels of the domain, all that have measure."""
        known = self._places.go_on(nodes)
        self._above = np.repeat(self._above[self._opened], 2)[: nodes.size]
        there = np.ones(nodes.size, dtype=bool) if self._tree.even else amounts[3] > 0
        opened = there
        if self._tree.is_level(bits):
            opened = there & known & (amounts[0] > self._thin) & (bits < self._tree.total_bits)
            self._note(nodes, amounts, ~opened, there)
        self._opened = positions(opened)
        return opened

    def _note(self, nodes: Ints, amounts: Floats, leaf: Bools, there: Bools) -> None:
        """Note a level of the domain; from here on nodes stand below it."""
        columns = (nodes, *amounts[:3], leaf, self._above)
        if self._tree.even:
            self.found.append(_Level(*columns))
            self._above = np.arange(nodes.size)
        else:
            self.found.append(_Level(*(column[there] for column in columns)))
            self._above = np.cumsum(there) - 1

    def halve(self, nodes: Ints, amounts: Floats, bits: int) -> Floats:
        """Return the amounts of the halves."""
        at = self._places.open(self._opened)
        contrast, split_variance = self._contrast[at], self._variance[at]
        mass, variance, in_family = amounts[:3]
        split, starts_family = mass**2 * split_variance / 4, self._tree.is_level(bits)
        halves = np.empty((len(amounts), nodes.size, 2))
        if not self._tree.even:
            prior, unknown = 2 * self._tree.first_share(nodes, bits) - 1, positions(at == self._contrast.size - 1)
            contrast[unknown] = prior[unknown]
            halves[3, :, 0], halves[3, :, 1] = (1 + prior) / 2 * amounts[3], (1 - prior) / 2 * amounts[3]
        for side, share in enumerate(((1 + contrast) / 2, (1 - contrast) / 2)):
            square = share**2
            halves[0, :, side] = share * mass
            halves[1, :, side] = square * variance + split
            halves[2, :, side] = split if starts_family else square * in_family + split
        return halves


def _with_points(levels: list[_Level], key: int, even: bool) -> list[tuple[Ints | Floats | Bools, ...]]:
    """Return the columns of the estimate, level by level of the domain."""
    points = np.floor(levels[0].mass + hash_uniform(key, np.zeros(1, np.int64))).astype(np.int64)
    parts = [_columns(levels[0], points, levels[0].in_family)]
    for up, level in pairwise(levels):
        parents, family = positions(~up.leaf), (np.cumsum(~up.leaf) - 1)[level.above]
        siblings: Any = family.size // max(parents.size, 1) if even else np.bincount(family)[family]
        share = level.mass / up.mass[level.above]  # only nodes that hold points are divided
        points = divide_among_children(points[parents], family, share, up.node[parents], key)
        parts.append(_columns(level, points, level.in_family * siblings / np.maximum(siblings - 1, 1)))
    return parts


def _columns(level: _Level, points: Ints, share_variance: Floats) -> tuple[Ints | Floats | Bools, ...]:
    own = np.zeros(level.node.size)
    return level.node, level.leaf, level.mass, level.mass, level.variance, own, points, share_variance
