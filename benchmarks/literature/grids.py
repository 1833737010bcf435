"""Uniform and adaptive grids: Qardaji, Yang, Li, *Differentially private grids for geospatial data* (ICDE 2013).

Both choose the size of cells so that noise and the unevenness inside cells cost about the same. In their favour the
true number of points is known to them, where the authors would take a noisy one.
"""

from __future__ import annotations

import numpy as np

from benchmarks.literature.densities import Cells, Grid, grid_counts
from phdstream.arrays import Floats, Ints

__all__ = ["adaptive_grid", "uniform_grid", "uniform_side"]

_C, _C2, _FIRST_SHARE, _LEAST_SIDE = 10.0, 5.0, 0.5, 10
"""The authors' c and c2, α, and the least side of the adaptive grid's first level."""


def uniform_side(number: int, epsilon: float) -> int:
    """Return how many cells a side a uniform grid has: the square root of nε/10."""
    return max(1, round(np.sqrt(number * epsilon / _C)))


def uniform_grid(points: Floats, epsilon: float, rng: np.random.Generator) -> Grid:
    """UG: one grid, each cell counted with Laplace noise of scale 1/ε."""
    counts = grid_counts(points, uniform_side(len(points), epsilon))
    return Grid(counts + rng.laplace(0, 1 / epsilon, counts.shape))


def adaptive_grid(points: Floats, epsilon: float, rng: np.random.Generator) -> Cells:
    """AG: a coarse grid of max(10, sqrt(nε/10)/4) cells a side, each divided by its own noisy count.

    Half of ε counts the first level. A cell with noisy count N' is divided into sqrt(N'(1 - α)ε/5) parts a side, which
    the other half counts; then both levels are made to agree by least squares, as the authors do.
    """
    side = max(_LEAST_SIDE, int(np.ceil(np.sqrt(len(points) * epsilon / _C) / 4)))
    first, second = _FIRST_SHARE * epsilon, (1 - _FIRST_SHARE) * epsilon
    coarse = grid_counts(points, side).ravel()
    coarse += rng.laplace(0, 1 / first, coarse.size)
    parts = np.maximum(1, np.ceil(np.sqrt(np.maximum(coarse, 0) * second / _C2))).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(parts**2)])
    fine = np.bincount(_fine_cell(points, side, parts, start), minlength=start[-1]).astype(np.float64)
    fine += rng.laplace(0, 1 / second, fine.size)
    sums, of_first, of_sums = np.add.reduceat(fine, start[:-1]), 1 / first**2, parts**2 / second**2
    agreed = (of_sums * coarse + of_first * sums) / (of_first + of_sums)
    fine += np.repeat((agreed - sums) / parts**2, parts**2)
    return Cells(_bounds(side, parts, start), fine)


def _fine_cell(points: Floats, side: int, parts: Ints, start: Ints) -> Ints:
    """Return which fine cell each point is in."""
    i = np.minimum((points * side).astype(np.int64), side - 1)
    cell = i[:, 0] * side + i[:, 1]
    inner = np.clip(((points * side - i) * parts[cell, None]).astype(np.int64), 0, parts[cell, None] - 1)
    return start[cell] + inner[:, 0] * parts[cell] + inner[:, 1]


def _bounds(side: int, parts: Ints, start: Ints) -> Floats:
    cell = np.repeat(np.arange(side * side), parts**2)
    within = np.arange(start[-1]) - start[cell]
    corner = np.column_stack([cell // side, cell % side])
    inner = np.column_stack([within // parts[cell], within % parts[cell]])
    return np.hstack([(corner + (inner + upper) / parts[cell, None]) / side for upper in (0, 1)])
