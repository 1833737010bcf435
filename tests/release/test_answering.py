"""Queries answered by descent are those answered by comparing everything with everything."""

from __future__ import annotations

import geopandas
import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.domains import ROOT
from phdstream.release.answering import answer_by_descent, answer_from_all

ISLAND = shapely.Polygon([(0, 0), (4, 0), (4, 1), (1, 1), (1, 4), (0, 4)])
DOMAINS = {
    "box": phd.Box([(0, 4), (0, 4)], depth=12),
    "quarters": phd.Box([(0, 4), (0, 4)], fanout=4, depth=6),
    "space": phd.Box([(0, 4)] * 3, depth=9),
    "island": phd.Region(ISLAND, depth=12),
    "island in degrees": phd.Region(ISLAND, crs="EPSG:4326", depth=12),
    "places": phd.Hierarchy({"a": {"b": ["x", "y"], "c": ["z"]}, "d": [], "e": ["v", "w"]}),
}


def releases(domain: phd.Domain) -> list[phd.Release]:
    stream = phd.PHDStream(domain, 2.0, phd.Event(), noise=phd.Simulation(1), counter="block")
    events = [domain.sample(np.array([ROOT]), np.array([800]), key) for key in range(5)]
    found = [stream.update(points, deletes=points[:100]) for points in events]
    return [found[0], found[-1]]


def queries(domain: phd.Domain) -> np.ndarray:
    if isinstance(domain, phd.Hierarchy):
        return domain.queries(["a", "a/b", "x", "d", "e", "e/w"])
    corners = np.random.default_rng(1).uniform(-0.5, 4.5, (2, 80, domain.dimension))
    some = np.hstack([corners.min(axis=0), corners.max(axis=0)])
    return np.concatenate([some, domain.bounds(np.array([ROOT])), np.repeat([[1.0, 1.0]], domain.dimension, 1)])


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.slow
def test_rectangles(domain: phd.Domain) -> None:
    for release in releases(domain):
        asked = queries(domain)
        assert domain.covered is not None
        fast = answer_by_descent(domain, release.estimate, asked, domain.covered)
        slow = answer_from_all(domain, release.estimate, asked, domain.overlap)
        np.testing.assert_allclose(fast, slow, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["box", "quarters", "island", "island in degrees"])
def test_polygons(kind: str) -> None:
    domain = DOMAINS[kind]
    wards = geopandas.GeoSeries([shapely.Point(x, y).buffer(0.7) for x in (0, 1, 2) for y in (0, 1, 3)]).to_numpy()
    for release in releases(domain):
        covered = domain.covered_by(wards)
        assert covered is not None
        fast = answer_by_descent(domain, release.estimate, np.arange(len(wards)), covered)
        slow = answer_from_all(domain, release.estimate, wards, domain.overlap_shapes)
        np.testing.assert_allclose(fast, slow, rtol=1e-6, atol=1e-6)
