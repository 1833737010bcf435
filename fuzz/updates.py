"""Odd points and odd users: a tick is refused as a whole, after which the stream goes on, or its release is sound."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import shapely

import phdstream as phd
from fuzz.values import mutated, odd
from phdstream.errors import PhdstreamError

__all__ = ["prepare", "run"]

_SQUARE = [(0.0, 1.0), (0.0, 1.0)]
_DOMAINS: list[Callable[[], phd.Domain]] = [
    lambda: phd.Box(_SQUARE, depth=8),
    lambda: phd.Box(_SQUARE, depth=8, crs="EPSG:4326"),
    lambda: phd.Box([(0, 1)], depth=5),
    lambda: phd.Cube(2, depth=6),
    lambda: phd.Globe(depth=10),
    lambda: phd.Region(shapely.Polygon([(0, 0), (1, 0), (0, 1)]), depth=6),
    lambda: phd.Network([shapely.LineString([(0, 0), (1, 1)])], snap=1.0, depth=6),
    lambda: phd.Hierarchy([["a", "b"], ["a", "c"], ["d", "e"]]),
    lambda: phd.Product(phd.Box([(0, 1)], depth=5), phd.Bins("w", [0, 0.5, 1]), phd.TimeOfDay("hour", 3)),
    lambda: phd.Product(phd.Box([(0, 1)], depth=5), phd.Category("v", ["0", "1", "b"]), phd.DayOfWeek("day")),
]
_UNITS: list[Any] = [phd.Event(), phd.Record(), phd.User(2, 2)]
_SPECIAL = [float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, -0.0, 1.0, 0.9999999999999999, 1e-17]
_USERS: list[Any] = [
    "ann", b"ann", 1, 2**63, 2**64, -1, 10**30, None, float("nan"), 1.5, True, "a\0", "\ud800", "x" * 2000, pd.NA,
    ("a",), np.int8(3), np.uint64(2**64 - 1), decimal.Decimal(1), datetime.date(2020, 1, 1), "", b"", np.str_("b"),
    shapely.Point(),
]  # fmt: skip


def prepare(folder: Path) -> None:
    """Nothing is shared."""


def run(rng: Random, folder: Path) -> None:
    """Give a small stream two odd ticks, and after each refusal one that is sound."""
    domain, unit = rng.choice(_DOMAINS)(), rng.choice(_UNITS)
    method: Any = rng.choice([phd.PHDStream, phd.TrackingStream])
    options: dict[str, Any] = rng.choice(
        [{}, {}, {"window": 2}, {"insert_only": True}, {"start_after": 2}, {"max_nodes": 10}]
    )
    stream = method(domain, 1.0, unit, noise=phd.Simulation(1), **options)
    for _ in range(2):
        size = rng.choice([0, 1, 3, 3, 8])
        given = {"inserts": _points(rng, domain, size)}
        if rng.random() < 0.3:
            given["deletes"] = _points(rng, domain, size)
        if isinstance(unit, phd.User) or rng.random() < 0.2:
            given["users"] = _users(rng, size)
            given["delete_users"] = _users(rng, size) if "deletes" in given else None
        tick = stream.tick
        try:
            _check(stream.update(**given))
        except PhdstreamError:
            assert stream.tick == tick, "a refused tick was taken"
            _check(stream.update(None))
            raise


def _check(release: phd.Release) -> None:
    """Check that a release is whole."""
    if release.held:
        return
    cells = release.cells()
    counts = np.asarray(cells["count"])
    assert np.isfinite(counts).all(), "a count that is no number"
    assert (counts >= 0).all(), "a count below 0"
    assert len(release.sample()) == release.points.sum(), "points do not add up"
    assert abs(counts.sum() - release.total) <= 1e-6 * max(1.0, release.total), "counts do not add up to the total"


def _points(rng: Random, domain: Any, size: int) -> Any:
    """Return points in some form, sound or odd."""
    if isinstance(domain, phd.Hierarchy):
        names = [rng.choice(["a/b", "a/c", "d/e", "a", "", "zz", "b"]) for _ in range(size)]
        column = rng.choice([names, [[name] for name in names], np.array(names), pd.Series(names), pa.array(names)])
        return rng.choice([column, column, mutated(rng, names), odd(rng), {"place": names}])
    rows = [tuple(_number(rng) for _ in domain.names) for _ in range(size)]
    way = rng.random()
    if way < 0.25:
        return mutated(rng, rows)
    if way < 0.35:
        return odd(rng)
    try:
        return rng.choice(_FORMS)(rng, rows, domain.names)
    except Exception:  # what these libraries refuse themselves never comes to us
        return rows


def _number(rng: Random) -> float:
    return rng.choice(_SPECIAL) if rng.random() < 0.2 else rng.random()


def _columns(rows: list[Any], names: Any) -> dict[str, Any]:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _typed(rng: Random, rows: list[Any], names: Any) -> Any:
    kind = rng.choice(["f2", "f4", "f8", "f16", "c16", "U9", "S9", "O", ">f8", "M8[s]", "?", "i8", "u1", "V8"])
    with np.errstate(all="ignore"):
        array = np.array(rows, dtype=float).reshape(-1, len(names))
        return array.astype("i8").astype(kind) if kind == "M8[s]" else array.astype(kind)


def _masked(rng: Random, rows: list[Any], names: Any) -> Any:
    array = np.array(rows, dtype=float).reshape(-1, len(names))
    return np.ma.masked_array(array, mask=[[rng.random() < 0.3 for _ in names] for _ in rows] or False)


def _shapes(rng: Random, rows: list[Any], names: Any) -> list[Any]:
    kinds: list[Any] = [shapely.Point(0.5, 0.5)] * 9
    kinds += [
        None,
        shapely.Point(),
        shapely.MultiPoint([(0, 0), (1, 1)]),
        shapely.box(0, 0, 1, 1),
        shapely.Point(1, 2, 3),
    ]
    return [rng.choice(kinds) for _ in rows]


def _series(rng: Random, rows: list[Any], names: Any) -> Any:
    return geopandas.GeoSeries(_shapes(rng, rows, names), crs=rng.choice([None, "EPSG:4326", "EPSG:3857"]))


_FORMS: list[Callable[[Random, list[Any], Any], Any]] = [
    lambda rng, rows, names: rows,
    _typed,
    _typed,
    _masked,
    _shapes,
    _series,
    lambda rng, rows, names: geopandas.GeoDataFrame(geometry=_series(rng, rows, names)),
    lambda rng, rows, names: _columns(rows, names),
    lambda rng, rows, names: pd.DataFrame(_columns(rows, names)),
    lambda rng, rows, names: pd.DataFrame(mutated(rng, rows)),
    lambda rng, rows, names: pd.DataFrame(_columns(rows, names)).astype(rng.choice(["Float64", "object", "string"])),
    lambda rng, rows, names: pl.DataFrame(_columns(rows, names)),
    lambda rng, rows, names: pl.DataFrame(_columns(rows, names)).lazy(),
    lambda rng, rows, names: pa.table(_columns(rows, names)),
    lambda rng, rows, names: pa.table(dict.fromkeys(names, pa.nulls(len(rows)))),
    lambda rng, rows, names: iter(rows),
    lambda rng, rows, names: set(rows),
    lambda rng, rows, names: [[decimal.Decimal(number) for number in row] for row in rows],
]


def _users(rng: Random, size: int) -> Any:
    """Return users in some form, sound or odd."""
    way, one = rng.random(), rng.choice(_USERS)
    if way < 0.15:
        return odd(rng)
    users = [one] * size if way < 0.5 else [rng.choice(_USERS) if rng.random() < 0.3 else f"u{i}" for i in range(size)]
    if way < 0.6:
        return mutated(rng, users)
    try:
        return rng.choice([list, list, tuple, np.array, pd.Series, pl.Series, pa.array, pd.Categorical, iter])(users)
    except Exception:
        return users
