"""What geography costs, and how it looks, on the public research data (its README says where that comes from).

    python -m benchmarks.geography speed [FOLDER OF DATA]    # ticks on land and on streets, as ratios to a box's
    python -m benchmarks.geography maps [FOLDER OF DATA]     # docs/figures/map-*.png: true points beside synthetic ones

Production noise. The first tick clips and keeps the cells it visits; the ticks after it still meet new ones, with other
points. "Cached" are the same ticks of another stream on the same domain, which meets few. Ticks of the box and of the
other domain are taken in turn, so that both see the same machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

import phdstream as phd
from benchmarks.drawn_maps import Panel, draw_maps
from phdstream.arrays import Floats

POINTS, TICKS = 100_000, 7
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
METHODS: dict[str, Any] = {"tracking": phd.TrackingStream, "phdstream": phd.PHDStream}
VIEWS = {
    "world": [
        Panel("the world", (-180, -58, 180, 80)),
        Panel("the Bay of San Francisco", (-122.6, 37.2, -121.7, 37.95)),
    ],
    "state": [
        Panel("New York State", (-79.9, 40.4, -71.7, 45.1)),
        Panel("New York City", (-74.06, 40.64, -73.86, 40.83)),
    ],
    "streets": [
        Panel("Manhattan", (-74.03, 40.695, -73.905, 40.885)),
        Panel("Midtown", (-74.0, 40.74, -73.96, 40.77)),
    ],
}
_DEGREES = "EPSG:4326"


class Place(NamedTuple):
    """Real events, a domain for them, and the box that they are compared with."""

    name: str
    events: Floats
    domain: Callable[..., phd.Domain]
    box: Callable[..., phd.Box]


def points(path: Path, seed: int = 1) -> Floats:
    """Return the points of a file in random order."""
    table = pq.read_table(path, columns=["lon", "lat"])
    return np.random.default_rng(seed).permutation(np.column_stack([table[name].to_numpy() for name in ("lon", "lat")]))


def places(data: Path) -> list[Place]:
    """Return the places of the paper."""
    gowalla, uber = points(data / "gowalla_union.parquet"), points(data / "uber_apr2014_full.parquet")
    geometry = data / "geometry"

    def land(**fine: Any) -> phd.Domain:
        return phd.Region(geometry / "land_naturalearth_lowres_without_antarctica.geojson", **fine)

    def state(**fine: Any) -> phd.Domain:
        return phd.Region(geometry / "new_york_state_500k.geojson", **fine)

    def streets(**fine: Any) -> phd.Domain:
        return phd.Network(geometry / "manhattan_osmnx.gpkg", snap=50.0, tree_crs="EPSG:32618", **fine)

    return [
        Place("land, Gowalla", gowalla, land, _box((-180, 180), (-60, 84))),
        Place("New York State, Uber", uber, state, _box((-79.8, -71.8), (40.4, 45.1))),
        Place("Manhattan's streets, Uber", uber, streets, _box((-74.02, -73.90), (40.70, 40.88))),
    ]


def _box(*bounds: tuple[float, float]) -> Callable[..., phd.Box]:
    return lambda **fine: phd.Box(bounds, crs=_DEGREES, **fine)


def ratios(place: Place, method: Any, ticks: int = TICKS, size: int = POINTS, **fine: Any) -> list[float]:
    """Return the time of a first tick, of later ones, and of later ones with the domain cached, as ratios to the box's.

    Of later ticks the median.
    """
    method(place.box(**fine), 1.0, phd.Event()).update(place.events[:10])  # load the noise source
    domains = [make(**fine) for make in (place.box, place.domain)]
    fresh, cached = (_ticks(place, [method(domain, 1.0, phd.Event()) for domain in domains], ticks, size) for _ in "12")
    later = [np.median(taken[:, 1:], axis=1) for taken in (fresh, cached)]
    return [float(own / box) for box, own in (fresh[:, 0], *later)]


def _ticks(place: Place, streams: list[Any], ticks: int, size: int) -> Floats:
    """Return how long each stream takes for each tick."""
    taken = np.empty((len(streams), ticks))
    for tick in range(ticks):
        events = np.take(place.events, range(tick * size, (tick + 1) * size), axis=0, mode="wrap")
        for which, stream in enumerate(streams):
            start = time.perf_counter()
            stream.update(events)
            taken[which, tick] = time.perf_counter() - start
    return taken


def speed(data: Path) -> None:
    """Print a table of ratios, for depth 20 and for the default of 10 m."""
    columns = [f"{depth}{tick}" for depth in ("depth 20: ", "10 m: ") for tick in ("first tick", "later", "cached")]
    print("| | method | " + " | ".join(columns) + " |\n|" + "---|" * (2 + len(columns)))
    for place in places(data):
        for name, method in METHODS.items():
            found = [ratio for fine in ({"depth": 20}, {}) for ratio in ratios(place, method, **fine)]
            print(f"| {place.name} | `{name}` | " + " | ".join(f"{ratio:.1f}" for ratio in found) + " |", flush=True)


def maps(data: Path) -> None:
    """Draw true points beside those of a release, at the defaults and ε = 1."""
    for name, place in zip(VIEWS, places(data), strict=True):
        domain = place.domain()
        true = place.events[domain.encode(place.events)[1]]
        synthetic = phd.TrackingStream(domain, 1.0, phd.Event()).update(place.events).sample()
        kinds = {"true (public data)": true, "synthetic, ε = 1": synthetic}
        size = draw_maps(FIGURES / f"map-{name}.png", domain, kinds, VIEWS[name])
        print(f"map-{name}.png: {size / 1000:.0f} kB, {len(true):,} true and {len(synthetic):,} synthetic points")


def main(what: str = "speed", data: str | None = None) -> None:
    """Run one of the commands on a folder of data: by default the one beside the checkout."""
    folder = Path(__file__).parents[2] / "shared" / "data" if data is None else Path(data)
    {"speed": speed, "maps": maps}[what](folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
