"""Queries and the metrics on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phdstream as phd
from phdstream.errors import InputError
from phdstream.evaluation import (
    QUERY_AREAS,
    PointCounter,
    count_cells,
    count_points,
    random_rectangles,
    relative_error,
    weighted_error,
)

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


@given(seed=st.integers(0, 10_000), n=st.integers(0, 200), rounded=st.booleans())
def test_the_fast_counter_is_exact(seed: int, n: int, rounded: bool) -> None:
    """Also with points on the bounds of rectangles, points on one another, and rectangles without area."""
    rng = np.random.default_rng(seed)
    points, corners = rng.random((n, 2)), rng.random((2, 60, 2)) * 1.2 - 0.1
    if rounded:
        points, corners = points.round(1), corners.round(1)
    rectangles = np.hstack([corners.min(axis=0), corners.max(axis=0)])
    expected = [((points >= r[:2]) & (points <= r[2:])).all(axis=1).sum() for r in rectangles]
    assert PointCounter(points).count(rectangles).tolist() == expected


@pytest.mark.parametrize("fanout", [2, 4])
def test_cells_are_counted_as_the_release_does(fanout: int) -> None:
    domain = phd.Box(BOUNDS.tolist(), fanout=fanout, depth=8 // (fanout // 2))
    stream = phd.PHDStream(domain, 1.0, phd.Event(), noise=phd.Simulation(1))
    release = stream.update(BOUNDS[:, 0] + np.random.default_rng(1).beta(1, 3, (2000, 2)) * np.ptp(BOUNDS, axis=1))
    rectangles = np.concatenate([random_rectangles(BOUNDS, 200, size, seed=3) for size in QUERY_AREAS])
    beyond = np.array([[-100.0, -100.0, 100.0, 100.0], [-5.0, 5.5, -5.0, 5.5], [200.0, 0.0, 300.0, 10.0]])
    for queries in (rectangles, beyond):
        np.testing.assert_allclose(count_cells(release, queries), release.count(queries).value, atol=1e-6)


def test_other_domains_fall_back_to_the_release() -> None:
    domain = phd.Box([(0, 1)] * 3, depth=6)
    release = phd.PHDStream(domain, 1.0, phd.Event(), noise=phd.Simulation(1)).update(
        np.random.default_rng(1).random((500, 3))
    )
    rectangles = random_rectangles(np.array([[0, 1]] * 3), 20, "large", seed=1)
    np.testing.assert_array_equal(count_cells(release, rectangles), release.count(rectangles).value)
    points = release.sample()
    expected = [((points >= r[:3]) & (points <= r[3:])).all(axis=1).sum() for r in rectangles]
    assert count_points(points, rectangles).tolist() == expected


def test_publishing_nothing_scores_exactly_one_by_the_weighted_error() -> None:
    """By the paper's error it can win: on points that lie in few of the rectangles it does."""
    rectangles = random_rectangles(np.array([[0, 1], [0, 1]]), 500, "small", seed=1)
    rng = np.random.default_rng(1)
    live = 0.5 + 0.01 * rng.standard_normal((400, 2))
    noisy = np.concatenate([live[:380], rng.random((20, 2))])  # nearly right: 1 in 20 elsewhere
    true, close, none = (count_points(points, rectangles) for points in (live, noisy, live[:0]))
    assert relative_error(true, none, 400) < relative_error(true, close, 400)
    assert weighted_error(true, none) == 1.0
    assert weighted_error(true, close) < 0.2
    assert weighted_error(none, none) == 1.0  # nor where there is nothing to be seen
    assert weighted_error(none, none + 1) > 1
