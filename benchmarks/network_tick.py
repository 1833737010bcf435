"""What a network costs: a tick of 100,000 points on Manhattan's streets, as a ratio to the same tick on a box.

    python benchmarks/network_tick.py [folder of shared data]

Production noise. The first tick builds the grid that finds the nearest street and clips the streets to the cells it
visits; later ticks find both at hand. Both domains see the same points, in the same order, and both medians are of
runs that take turns. What a reader of a release asks for is compared too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import phdstream as phd
from phdstream.domains.network import Network

POINTS, TICKS, RUNS = 100_000, 5, 3
STREETS = "geometry/manhattan_osmnx.gpkg"


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def events(path: Path) -> np.ndarray:
    table = pq.read_table(path, columns=["lon", "lat"])
    points = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])
    return np.random.default_rng(1).permutation(points)[: POINTS * TICKS]


def run(domain: phd.Domain, points: np.ndarray) -> dict[str, float]:
    """Return what a stream takes: its first tick, its later ones, and what is asked of its last release."""
    stream, taken = phd.PHDStream(domain, 1.0, phd.Event()), []
    for tick in range(TICKS):
        took, release = seconds(lambda: stream.update(points[tick * POINTS : (tick + 1) * POINTS]))  # noqa: B023
        taken.append(took)
    asked = rectangles(domain, 200)
    times = {"first tick": taken[0], "cached tick": float(np.median(taken[1:]))}
    times |= {"200 counts": seconds(lambda: release.count(asked))[0], "sample": seconds(release.sample)[0]}
    return times | {"changes": seconds(release.changes)[0]}


def rectangles(domain: phd.Domain, number: int) -> np.ndarray:
    low, high = np.hsplit(domain.bounds(np.array([1]))[0], 2)
    corners = np.random.default_rng(2).uniform(low, high, (2, number, 2))
    return np.hstack([corners.min(axis=0), corners.max(axis=0)])


def main() -> None:
    data = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared" / "data")
    points = events(data / "uber_apr2014_full.parquet")
    results: dict[str, list[dict[str, float]]] = {"box": [], "streets": []}
    for _ in range(RUNS):
        streets = Network(data / STREETS, snap=50.0, tree_crs="EPSG:32618")
        low, high = np.hsplit(streets.bounds(np.array([1]))[0], 2)
        box = phd.Box(list(zip(low, high, strict=True)), names=("lon", "lat"))
        phd.PHDStream(box, 1.0, phd.Event()).update(points[:10])  # load the noise source
        results["box"].append(run(box, points))
        results["streets"].append(run(streets, points))
    for name in results["box"][0]:
        on_box, on_streets = (float(np.median([r[name] for r in results[which]])) for which in ("box", "streets"))
        print(f"{name:12s} {on_streets / on_box:5.2f} x a box's")


if __name__ == "__main__":
    main()
