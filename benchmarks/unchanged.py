"""Whether releases are still the same to the bit: for changes that should change nothing.

    python -m benchmarks.unchanged record FILE      # before the change: digests of releases with seeded noise
    python -m benchmarks.unchanged compare FILE     # after it: says which differ

All methods and kinds of domains, with every option, on invented points. Floating-point sums may differ in the last bit
between machines, so record and compare on one.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import shapely

import phdstream as phd

ISLANDS = [
    shapely.Polygon([(0, 0), (6, 0), (6, 5), (0, 5)], holes=[[(1, 1), (1, 3), (3, 3), (3, 1)]]),
    shapely.Polygon([(8, 8), (8.001, 8), (9.5, 9.9)]),
    shapely.Point(8, 2).buffer(1),
]
STREETS = [shapely.LineString([(0, y), (1000, y)]) for y in range(0, 1001, 100)] + [
    shapely.LineString([(x, 0), (x + 37, 1000)]) for x in range(0, 900, 150)
]
HOSPITALS = {"US": {"NY": ["A", "B", "C"], "CA": ["D"]}, "FR": {"Paris": ["E", "F"]}, "MC": ["G"]}
UNIT_SQUARE = phd.Box([(0, 1), (0, 1)], depth=20)
DOMAINS: dict[str, Callable[[], phd.Domain]] = {
    "box": lambda: phd.Box([(-74.3, -73.7), (40.5, 41.0)], depth=16),
    "box by quarters": lambda: phd.Box([(0, 1), (0, 1)], fanout=4, depth=8),
    "box of three dimensions": lambda: phd.Box([(0, 1)] * 3, fanout=8, depth=4),
    "line": lambda: phd.Box([(0, 1)], depth=12),
    "cube": lambda: phd.Cube(7),
    "islands": lambda: phd.Region(ISLANDS, depth=12),
    "islands by quarters": lambda: phd.Region(ISLANDS, depth=6, fanout=4),
    "islands in degrees": lambda: phd.Region(ISLANDS, crs="EPSG:4326", depth=12),
    "streets": lambda: phd.Network(STREETS, snap=30.0, depth=12),
    "hospitals": lambda: phd.Hierarchy(HOSPITALS),
    "globe": lambda: phd.Globe(depth=9),
    "rides": lambda: phd.Product(
        phd.Box([(0, 1), (0, 1)], depth=10), phd.Category("vehicle", ["bus", "tram", "ferry"]), phd.TimeOfDay("hour", 5)
    ),
}
TRACKING: dict[str, dict[str, Any]] = {
    "tracking": {},
    "tracking, insert-only": {"insert_only": True},
    "tracking, window": {"window": 4},
    "tracking, late start": {"start_after": 3},
    "tracking, few nodes": {"max_nodes": 60},
}
PAPER: dict[str, dict[str, Any]] = {
    "phdstream": {},
    "phdstream, block": {"counter": "block"},
    "phdstream, binary": {"counter": "binary"},
    "phdstream, hybrid": {"counter": "hybrid", "threshold": 3},
    "phdstream, window": {"window": 4},
    "phdstream, late start": {"start_after": 3, "tree_share": 0.3},
    "phdstream, few nodes": {"max_nodes": 60},
}


def digest(release: phd.Release) -> str:
    """Return a digest of all numbers of a release."""
    found = hashlib.sha256(f"{release.tick} {release.total!r}".encode())
    tables = [release.cells()] + ([] if release.held else [release.changes().to_table()])
    for table in tables:
        for name, column in zip(table.column_names, table.columns, strict=True):
            found.update(name.encode() + repr(column.to_pylist()).encode())
    found.update(np.ascontiguousarray(release.sample()).tobytes() if not release.held else b"held")
    return found.hexdigest()[:16]


def ticks_on(domain: phd.Domain, ticks: int, size: int, deletes: bool) -> Iterator[tuple[Any, Any]]:
    """Yield inserts and deletes: points of the domain, crowded in places that change half-way."""
    root = np.array([1])
    whole = domain.sample(root, np.array([4 * size]), 5)
    crowded = np.concatenate([whole[: size // 8]] * 8 + [whole[size:]])
    rng, live = np.random.default_rng(3), np.zeros((0, whole.shape[1]))
    for tick in range(ticks):
        pool = crowded[:size] if tick < ticks // 2 else crowded[size // 2 :]
        come = pool[rng.integers(0, len(pool), size)]
        gone, live = (live[: size // 3], live[size // 3 :]) if deletes else (None, live)
        live = np.concatenate([live, come])
        yield come, gone


def on_domain(make: Callable[[], Any], domain: phd.Domain, ticks: int, size: int) -> list[str]:
    """Return the digests of a stream's releases; half-way it is saved and loaded."""
    stream = make()
    found = []
    for tick, (come, gone) in enumerate(ticks_on(domain, ticks, size, getattr(stream, "deletes", True))):
        if tick == ticks // 2 and isinstance(stream, phd.PHDStream | phd.TrackingStream):
            with tempfile.TemporaryDirectory() as folder:
                stream.save(Path(folder) / "state")
                stream = type(stream).load(Path(folder) / "state")
        release = stream.update(come, gone)
        found.append(digest(release))
    if isinstance(domain, phd.Box) and domain.dimension == 2:
        corners = domain.sample(np.array([1]), np.array([40]), 9).reshape(20, 2, 2)
        asked = release.count(np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1))
        found.append(hashlib.sha256(asked.value.tobytes() + asked.stderr.tobytes()).hexdigest()[:16])
    return found


