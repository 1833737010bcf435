"""Areas of polygons in rectangles, and what is wholly inside: as Shapely cuts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from phdstream.arrays import Floats
from phdstream.domains.outlines import new_york_state
from phdstream.domains.shapes.clipped_areas import ClippedAreas
from phdstream.domains.shapes.cover import ShapeCover


def star(rng: np.random.Generator, corners: int) -> Any:
    angle, radius = np.sort(rng.uniform(0, 2 * np.pi, corners)), rng.uniform(0.5, 4, corners)
    return shapely.Polygon(np.column_stack([5 + radius * np.cos(angle), 5 + radius * np.sin(angle)]))


def polygons() -> Any:
    rng = np.random.default_rng(1)
    holes = shapely.Polygon(
        [(1, 1), (9, 1), (9, 9), (1, 9)], holes=[[(2, 2), (2, 5), (5, 5)], [(6, 6), (8, 6), (7, 8)]]
    )
    parts = shapely.MultiPolygon([shapely.box(1, 1, 3, 3), shapely.box(4, 4, 4.5, 9), shapely.reverse(star(rng, 5))])
    state = shapely.affinity.scale(shapely.MultiPolygon(new_york_state()), 1, 1.5)
    near = shapely.transform(state, lambda points: points - points.mean(axis=0) + 5)
    return np.array([holes, shapely.reverse(holes), parts.buffer(0), *(star(rng, n) for n in (3, 8, 200)), near])


def rectangles(number: int) -> Floats:
    """Rectangles of many sizes; the sides of some are those of polygons."""
    rng = np.random.default_rng(2)
    low = np.where(rng.random((number, 2)) < 0.3, rng.integers(0, 10, (number, 2)), rng.uniform(0, 10, (number, 2)))
    return np.hstack([low, low + rng.choice([1e-4, 0.1, 1, 4], (number, 2))])


def pairs(number: int) -> tuple[Any, Floats, Any]:
    shapes, corners = polygons(), rectangles(number)
    at, of = (axis.ravel() for axis in np.indices((shapes.size, number)))
    return shapes, corners[of], at


def test_areas_are_those_of_intersections() -> None:
    shapes, corners, at = pairs(300)
    expected = shapely.area(shapely.intersection(shapes[at], shapely.box(*corners.T)))
    full = np.prod(corners[:, 2:] - corners[:, :2], axis=1)
    found = ClippedAreas(shapes).inside(corners, at)
    assert 0.1 < np.mean(expected > 0) < 0.9
    np.testing.assert_allclose(found / full, expected / full, atol=1e-9)


def test_pieces_add_up_to_the_whole() -> None:
    shapes = polygons()
    x, y = np.meshgrid(np.arange(0, 10, 0.25), np.arange(0, 10, 0.25))
    tiles = np.column_stack([x.ravel(), y.ravel(), x.ravel() + 0.25, y.ravel() + 0.25])
    whole = shapely.area(shapely.intersection(shapes, shapely.box(0, 0, 10, 10)))
    for row in range(shapes.size):
        inside = ClippedAreas(shapes).inside(tiles, np.full(len(tiles), row))
        assert inside.sum() == pytest.approx(whole[row], rel=1e-12)


@pytest.mark.parametrize("exact", [True, False])
def test_what_is_inside_and_outside_is_known_for_certain(exact: bool) -> None:
    shapes, corners, at = pairs(200)
    share = ShapeCover(shapes).share(corners, at, np.full(at.size, exact))
    boxes = shapely.box(*corners.T)
    assert (share[shapely.covers(shapes[at], boxes)] == 1).all()
    assert (share[~shapely.intersects(shapes[at], boxes)] == 0).all()
    parts = shapely.area(shapely.intersection(shapes[at], boxes)) / shapely.area(boxes)
    if exact:
        np.testing.assert_allclose(share, parts, atol=2e-9)
    else:
        assert (share[(parts > 1e-6) & (parts < 1 - 1e-6)] == 0.5).all()
        np.testing.assert_array_equal(share[share != 0.5], np.rint(parts[share != 0.5]))
