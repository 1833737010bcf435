"""The nearest segment: as found by comparing with all of them."""

from __future__ import annotations

import numpy as np
import pytest

from phdstream.arrays import Floats
from phdstream.domains.network.nearest import NearestSegment
from phdstream.domains.network.segments import Segments


def town(seed: int) -> Segments:
    """Crooked streets of many lengths, some of which meet, some of which lie alone."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(0, 1000, (300, 2))
    step = rng.normal(0, 1, (300, 2)) * rng.choice([0.5, 20, 80, 600], (300, 1))
    meeting = np.hstack([start[:100] + step[:100], start[:100] + step[:100] + rng.normal(0, 30, (100, 2))])
    return Segments(np.concatenate([np.hstack([start, start + step]), meeting]))


def by_comparing_all(segments: Segments, points: Floats, reach: float) -> tuple[Floats, Floats]:
    squared = np.array(
        [segments.offsets(points[:, 0], points[:, 1], np.full(len(points), row))[0] for row in range(400)]
    )
    distance = np.sqrt(squared.min(axis=0))
    return np.where(distance <= reach, squared.argmin(axis=0), -1), distance


@pytest.mark.parametrize("reach", [3.0, 40.0, 500.0])
def test_the_nearest_is_that_of_all(reach: float) -> None:
    segments = town(1)
    nearest = NearestSegment(segments, reach)
    points = np.random.default_rng(2).uniform(-200, 1200, (3000, 2))
    expected, distance = by_comparing_all(segments, points, reach)
    for _ in range(2):  # when parts of squares are new, and when they are known
        found, at = nearest(points)
        there = found >= 0
        np.testing.assert_array_equal(there, expected >= 0)
        reached = segments.start[found[there]] + at[there, None] * segments.step[found[there]]
        np.testing.assert_allclose(np.hypot(*(points[there] - reached).T), distance[there], atol=1e-9)
    assert there.any()


def test_a_point_goes_where_it_goes_whoever_else_comes() -> None:
    points = np.random.default_rng(5).uniform(0, 1000, (500, 2))
    together = NearestSegment(town(6), 40.0)(points)
    alone = [NearestSegment(town(6), 40.0)(point[None]) for point in points[::50]]
    assert together[0][::50].tolist() == [int(segment[0]) for segment, _ in alone]
    assert together[1][::50].tolist() == [float(at[0]) for _, at in alone]
