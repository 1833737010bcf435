"""From a selected and counted tree to what is released: one top-down pass over the visited nodes. Public."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from phdstream.arrays import Floats
from phdstream.domains import divide_among_children, hash_uniform
from phdstream.release.estimate import Estimate
from phdstream.streams.paper.model.nodes import NodeStore
from phdstream.streams.paper.model.selection import Level, project

__all__ = ["estimate"]


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
    unbiased, variance, own, own_variance = _released(store, level)
    count = np.maximum(unbiased, 0)
    points = np.floor(count + hash_uniform(key, np.zeros(1, np.int64))).astype(np.int64)
    return Estimate(store["node"][level.rows], level.leaf, count, unbiased, variance, own_variance, points, own=own)


def _estimate_level(
    store: NodeStore, level: Level, up: Estimate, above: Floats, above_variance: Floats, key: int
) -> Estimate:
    released, variance, own, own_variance = _released(store, level)
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
        own=own,
    )


def _released(store: NodeStore, level: Level) -> tuple[Floats, Floats, Floats, Floats]:
    """Return what was released at and below each node, its variance, and the parts of both that are the node's own."""
    rows = level.rows
    (own, below), (own_variance, below_variance) = (
        (store[f"own{name}"][rows], store[f"below{name}"][rows]) for name in ("", "_variance")
    )
    own_parts = (
        of_node + np.where(level.leaf, rest, 0) for of_node, rest in ((own, below), (own_variance, below_variance))
    )
    return own + below, own_variance + below_variance, *own_parts
