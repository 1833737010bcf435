"""Where points lie: a grid in front of geometry changes no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from phdstream.domains.outlines import land
from phdstream.domains.shapes.point_location import PointLocator

HOLES = shapely.Polygon([(0, 0), (6, 0), (6, 5), (0, 5)], holes=[[(1, 1), (1, 3), (3, 3), (3, 1)]])
SIDE_BY_SIDE = shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1), shapely.box(5, 5, 5.001, 9)])
FAR_AWAY = shapely.transform(HOLES, lambda points: points * 1e-3 + 4.5e6)
SHAPES = {"holes": HOLES, "side by side": SIDE_BY_SIDE, "far away": FAR_AWAY, "land": shapely.MultiPolygon(land())}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def around(shape: Any, number: int, seed: int) -> Any:
    """Points anywhere about a shape, on lines of the grid, at corners of the shape, and a hair beside all these."""
    rng = np.random.default_rng(seed)
    low, high = np.hsplit(shapely.bounds(shape), 2)
    anywhere = rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), (number, 2))
    on_grid = low + rng.integers(0, 2**14 + 1, (number, 2)) * ((high - low) / 2**14)
    corners = rng.choice(shapely.get_coordinates(shape), number)
    points = np.concatenate([anywhere, on_grid, corners])
    beside = [np.nextafter(points, np.inf), np.nextafter(points, -np.inf)]
    return np.concatenate([points, *beside, [[np.nan, 0], [np.inf, np.inf], [-np.inf, 1]]])


@every_shape
def test_every_point_is_where_shapely_says(shape: Any) -> None:
    locator, points = PointLocator(shape), around(shape, 300, 1)
    expected = shapely.intersects_xy(shape, points[:, 0], points[:, 1])
    assert 0 < expected.sum() < len(points)
    for _ in range(2):  # when squares are new, and when they are known
        np.testing.assert_array_equal(locator(points), expected)


def test_a_point_is_where_it_is_whoever_else_comes() -> None:
    points = around(HOLES, 200, 2)
    together = PointLocator(HOLES)(points)
    alone = [bool(PointLocator(HOLES)(point[None])[0]) for point in points[::20]]
    assert together[::20].tolist() == alone


def test_geometry_is_asked_at_the_edge_only(monkeypatch: pytest.MonkeyPatch) -> None:
    locator = PointLocator(HOLES)
    points = np.random.default_rng(3).uniform([0, 0], [6, 5], (2000, 2))
    expected = locator(points)
    wrong = lambda shape, x, y: np.zeros(len(x), dtype=bool)  # noqa: E731
    monkeypatch.setattr(shapely, "intersects_xy", wrong)
    assert np.count_nonzero(locator(points) != expected) < 20
