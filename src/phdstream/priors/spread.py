"""Polygons, lines and grids of weights as weighted points: always the same ones. Public.

A polygon's weight is spread evenly over its area, a line's along its length, a grid cell's over the cell. Each gets
points in proportion to its area or length, `POINTS` in all, and at least one, on a fixed lattice; they share its
weight evenly. A prior is not divided below a few points, so the lattice itself is never seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints, ragged

__all__ = ["POINTS", "on_grid", "on_lines", "on_polygons"]

POINTS = 1 << 18
"""How many points shapes get in all."""
_LEAST_A_SIDE = 2


def on_polygons(polygons: NDArray[Any], weights: Floats) -> tuple[Floats, Floats]:
    """Return points inside polygons, and their weights.

    >>> points, weights = on_polygons(np.array([shapely.box(0, 0, 2, 1), shapely.box(5, 5, 5.001, 5.001)]), np.ones(2))
    >>> [round(float(weights[points[:, 0] < 5].sum()), 6), round(float(weights[points[:, 0] > 5].sum()), 6)]
    [1.0, 1.0]
    """
    step = float(np.sqrt(max(shapely.area(polygons).sum(), 1e-300) / POINTS))
    found, owner = [shapely.get_coordinates(shapely.point_on_surface(polygons))], [np.arange(polygons.size)]
    for i, (left, low, right, high) in enumerate(shapely.bounds(polygons)):
        x, y = (_lattice(*ends, step) for ends in ((left, right), (low, high)))
        points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        shapely.prepare(polygons[i])
        inside = points[shapely.contains_xy(polygons[i], points)]
        if len(inside):
            found[0][i] = np.nan  # the lattice tells where it is
            found.append(inside)
            owner.append(np.full(len(inside), i))
    return _shared(np.concatenate(found), np.concatenate(owner), weights)


def on_lines(lines: NDArray[Any], weights: Floats) -> tuple[Floats, Floats]:
    """Return points along lines, and their weights.

    >>> points, weights = on_lines(np.array([shapely.LineString([(0, 0), (4, 0)])]), np.array([8.0]))
    >>> points.mean(axis=0).tolist(), round(float(weights.sum()), 6)
    ([2.0, 0.0], 8.0)
    """
    length = shapely.length(lines)
    number = np.maximum(np.ceil(length / max(length.sum(), 1e-300) * POINTS), 1).astype(np.int64)
    owner, place = ragged(number)
    points = shapely.line_interpolate_point(lines[owner], (place + 0.5) / number[owner], normalized=True)
    return _shared(shapely.get_coordinates(points), owner, weights)


def on_grid(values: Floats, bounds: Floats) -> tuple[Floats, Floats]:
    """Return points in the cells of a grid, its first row in the north, and their weights.

    >>> points, weights = on_grid(np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([0.0, 0.0, 2.0, 2.0]))
    >>> points[weights > weights.mean()].mean(axis=0).round(9).tolist()
    [0.5, 1.5]
    """
    rows, columns = np.nonzero(values > 0)
    side = max(int(np.sqrt(POINTS / max(rows.size, 1))), _LEAST_A_SIDE)
    inner = (np.arange(side) + 0.5) / side
    dx, dy = (each.ravel() for each in np.meshgrid(inner, inner))
    (left, low, right, high), (tall, wide) = bounds, values.shape
    x = left + (columns[:, None] + dx) * (right - left) / wide
    y = high - (rows[:, None] + dy) * (high - low) / tall
    owner = np.repeat(np.arange(rows.size), side * side)
    return _shared(np.column_stack([x.ravel(), y.ravel()]), owner, values[rows, columns])


def _lattice(start: float, end: float, step: float) -> Floats:
    """Return the middles of equal steps, no wider than asked for."""
    number = max(int(np.ceil((end - start) / step)), 1)
    middles: Floats = start + (np.arange(number) + 0.5) * (end - start) / number
    return middles


def _shared(points: Floats, owner: Ints, weights: Floats) -> tuple[Floats, Floats]:
    """Return the points that are there, each with its part of its owner's weight."""
    there = ~np.isnan(points).any(axis=1)
    points, owner = points[there], owner[there]
    return points, (weights / np.maximum(np.bincount(owner, minlength=weights.size), 1))[owner]
