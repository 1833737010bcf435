"""The sets of points that one-shot methods are compared on, invented and real, all moved into the unit square."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.invented import places
from phdstream.arrays import Floats
from phdstream.errors import InputError

__all__ = ["SETS", "PointSet"]

_SQUARE, _WORLD, _NEW_YORK = 40, 42, 24
"""How often the square is halved: as often as PrivTree may; real ones down to 10 to 20 m, as in `utility.py`."""
_FEW, _LARGE_SEEDS = 10_000, 3
"""Sets of more points are run on so many seeds instead of five: they differ less by seed, and take the longest."""
_BOUNDS = {_WORLD: ((-180, 180), (-90, 90)), _NEW_YORK: ((-74.3, -73.65), (40.5, 41.0))}


@dataclass(frozen=True)
class PointSet:
    """A set: its points from a seed and the folder of the data files, and how often the square may be halved."""

    kind: str
    what: str
    points: Callable[[int, Path | None], Floats]
    depth: int = _SQUARE
    seeds: int = 5
    real: bool = False
    quick: bool = True


def uniform(number: int, seed: int, _: Path | None) -> Floats:
    """Points anywhere."""
    return np.random.default_rng([seed, number]).random((number, 2))


def city(number: int, seed: int, _: Path | None) -> Floats:
    """Forty places, a tenth of the points anywhere."""
    return places(np.random.default_rng([seed, number]), number, 40, 0.004, 0.1)


def villages(number: int, seed: int, _: Path | None) -> Floats:
    """Three hundred small places, and nothing between them."""
    return places(np.random.default_rng([seed, number]), number, 300, 0.0004)


def clusters(number: int, seed: int, _: Path | None) -> Floats:
    """Three clusters on their way round the square, as at one moment of the moving ones in `hard_streams`."""
    rng = np.random.default_rng([seed, number])
    which, angle = rng.choice(3, number, p=(0.5, 0.3, 0.2)), rng.uniform(0, 2 * np.pi, 3)
    centre, width = 0.5 + 0.3 * np.column_stack([np.cos(angle), np.sin(angle)]), np.array([0.03, 0.02, 0.01])
    return np.clip(rng.normal(centre[which], width[which, None]), 0, 1)


def recorded(file: str, rows: int, depth: int, number: int | None, seed: int, data: Path | None) -> Floats:
    """Points of a file, or so many of them, drawn by the seed."""
    points = _read(file, rows, depth, data)
    if number is None:
        return points
    return points[np.random.default_rng([seed, number]).choice(len(points), number, replace=False)]


@cache
def _read(file: str, rows: int, depth: int, data: Path | None) -> Floats:
    if data is None or not (data / file).is_file():
        raise InputError(f"{file} is not there: name the folder of the data files with --data.")
    table = pq.read_table(data / file, columns=["lon", "lat"])
    if table.num_rows != rows:
        raise InputError(f"{file} has {table.num_rows} rows; the published table was made from one with {rows}.")
    low, high = np.array(_BOUNDS[depth], dtype=float).T
    points = (np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()]) - low) / (high - low)
    return points[((points >= 0) & (points <= 1)).all(axis=1)]


_INVENTED = {
    "uniform": (uniform, "points anywhere"),
    "city": (city, "forty places, a tenth of the points anywhere"),
    "villages": (villages, "three hundred small places, nothing between them"),
    "clusters": (clusters, "three clusters of other widths, where the seed puts them"),
}
_REAL = {
    "Gowalla": ("gowalla_union.parquet", 371_532, _WORLD, "check-ins, in a box of the world"),
    "Gowalla NYC": ("gowalla_nyc.parquet", 138_957, _NEW_YORK, "check-ins around New York"),
    "Uber": ("uber_apr2014_full.parquet", 564_516, _NEW_YORK, "pickups in New York City, April 2014"),
    "Yellow taxi": (
        "nyc_yellow_taxi_sample_2009_2015.parquet", 90_059, _NEW_YORK, "pickups in New York City, 2009 to 2015",
    ),
}  # fmt: skip
SETS: dict[str, PointSet] = {
    f"{kind} {number:,}": PointSet(
        kind, what, partial(make, number), seeds=5 if number <= _FEW else _LARGE_SEEDS, quick=number <= 10**5
    )
    for kind, (make, what) in _INVENTED.items()
    for number in (1_000, 10_000, 100_000, 1_000_000)
} | {
    f"{kind} {'all' if number is None else f'{number:,}'}": PointSet(
        kind, what, partial(recorded, file, rows, depth, number), depth, seeds=5 if number else _LARGE_SEEDS, real=True
    )
    for kind, (file, rows, depth, what) in _REAL.items()
    for number in (1_000, 10_000, None)
}
