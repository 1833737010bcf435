"""Odd questions to a release: refused, or every answer is a sound number."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import geopandas
import numpy as np
import shapely

import phdstream as phd
from fuzz.values import mutated, odd

__all__ = ["prepare", "run"]

_NUMBERS = [
    0.0,
    1.0,
    0.5,
    0.25,
    -1.0,
    2.0,
    1e-300,
    1e308,
    -1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    180.0,
    -180.0,
]
_NUMBERS += [90.0, -90.0, 360.0, 1e17, 5e-324, 0.1, 0.9]
_SYSTEMS = [None, None, "EPSG:4326", "EPSG:3857", "EPSG:2263", "EPSG:32618"]


@cache
def _releases() -> list[phd.Release]:
    square, corner = [(0, 1), (0, 1)], shapely.Polygon([(0, 0), (1, 0), (0, 1)])
    street = shapely.LineString([(0, 0), (0.5, 0.5), (1, 0.2)])
    domains = [
        phd.Box(square, depth=8), phd.Box(square, depth=8, crs="EPSG:4326"), phd.Box([*square, (0, 1)], depth=9),
        phd.Cube(2), phd.Globe(depth=12), phd.Region(corner, depth=6), phd.Region(corner, depth=6, crs="EPSG:4326"),
        phd.Network([street], snap=0.1, depth=6), phd.Hierarchy([["a", "b"], ["a", "c"], ["d", "e"]]),
        phd.Product(
            phd.Box(square, depth=8), phd.Category("kind", {"x": ["a", "b"], "y": ["c"]}), phd.TimeOfDay("hour", 4),
            phd.DayOfWeek("day"),
        ),
    ]  # fmt: skip
    releases: list[phd.Release] = []
    for domain in domains:
        for method in (phd.PHDStream, phd.TrackingStream):
            stream = method(domain, 1.0, phd.Event(), noise=phd.Simulation(1), start_after=2)
            some: Any = np.full((100, len(domain.names)), 0.3)
            some = [(0.3, 0.3, "a", 7.5, "Tue")] * 100 if isinstance(domain, phd.Product) else some
            held = stream.update(["a/b"] * 50 if isinstance(domain, phd.Hierarchy) else some)
            releases += [stream.update(None), *([held] if len(releases) < 2 else [])]
    return releases


def prepare(folder: Path) -> None:
    """Make the releases that are asked."""
    _releases()


def run(rng: Random, folder: Path) -> None:
    """Ask one release one thing."""
    release = rng.choice(_releases())
    confidence: Any = rng.choice([0.95, 0.95, 0.5, 1e-300, 1 - 2**-53, np.float32(0.9), odd(rng)])
    way, where = rng.random(), _where(rng) if isinstance(release.domain, phd.Product) else None
    if where is not None and way < 0.2:
        by = rng.choice(["kind", ["kind", "day"], ["hour", "kind"], [], odd(rng)])
        release.table(by, rng.choice([None, None, odd(rng)]), confidence, where=where)
    elif way < 0.4:
        _check(release.count(_rectangles(rng, release), confidence, where=where))
    elif way < 0.85:
        _check(release.count_in(_layer(rng), confidence, where=where))
    elif way < 0.92:
        release.to_h3(rng.choice([0, 1, 3, 15, 16, -1, odd(rng)]), confidence, where=where)
    else:
        rng.choice([release.sample, release.cells])(to=rng.choice(["geopandas", "polars", odd(rng)]))
        release.changes().to_table()


def _where(rng: Random) -> Any:
    """Make up a condition on attributes: sound, or odd."""
    values: dict[str, list[Any]] = {
        "kind": ["a", "x", "x/a", ["a", "c"], [], "zz", ""], "hour": [(1, 5), (22, 3), [(0, 1), (5, 6)], (7, 7), 3],
        "day": ["Tue", ["mon", "Sunday"], "x"], "fare": [3],
    }  # fmt: skip
    chosen = {name: rng.choice([*values[name], odd(rng)]) for name in rng.sample(list(values)[:3], rng.randrange(3))}
    return rng.choice([None, chosen, chosen, mutated(rng, chosen), {"fare": 3}, odd(rng)])


def _check(counts: phd.Counts) -> None:
    """Check that every answer is one."""
    assert np.isfinite(counts.value).all(), "an answer is no number"
    assert (counts.value >= 0).all(), "an answer is below 0"
    assert (counts.low <= counts.value).all(), "an interval begins above its answer"
    assert (counts.value <= counts.high).all(), "an interval ends below its answer"


def _rectangles(rng: Random, release: phd.Release) -> Any:
    if isinstance(release.domain, phd.Hierarchy):
        places = [rng.choice(["a", "a/b", "d", "", "zz", "e"]) for _ in range(rng.randrange(3))]
        return rng.choice([places, mutated(rng, places), odd(rng), np.array(places)])
    size = release.domain.location.dimension
    rows = [[rng.choice(_NUMBERS) for _ in range(2 * size)] for _ in range(rng.randrange(4))]
    if rng.random() < 0.6:
        rows = [[*np.minimum(row[:size], row[size:]), *np.maximum(row[:size], row[size:])] for row in rows]
    return rng.choice([rows, rows, np.array(rows), mutated(rng, rows), odd(rng)])


def _layer(rng: Random) -> Any:
    shapes = [_shape(rng) for _ in range(rng.randrange(4))]
    way = rng.random()
    if way < 0.3:
        return shapes
    if way < 0.7:
        return geopandas.GeoSeries(shapes, crs=rng.choice(_SYSTEMS))
    if way < 0.8:
        return geopandas.GeoDataFrame(geometry=geopandas.GeoSeries(shapes), crs=rng.choice(_SYSTEMS))
    return rng.choice([mutated(rng, shapes), odd(rng), _shape(rng), np.array(shapes, dtype=object)])


def _shape(rng: Random) -> Any:
    """Return a polygon, more often than not an odd one."""
    try:
        return _polygon(rng)
    except shapely.errors.GEOSException:  # which Shapely itself refuses to make
        return None


def _polygon(rng: Random) -> Any:
    scale = rng.choice([1.0, 1.0, 1.0, 100.0, 1e-9, 1e20, 1e300])
    corners = [
        (scale * rng.uniform(-0.2, 1.2), scale * rng.uniform(-0.2, 1.2)) for _ in range(rng.choice([3, 4, 6, 12]))
    ]
    if rng.random() < 0.15:
        corners[0] = (rng.choice(_NUMBERS), rng.choice(_NUMBERS))
    polygon = shapely.Polygon(corners)
    others = [shapely.box(0, 0, 1, 1), shapely.Polygon(), None, shapely.box(0, 0, 0, 0), shapely.MultiPolygon()]
    others += [shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]), shapely.Point(0, 0), shapely.box(-180, -90, 180, 90)]
    with np.errstate(all="ignore"):
        several = shapely.MultiPolygon([polygon, shapely.box(0.2, 0.2, 0.8, 0.8)])
        holed = shapely.Polygon([(0, 0), (1, 0), (1, 1), (0, 1)], [corners])
    return rng.choice([polygon, polygon, polygon, several, holed, rng.choice(others)])
