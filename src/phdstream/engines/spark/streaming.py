"""Structured Streaming: micro-batches in, ticks out by the public schedule, each event once. **Private.**

*By the schedule.* An event goes to the tick of its own time if it arrived before that tick closed (``grace`` after its
end); a later one is refused, or goes to the earliest tick that was open when it arrived. It arrived at the time that
the column ``arrived`` says (the broker's own), or else when its micro-batch was begun for the first time. Spark's
watermarks, which move with the times of *other* events, are not used.

*Once.* A micro-batch is written to a folder of its own, and then noted as accepted in the stream's private folder,
durably. After a crash Spark hands over the same batch again, under the same number: if it was noted, it is left out;
if not, its folder is written anew. Its numbers mean something only together with Spark's checkpoint, so that is kept in
the engine's storage, and a stream whose checkpoint is gone is refused: batches would begin anew at 0.

*Closing a tick* waits until Spark has finished a batch that it began after the tick closed: what had arrived by then is
read. (So a source must not be limited to so many rows a batch.) The tick's rows of all accepted batches are then held,
counted, committed and published as in a batch run, and deleted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from phdstream.engines.spark.counting import SparkEngine
from phdstream.engines.spark.encoding import RowCoder
from phdstream.engines.spark.ticks import TickHolder
from phdstream.errors import StateError
from phdstream.release import Release
from phdstream.streams.durable.stream import DurableStream
from phdstream.streams.engine import open_engine

__all__ = ["SparkStreaming"]

_NOTES = "spark-batches"
_INTAKE, _CHECKPOINT = "intake", "checkpoint"
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE, _LOOK = 600.0, 0.2
"""Seconds to wait for a batch, and between two looks."""


def _now() -> datetime:
    return datetime.now(UTC)


class SparkStreaming:
    """Feeds a durable stream from a streaming frame. `start` begins to take batches; `release_due` releases ticks.

    ``late`` is ``"refuse"`` or ``"next"``; ``publish`` is given every release after its commit, and at the start the
    last one again; ``now`` tells the time.
    """

    def __init__(
        self,
        stream: DurableStream,
        engine: SparkEngine,
        coder: RowCoder,
        *,
        late: str = "refuse",
        publish: Callable[[Release], object] = lambda release: None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._stream, self._engine, self._coder, self._late = stream, engine, coder, late
        self._publish, self._now = publish, now
        self._holder, self._lock = TickHolder(engine, stream.unit), threading.RLock()
        self._query: Any = None
        open_engine(engine)
        stream.begin()
        saved = stream.read_extra(_NOTES)
        self._accepted: int = -1 if saved is None else saved[0]["accepted"]
        self._begun: dict[str, int] = {} if saved is None else saved[0]["begun"]
        self._check_checkpoint()
        self._tidy()
        if stream.release is not None:
            publish(stream.release)

    def _check_checkpoint(self) -> None:
        if self._accepted >= 0 and not self._engine.files.exists(f"{_CHECKPOINT}/metadata"):
            raise StateError(
                f"{self._engine.storage}/{_CHECKPOINT}, where Spark notes what it has read, is gone: events would be "
                "read and counted twice. Restore it."
            )

    def start(self, frame: Any, **trigger: Any) -> Any:
        """Begin to take micro-batches of a streaming frame; return Spark's query. ``trigger`` is Spark's."""
        self._engine.session.conf.set("spark.sql.streaming.noDataProgressEventInterval", "500")
        writer = frame.writeStream.foreachBatch(self.accept)
        writer = writer.option("checkpointLocation", f"{self._engine.storage}/{_CHECKPOINT}")
        self._query = writer.trigger(**(trigger or {"processingTime": "500 milliseconds"})).start()
        return self._query

    def accept(self, frame: Any, batch: int) -> None:
        """Take a micro-batch, once."""
        with self._lock:
            if batch <= self._accepted:
                return
            arrived = self._arrival(batch)
            placed = self._placed(self._coder.coded(frame), arrived)
            placed.write.mode("overwrite").partitionBy("tick").parquet(self._folder(batch))
            self._begun.pop(str(batch), None)
            self._accepted = batch
            self._note()

    def _arrival(self, batch: int) -> int:
        """Return when a batch was begun for the first time, in microseconds."""
        if self._coder.arrived is None and str(batch) not in self._begun:
            self._begun = {str(batch): (self._now() - _EPOCH) // _MICROSECOND}
            self._note()
        return self._begun.get(str(batch), 0)

    def _note(self) -> None:
        self._stream.write_extra(_NOTES, {"accepted": self._accepted, "begun": self._begun}, {})

    def _folder(self, batch: int) -> str:
        return f"{self._engine.storage}/{_INTAKE}/batch-{batch:010d}"

    def _placed(self, coded: Any, arrived: int) -> Any:
        """Return coded rows in the ticks that take them; those that none takes are left out."""
        from pyspark.sql import functions as sql

        clock = self._coder.clock
        if self._coder.arrived is None:
            coded = coded.withColumn("arrived", sql.lit(arrived).cast("long"))
        start, every = clock.first_us + clock.grace // _MICROSECOND, clock.every // _MICROSECOND
        since = f"(arrived - {start}L)"
        over = sql.expr(f"({since} - pmod({since}, {every}L)) div {every}L")
        rows = coded.withColumn("closed", sql.greatest(over, sql.lit(self._stream.tick)))
        rows = rows.filter(sql.col("tick") >= 1)
        rows = rows if clock.count is None else rows.filter(sql.col("tick") <= clock.count)
        if self._late == "next":
            rows = rows.withColumn("tick", sql.greatest(sql.col("tick"), sql.col("closed") + 1))
            rows = rows if clock.count is None else rows.filter(sql.col("tick") <= clock.count)
        return rows.filter(sql.col("tick") > sql.col("closed")).drop("closed", "arrived")

    def release_due(self) -> list[int]:
        """Release every tick that is over, once all that had arrived by then is read; return their numbers."""
        last = self._coder.clock.over(self._now())
        if last <= self._stream.tick:
            return []
        self._wait_until_read()
        released = []
        while self._stream.tick < last:
            with self._lock:
                number = self._stream.tick + 1
                release = self._stream.update(*self._holder.hold(number, self._rows(number)))
                self._publish(release)
                self._tidy()
                released.append(number)
        return released

    def _wait_until_read(self) -> None:
        """Wait until Spark has finished a batch, or found nothing new, that it began after this moment."""
        if self._query is None:
            return
        moment, patience = datetime.now(UTC), time.monotonic() + _PATIENCE
        while time.monotonic() < patience:
            if (error := self._query.exception()) is not None:
                raise StateError("the query that reads events has failed: see Spark's log.") from error
            progress = self._query.lastProgress
            if progress is not None and datetime.fromisoformat(_timestamp(progress)) >= moment:
                return
            if not self._query.isActive:
                return  # it was asked to read what there is, and has
            time.sleep(_LOOK)
        raise StateError("Spark has not read what had arrived when a tick closed: the tick waits.")

    def _rows(self, tick: int) -> Any:
        """Return the rows of a tick from all accepted batches."""
        from pyspark.sql.types import StructType

        session, names = self._engine.session, self._engine.files.names(_INTAKE)
        schema = StructType.fromDDL(self._coder.stored_schema)
        there = [
            f"{self._engine.storage}/{_INTAKE}/{name}/tick={tick}"
            for name in names
            if int(name.removeprefix("batch-")) <= self._accepted
            and self._engine.files.exists(f"{_INTAKE}/{name}/tick={tick}")
        ]
        return session.read.schema(schema).parquet(*there) if there else session.createDataFrame([], schema)

    def _tidy(self) -> None:
        """Delete what the stream no longer needs: rows of ticks that are committed, batches that are empty."""
        self._holder.tidy(self._stream)
        files = self._engine.files
        for batch in files.names(_INTAKE):
            ticks = [name for name in files.names(f"{_INTAKE}/{batch}") if name.startswith("tick=")]
            done = [name for name in ticks if int(name.removeprefix("tick=")) <= self._stream.tick]
            for name in done:
                files.delete(f"{_INTAKE}/{batch}/{name}")
            if len(done) == len(ticks) and int(batch.removeprefix("batch-")) <= self._accepted:
                files.delete(f"{_INTAKE}/{batch}")

    def stop(self) -> None:
        """Take no more batches."""
        if self._query is not None:
            self._query.stop()


def _timestamp(progress: Any) -> str:
    """Return when a batch began: a dictionary before Spark 4, an object since."""
    return str(progress["timestamp"] if isinstance(progress, dict) else progress.timestamp)
