"""All ticks of a table of rows, from a DataFrame to releases. **Private but for what it yields.**"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phdstream.engines.spark.counting import SparkEngine
from phdstream.engines.spark.encoding import RowCoder
from phdstream.engines.spark.ticks import TickHolder
from phdstream.release import Release
from phdstream.streams.durable.stream import DurableStream
from phdstream.streams.engine import open_engine
from phdstream.streams.stream import Stream

__all__ = ["Gathering", "run_batch"]

_GATHERED, _FOLDER = "gathered", "folder"


class Gathering:
    """Coded rows, kept on the cluster by tick until they are counted: rows are read and placed once.

    Rows of ticks before ``first``, and those after ``last``, are kept together, however many ticks they name.
    """

    def __init__(self, engine: SparkEngine, coded: Any, first: int, last: int) -> None:
        from pyspark.sql import functions as sql

        self._engine, self._path = engine, f"{engine.storage}/{_GATHERED}"
        folder = sql.greatest(sql.lit(first - 1), sql.least("tick", sql.lit(last + 1))).cast("long")
        coded = coded.withColumn(_FOLDER, folder)
        engine.files.replace(_GATHERED, coded, by=_FOLDER)
        self._schema = coded.schema

    def tick(self, number: int) -> Any:
        """Return the coded rows of a tick."""
        return self._engine.session.read.schema(self._schema).parquet(self._path).filter(f"{_FOLDER} = {number}")

    def summary(self) -> list[tuple[str, int, int, int]]:
        """Return, for each file and tick, how many rows there are and a sum of their hashes, in any order the same."""
        from pyspark.sql import functions as sql

        rows = self._engine.session.read.schema(self._schema).parquet(self._path)
        hashed = sql.xxhash64(*(name for name in rows.columns if name not in ("file", _FOLDER))).cast("decimal(38,0)")
        found = rows.groupBy("file", "tick").agg(sql.count("*").alias("rows"), sql.sum(hashed).alias("hashes"))
        return [(row.file, row.tick, row.rows, int(row.hashes) % (1 << 64)) for row in found.collect()]

    def close(self) -> None:
        """Forget the rows."""
        self._engine.files.delete(_GATHERED)


def run_batch(
    stream: Stream | DurableStream, engine: SparkEngine, frame: Any, coder: RowCoder, last: int
) -> Iterator[Release]:
    """Take the stream's next ticks, up to ``last``, from the rows of a frame; yield each release, committed.

    A `DurableStream` that was stopped at any instant goes on with the same call: ticks that were committed are left
    out, and whatever of the next one was written to the cluster is written anew.
    """
    open_engine(engine)
    holder = TickHolder(engine, stream.unit, stream.deletes)
    first = stream.tick + 1
    gathering = Gathering(engine, coder.coded(frame).filter(f"tick between {first} and {last}"), first, last)
    try:
        for number in range(first, last + 1):
            release = stream.update(*holder.hold(number, gathering.tick(number)))
            holder.tidy(stream)
            yield release
    finally:
        gathering.close()
