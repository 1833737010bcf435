"""The quadtree with constrained inference: Cormode, Procopiuc, Srivastava, Shen, Yu (ICDE 2012), their quad-opt."""

from __future__ import annotations

import numpy as np

from benchmarks.literature.densities import Grid, grid_counts
from benchmarks.literature.least_squares import consistent_leaves
from phdstream.arrays import Floats

__all__ = ["level_budgets", "morton", "quad_opt", "unmorton"]

_LEAST, _MOST = 2, 10
"""Of the tree's height; the authors take 10, for more than a million points."""


def level_budgets(epsilon: float, height: int) -> Floats:
    """Return ε of each level, from the root down: each 2^(1/3) times the one above, which least squares them best."""
    shares = 2.0 ** (np.arange(height + 1) / 3)
    return epsilon * shares / shares.sum()


def height_of(number: int, epsilon: float) -> int:
    """Return the tree's height. In their favour: of all rules like this one, it was the best on seeds 1 and 2."""
    return int(np.clip(round(np.log2(max(1.0, number * epsilon / 5)) / 2), _LEAST, _MOST))


def quad_opt(points: Floats, epsilon: float, rng: np.random.Generator) -> Grid:
    """A complete quadtree, counted at all levels with the geometric budget, and made consistent by least squares.

    No subtree is cut off afterwards: making the leaves non-negative does the same to empty ones.
    """
    height = height_of(len(points), epsilon)
    leaves = morton(grid_counts(points, 1 << height))
    scales = 1 / level_budgets(epsilon, height)
    levels = [leaves.reshape(4**level, -1).sum(axis=1) for level in range(height + 1)]
    noisy = [counts + rng.laplace(0, scale, counts.size) for counts, scale in zip(levels, scales, strict=True)]
    return Grid(unmorton(consistent_leaves(noisy, (2 * scales**2).tolist(), fanout=4)))


def morton(grid: Floats) -> Floats:
    """Return a grid's cells in the order of a quadtree's leaves: the four quarters in turn, each in this order."""
    height = grid.shape[0].bit_length() - 1
    axes = [axis for level in range(height) for axis in (level, height + level)]
    return grid.reshape((2,) * (2 * height)).transpose(axes).ravel() if height else grid.ravel()


def unmorton(leaves: Floats) -> Floats:
    """Return the grid of leaves in that order."""
    height = (leaves.size.bit_length() - 1) // 2
    axes = [*range(0, 2 * height, 2), *range(1, 2 * height, 2)]
    return leaves.reshape((2,) * (2 * height)).transpose(axes).reshape(1 << height, -1) if height else leaves[:, None]
