"""Rows that arrive, on time or late; what a plain local run releases of them; and a live stream that a test drives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import phdstream as phd
from phdstream.engines.spark import SparkEngine
from phdstream.engines.spark.encoding import RowCoder
from phdstream.engines.spark.streaming import SparkStreaming
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.reading import Reading
from phdstream.privacy import Simulation

START, HOUR, GRACE = datetime(2026, 1, 1, tzinfo=UTC), 3600, 600
CLOCK = Clock.between(START, None, "1h", "10m")
BOX = phd.Box([(0, 1), (0, 1)], depth=12)
SCHEMA = "x0 double, x1 double, when timestamp, sign int, who string, arrived timestamp"
_FIRST = np.datetime64("2026-01-01", "us")


def after(hours: float) -> datetime:
    """A moment so many hours after the first tick began."""
    return START + timedelta(hours=hours)


def arriving(rows: int = 240, ticks: int = 3, seed: int = 1) -> dict[str, Any]:
    """Rows of some ticks: seconds of their own time and of their arrival, most soon after, some much later."""
    rng = np.random.default_rng(seed)
    own = rng.integers(-HOUR // 4, ticks * HOUR, rows)
    delay = np.where(rng.random(rows) < 0.7, rng.integers(0, GRACE, rows), rng.integers(0, 2 * HOUR, rows))
    return {
        "x": np.round(rng.random((rows, 2)) * 1.05, 2),
        "own": own,
        "arrived": np.maximum(own + delay, 0),
        "sign": np.where(rng.random(rows) < 0.8, 1, -1),
        "who": np.array([f"user {n}" for n in rng.integers(0, 30, rows)]),
    }


def some(rows: dict[str, Any], at: Any) -> dict[str, Any]:
    return {name: column[at] for name, column in rows.items()}


def table(rows: dict[str, Any]) -> pa.Table:
    def when(seconds: Any) -> pa.Array:
        return pa.array(_FIRST + seconds.astype("timedelta64[s]"), pa.timestamp("us", "UTC"))

    return pa.table(
        {"x0": rows["x"][:, 0], "x1": rows["x"][:, 1], "when": when(rows["own"])}
        | {"sign": pa.array(rows["sign"], pa.int32()), "who": rows["who"], "arrived": when(rows["arrived"])}
    )


def ticks_of(rows: dict[str, Any], late: str) -> Any:
    """The tick that takes each row by the rule, said anew; 0 for those that none takes."""
    tick, closed = rows["own"] // HOUR + 1, np.maximum(0, (rows["arrived"] - GRACE) // HOUR)
    taken = tick if late == "refuse" else np.maximum(tick, closed + 1)
    return np.where((tick >= 1) & (taken > closed), taken, 0)


def new_stream(unit: Any = None) -> phd.TrackingStream:
    return phd.TrackingStream(BOX, 2.0, unit or phd.Event(), noise=Simulation(5))


def local_releases(rows: dict[str, Any], ticks: Any, last: int, unit: Any = None) -> list[phd.Release]:
    """What a plain local run releases, given the tick of each row."""
    stream, order = new_stream(unit), np.lexsort([BOX.encode(rows["x"])[0], rows["own"]])
    rows, ticks = some(rows, order), ticks[order]
    releases = []
    for number in range(1, last + 1):
        come, gone = (some(rows, (ticks == number) & (rows["sign"] == sign)) for sign in (1, -1))
        users = {} if unit is None else {"users": come["who"].tolist(), "delete_users": gone["who"].tolist()}
        releases.append(stream.update(come["x"], gone["x"], **users))
    return releases


def coder(arrived: bool = True, users: bool = False, drop_bad: bool = True) -> RowCoder:
    columns = Columns(("x0", "x1"), "when", "sign", "who" if users else None)
    return RowCoder(BOX, CLOCK, columns, Reading(zone=True, drop_bad=drop_bad), "arrived" if arrived else None)


class Live:
    """A stream from a folder of Parquet files, at a time that the test says. Made again, it goes on."""

    def __init__(self, spark: Any, folder: Path, *, unit: Any = None, arrived: bool = True, late: str = "refuse",
                 drop_bad: bool = True) -> None:  # fmt: skip
        self.now, self.folder, self.spark = START, folder, spark
        self.published: list[phd.Release] = []
        (folder / "in").mkdir(exist_ok=True, parents=True)
        self.engine = SparkEngine(spark, str(folder / "storage"))
        self.stream = phd.durable(folder / "state", new_stream(unit))
        try:
            self.live = SparkStreaming(
                self.stream, self.engine, coder(arrived, unit is not None, drop_bad), late=late,
                publish=lambda release: self.published.append(release), now=lambda: self.now,
            )  # fmt: skip
        except BaseException:
            self.stream.close()
            raise

    def start(self, **trigger: Any) -> Any:
        return self.live.start(self.spark.readStream.schema(SCHEMA).parquet(str(self.folder / "in")), **trigger)

    def drop(self, rows: dict[str, Any], name: str) -> None:
        """Put rows into the folder, whole."""
        drop(self.folder / "in", rows, name)

    def release(self, hours: float) -> list[int]:
        self.now = after(hours)
        return self.live.release_due()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *error: Any) -> None:
        self.live.stop()
        self.stream.close()


def drop(folder: Path, rows: dict[str, Any], name: str) -> None:
    hidden = folder / f"_{name}"
    pq.write_table(table(rows), hidden)
    hidden.rename(folder / f"{name}.parquet")


def cut(rows: dict[str, Any], at: Sequence[float]) -> list[dict[str, Any]]:
    """The rows by their arrival, cut at some hours."""
    edges = [-1e9, *(hour * HOUR for hour in at), 1e18]
    return [some(rows, (rows["arrived"] >= low) & (rows["arrived"] < high)) for low, high in pairwise(edges)]