def cases() -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """Yield every case: its name, and what gives its digests."""
    for where, make_domain in DOMAINS.items():
        domain = make_domain()
        for kinds, method in ((TRACKING, phd.TrackingStream), (PAPER, phd.PHDStream)):
            for name, options in kinds.items():

                def made(method: Any = method, domain: phd.Domain = domain, options: dict[str, Any] = options) -> Any:
                    return method(domain, 1.0, phd.Event(), noise=phd.Simulation(seed=4), **options)

                yield f"{name} on {where}", partial(on_domain, made, domain, 8, 240)
    for epsilon in (0.1, 1.0, 20.0):
        for unit in (phd.Event(), phd.Record()):

            def long(epsilon: float = epsilon, unit: Any = unit) -> Any:
                return phd.TrackingStream(UNIT_SQUARE, epsilon, unit, noise=phd.Simulation(seed=8))

            yield f"tracking, 40 ticks, {epsilon:g}, {unit}", partial(on_domain, long, UNIT_SQUARE, 40, 3000)
    others = {
        "baseline 1": lambda: phd.baselines.OfflineEachTickNotPrivate(UNIT_SQUARE, 1.0, noise=phd.Simulation(seed=2)),
        "baseline 2": lambda: phd.baselines.OfflineOnChangesNotPrivate(UNIT_SQUARE, 1.0, noise=phd.Simulation(seed=2)),
        "baseline 3": lambda: phd.baselines.FixedPartition(UNIT_SQUARE, 1.0, noise=phd.Simulation(seed=2)),
        "oracle": lambda: phd.baselines.TrackingEachTickNotPrivate(UNIT_SQUARE, 1.0, noise=phd.Simulation(seed=2)),
    }
    for name, make in others.items():
        yield name, partial(on_domain, make, UNIT_SQUARE, 4, 500)
    yield "users", users


def users() -> list[str]:
    """Return the digests of streams with bounded users."""
    found, rng = [], np.random.default_rng(6)
    for method in (phd.TrackingStream, phd.PHDStream):
        stream = method(UNIT_SQUARE, 2.0, phd.User(inserts=2, deletes=1), noise=phd.Simulation(seed=3))
        for _ in range(5):
            points, who = rng.random((300, 2)), rng.integers(0, 400, 300)
            found.append(digest(stream.update(points, points[:50], users=who, delete_users=who[:50])))
    return found


def main(what: str, path: Path) -> int:
    """Record or compare; return the exit status."""
    found = {name: make() for name, make in cases()}
    if what == "record":
        path.write_text(json.dumps(found, indent=1))
        print(f"{len(found)} cases, {sum(map(len, found.values()))} digests recorded")
        return 0
    before = json.loads(path.read_text())
    differ = [name for name in before if before[name] != found.get(name)]
    print(f"{len(before)} cases: {len(before) - len(differ)} the same to the bit, {len(differ)} not")
    for name in differ:
        print(f"  {name}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
