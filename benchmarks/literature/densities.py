"""What a one-shot method publishes: counts of cells of the unit square. All are asked in the same way.

A rectangle's count is the sum over cells of the cell's count times the share of its area that the rectangle covers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.evaluation.counting import count_points

__all__ = ["Cells", "Density", "Grid", "Points", "grid_counts", "project"]

_AT_ONCE, _STRIPS = 16, 12
"""Queries that are answered together: of about the same area, neighbours in one of so many strips of the square."""


class Density(Protocol):
    """Counts of cells that cover the unit square."""

    def count(self, rectangles: Floats) -> Floats:
        """Return the count of each rectangle: minima, then maxima."""
        ...

    def nonnegative(self) -> Density:
        """Return the same cells with the nearest counts that are not negative and have the same sum."""
        ...


def project(counts: Floats) -> Floats:
    """Return the nearest counts (least squares) that are not negative and have the same sum; zeros, if that is not.

    >>> project(np.array([5.0, 1.0, -2.0])).tolist()
    [4.0, 0.0, 0.0]
    """
    total = float(counts.sum())
    if total <= 0:
        return np.zeros_like(counts)
    largest = np.sort(counts, axis=None)[::-1]
    excess = (np.cumsum(largest) - total) / np.arange(1, largest.size + 1)
    kept = int(np.flatnonzero(largest > excess)[-1])
    return np.maximum(counts - excess[kept], 0)


def grid_counts(points: Floats, side: int) -> Floats:
    """Return how many points lie in each cell of a grid, (side, side), the first index along the first coordinate."""
    i, j = np.minimum((points * side).astype(np.int64), side - 1).T
    return np.bincount(i * side + j, minlength=side * side).reshape(side, side).astype(np.float64)


@dataclass(frozen=True)
class Grid:
    """Counts of the equal cells of a grid."""

    counts: Floats

    def count(self, rectangles: Floats) -> Floats:
        """Return the count of each rectangle, from the sums below and left of its corners."""
        table = np.zeros((self.counts.shape[0] + 1, self.counts.shape[1] + 1))
        table[1:, 1:] = self.counts.cumsum(axis=0).cumsum(axis=1)
        west, south, east, north = rectangles.T
        signed = ((east, north, 1), (west, north, -1), (east, south, -1), (west, south, 1))
        return np.sum([sign * _below(table, x, y) for x, y, sign in signed], axis=0)

    def nonnegative(self) -> Grid:
        return replace(self, counts=project(self.counts))


def _below(table: Floats, x: Floats, y: Floats) -> Floats:
    """Return the sum below and left of points, linear within cells."""
    (i, u), (j, v) = (_position(size - 1, at) for size, at in zip(table.shape, (x, y), strict=True))
    low = table[i, j] * (1 - u) + table[i + 1, j] * u
    high = table[i, j + 1] * (1 - u) + table[i + 1, j + 1] * u
    return low * (1 - v) + high * v


def _position(side: int, at: Floats) -> tuple[Ints, Floats]:
    scaled = np.clip(at, 0, 1) * side
    i = np.minimum(scaled.astype(np.int64), side - 1)
    return i, scaled - i


@dataclass(frozen=True)
class Cells:
    """Counts of rectangular cells of any sizes, (n, 4): minima, then maxima."""

    bounds: Floats
    counts: Floats

    def count(self, rectangles: Floats) -> Floats:
        """Return the count of each rectangle: of cells near it, those inside whole, and the shares of those it cuts."""
        low, high, found = self.bounds[:, :2].T.copy(), self.bounds[:, 2:].T.copy(), np.zeros(len(rectangles))
        density = self.counts / np.prod(high - low, axis=0)
        for rows in _neighbours(rectangles):
            west, south, east, north = rectangles[rows].T
            near = np.flatnonzero(_meet(low, high, west.min(), south.min(), east.max(), north.max()))
            lower, upper, counts, heights = low[:, near], high[:, near], self.counts[near], density[near]
            for row in rows:
                west, south, east, north = rectangles[row]
                inside = (lower[0] >= west) & (lower[1] >= south) & (upper[0] <= east) & (upper[1] <= north)
                cut = np.flatnonzero(~inside & _meet(lower, upper, west, south, east, north))
                width = np.minimum(east, upper[0, cut]) - np.maximum(west, lower[0, cut])
                height = np.minimum(north, upper[1, cut]) - np.maximum(south, lower[1, cut])
                found[row] = counts @ inside + heights[cut] @ (width * height)
        return found

    def nonnegative(self) -> Cells:
        return replace(self, counts=project(self.counts))


def _meet(low: Floats, high: Floats, west: float, south: float, east: float, north: float) -> Bools:
    """Return which cells a rectangle meets."""
    met: Bools = (low[0] < east) & (low[1] < north) & (high[0] > west) & (high[1] > south)
    return met


def _neighbours(rectangles: Floats) -> Iterator[Ints]:
    """Yield the rows of rectangles that are to be answered together, so that few cells are near any of them."""
    low, high = rectangles[:, :2], rectangles[:, 2:]
    area, (x, y) = np.prod(high - low, axis=1), (low + high).T / 2
    order = np.lexsort((y, (x * _STRIPS).astype(int), np.log10(np.maximum(area, 1e-12)).astype(int)))
    for start in range(0, order.size, _AT_ONCE):
        yield order[start : start + _AT_ONCE]


@dataclass(frozen=True)
class Points:
    """Synthetic points, counted whole."""

    points: Floats

    def count(self, rectangles: Floats) -> Floats:
        """Return how many points lie in each rectangle."""
        return count_points(self.points, rectangles).astype(np.float64)

    def nonnegative(self) -> Points:
        return self
