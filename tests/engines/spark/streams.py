"""Invented events on every domain, and the two roads from them to releases: by Spark, and by NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import phdstream as phd
from phdstream.domains import ROOT, Domain
from phdstream.engines.spark.encoding import RowCoder
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.counted_inputs import FileRecord
from phdstream.io.sources.events import read_events
from phdstream.io.sources.gathering import Gathered
from phdstream.io.sources.inventory import fingerprint
from phdstream.io.sources.reading import Reading

START = np.datetime64("2026-01-01", "us")
CLOCK = Clock.between(datetime(2026, 1, 1), None, "1d")
TICKS = 2


@dataclass
class Invented:
    """A file of events, and how it is to be read."""

    path: Path
    domain: Domain
    coder: RowCoder


def invented(
    folder: Path, domain: Domain, rows: int = 600, users: bool = False, ticks: int = TICKS, seed: int = 3
) -> Invented:
    """Events of some ticks, in no order: most inside; some outside, some deletes, some at the same time and place."""
    rng = np.random.default_rng(seed)
    inside = domain.sample(np.array([ROOT]), np.array([rows]), seed)
    inside = inside[rng.permutation(len(inside))]
    if isinstance(domain, phd.Product):
        return _of_rows(folder, domain, domain.rows(inside), ticks, rng)
    names = [f"x{axis}" for axis in range(inside.shape[1])]
    seconds = rng.integers(0, ticks * 86_400, len(inside))
    seconds[:20] = seconds[20:40]
    columns: dict[str, Any] = {}
    for axis, name in enumerate(names):
        column = inside[:, axis]
        if column.dtype.kind == "f":
            columns[name] = np.where(rng.random(len(column)) < 0.05, 1e9, column)
        else:
            columns[name] = pa.array(column.tolist())
    columns["when"] = pa.array(START + seconds.astype("timedelta64[s]"))
    columns["sign"] = np.where(rng.random(len(inside)) < 0.8, 1, -1).astype(np.int32)
    if users:
        columns["who"] = [f"user {number}" for number in rng.integers(0, 60, len(inside))]
    path = folder / "events.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=100)
    read = Columns(tuple(names), "when", "sign", "who" if users else None, names=isinstance(domain, phd.Hierarchy))
    return Invented(path, domain, RowCoder(domain, CLOCK, read, Reading(drop_bad=True)))


def _of_rows(folder: Path, domain: phd.Product, rows: Any, ticks: int, rng: np.random.Generator) -> Invented:
    """The same, of a place with attributes: some rows have a place or a value that is in no list."""
    columns: dict[str, Any] = {}
    for name in domain.names:
        odd: Any = 1e9 if rows[name].dtype.kind == "f" else "none such"
        columns[name] = pa.array([odd if bad else x for x, bad in zip(rows[name].tolist(), rng.random(len(rows)) < 0.03,
                                                                      strict=True)])  # fmt: skip
    columns["when"] = pa.array(START + rng.integers(0, ticks * 86_400, len(rows)).astype("timedelta64[s]"))
    columns["sign"] = np.where(rng.random(len(rows)) < 0.8, 1, -1).astype(np.int32)
    path = folder / "events.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=100)
    place, attributes = domain.location, tuple(attribute.to_dict() for attribute in domain.attributes)
    read = Columns(place.names, "when", "sign", names=isinstance(place, phd.Hierarchy), attributes=attributes)
    return Invented(path, domain, RowCoder(domain, CLOCK, read, Reading(drop_bad=True)))


def gathered(events: Invented, last: int = TICKS) -> Gathered:
    """The same file, read as `phdstream run` reads it."""
    found = Gathered(events.domain, CLOCK, 1, last, 1 << 30, lambda: (_ for _ in ()).throw(AssertionError))
    record = FileRecord(fingerprint(events.path))
    for some in read_events([events.path], events.coder.columns, events.coder.reading):
        found.take(some, record)
    return found


def same(one: phd.Release, other: phd.Release) -> bool:
    """Whether two releases are equal to the bit."""
    mine, yours = one.to_arrays(), other.to_arrays()
    return mine.keys() == yours.keys() and all(np.array_equal(mine[name], yours[name]) for name in mine)
