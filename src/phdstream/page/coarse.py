"""A release at coarser cells: small enough for a page with a hundred of them, and still asked in the same way. Public.

A tree may have more cells than points. Here a node with few points is divided no further: it becomes a cell, with the
count, noise and recent points that the release states for it. What is lost is where inside it points lie, and the
intervals of counts say so: a cell that is cut is more uneven the more points it has (`phdstream.release.unevenness`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.release import Release
from phdstream.release.estimate import Estimate

__all__ = ["coarsened", "parents"]

_FEWEST = 20.0
"""Points of a node that is still divided."""
_CELLS = 1500
"""About how many cells a page is to show; the more points, the more of them in a cell."""


def coarsened(release: Release, cells: int = _CELLS) -> Release:
    """Return a release whose nodes with few points are cells; its total and the counts of its nodes are the same."""
    e = release.estimate
    if not e.node.size:
        return release
    parent = parents(release)
    least = max(_FEWEST, float(e.count[0]) / cells)
    opened = ~e.leaf & (e.count >= least)
    kept = np.zeros(e.node.size, dtype=bool)
    kept[0] = True
    for begin, end in _levels(release):
        kept[begin:end] = kept[parent[begin:end]] & opened[parent[begin:end]]
    return replace(release, estimate=_cut(e, parent, kept, kept & ~opened, _levels(release)))


def _cut(e: Estimate, parent: Ints, kept: Bools, leaf: Bools, levels: list[tuple[int, int]]) -> Estimate:
    below = {name: _with_all_below(getattr(e, name), parent, levels) for name in ("own", "own_variance")}
    columns = {name: getattr(e, name)[kept] for name in vars(e)} | {"leaf": leaf[kept]}
    for name, sums in below.items():
        columns[name] = np.where(leaf, sums, getattr(e, name))[kept]
    return Estimate(**columns)


def parents(release: Release) -> Ints:
    """Return where each node's parent stands in the estimate; the root's is the root."""
    node, domain = release.estimate.node, release.domain
    above = np.array([0, *domain.level_bits])[domain.levels(node)]
    at: Ints = np.searchsorted(node, np.maximum(node >> above, 1)).astype(np.int64)
    return at


def _levels(release: Release) -> list[tuple[int, int]]:
    """Return where each level below the root begins and ends."""
    begins = np.searchsorted(release.estimate.node, release.domain.first_nodes[1:]).tolist()
    return list(zip(begins, [*begins[1:], release.estimate.node.size], strict=True))


def _with_all_below(column: Floats, parent: Ints, levels: list[tuple[int, int]]) -> Floats:
    total = column.astype(float)
    for begin, end in reversed(levels):
        np.add.at(total, parent[begin:end], total[begin:end])
    return total
