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

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.emptiness import Emptiness
from phdstream.streams.tracking.model.empty_children import empty_children
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
    smoother = _Smoother(rule, decided, emptied)
    start = np.array([[total], [1.0]])
    halve = by_contrast(tree, (smoother, UNIFORM))
    walk(tree.total_bits, np.array([ROOT]), start, smoother.opens, halve)
    return smoother.result()


class _Smoother:
    """Walks down the tree level by level; gives each node that is opened its smoothed contrast."""

    def __init__(self, rule: Smoothing, splits: SplitTree, emptied: Bools) -> None:
        self._rule, self._splits, self._emptied = rule, splits, emptied
        self._ended: tuple[Ints, Floats] = np.zeros(0, np.int64), np.zeros(0)
        self._here: Ints = np.zeros(0, np.int64)
        self._mass: Floats = np.zeros(0)
        self._measure: Floats = np.zeros(0)
        self._found: Ints = np.zeros(0, np.int64)
        self._measured: Bools = np.zeros(0, dtype=bool)
        self._ruggedness = 1.0
        self._parts: list[tuple[Ints, Floats, Floats]] = []

    def result(self) -> SplitTree:
        """Return all smoothed contrasts."""
        if not self._parts:
            return self._splits
        node, contrast, variance = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        return SplitTree(node, contrast, variance)

    def opens(self, nodes: Ints, amounts: Floats, bits: int) -> Bools:
        """Say which nodes to halve, and remember the level."""
        self._here, (self._mass, self._measure) = nodes, amounts
        self._found, self._measured = self._splits.find(nodes)
        near = self._splits.find(nodes >> self._rule.halvings)[1]
        measured = self._measured & (self._mass > self._rule.thin)
        opened: Bools = measured | (near & (self._mass > self._rule.worth_halving))
        return opened

    def of(self, tree: BinaryTree, nodes: Ints, bits: int) -> tuple[Floats, Floats]:
        """Return the smoothed contrasts of the opened nodes of this level, and their variances."""
        at = np.searchsorted(self._here, nodes)
        mass, prior = self._mass[at], 2 * tree.first_share(nodes, bits) - 1
        prior = _tilted(prior, self._slope(tree, nodes, at, bits))
        found, measured = self._found[at], self._measured[at]
        contrast, variance = self._splits.contrast[found], self._splits.variance[found]  # where measured
        chance = 1 / np.maximum(mass, self._rule.thin)
        if measured.any():
            self._learn((contrast - prior)[measured], (variance + chance)[measured])
        spread = chance + self._ruggedness
        gain = np.where(measured & self._emptied[found], 1.0, spread / (spread + variance))
        contrast = np.where(measured, prior + gain * (contrast - prior), prior)
        contrast = np.clip(contrast, -1, 1)  # rounding must not leave that
        variance = np.where(measured, gain * variance, np.minimum(spread, 1.0))
        self._parts.append((nodes, contrast, variance))
        self._end(tree, np.delete(np.arange(self._here.size), at), bits)
        return contrast, variance

    def _learn(self, deviation: Floats, explained: Floats) -> None:
        """Estimate the level's ruggedness: the variance of contrasts around the neighbours' that is not explained."""
        weight = (explained + self._rule.soften) ** -2.0
        weight /= weight.sum()
        rugged = max(float(weight @ (deviation**2 - explained)), 0.0)
        error = np.sqrt(2 * ((weight * (explained + rugged)) ** 2).sum())
        self._ruggedness = rugged + self._rule.caution * float(error)

    def _slope(self, tree: BinaryTree, nodes: Ints, at: Ints, bits: int) -> Floats:
        """Return the contrasts that the densities of the neighbours suggest."""
        density = self._density()
        starts, densities = self._ended
        starts = np.concatenate([starts, tree.code_range(self._here, bits)[0]])
        order = np.argsort(starts, kind="stable")
        starts, densities = starts[order], np.concatenate([densities, density])[order]
        own = density[at]
        before, after = (
            np.where(there, densities[np.searchsorted(starts, tree.code_range(beside, bits)[0], "right") - 1], np.nan)
            for beside, there in tree.neighbours(nodes, bits)
        )
        before, after = (np.where(np.isnan(density), own, density) for density in (before, after))
        slope = np.divide(before - after, 8 * own, out=np.zeros(own.size), where=own > 0)
        limited: Floats = np.clip(slope, -self._rule.steepest, self._rule.steepest)
        return limited

    def _density(self) -> Floats:
        """Return the densities of the level's nodes; NaN where there is no measure, and so nothing to tell."""
        unknown: Floats = np.full(self._mass.size, np.nan)
        return np.divide(self._mass, self._measure, out=unknown, where=self._measure > _FAINT)

    def _end(self, tree: BinaryTree, ended: Ints, bits: int) -> None:
        """Remember the densities of nodes that are not halved."""
        starts, densities = self._ended
        first = tree.code_range(self._here[ended], bits)[0]
        self._ended = np.concatenate([starts, first]), np.concatenate([densities, self._density()[ended]])


def _tilted(prior: Floats, slope: Floats) -> Floats:
    """Return the contrasts of halves whose measures have the contrast ``prior`` and whose densities ``slope``.

    With odds ``(1 + contrast)/(1 - contrast)`` of the first half, those of the two multiply; so the result lies between
    -1 and 1 as they do, and a zero-measure half stays empty. (Slopes are limited, so it is never 0/0.)

    >>> _tilted(np.array([0.0, 1.0, -0.5]), np.array([0.5, -0.9, 0.5])).tolist()
    [0.5, 1.0, 0.0]
    """
    tilted: Floats = np.clip((prior + slope) / (1 + prior * slope), -1, 1)
    return tilted
