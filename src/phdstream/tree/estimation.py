"""From a selected and counted tree to what is published: one top-down pass over the visited nodes. All public."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import divide_among_children, hash_uniform
from phdstream.tree.nodes import NodeStore
from phdstream.tree.selection import Level, project

__all__ = ["Estimate", "estimate"]


@dataclass
class Estimate:
    """What a tick publishes about its visited nodes, level by level in code order.

    - ``unbiased``: the paper's G, the sum of everything released; may be negative;
    - ``count``: its non-negative, consistent projection;
    - ``points``: whole numbers, unbiased for ``count``, that add up;
    - ``variance``: of the noise in ``unbiased``;
    - ``own_variance``: the part of it that belongs to this node (for a leaf: with all below it). The rest came
      from above and is shared with other leaves;
    - ``share_variance``: for methods that divide each node's count among its children by estimated shares: the variance
      of this node's part, before that of its siblings is known (for the root: of the total). Zero otherwise.
    """

    node: Ints
    leaf: Bools
    count: Floats
    unbiased: Floats
    variance: Floats
    own_variance: Floats
    points: Ints
    share_variance: Floats = None  # type: ignore[assignment]  # set below

    def __post_init__(self) -> None:
        if self.share_variance is None:
            self.share_variance = np.zeros(self.node.size)

    @classmethod
    def nothing(cls) -> Estimate:
        """Return what is known before the first release."""
        none, empty = np.zeros(0), np.zeros(0, np.int64)
        return cls(empty, empty.astype(bool), none, none, none, none, empty)


def estimate(store: NodeStore, levels: list[Level], key: int) -> Estimate:
    """Return the estimates for a tick's tree; ``key`` fixes the random rounding of points."""
    above, above_variance = np.zeros(1), np.zeros(1)
    parts = [_estimate_root(store, levels[0], key)]
    for up, level in pairwise(levels):
        share = store["share"][level.rows]
        above = share * (above + store["own"][up.rows])[level.parent]
        above_variance = share**2 * (above_variance + store["own_variance"][up.rows])[level.parent]
        parts.append(_estimate_level(store, level, parts[-1], above, above_variance, key))
    return Estimate(*(np.concatenate(columns) for columns in zip(*(vars(p).values() for p in parts), strict=True)))


def _estimate_root(store: NodeStore, level: Level, key: int) -> Estimate:
    unbiased, variance, own_variance = _released(store, level)
    count = np.maximum(unbiased, 0)
    points = np.floor(count + hash_uniform(key, np.zeros(1, np.int64))).astype(np.int64)
    return Estimate(store["node"][level.rows], level.leaf, count, unbiased, variance, own_variance, points)


def _estimate_level(
    store: NodeStore, level: Level, up: Estimate, above: Floats, above_variance: Floats, key: int
) -> Estimate:
    released, variance, own_variance = _released(store, level)
    unbiased, share = above + released, store["share"][level.rows]
    parents, family = level.families()
    mass = up.count[parents]
    count = project(mass, unbiased, family, share)
    fraction = np.where(mass[family] > 0, count / np.where(mass > 0, mass, 1)[family], share)
    points = divide_among_children(up.points[parents], family, fraction, up.node[parents], key)
    return Estimate(
        store["node"][level.rows],
        level.leaf,
        count,
        unbiased,
        above_variance + variance,
        own_variance,
        points,
    )


def _released(store: NodeStore, level: Level) -> tuple[Floats, Floats, Floats]:
    """Return what was released at and below each node, its variance, and the part of that which is the node's own."""
    rows = level.rows
    own, below = store["own_variance"][rows], store["below_variance"][rows]
    return store["own"][rows] + store["below"][rows], own + below, own + np.where(level.leaf, below, 0)
