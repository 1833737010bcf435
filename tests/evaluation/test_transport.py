"""The sliced Wasserstein distance: against SciPy's exact distance along each direction, and what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from phdstream.evaluation.transport import _directions, sliced_distance

rng = np.random.default_rng(3)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_against_scipy(dimension: int) -> None:
    bounds = np.column_stack([np.full(dimension, -2.0), np.linspace(1, 3, dimension)])
    low, high = bounds.T
    one, other = (
        low + rng.random((500, dimension)) ** 2 * (high - low),
        low + rng.random((70, dimension)) * (high - low),
    )
    exact = [wasserstein_distance(one @ way, other @ way) for way in _directions(dimension)]
    assert sliced_distance(one, other, bounds) == pytest.approx(np.mean(exact) / np.linalg.norm(high - low), abs=1e-3)


def test_only_where_points_are_counts_and_nothing_is_farthest() -> None:
    square, points = np.array([[0.0, 1.0], [0.0, 1.0]]), rng.random((100, 2)) * 0.3
    assert sliced_distance(points, np.repeat(points, 5, axis=0), square) == pytest.approx(0, abs=1e-12)
    assert sliced_distance(points, points[:0], square) == 1
    assert sliced_distance(points[:0], points[:0], square) == 0
    corners = np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])
    assert sliced_distance(*corners, square) < 1


def test_farther_is_farther() -> None:
    square, points = np.array([[0.0, 1.0], [0.0, 1.0]]), rng.random((300, 2)) * 0.5
    moved = [sliced_distance(points, points + shift, square) for shift in (0.0, 0.1, 0.2, 0.4)]
    assert moved == sorted(moved)
    assert moved[3] == pytest.approx(2 * moved[2], rel=0.01)
