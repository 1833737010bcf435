"""Files of rows for `phdstream run`, gathered by tick on a cluster. **Private.**

It does what `phdstream.io.sources.gathering` does here: rows are read once and placed, those of a tick are handed over
when it is counted, and what each file holds of each tick is noted, so that nothing is counted twice because a file came
back changed. Only numbers and sums of hashes reach the driver for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from phdstream.engines.settings import EngineSettings
from phdstream.engines.spark.batch import Gathering
from phdstream.engines.spark.counting import SparkEngine
from phdstream.engines.spark.encoding import RowCoder
from phdstream.engines.spark.session import make_session
from phdstream.engines.spark.ticks import TickHolder
from phdstream.errors import InputError
from phdstream.io.sources.counted_inputs import FileRecord
from phdstream.io.sources.inventory import Print
from phdstream.io.sources.tally import Tally
from phdstream.streams.durable.stream import DurableStream
from phdstream.streams.engine import HeldEvents, close_engine, open_engine

__all__ = ["SparkGathered", "open_spark"]


def open_spark(settings: EngineSettings) -> SparkEngine:
    """Return the engine of a configuration, open: a stream that is loaded finds its open block."""
    engine = SparkEngine(make_session(settings.master, settings.properties), settings.storage)
    open_engine(engine)
    return engine


class SparkGathered:
    """The events of ticks ``first`` to ``last`` from Parquet files, on a cluster; see `Gathered`."""

    def __init__(
        self, engine: SparkEngine, stream: DurableStream, coder: RowCoder, files: list[Print], first: int, last: int
    ) -> None:
        self._engine, self._holder = engine, TickHolder(engine, stream.unit, stream.deletes)
        self.tally, self.per_tick = Tally(), Counter[int]()
        self.sample: dict[bool, list[Any]] = {True: [], False: []}
        self.further: Callable[[int, int], list[Any]] = lambda tick, sign: []
        self._rows: Gathering | None = None
        self.records = [FileRecord(one) for one in files]
        self.counted(stream)
        if files:
            self._read(coder, files, first, last)

    def _read(self, coder: RowCoder, files: list[Print], first: int, last: int) -> None:
        from pyspark.sql import functions as sql

        for one in files:
            if one.path.suffix.lower() not in (".parquet", ".pq"):
                raise InputError(f"{one.path} is not Parquet: with [engine] type = 'spark' all files must be.")
        frame = self._engine.session.read.parquet(*(one.path.as_uri() for one in files))
        frame = frame.withColumn(RowCoder.FILE, sql.input_file_name())
        self._rows = Gathering(self._engine, coder.coded(frame), first, last)
        count = coder.clock.count
        for path, tick, number, total in self._rows.summary():
            self._note(path, tick, number, total)
            kind = "before" if tick < 1 else "after" if count is not None and tick > count else ""
            kind = kind or ("late" if tick < first else "early" if tick > last else "usable")
            setattr(self.tally, kind, getattr(self.tally, kind) + number)
            if kind == "usable":
                self.per_tick[tick] += number
        self.tally.outside = frame.count() - self.tally.placed

    def _note(self, path: str, tick: int, number: int, total: int) -> None:
        """Note what a file holds of a tick, under its own name."""
        (record,) = [one for one in self.records if one.print.path == Path(unquote(urlparse(path).path))]
        record.ticks[tick] = number, total

    def tick(self, number: int, keep: bool = False) -> tuple[HeldEvents, HeldEvents | None]:
        """Return the inserts and the deletes of a tick, held by the engine."""
        return self._holder.hold(number, self._rows.tick(number) if self._rows else self._nothing())

    def _nothing(self) -> Any:
        schema = "sign int, code long, time long, user binary"
        return self._engine.session.createDataFrame([], schema)

    def counted(self, stream: DurableStream) -> None:
        """Forget what a stream no longer needs, now that its last tick is committed."""
        self._holder.tidy(stream)

    def close(self) -> None:
        """Let go of the rows. The session stays: it may be another's."""
        if self._rows is not None:
            self._rows.close()
        close_engine(self._engine)
