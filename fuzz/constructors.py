"""Odd arguments to everything that is made by hand: refused, or what is made can be used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import shapely

import phdstream as phd
from fuzz.values import mutated, odd
from phdstream.domains import domain_from_dict
from phdstream.domains.product import Attribute, attribute_from_dict
from phdstream.privacy import unit_from_dict

__all__ = ["prepare", "run"]

_SQUARE = [(0.0, 1.0), (0.0, 1.0)]
_STREET = shapely.LineString([(0, 0), (100, 0), (100, 60)])
_TRIANGLE = shapely.Polygon([(0, 0), (1, 0), (0, 1)])
_PUBLIC = [(0.1, 0.1), (0.1, 0.2), (0.2, 0.1), (0.3, 0.3), (0.9, 0.9)]
_TREE = {"depth": 6, "fanout": 2}
_ATTRIBUTES = [
    {"type": "category", "name": "v", "values": ["a", "b"]},
    {"type": "bins", "name": "w", "edges": [0, 1, 9]},
]
_PRODUCT = {"place": {"type": "box", "bounds": _SQUARE, "depth": 6}, "attributes": _ATTRIBUTES, "schedule": None}
_PLACES = [["a", "b"], ["a", "c"], ["d", "e"]]
_WAYS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Box": (phd.Box, {"bounds": _SQUARE, "names": ["x", "y"], "crs": None} | _TREE),
    "Cube": (phd.Cube, {"dimension": 3, "depth": 6, "names": ["a", "b", "c"]}),
    "Hierarchy": (phd.Hierarchy, {"places": _PLACES, "names": ["place"]}),
    "Globe": (phd.Globe, {"depth": 12, "names": ["lon", "lat"]}),
    "Region": (phd.Region, {"polygons": [_TRIANGLE], "crs": None, "tree_crs": None, "names": ["x", "y"]} | _TREE),
    "Network": (phd.Network, {"lines": [_STREET], "snap": 5.0, "crs": None, "tree_crs": None, "bounds": None} | _TREE),
    "Product": (lambda **spec: domain_from_dict(spec | {"type": "product"}), _PRODUCT),
    "Category": (phd.Category, {"name": "v", "values": {"road": ["bus", "car"], "rail": ["tram"]}}),
    "Bins": (phd.Bins, {"name": "age", "edges": [0, 18, 65]}),
    "TimeOfDay": (phd.TimeOfDay, {"name": "hour", "bins": 5, "column": "time", "zone": "UTC"}),
    "DayOfWeek": (phd.DayOfWeek, {"name": "day", "column": "time", "zone": "UTC"}),
    "prior of points": (phd.Prior.from_points, {"points": _PUBLIC, "weights": [1.0] * 4 + [2.0], "about": "a"}),
    "prior of polygons": (phd.Prior.from_polygons, {"polygons": [_TRIANGLE], "weights": [3], "about": "a"}),
    "prior of lines": (phd.Prior.from_lines, {"lines": [_TRIANGLE.exterior], "weights": [3], "about": "a"}),
    "prior of a raster": (
        phd.Prior.from_raster,
        {"values": [[1.0, 2.0], [0.0, 4.0]], "bounds": [0, 0, 1, 1], "crs": None, "about": "a"},
    ),
    "User": (phd.User, {"inserts": 2, "deletes": 1}),
    "Simulation": (phd.Simulation, {"seed": 1}),
    "domain": (lambda **spec: domain_from_dict(spec), {"type": "box", "bounds": _SQUARE, "depth": 6}),
    "unit": (lambda **spec: unit_from_dict(spec), {"type": "user", "inserts": 3, "deletes": 1}),
    "PrivTree": (lambda **given: phd.PrivTree(**given), {"epsilon": 1.0, "fanout": 4}),
}
_SHARED: dict[str, Any] = {"epsilon": 1.0, "window": None, "insert_only": False, "start_after": 1, "max_nodes": 1000}
_METHODS: list[tuple[Any, dict[str, Any]]] = [
    (phd.PHDStream, _SHARED | {"counter": "simple", "threshold": 0, "tree_share": 0.5}),
    (phd.TrackingStream, _SHARED),
]


def prepare(folder: Path) -> None:
    """Nothing is shared."""


def run(rng: Random, folder: Path) -> None:
    """Make one thing with odd arguments, and use it."""
    if rng.random() < 0.35:
        _stream(rng)
        return
    make, given = _WAYS[rng.choice([name for name in _WAYS if name != "PrivTree"])]
    for _ in range(rng.choice([1, 1, 2])):
        key = rng.choice(list(given))
        given = given | {key: mutated(rng, given[key])}
    made = make(**given)
    repr(made)
    if isinstance(made, Attribute):
        again = attribute_from_dict(json.loads(json.dumps(made.to_dict())))
        assert again.to_dict() == made.to_dict(), "an attribute read back is another"
        made = phd.Product(phd.Box(_SQUARE, names=("a b", "c d"), depth=6), made)
    if isinstance(made, phd.Prior):
        splits = made.on(phd.Box(_SQUARE, depth=6))
        assert (np.abs(splits.contrast) <= 1).all(), "a contrast beyond 1"
        assert (splits.variance >= 0).all(), "a variance below 0"
    if isinstance(made, phd.Domain):
        _use(made)


def _use(domain: Any) -> None:
    """Look into a domain: where points are, what it says of itself, whether that can be read back."""
    root = np.array([1])
    codes, inside = domain.encode(domain.points([] if isinstance(domain, phd.Hierarchy) else None))
    assert codes.size == inside.size == 0
    children, _, share = domain.children(root)
    assert children.size
    assert abs(share.sum() - 1) < 1e-6, "the shares of the root's children do not add up"
    domain.sample(root, np.array([3]), key=1)
    again = domain_from_dict(json.loads(json.dumps(domain.to_dict())))
    assert again.to_dict() == domain.to_dict(), "a domain read back is another"
    json.dumps(domain.summary())


def _stream(rng: Random) -> None:
    method, given = rng.choice(_METHODS)
    given = given | {"domain": phd.Box(_SQUARE, depth=6), "unit": phd.Event(), "noise": phd.Simulation(1)}
    if rng.random() < 0.3:
        given["counter" if "counter" in given else "window"] = rng.choice(
            ["binary", "block", "hybrid", 3, 7, phd.Event]
        )
    for _ in range(rng.choice([1, 1, 2])):
        key = rng.choice(list(given))
        known = [phd.Record(), phd.User(3, 2), phd.User(10**6), phd.Event, 3, phd.Cube(2), phd.ExactNoise()]
        given[key] = rng.choice([odd(rng), odd(rng), odd(rng), mutated(rng, given[key]), rng.choice(known)])
    stream = method(**given)
    stream.describe()
    user = hasattr(given["unit"], "inserts")
    release = stream.update([(0.5, 0.5), (0.25, 0.75)], users=["a", "b"] if user else None)
    assert np.isfinite(release.total), "a total that is no number"
    release.cells()
