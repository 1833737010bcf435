"""Where to count, when, and with how much of the budget: chosen from what was released before. Public."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.descent import masses
from phdstream.streams.tracking.model.emptiness import Emptiness
from phdstream.streams.tracking.model.kalman import Learning
from phdstream.streams.tracking.model.refinement import ExpectedCounts
from phdstream.streams.tracking.model.split_tree import UNIFORM, UNKNOWN, SplitTree, by_contrast
from phdstream.streams.tracking.model.walk import leaves_of
from phdstream.streams.tracking.parameters import BlockLength, BudgetSplit, Drift, Filter, TrackingParameters

__all__ = [
    "Spending",
    "Zoning",
    "block_length",
    "choose_zones",
    "drift_score",
    "due_threshold",
    "expected_in_block",
    "learning_from",
    "places_in_use",
    "prior_variance",
    "split_budget",
]

_MOSTLY = 0.8
"""So large a part of all points must be in finest cells, for these to be what limits."""


class Spending(NamedTuple):
    """What an event of the open block spends on its tick's total, on its zone, and on the fine count of its block."""

    total: float
    zones: float
    fine_count: float


@dataclass(frozen=True)
class Zoning:
    """Nodes that tile the domain: zones, to be counted, and zero-measure nodes, where nothing can be.

    ``expected`` is the part of all points that each zone holds.
    """

    zones: Ints
    empty: Ints
    expected: Floats

    @classmethod
    def whole(cls) -> Zoning:
        """Return the whole domain as one zone."""
        return cls(np.array([ROOT]), np.zeros(0, np.int64), np.ones(1))


def choose_zones(tree: BinaryTree, splits: SplitTree, total: float, most: float, bits: int) -> Zoning:
    """Open every node that holds more than ``most`` points, down to prefixes of a length; return what is left."""

    def opens(nodes: Ints, amounts: Floats, length: int) -> Bools:
        large: Bools = amounts[0] > most
        return large if length < bits else np.zeros(nodes.size, dtype=bool)

    start, halve = np.array([[total], [1.0]]), by_contrast(tree, (splits, UNIFORM))
    nodes, amounts = leaves_of(tree.total_bits, np.array([ROOT]), start, opens, halve)
    zones = nodes[amounts[1] > 0]
    return Zoning(zones, nodes[amounts[1] <= 0], _parts_of(tree, splits, zones)[0])


def _parts_of(tree: BinaryTree, splits: SplitTree, nodes: Ints) -> Floats:
    """Return which part of all points each of some disjoint nodes holds, and which part of the measure: two rows."""
    ends, ancestors = np.sort(nodes), np.unique(np.concatenate([nodes >> i for i in range(tree.total_bits + 1)]))

    def opens(here: Ints, _: Floats, __: int) -> Bools:
        return np.isin(here, ancestors) & ~np.isin(here, ends)

    halve = by_contrast(tree, (splits, UNIFORM))
    found, amounts = leaves_of(tree.total_bits, np.array([ROOT]), np.ones((2, 1)), opens, halve)
    order = np.argsort(found, kind="stable")
    parts: Floats = amounts[:, order[np.searchsorted(found[order], nodes)]]
    return parts


def expected_in_block(
    tree: BinaryTree, splits: SplitTree, zones: Ints, seen: Floats, number: float, anywhere: float
) -> ExpectedCounts:
    """Return where a block's events are expected: in each zone where points already are, a part ``anywhere``.

    A zone is expected to have its share of the block's ``number``, if it was not ``seen`` to have more.
    """
    points, measure = _parts_of(tree, splits, zones)
    amount = np.maximum(seen, number * points)
    amounts = np.stack([(1 - anywhere) * amount, anywhere * amount, measure])
    return ExpectedCounts(tree, zones, amounts, (splits, UNIFORM, UNIFORM))


def split_budget(rule: BudgetSplit, total: float, epsilon: float) -> Spending:
    """Return the parts of an event's budget for its tick's total, for its zone and for the fine count of its block.

    >>> [tuple(round(part, 3) for part in split_budget(BudgetSplit(), n, 1.0)) for n in (100, 1_000, 100_000)]
    [(0.09, 0.18, 0.73), (0.054, 0.109, 0.837), (0.02, 0.04, 0.94)]
    """
    growth = float(np.clip((max(total, 1.0) * epsilon / rule.many) ** (-1 / 3), 1.0, rule.growth))
    for_total, for_zones = rule.total * growth, rule.zones * growth
    return Spending(for_total, for_zones, 1 - (for_total + for_zones))


