"""What is released of the splits: emptiness decided, and the rest smoothed where neighbours say more. Public.

A density that changes little from node to node can be told from the neighbours. If the densities of the nodes before
and after a node, along the coordinate in which it is halved, are a and b and its own is c, the parabola with these
three means gives the first half ``c + (a - b)/8``: a contrast of ``(a - b)/8c``. (Where the halves differ in measure,
the odds that this gives multiply those of the measure: see `_tilted`.) How far contrasts of a level deviate from that
beyond noise and chance, its **ruggedness**, is learnt from those that were measured (a variance k); a measured contrast
of variance w is then moved towards the neighbours' by ``w/(w + k + 1/mass)``, nearly all the way where the density is
smooth and counts are noisy, and not at all where it is rugged. (Empirical Bayes shrinkage towards a local slope.) A
half that was decided to be empty stays so. Nodes that were not divided are halved twice more in the same way, with
variance ``k + 1/mass``. This is done from the root down, so neighbours are already smooth, and only on domains whose
codes halve coordinates in turn (boxes, regions). What is known is not changed: this is a view of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints, positions
from phdstream.domains import ROOT
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.descent import Places
from phdstream.streams.tracking.model.emptiness import Emptiness
from phdstream.streams.tracking.model.empty_children import empty_children
from phdstream.streams.tracking.model.links import Links
from phdstream.streams.tracking.model.neighbours import Neighbours
from phdstream.streams.tracking.model.split_tree import UNIFORM, SplitTree, by_contrast
from phdstream.streams.tracking.model.walk import walk
from phdstream.streams.tracking.parameters import Smoothing, TrackingParameters

__all__ = ["regularize"]

_FAINT = 1e-200
"""With less of the measure than this a place tells no density: dividing by it could overflow."""


def regularize(
    parameters: TrackingParameters, tree: BinaryTree, splits: SplitTree, total: float, emptiness: Emptiness, limit: int
) -> SplitTree:
    """Return the splits to release; if they would be more than ``limit``, not smoothed."""
    rule = parameters.smoothing
    likely = emptiness.likely(splits.contrast, splits.variance)
    if not parameters.empty_halves.on:
        likely = np.zeros(likely.size, dtype=bool)
    rules = (parameters.empty_halves, parameters.empty_children)
    decided, emptied = empty_children(rules, tree, splits, total, likely)
    if not rule.on or not tree.axes or 2 ** (rule.halvings + 1) * splits.node.size > limit:
        return decided
    smoother = _Smoother(rule, tree, decided, emptied)
    start = np.array([[total], [1.0]])
    walk(tree.total_bits, np.array([ROOT]), start, smoother.opens, by_contrast(tree, (smoother, UNIFORM)))
    return smoother.result() or decided


class _Smoother:
    """Walks down the tree level by level; gives each node that is opened its smoothed contrast."""

    def __init__(self, rule: Smoothing, tree: BinaryTree, splits: SplitTree, emptied: Bools) -> None:
        self._rule, self._splits, self._emptied = rule, splits, emptied
        self._places, self._neighbours = Places(splits), Neighbours(tree)
        self._opened: Ints = np.zeros(1, np.int64)
        self._lately: NDArray[np.uint8] = np.zeros(1, np.uint8)
        """One bit for a node that is known, the next for one whose parent is, and so on."""
        self._mass: Floats = np.zeros(0)
        self._density: Floats = np.full(1, np.nan)
        self._first, self._ruggedness = 0, 1.0
        self._parts: list[tuple[Ints, Ints, Floats, Floats]] = []
        self._above = self._so_far = 0  # where the last level's nodes begin among all those opened, and their number

    def result(self) -> SplitTree | None:
        """Return all smoothed contrasts, if there are any."""
        if not self._parts:
            return None
        slots, node, contrast, variance = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        return SplitTree.linked(Links.of_walk(node, slots[1:]), node, contrast, variance)

    def opens(self, nodes: Ints, amounts: Floats, bits: int) -> Bools:
        """Say which nodes to halve, and remember the level."""
        self._mass, measure = amounts
        known = self._places.go_on(nodes)
        before: NDArray[np.uint8] = np.repeat(self._lately[self._opened], 2)[: nodes.size]
        self._lately = (before << 1 | known).astype(np.uint8)
        near = (self._lately >> self._rule.halvings) & 1 == 1
        opened: Bools = (known & (self._mass > self._rule.thin)) | (near & (self._mass > self._rule.worth_halving))
        self._opened = positions(opened)
        self._first = self._neighbours.go_on(nodes.size, self._opened)
        self._remember(measure)
        return opened

    def _remember(self, measure: Floats) -> None:
        """Remember the densities of the level's nodes; NaN where there is no measure, and so nothing to tell."""
        first, past = self._first, self._first + measure.size
        if self._density.size < past:
            self._density = np.append(self._density, np.empty(past))
        np.divide(self._mass, np.where(measure > _FAINT, measure, np.nan), out=self._density[first:past])

    def of(self, tree: BinaryTree, nodes: Ints, bits: int) -> tuple[Floats, Floats]:
        """Return the smoothed contrasts of the opened nodes of this level, and their variances."""
        contrast = 2 * tree.first_share(nodes, bits) - 1
        contrast = _tilted(contrast, self._slope(tree.axes[bits]))
        chance = 1 / np.maximum(self._mass[self._opened], self._rule.thin)
        at = self._places.open(self._opened)
        measured = positions(at < self._splits.node.size)
        at = at[measured]
        prior, noise = contrast[measured], self._splits.variance[at]
        deviation = self._splits.contrast[at] - prior
        if measured.size:
            self._learn(deviation, noise + chance[measured])
        spread = chance + self._ruggedness
        variance = np.minimum(spread, 1.0)
        gain = spread[measured] / (spread[measured] + noise)
        gain[self._emptied[at]] = 1.0
        contrast[measured] = prior + gain * deviation
        variance[measured] = gain * noise
        contrast = np.clip(contrast, -1, 1)  # rounding must not leave that
        self._parts.append((2 * self._above + self._opened, nodes, contrast, variance))
        self._above, self._so_far = self._so_far, self._so_far + nodes.size
        return contrast, variance

    def _learn(self, deviation: Floats, explained: Floats) -> None:
        """Estimate the level's ruggedness: the variance of contrasts around the neighbours' that is not explained."""
        weight = (explained + self._rule.soften) ** -2.0
        weight /= weight.sum()
        rugged = max(float(weight @ (deviation**2 - explained)), 0.0)
        error = np.sqrt(2 * ((weight * (explained + rugged)) ** 2).sum())
        self._ruggedness = rugged + self._rule.caution * float(error)

    def _slope(self, axis: int) -> Floats:
        """Return the contrasts that the densities of the neighbours along a coordinate suggest."""
        own = self._density[self._first + self._opened]
        before, after = (self._density[cells] for cells in self._neighbours.cells(axis))
        for density in (before, after):
            nothing = positions(np.isnan(density))
            density[nothing] = own[nothing]
        some = own > 0
        slope = (before - after) / (8 * np.where(some, own, 1.0))
        slope[~some] = 0.0
        limited: Floats = np.clip(slope, -self._rule.steepest, self._rule.steepest)
        return limited


def _tilted(prior: Floats, slope: Floats) -> Floats:
    """Return the contrasts of halves whose measures have the contrast ``prior`` and whose densities ``slope``.

    With odds ``(1 + contrast)/(1 - contrast)`` of the first half, those of the two multiply; so the result lies between
    -1 and 1 as they do, and a zero-measure half stays empty. (Slopes are limited, so it is never 0/0.)

    >>> _tilted(np.array([0.0, 1.0, -0.5]), np.array([0.5, -0.9, 0.5])).tolist()
    [0.5, 1.0, 0.0]
    """
    tilted: Floats = np.clip((prior + slope) / (1 + prior * slope), -1, 1)
    return tilted
