"""One tick's work on a file of events, by Spark and by the local engine: place, hold (and bound users), count."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import phdstream as phd
from benchmarks.rows import write_rows
from benchmarks.spark.meters import Meter
from phdstream.arrays import Ints
from phdstream.engines.spark import SparkEngine
from phdstream.engines.spark.batch import Gathering
from phdstream.engines.spark.encoding import RowCoder
from phdstream.engines.spark.ticks import TickHolder, tick_name
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.counted_inputs import FileRecord
from phdstream.io.sources.events import read_events
from phdstream.io.sources.gathering import Gathered
from phdstream.io.sources.inventory import fingerprint
from phdstream.io.sources.reading import Reading
from phdstream.privacy import ContributionBound
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.engine import HeldEvents

__all__ = ["Held", "Tick", "local_tick", "nodes_of", "spark_count", "spark_tick", "users_table", "write_events"]

BOX = phd.Box([(0, 1), (0, 1)], depth=36)
"""A square as wide as a country has cells of four metres: hardly two events have the same code."""
CLOCK = Clock.between(datetime(2024, 5, 31), None, "1d")
Held = tuple[HeldEvents, HeldEvents]
EACH = 10
"""Events of a user, on average; a user may contribute as many."""


@dataclass(frozen=True)
class Tick:
    """One tick's file: how many rows there are, and whether they have users."""

    path: Path
    rows: int
    users: bool = False

    @property
    def coder(self) -> RowCoder:
        """How the file is read."""
        return RowCoder(BOX, CLOCK, Columns(("x", "y"), "time", "sign", "who" if self.users else None), Reading())

    @property
    def unit(self) -> Any:
        """What is promised to whom."""
        return phd.User(inserts=EACH, deletes=EACH) if self.users else phd.Event()


def write_events(folder: Path, rows: int, users: bool = False) -> Tick:
    """Write a day of events as one file; with users, of ten events each on average."""
    path = folder / f"{'users' if users else 'events'}-{rows}.parquet"
    write_rows(path, rows)
    if users:
        table, rng = pq.read_table(path), np.random.default_rng(2)
        pq.write_table(table.append_column("who", pa.array(rng.integers(0, rows // EACH, len(table)))), path)
    return Tick(path, rows, users)


def nodes_of(number: int) -> Ints:
    """Return all nodes of a level that has so many (a power of two): disjoint, and nearly all with events."""
    return np.arange(number, 2 * number, dtype=np.int64)


def spark_tick(
    meter: Meter, engine: SparkEngine, tick: Tick, nodes: Ints, number: int = 1, **about: Any
) -> tuple[Ints, Held]:
    """Place, hold and count a tick's events; return the net counts, and the parts that hold inserts and deletes."""
    about |= {"engine": "spark", "rows": tick.rows, "users": tick.users, "nodes": nodes.size}
    holder = TickHolder(engine, tick.unit)
    with meter.step(step="place", **about):
        gathering = Gathering(engine, tick.coder.coded(engine.session.read.parquet(str(tick.path))), 1, 1)
    with meter.step(step="hold", **about):
        come, gone = holder.hold(number, gathering.tick(1))
    assert gone is not None
    with meter.step(step="count", **about):
        net = spark_count(engine, held := (come, gone), nodes)
    return net, held


def spark_count(engine: SparkEngine, held: Held, nodes: Ints) -> Ints:
    """Return net counts: each kind is asked for as `PrivateCodes` does it."""
    inserts, deletes = (engine.counts(events.parts, BOX.total_bits).within(nodes) for events in held)
    return inserts - deletes


def users_table(engine: SparkEngine, users: int, number: int) -> None:
    """Write tables of so many users as if they were those after a tick; none is in the file."""
    table = engine.session.range(users).selectExpr("cast(cast(-1 - id as string) as binary) as user", "1L as used")
    for kind in ("inserts", "deletes"):
        engine.files.replace(f"users/{tick_name(number)}-{kind}", table)


def local_tick(meter: Meter, tick: Tick, nodes: Ints, **about: Any) -> Ints:
    """Do the same in this process (files are read in one of their own, as always)."""
    about |= {"engine": "local", "rows": tick.rows, "users": tick.users, "nodes": nodes.size, "partitions": 1}
    with meter.step(step="place", **about):
        rows = Gathered(BOX, CLOCK, 1, 1, 1 << 34, lambda: (_ for _ in ()).throw(AssertionError))
        record = FileRecord(fingerprint(tick.path))
        for some in read_events([tick.path], tick.coder.columns, tick.coder.reading):
            rows.take(some, record)
        come, gone = rows.tick(1)
    with meter.step(step="hold", **about):
        codes = [events.codes for events in (come, gone)]
        if tick.users:
            codes = [each.codes[ContributionBound(EACH).admit(each.users)] for each in (come, gone)]
    with meter.step(step="count", **about):
        inserts, deletes = (CodeCounts(each, BOX.total_bits).within(nodes) for each in codes)
    return inserts - deletes