def block_length(rule: BlockLength, total: float, epsilon: float, places: float) -> float:
    """Return how much must happen, relative to all points, before a block is counted finely with budget ``epsilon``.

    Where all points are in so few ``places``, finest cells, that a longer block could not count finer cells, the length
    follows from noise and age alone. By the time n points came in blocks of m, a place has the noise of n/m counts, of
    variance n/m · 2/ε², and of the open block, half full, only a share is known: of m/2 events in c places chance makes
    m/2c. The sum is least for m = 2·√(n·c)/ε.

    >>> rule = BlockLength()
    >>> [round(block_length(rule, 10_000, epsilon, math.inf), 3) for epsilon in (1.0, 8.0)]
    [0.35, 0.124]
    >>> [round(block_length(rule, 10_000, epsilon, places=400), 3) for epsilon in (1.0, 8.0)]
    [0.35, 0.05]
    """
    if not rule.adapts:
        return rule.usual
    number = max(total, 1.0)
    length = rule.factor * (number * epsilon**2) ** -0.25
    if rule.by_places:
        length = min(length, 2 * math.sqrt(places / number) / epsilon)
    return float(np.clip(length, rule.least, rule.most))


def places_in_use(tree: BinaryTree, splits: SplitTree, total: float, thin: float) -> float:
    """Return how many finest cells hold the points; inf if more than a fifth are in cells that could be divided.

    >>> import phdstream as phd
    >>> tree = BinaryTree(phd.Box([(0, 1), (0, 1)], depth=1))
    >>> known = SplitTree(np.array([1]), np.array([0.5]), np.array([0.01]))
    >>> places_in_use(tree, known, 100.0, 0.2), places_in_use(tree, SplitTree.empty(), 100.0, 0.2)
    (2.0, inf)
    """
    last = np.searchsorted(splits.node, np.int64(1) << (tree.total_bits - 1))
    if last == splits.node.size:
        return math.inf
    mass, contrast = masses(splits, total)[last:], splits.contrast[last:]
    cells = np.concatenate([mass * (1 + contrast), mass * (1 - contrast)]) / 2
    if cells.sum() < _MOSTLY * total:
        return math.inf
    return float((cells > thin).sum())


def due_threshold(lengths: BlockLength, rule: Drift, length: float, score: float) -> float:
    """Return how much must have happened, relative to all points, for a block with some drift to be counted.

    >>> rules = BlockLength(), Drift()
    >>> due_threshold(*rules, 0.3, score=0.1), round(due_threshold(*rules, 0.3, score=0.6), 3)
    (0.3, 0.136)
    """
    return max(length / (1 + rule.hurry * beyond_chance(rule, score)), lengths.least)


def learning_from(parameters: TrackingParameters, sign: int, score: float, emptiness: Emptiness) -> Learning:
    """Return how to learn from a block: the more it drifts, the less the past is trusted."""
    beyond = beyond_chance(parameters.drift, score)
    kinship = 1.0 if sign > 0 else max(0.0, 1 - parameters.drift.distrust * beyond)
    drift, prior = float(np.hypot(parameters.filter.drift, beyond)), prior_variance(parameters.filter, emptiness)
    return Learning(parameters.filter, drift, kinship, prior)


def prior_variance(rule: Filter, emptiness: Emptiness) -> float:
    """Return the contrast variance of a node that was not measured before."""
    return emptiness.new_variance if rule.prior_from_emptiness else UNKNOWN


def beyond_chance(rule: Drift, score: float) -> float:
    """Return by how much a drift score is above what chance explains."""
    return max(score - rule.chance, 0.0) if rule.on else 0.0


def drift_score(seen: Floats, variance: Floats, expected: Floats) -> float:
    """Return by how much zones' changes differ from those expected, relative to them, beyond what noise explains.

    Near 0 if points come where points are; about 1 if they come elsewhere.

    >>> even, noise = np.array([0.5, 0.5]), np.ones(2)
    >>> drift_score(np.array([50.0, 50.0]), noise, even), round(drift_score(np.array([100.0, 0.0]), noise, even), 1)
    (0.0, 1.0)
    """
    total = max(float(seen.sum()), 1.0)
    beyond = (seen - total * expected) ** 2 - 2 * variance
    return float(np.sqrt(max(beyond.sum() / (total**2 * max((expected**2).sum(), 1e-12)), 0.0)))
