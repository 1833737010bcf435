"""What geography costs: a tick of 100,000 points on land and on streets, as a ratio to the same tick on a box.

    python benchmarks/geography.py [folder of shared data]

Production noise. The first tick clips and caches the cells it visits; later ticks find them cached.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import phdstream as phd
from phdstream.domains.network import Network

POINTS, TICKS = 100_000, 5


def points(path: Path) -> np.ndarray:
    table = pq.read_table(path, columns=["lon", "lat"])
    return np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])


def seconds_per_tick(domain: phd.Domain, events: np.ndarray) -> tuple[float, float]:
    """Return the time of the first tick and the median of the later ones."""
    stream = phd.PHDStream(domain, 1.0, phd.Event())
    taken = []
    for tick in range(TICKS):
        start = time.perf_counter()
        stream.update(events[tick * POINTS : (tick + 1) * POINTS])
        taken.append(time.perf_counter() - start)
    return taken[0], float(np.median(taken[1:]))


def compare(name: str, make: object, box: phd.Box, events: np.ndarray) -> None:
    phd.PHDStream(box, 1.0, phd.Event()).update(events[:10])  # load the noise source
    first_box, later_box = seconds_per_tick(box, events)
    first, later = seconds_per_tick(make(), events)  # type: ignore[operator]
    print(f"{name:28s} first tick {first / first_box:5.1f} x a box's   cached tick {later / later_box:5.1f} x a box's")


def main() -> None:
    data = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared" / "data")
    rng = np.random.default_rng(1)
    gowalla = rng.permutation(points(data / "gowalla_union.parquet"))
    gowalla = np.concatenate([gowalla, gowalla])[: POINTS * TICKS]
    uber = rng.permutation(points(data / "uber_apr2014_full.parquet"))[: POINTS * TICKS]
    geometry = data / "geometry"
    land = geometry / "land_naturalearth_lowres_without_antarctica.geojson"
    compare("land, Gowalla", lambda: phd.Region(land), phd.Box([(-180, 180), (-60, 84)]), gowalla)
    state = geometry / "new_york_state_500k.geojson"
    compare("New York State, Uber", lambda: phd.Region(state), phd.Box([(-79.8, -71.8), (40.4, 45.1)]), uber)
    streets = lambda: Network(geometry / "manhattan_osmnx.gpkg", snap=50.0, tree_crs="EPSG:32618")  # noqa: E731
    compare("Manhattan's streets, Uber", streets, phd.Box([(-74.02, -73.90), (40.70, 40.88)]), uber)


if __name__ == "__main__":
    main()
