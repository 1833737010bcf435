"""Structured Streaming: micro-batches in, ticks out by the public schedule, each event once. **Private.**

*By the schedule.* An event goes to the tick of its own time if it arrived before that tick closed (``grace`` after its
end); a later one is refused, or goes to the earliest tick that was open when it arrived. It arrived at the time that
the column ``arrived`` says (the broker's own), or else when its micro-batch was begun for the first time. Spark's
watermarks, which move with the times of *other* events, are not used.

*Once.* A micro-batch is written to a folder of its own, and then noted as accepted in the stream's private folder,
durably. After a crash Spark hands over the same batch again, under the same number: if it was noted, it is left out;
if not, its folder is written anew. Its numbers mean something only together with Spark's checkpoint, so that is kept in
the engine's storage, and a stream whose checkpoint is gone, or older, is refused: other rows would come under numbers
that were taken.

*Closing a tick* waits until Spark has finished a batch that it began, and planned, after the tick closed: what had
arrived by then is read. (So a source must not be limited to so many rows a batch. A batch that an earlier process had
planned is begun anew at the start, with what it was to read then: it does not count.) The tick's rows of all accepted
batches are then held, counted, committed and published as in a batch run, and deleted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from phdstream.engines.spark.arrivals import Arrivals
from phdstream.engines.spark.counting import SparkEngine
from phdstream.engines.spark.encoding import RowCoder
from phdstream.engines.spark.ticks import TickHolder
from phdstream.errors import StateError
from phdstream.release import Release
from phdstream.streams.durable.stream import DurableStream
from phdstream.streams.engine import open_engine

__all__ = ["SparkStreaming"]

_NOTES = "spark-batches"
_CHECKPOINT = "checkpoint"
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE, _LOOK = 600.0, 0.2
"""Seconds to wait for a batch, and between two looks."""


def _now() -> datetime:
    return datetime.now(UTC)


class SparkStreaming:
    """Feeds a durable stream from a streaming frame. `start` begins to take batches; `release_due` releases ticks.

    ``late`` is ``"refuse"`` or ``"next"``, and ``ahead`` as for `Arrivals`; ``publish`` is given every release after
    its commit, in order, and at the start the last one again; ``now`` tells the time, with a zone.
    """

    def __init__(
        self,
        stream: DurableStream,
        engine: SparkEngine,
        coder: RowCoder,
        *,
        late: str = "refuse",
        ahead: timedelta | None = None,
        publish: Callable[[Release], object] = lambda release: None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._stream, self._engine, self._coder = stream, engine, coder
        self._publish, self._now = publish, now
        self._arrivals = Arrivals(engine, coder, late, ahead)
        self._holder, self._lock = TickHolder(engine, stream.unit, stream.deletes), threading.RLock()
        self._query: Any = None
        self._stopped, self._started = False, _EPOCH
        self._planned, self._anew = -1, _EPOCH
        open_engine(engine)
        stream.begin()
        saved = stream.read_extra(_NOTES)
        self._accepted: int = -1 if saved is None else saved[0]["accepted"]
        self._begun: dict[str, int] = {} if saved is None else saved[0]["begun"]
        self._check_checkpoint()
        self._unpublished = stream.release
        self._tidy()
        self._publish_last()

    def _check_checkpoint(self) -> None:
        """Refuse a checkpoint that does not know the last accepted batch, and one that was there before the stream."""
        there = self._planned_batches()
        if self._accepted >= 0 and self._accepted not in there:
            raise StateError(
                f"{self._engine.storage}/{_CHECKPOINT}, where Spark notes what it has read, is gone or older than the "
                "stream: events would be lost, or counted twice. Restore it."
            )
        if max(there, default=-1) > self._accepted + 1:
            raise StateError(
                f"{self._engine.storage}/{_CHECKPOINT} is of another stream, or the stream's private folder is an "
                "older one: events would be lost. Restore it, or choose a new storage for a new stream."
            )

    def _planned_batches(self) -> set[int]:
        """Return the numbers of the batches of which Spark has noted what they are to read."""
        names = self._engine.files.names(f"{_CHECKPOINT}/offsets")
        return {int(name) for name in names if name.isdecimal()}

    def start(self, frame: Any, **trigger: Any) -> Any:
        """Begin to take micro-batches of a streaming frame; return Spark's query. ``trigger`` is Spark's."""
        self._engine.session.conf.set("spark.sql.streaming.noDataProgressEventInterval", "500")
        writer = frame.writeStream.foreachBatch(self.accept)
        writer = writer.option("checkpointLocation", f"{self._engine.storage}/{_CHECKPOINT}")
        self._started, self._planned = self._now(), max(self._planned_batches(), default=-1)
        self._query = writer.trigger(**(trigger or {"processingTime": "500 milliseconds"})).start()
        return self._query

    def accept(self, frame: Any, batch: int) -> None:
        """Take a micro-batch, once."""
        with self._lock:
            if self._stopped:
                raise StateError("the stream was stopped: this batch is for whoever goes on with it.")
            if batch <= self._planned:
                self._anew = datetime.now(UTC)
            if batch <= self._accepted:
                return
            self._write(frame, batch)
            self._note(batch, {})

    def _write(self, frame: Any, batch: int) -> None:
        self._arrivals.write(frame, batch, self._arrival(batch), self._stream.tick)

    def _arrival(self, batch: int) -> int:
        """Return when a batch was begun for the first time, in microseconds."""
        if self._coder.arrived is None and str(batch) not in self._begun:
            self._note(self._accepted, {str(batch): (self._now() - _EPOCH) // _MICROSECOND})
        return self._begun.get(str(batch), 0)

    def _note(self, accepted: int, begun: dict[str, int]) -> None:
        self._stream.write_extra(_NOTES, {"accepted": accepted, "begun": begun}, {})
        self._accepted, self._begun = accepted, begun

    def release_due(self) -> list[int]:
        """Release every tick that is over, once all that had arrived by then is read; return their numbers."""
        self._publish_last()
        now = self._now()
        last = self._coder.clock.over(now if self._wait_until_read(now) else self._started)
        released = []
        while self._stream.tick < last:
            with self._lock:
                number = self._stream.tick + 1
                rows = self._arrivals.rows(number, self._accepted)
                self._unpublished = self._stream.update(*self._holder.hold(number, rows))
                self._publish_last()
                self._tidy()
                released.append(number)
        return released

    def _publish_last(self) -> None:
        """Publish the last release, unless that was done: no later tick is released before."""
        with self._lock:
            if self._unpublished is not None:
                self._publish(self._unpublished)
                self._unpublished = None

    def _wait_until_read(self, now: datetime) -> bool:
        """Wait, if a tick is over, until Spark has finished a batch, or found nothing new, that it began after this.

        False if it was asked to read what there was when it started, and has: what came since is not read.
        """
        if self._query is None or self._stopped:
            raise StateError("no query reads what has arrived: a tick is released only while one does.")
        moment, patience = datetime.now(UTC), time.monotonic() + _PATIENCE
        while self._coder.clock.over(now) > self._stream.tick:
            active, progress = self._query.isActive, self._query.lastProgress
            if (error := self._query.exception()) is not None:
                raise StateError("the query that reads events has failed: see Spark's log.") from error
            if not active:
                return False
            if progress is not None and datetime.fromisoformat(_timestamp(progress)) >= max(moment, self._anew):
                return True
            if time.monotonic() > patience:
                raise StateError("Spark has not read what had arrived when a tick closed: the tick waits.")
            time.sleep(_LOOK)
        return True

    def _tidy(self) -> None:
        """Delete what the stream no longer needs: rows of ticks that are committed, batches that are empty."""
        self._holder.tidy(self._stream)
        self._arrivals.tidy(self._stream.tick, self._accepted)

    def stop(self) -> None:
        """Take no more batches; one that is being taken is finished before."""
        with self._lock:  # not while Spark stops: it waits for a batch that may wait for the lock
            self._stopped = True
        if self._query is not None:
            self._query.stop()


def _timestamp(progress: Any) -> str:
    """Return when a batch began: a dictionary before Spark 4, an object since."""
    return str(progress["timestamp"] if isinstance(progress, dict) else progress.timestamp)
