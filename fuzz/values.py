"""Odd values, and ways to put them into the place of sound ones."""

from __future__ import annotations

import datetime
import decimal
import fractions
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import shapely

import phdstream as phd

__all__ = ["PATHS", "mutated", "odd"]

PATHS = ["", ".", "/", "..", "~", "~nobody/x", "a\0b", "x" * 5000, "/dev/zero", "/dev/null", "/proc/self/mem", "\ud800"]
PATHS += ["*" * 50, "[", "**/*", "http://127.0.0.1:9/x.geojson", "/vsicurl/http://127.0.0.1:9/x.gpkg", "no.geojson"]
_NUMBERS: list[Any] = [
    0, 1, 2, 3, 4, 7, -1, 62, 63, 64, 1000, 10**6, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**400,
    -(10**400), 10**5000, 0.5, -0.0, 1e-320, 1e-12, 5e-324, 0.1, 1.5, 1e15, 1e17, 1e300, 1.7e308, float("nan"),
    float("inf"), float("-inf"),
]  # fmt: skip
_PLAIN: list[Any] = [
    *_NUMBERS, *_NUMBERS, None, True, False, "", "a", "x", "\0", "\ud800", "é" * 3000, "1", "nan", "10**400",
    "EPSG:4326", "EPSG:3857", "EPSG:999999", "event", "box", [], {}, [[]], [[[]]], [None], {"": None}, {"type": []},
    [0, 1], [1, 0], [0.0, float("nan")], ["a", 1], [[0, 1]] * 40, *PATHS,
]  # fmt: skip
_PYTHON: list[Any] = [
    b"", b"a", (), set(), frozenset({1}), object(), int, dict, phd.Box, phd.Event, phd.Simulation, len, Path("no.gpkg"),
    Path(), Path("a\0b"), Path("x" * 5000), complex(1, 2), decimal.Decimal("NaN"), decimal.Decimal("sNaN"),
    decimal.Decimal("1e9999"), fractions.Fraction(1, 3), datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1),
    np.nan, np.int64(3), np.uint64(2**64 - 1), np.float32("inf"), np.bool_(True), np.str_("a"), np.datetime64("NaT"),
    np.array(0), np.array([]), np.zeros((2, 2)), np.zeros((0, 2)), np.zeros((2, 2, 2)), np.array(["a"]), np.ma.masked,
    np.ma.masked_all((2, 2)), np.array([None, 1], dtype=object), np.zeros(3, dtype=[("x", float), ("y", float)]),
    pd.NA, pd.NaT, pd.Series([1.0, 2.0]), pd.DataFrame({"x": [1.0], "y": [2.0]}), pd.DataFrame(), pa.array([1, None]),
    pa.table({"x": [1.0], "y": [None]}), pa.scalar(1), shapely.Point(0, 0), shapely.Point(), shapely.box(0, 0, 1, 1),
    shapely.LineString([(0, 0), (1, 1)]), shapely.Polygon(), shapely.MultiPoint([(0, 0), (1, 1)]), range(5),
    range(10**6), memoryview(b"abcd"), bytearray(b"ab"), NotImplemented, ..., ValueError("x"), np.float64, pd, slice(3),
]  # fmt: skip


def odd(rng: Random, plain: bool = False) -> Any:
    """Return an odd value: one that TOML can hold if ``plain``, else anything that Python can."""
    kind = rng.random()
    if kind < 0.03:
        return _deep(rng.choice([20, 900, 3000]), rng.choice([list, tuple, dict]) if not plain else list)
    if kind < 0.12:
        return [odd(rng, plain) for _ in range(rng.randrange(4))]
    if kind < 0.16:
        return {rng.choice(["a", "type", "", "x", "inserts"]): odd(rng, plain) for _ in range(rng.randrange(3))}
    if kind < 0.18:
        return rng.choice([[0.5] * 1001, list(range(70)), ["n"] * 100, "y" * 100_000, [[0, 1]] * 1001])
    return rng.choice(_PLAIN) if plain or rng.random() < 0.5 else rng.choice(_PYTHON)


def _deep(levels: int, kind: type) -> Any:
    value: Any = kind()
    for _ in range(levels):
        value = {"a": value} if kind is dict else kind([value])
    return value


def mutated(rng: Random, value: Any, plain: bool = False) -> Any:
    """Return a value of which one part, or all, is replaced, left out, repeated or wrapped."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        way = rng.random()
        if way < 0.06:
            return {k: v for k, v in value.items() if k != key}
        if way < 0.1:
            return value | {rng.choice(["", "unknown", "Epsilon", "a b", "\0"]): odd(rng, plain)}
        return value | {key: mutated(rng, value[key], plain)}
    if isinstance(value, list | tuple) and value and rng.random() < 0.7:
        at, items = rng.randrange(len(value)), list(value)
        way = rng.random()
        if way < 0.1:
            del items[at]
        elif way < 0.2:
            items.insert(at, items[at])
        else:
            items[at] = mutated(rng, items[at], plain)
        return items
    if isinstance(value, int | float) and abs(value) < 1e300 and rng.random() < 0.4:
        return rng.choice([value + 1, value * 2, value / 2, -value, float(value), value * 10, value + rng.random()])
    return rng.choice([odd(rng, plain)] * 9 + [[value]])
