"""Queries and the metric."""

from __future__ import annotations

import numpy as np
import pytest

from phdstream.errors import InputError
from phdstream.evaluation import QUERY_AREAS, count_points, random_rectangles, relative_error

BOUNDS = np.array([[-10.0, 30.0], [5.0, 6.0]])


@pytest.mark.parametrize("size", QUERY_AREAS)
def test_rectangles_have_the_asked_area_and_lie_inside(size: str) -> None:
    rectangles = random_rectangles(BOUNDS, 500, size, seed=1)
    low, high = QUERY_AREAS[size]
    share = np.prod(rectangles[:, 2:] - rectangles[:, :2], axis=1) / np.prod(BOUNDS[:, 1] - BOUNDS[:, 0])
    assert ((share >= low * 0.999) & (share < high * 1.001)).all()
    assert (rectangles[:, :2] >= BOUNDS[:, 0]).all()
    assert (rectangles[:, 2:] <= BOUNDS[:, 1] + 1e-12).all()
    np.testing.assert_array_equal(rectangles, random_rectangles(BOUNDS, 500, size, seed=1))


def test_counting_agrees_with_the_definition() -> None:
    points = np.random.default_rng(1).random((300, 2))
    rectangles = random_rectangles(np.array([[0, 1], [0, 1]]), 50, "large", seed=2)
    expected = [sum((r[:2] <= p).all() and (p <= r[2:]).all() for p in points) for r in rectangles]
    assert count_points(points, rectangles).tolist() == expected
    assert count_points(np.empty((0, 2)), rectangles).tolist() == [0] * 50


def test_the_floor_is_a_thousandth_of_the_data() -> None:
    assert relative_error(np.array([0]), np.array([5]), total=5000) == 1.0
    assert relative_error(np.array([100]), np.array([90]), total=5000) == pytest.approx(0.1)
    assert relative_error(np.array([0]), np.array([0]), total=0) == 0.0


def test_unknown_size() -> None:
    with pytest.raises(InputError, match="small, medium, large"):
        random_rectangles(BOUNDS, 1, "tiny", seed=1)
