"""The noise of estimated shares in range queries.

Where a node's count is divided among its children by estimated shares, noise moves points between siblings: it
adds nothing to a query that holds all of them, or none. With ``q_i`` the part of child i's points that a query holds
and ``v_i`` the variance of child i's count before its siblings' are known, the children's noise given that it adds up
to zero contributes ``Σ v_i (q_i - q̄)²`` with ``q̄ = Σ v_i q_i / Σ v_i``; the noise of the total contributes
``q² · v`` at the root. Only nodes cut by a query's edge contribute. This is computed for several variances at once:
that of the noise, and that of the whole error (see `phdstream.release.unevenness`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints, ragged
from phdstream.domains.domain import CoveredShare
from phdstream.release.estimate import Estimate

__all__ = ["share_noise", "share_noise_of_all"]


def share_noise(
    e: Estimate, first: Ints, past: Ints, queries: NDArray[Any], covered: CoveredShare, variances: list[Floats]
) -> Floats:
    """Return each query's variance from estimated shares, a row for each of the nodes' ``variances``.

    It descends only where the query's edge runs.
    """
    query, at = np.arange(len(queries)), np.zeros(len(queries), dtype=np.int64)
    came_from = query
    steps: list[tuple[Ints, Ints, Ints, Floats, Bools]] = []
    while query.size:
        share = covered(e.node[at], queries[query], e.leaf[at])
        ends = (share >= 1) | (share <= 0) | e.leaf[at]
        steps.append((query, at, came_from, share, ends))
        opened = np.flatnonzero(~ends)
        owner, within = ragged((past - first)[at[opened]])
        came_from = opened[owner]
        query, at = query[came_from], first[at[came_from]] + within
    return _gather(e, steps, len(queries), variances)


def _gather(
    e: Estimate, steps: list[tuple[Ints, Ints, Ints, Floats, Bools]], queries: int, variances: list[Floats]
) -> Floats:
    """Go back up the descent: the covered part of each node's points, and what its family's noise contributes."""
    variance, covered_below = np.zeros((len(variances), queries)), np.zeros(0)
    below: tuple[Ints, Ints, Ints, Floats, Bools] | None = None
    for step in reversed(steps):
        query, at, _, share, ends = step
        points = np.where(ends, share * e.count[at], 0.0)
        if below is not None:
            points += np.bincount(below[2], covered_below, query.size)
            part = _part(covered_below, e.count[below[1]], below[3])
            for row, weight in zip(variance, variances, strict=True):
                np.add.at(row, query, _family_noise(weight[below[1]], part, below[2], query.size))
        covered_below, below = points, step
    query, at, _, share, _ = steps[0]
    part = _part(covered_below, e.count[at], share)
    variance[:, query] += np.outer([weight[0] for weight in variances], part**2)
    return variance


def _family_noise(weight: Floats, part: Floats, came_from: Ints, parents: int) -> Floats:
    total, first, second = (np.bincount(came_from, weight * part**k, parents) for k in (0, 1, 2))
    return np.maximum(second - first**2 / np.where(total > 0, total, 1), 0)


def _part(covered: Floats, count: Floats, share: Floats) -> Floats:
    return np.where(count > 0, covered / np.where(count > 0, count, 1), share)


def share_noise_of_all(e: Estimate, parent: Ints, share: Floats, variances: list[Floats]) -> Floats:
    """Return the same from the overlap of every query (rows) with every node (columns)."""
    covered = np.where(e.leaf, share * e.count, 0.0)
    for i in range(e.node.size - 1, 0, -1):  # children stand after their parents
        covered[:, parent[i]] += covered[:, i]
    part = _part(covered, e.count, share)
    return np.stack([_noise_of_all(weight, parent, part) for weight in variances])


def _noise_of_all(weight: Floats, parent: Ints, part: Floats) -> Floats:
    sums = np.zeros((3, weight.size, len(part)))
    for k in (0, 1, 2):
        np.add.at(sums[k], parent[1:], (weight * part**k)[:, 1:].T)
    family = np.maximum(sums[2] - sums[1] ** 2 / np.where(sums[0] > 0, sums[0], 1), 0)
    noise: Floats = family.sum(axis=0) + part[:, 0] ** 2 * weight[0]
    return noise
