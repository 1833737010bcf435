"""The demonstration's city: invented pickups on an island like Manhattan, published every day. The pickups are private.

Nothing here is real but the land's outline (`phdstream.domains.outlines`): the island is drawn by hand, its streets are
a turned grid, and pickups crowd around a few corners, more in the middle on weekdays and around the park at weekends.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from phdstream.arrays import Floats
from phdstream.domains import Box
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.page import write_report
from phdstream.privacy import Event
from phdstream.release import Counts, Release
from phdstream.streams.tracking import TrackingStream

__all__ = ["AREAS", "DAYS", "CityRun", "publish_city"]

DAYS, WINDOW, A_DAY = 35, 7, 2400
_EPSILON = 1.0
_TICKS = {"ticks": {"start": "2024-04-01T00:00:00+00:00", "every_seconds": 86400.0}}
_ISLAND = [
    (-74.016, 40.701), (-74.018, 40.706), (-74.011, 40.726), (-74.009, 40.748), (-73.992, 40.771), (-73.962, 40.815),
    (-73.941, 40.848), (-73.927, 40.873), (-73.913, 40.877), (-73.910, 40.871), (-73.929, 40.846), (-73.934, 40.832),
    (-73.934, 40.812), (-73.930, 40.801), (-73.942, 40.782), (-73.944, 40.775), (-73.959, 40.757), (-73.971, 40.742),
    (-73.972, 40.729), (-73.978, 40.711), (-73.997, 40.708), (-74.008, 40.702),
]  # fmt: skip
"""By hand: about where Manhattan is."""
_PARK = [(-73.9819, 40.7681), (-73.9730, 40.7644), (-73.9493, 40.7968), (-73.9580, 40.8003)]
_ALONG, _ACROSS = np.array([0.0232, 0.0322]), np.array([0.0089, -0.0037])
"""One way up the island, and one across: the directions of its avenues and streets."""
_CORNERS = [((-73.985, 40.757), 0.30), ((-74.006, 40.713), 0.16), ((-73.990, 40.735), 0.22), ((-73.965, 40.775), 0.14)]
_CORNERS += [((-73.950, 40.808), 0.10), ((-73.935, 40.850), 0.08)]
"""Where pickups crowd, and how many of a weekday's."""
_CUTS = ["Lower end", "Village", "Midtown", "Along the park", "Uptown", "North end"]


def _areas() -> dict[str, Any]:
    """Return the areas to pick: the park, and the rest of the island in parts from south to north."""
    island, park = shapely.Polygon(_ISLAND), shapely.Polygon(_PARK)
    found = {"The park": park}
    for i, name in enumerate(_CUTS):
        low, high = (np.array([-74.022, 40.695]) + step * _ALONG * 0.93 for step in (i, i + 1))
        strip = shapely.Polygon([low - 9 * _ACROSS, low + 9 * _ACROSS, high + 9 * _ACROSS, high - 9 * _ACROSS])
        found[name] = shapely.intersection(island, strip).difference(park)
    return found


AREAS = _areas()
"""The areas of the demonstration's layer, by name."""


@dataclass(frozen=True)
class CityRun:
    """What the demonstration shows of its city. ``live``, the true pickups, and ``true``, their counts, are private."""

    page: Path
    release: Release
    live: Floats
    true: dict[str, int]
    counts: Counts


def pickups(day: int, rng: np.random.Generator) -> Floats:
    """Return a day's pickups: the first day is a Monday."""
    weekend, busy = day % 7 >= 5, 1.0 + 0.25 * np.sin(day / 5)
    weights = np.array([weight for _, weight in _CORNERS]) * ([0.5, 0.4, 0.9, 1.3, 1, 1] if weekend else 1)
    park = (0.28 if weekend else 0.06) + (0.3 if day in (19, 20) else 0)
    number = rng.multinomial(int(A_DAY * busy), np.r_[weights / weights.sum() * (1 - park), park])
    middles = np.array([middle for middle, _ in _CORNERS])
    crowd = np.repeat(middles, number[:-1], axis=0)
    crowd = crowd + rng.normal(0, 0.17, (len(crowd), 1)) * _ALONG + rng.normal(0, 0.55, (len(crowd), 1)) * _ACROSS
    grid = np.linalg.solve(np.stack([_ALONG, _ACROSS], axis=1), crowd.T)
    grid[1] = np.where(
        rng.random(len(crowd)) < 0.7, np.round(grid[1] * 4) / 4 + rng.normal(0, 0.012, len(crowd)), grid[1]
    )
    a, b = rng.random((2, number[-1], 1))
    corner, up, across = (np.array(_PARK[i]) for i in (1, 2, 0))
    lawn = corner + a * (up - corner) + b * (across - corner)
    points: Floats = np.concatenate([np.stack([_ALONG, _ACROSS], axis=1).dot(grid).T, lawn])
    island = shapely.Polygon(_ISLAND)
    there: Floats = points[shapely.contains_xy(island, points[:, 0], points[:, 1])]
    return there


def publish_city(out: Path, progress: Callable[[int, int | None], None]) -> CityRun:
    """Publish every day's pickups of the last week, with exact noise, and write the public page."""
    city = Box([(-74.03, -73.90), (40.69, 40.885)], names=("lon", "lat"), crs="EPSG:4326")
    stream = TrackingStream(city, _EPSILON, Event(), window=WINDOW)
    rng, days = np.random.default_rng(8), []
    with tempfile.TemporaryDirectory() as base:
        releases, layer = Path(base) / "releases", Path(base) / "areas.geojson"
        with ReleaseFolder(releases, "0" * 32, _TICKS) as folder:
            for day in range(DAYS):
                days.append(pickups(day, rng))
                release = stream.update(days[-1])
                folder.publish(release)
                progress(day + 1, None)
        layer.write_text(json.dumps({"type": "FeatureCollection", "features": list(map(_feature, AREAS))}))
        title = "An invented city: pickups of the last seven days"
        page = write_report(releases, out / "city.html", layer, title)
    live = np.concatenate(days[-WINDOW:])
    true = {name: int(shapely.contains_xy(shape, *live.T).sum()) for name, shape in AREAS.items()}
    return CityRun(page, release, live, true, release.count_in(list(AREAS.values())))


def _feature(name: str) -> dict[str, Any]:
    return {"type": "Feature", "properties": {"name": name}, "geometry": json.loads(shapely.to_geojson(AREAS[name]))}
