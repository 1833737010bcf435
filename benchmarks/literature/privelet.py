"""Privelet: Xiao, Wang, Gehrke, *Differential privacy via wavelet transforms* (ICDE 2010, TKDE 2011), in the plane."""

from __future__ import annotations

import numpy as np

from benchmarks.literature.densities import Grid, grid_counts
from phdstream.arrays import Floats

__all__ = ["from_wavelets", "privelet", "sensitivity", "to_wavelets"]

_LEAST, _MOST = 3, 9
"""Of the halvings of a side."""


def privelet(points: Floats, epsilon: float, rng: np.random.Generator) -> Grid:
    """Laplace noise on the Haar coefficients of a grid's counts, with the authors' weights, and back.

    In their favour: an event is one point more or less, where the authors let one change its place, which costs twice
    as much; and the grid's side is the power of two that was best on seeds 1 and 2.
    """
    coefficients = to_wavelets(grid_counts(points, 1 << halvings(len(points), epsilon)))
    noise = rng.laplace(0, sensitivity(coefficients.shape[0]) / epsilon, coefficients.shape)
    return Grid(from_wavelets(coefficients + noise))


def halvings(number: int, epsilon: float) -> int:
    """Return how often a side is halved."""
    return int(np.clip(round(np.log2(max(1.0, number * epsilon / 16)) / 2), _LEAST, _MOST))


def sensitivity(side: int) -> float:
    """Return the generalised sensitivity: by how much one point changes the weighted coefficients in all.

    Along one coordinate it is in the total, and in one difference of each of log2(side) levels, each by 1.
    """
    return float((1 + np.log2(side)) ** 2)


def to_wavelets(grid: Floats) -> Floats:
    """Return the weighted coefficients: along each coordinate the total, then differences of halves, coarse to fine.

    The authors' coefficient of a node is half the difference of its halves' means, and its weight the number of cells
    below; their product is the difference of the halves' sums.
    """
    return _transformed(_transformed(grid).T).T


def from_wavelets(coefficients: Floats) -> Floats:
    """Return the grid that has these coefficients."""
    return _restored(_restored(coefficients.T).T)


def _transformed(rows: Floats) -> Floats:
    """Return the coefficients along the first axis."""
    parts, sums = [], rows
    while len(sums) > 1:
        parts.append(sums[0::2] - sums[1::2])
        sums = sums[0::2] + sums[1::2]
    return np.concatenate([sums, *parts[::-1]])


def _restored(coefficients: Floats) -> Floats:
    sums = coefficients[:1]
    while len(sums) < len(coefficients):
        differences = coefficients[len(sums) : 2 * len(sums)]
        sums = np.stack([sums + differences, sums - differences], axis=1).reshape(2 * len(sums), -1) / 2
    return sums
