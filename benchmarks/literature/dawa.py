"""DAWA: Li, Hay, Miklau, Wang, *A data- and workload-aware algorithm for range queries* (VLDB 2014), in the plane.

A grid's cells are put into a row along the Hilbert curve. A quarter of ε divides the row into intervals of nearly equal
counts (`l1_partition`, with lengths that are powers of two: the authors' efficient version). The rest counts a binary
tree over the intervals, whose levels share it as fits the queries; then least squares, and each interval's count is
spread evenly over its cells.

The second stage is like the authors' GreedyH but not the same. Theirs weighs nodes greedily, from the leaves up, for
the queries that are asked. Here a level's ε is r times that of the level above, and r is the one of `_RATIOS` for which
the expected error of the least squares answers, computed exactly, is the least: among them the leaves alone. In their
favour: r is chosen for rectangles such as the benchmark asks (drawn by another seed), and the grid's side is the power
of two that was best on seeds 1 and 2.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from benchmarks.literature.densities import Grid, grid_counts
from benchmarks.literature.l1_partition import private_ends
from benchmarks.literature.least_squares import consistent_leaves
from phdstream.arrays import Floats, Ints
from phdstream.evaluation.queries import QUERY_AREAS, random_rectangles

__all__ = ["dawa", "hilbert", "level_scales"]

_PARTITION_SHARE = 0.25
_LEAST, _MOST = 4, 10
"""Of the halvings of a side."""
_RATIOS = (1.0, 1.3, 1.7, 2.5, 4.0, np.inf)
_OF_EACH_SIZE, _SEED = 8, 9
"""The queries that levels are weighed for."""


def dawa(points: Floats, epsilon: float, rng: np.random.Generator) -> Grid:
    """Divide the row of cells, count its intervals, spread the counts."""
    bits = halvings(len(points), epsilon)
    row, column = hilbert(bits)
    counts = grid_counts(points, 1 << bits)[row, column].astype(np.int64)
    first = _PARTITION_SHARE * epsilon
    ends = private_ends(counts, first, epsilon - first, rng)
    lengths = np.diff(ends, prepend=0)
    exact = np.add.reduceat(counts, ends - lengths).astype(np.float64)
    found = _counted(exact, _asked(bits, ends), epsilon - first, rng)
    grid = np.zeros((1 << bits, 1 << bits))
    grid[row, column] = np.repeat(found / lengths, lengths)
    return Grid(grid)


def halvings(number: int, epsilon: float) -> int:
    """Return how often a side is halved."""
    return int(np.clip(round(np.log2(max(1.0, 4 * number * epsilon)) / 2), _LEAST, _MOST))


@cache
def hilbert(bits: int) -> tuple[Ints, Ints]:
    """Return the rows and columns of a grid's cells in the order of the Hilbert curve, each beside the one before.

    >>> list(zip(*(each.tolist() for each in hilbert(1))))
    [(0, 0), (0, 1), (1, 1), (1, 0)]
    """
    row, column = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for bit in range(bits):
        side, last = 1 << bit, (2 << bit) - 1
        row, column = (
            np.concatenate([column, row, row + side, last - column]),
            np.concatenate([row, column + side, column + side, side - 1 - row]),
        )
    return row, column


def _asked(bits: int, ends: Ints) -> Floats:
    """Return what share of each interval each query has, (intervals, queries)."""
    lengths = np.diff(ends, prepend=0)
    return np.add.reduceat(_workload(bits), ends - lengths, axis=0) / lengths[:, None]


@cache
def _workload(bits: int) -> Floats:
    """Return what share of each cell, along the curve, each of some random rectangles covers."""
    square = np.array([[0.0, 1.0], [0.0, 1.0]])
    asked = np.concatenate([random_rectangles(square, _OF_EACH_SIZE, size, _SEED) for size in QUERY_AREAS])
    edges = np.linspace(0, 1, (1 << bits) + 1)
    x, y = (
        np.clip((np.minimum(high, edges[1:, None]) - np.maximum(low, edges[:-1, None])) * (1 << bits), 0, 1)
        for low, high in ((asked[:, 0], asked[:, 2]), (asked[:, 1], asked[:, 3]))
    )
    row, column = hilbert(bits)
    return x[row] * y[column]


def _counted(exact: Floats, asked: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Return the intervals' counts, by a binary tree whose levels have the budgets that suit the queries best.

    The tree is filled up to a power of two with intervals that hold nothing and nobody asks for.
    """
    size = 1 << (exact.size - 1).bit_length()
    counts, queries = (np.concatenate([each, np.zeros((size - len(each), *each.shape[1:]))]) for each in (exact, asked))
    scales = min(
        (level_scales(epsilon, size.bit_length(), ratio) for ratio in _RATIOS), key=lambda each: _error(each, queries)
    )
    levels = [counts.reshape(1 << level, -1).sum(axis=1) for level in range(scales.size)]
    noisy = [
        sums + rng.laplace(0, scale, sums.size) if np.isfinite(scale) else sums
        for sums, scale in zip(levels, scales, strict=True)
    ]
    return consistent_leaves(noisy, (2 * scales**2).tolist(), fanout=2)[: exact.size]


def level_scales(epsilon: float, levels: int, ratio: float) -> Floats:
    """Return the scale of each level's noise, from the root down; infinite where nothing is counted.

    >>> level_scales(1.0, 2, 3.0).tolist(), level_scales(1.0, 2, np.inf).tolist()
    ([4.0, 1.3333333333333333], [inf, 1.0])
    """
    if np.isinf(ratio):
        return np.append(np.full(levels - 1, np.inf), 1 / epsilon)
    shares = ratio ** (np.arange(levels) - levels + 1.0)
    return shares.sum() / (epsilon * shares)


def _error(scales: Floats, queries: Floats) -> float:
    """Return how large the standard deviations of the queries' answers are, relative to those by leaves alone.

    The covariance of the leaves times q is what least squares makes of q times the variance at the leaves, and of
    nothing above.
    """
    variances = 2 * scales**2
    above = [np.zeros((1 << level, queries.shape[1])) for level in range(scales.size - 1)]
    times = consistent_leaves([*above, variances[-1] * queries], variances.tolist(), fanout=2)
    lone = (queries**2).sum(axis=0)
    asked = lone > 0
    return float(np.mean(np.sqrt(np.maximum((queries * times).sum(axis=0)[asked], 0) / lone[asked])))
