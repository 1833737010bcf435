"""From a total and splits to what is released: cells with counts, whole points, and errors. Public."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT, divide_among_children, hash_uniform
from phdstream.domains.binary_tree import BinaryTree
from phdstream.release.estimate import Estimate
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
    start = np.array([[max(total, 0.0)], [total_variance], [total_variance], [1.0]])
    walk(tree.total_bits, np.array([ROOT]), start, levels.opens, levels.halve)
    parts = _with_points(levels.found, key)
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
        self._tree, self._splits, self._thin = tree, splits, thin
        self.found: list[_Level] = []
        self._bits = 0
        self._at: Ints = np.zeros(0, np.int64)
        self._known: Bools = np.zeros(0, dtype=bool)

    def opens(self, nodes: Ints, amounts: Floats, bits: int) -> Bools:
        """Say which nodes to halve; between levels of the domain, all that have measure."""
        at, known = self._splits.find(nodes)
        there: Bools | slice = slice(None) if self._tree.even else amounts[3] > 0
        opened = np.ones(nodes.size, dtype=bool) if isinstance(there, slice) else there
        if self._tree.is_level(bits):
            opened = opened & known & (amounts[0] > self._thin)
            if bits == self._tree.total_bits:
                opened = np.zeros(nodes.size, dtype=bool)
            self._note(nodes[there], amounts[:, there], ~opened[there], bits)
        self._at, self._known = at[opened], known[opened]
        return opened

    def _note(self, nodes: Ints, amounts: Floats, leaf: Bools, bits: int) -> None:
        above: Ints = np.zeros(nodes.size, np.int64)
        if self.found:
            above = np.searchsorted(self.found[-1].node, nodes >> (bits - self._bits)).astype(np.int64)
        mass, variance, in_family, _ = amounts
        self.found.append(_Level(nodes, mass, variance, in_family, leaf, above))
        self._bits = bits

    def halve(self, nodes: Ints, amounts: Floats, bits: int) -> Floats:
        """Return the amounts of the halves."""
        prior = np.zeros(nodes.size) if self._tree.even else 2 * self._tree.first_share(nodes, bits) - 1
        contrast, split_variance = prior, np.full(nodes.size, _WIDEST)
        if self._splits.node.size:
            contrast = np.where(self._known, self._splits.contrast[self._at], prior)
            widest = np.minimum(self._splits.variance[self._at], _WIDEST)
            split_variance = np.where(self._known, widest, _WIDEST)
        halves = np.empty((4, nodes.size, 2))
        mass, variance, in_family, measure = amounts
        split, starts_family = mass**2 * split_variance / 4, self._tree.is_level(bits)
        for side, sign in enumerate((1, -1)):
            share = (1 + sign * contrast) / 2
            square = share**2
            halves[0, :, side] = share * mass
            halves[1, :, side] = square * variance + split
            halves[2, :, side] = split if starts_family else square * in_family + split
            halves[3, :, side] = (1 + sign * prior) / 2 * measure
        return halves


def _with_points(levels: list[_Level], key: int) -> list[tuple[Ints | Floats | Bools, ...]]:
    """Return the columns of the estimate, level by level of the domain."""
    points = np.floor(levels[0].mass + hash_uniform(key, np.zeros(1, np.int64))).astype(np.int64)
    parts = [_columns(levels[0], points, levels[0].in_family)]
    for up, level in pairwise(levels):
        parents, family = np.flatnonzero(~up.leaf), (np.cumsum(~up.leaf) - 1)[level.above]
        mass = up.mass[level.above]
        siblings = np.bincount(family, minlength=parents.size)[family]
        share = np.where(mass > 0, level.mass / np.where(mass > 0, mass, 1), 1 / siblings)
        points = divide_among_children(points[parents], family, share, up.node[parents], key)
        parts.append(_columns(level, points, level.in_family * siblings / np.maximum(siblings - 1, 1)))
    return parts


def _columns(level: _Level, points: Ints, share_variance: Floats) -> tuple[Ints | Floats | Bools, ...]:
    own = np.zeros(level.node.size)
    return level.node, level.leaf, level.mass, level.mass, level.variance, own, points, share_variance
