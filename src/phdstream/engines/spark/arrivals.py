"""Which tick takes a row that arrived when it did, and the rows of accepted micro-batches until then. **Private.**

A batch is a folder of the engine's storage with a folder for each tick. What becomes of a row depends on its own time,
on when it arrived and on the public schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from phdstream.engines.spark.counting import SparkEngine
from phdstream.engines.spark.encoding import RowCoder, ticks_since
from phdstream.errors import InputError
from phdstream.io.sources.clock import Clock

__all__ = ["Arrivals"]

_INTAKE, _BATCH, _TICK = "intake", "batch-", "tick="
_MICROSECOND = timedelta(microseconds=1)
_NOT_SAID = 'a row does not say when it arrived: mend the data, or set bad_rows = "drop" to leave such rows out.'


@dataclass(frozen=True)
class Arrivals:
    """Puts the rows of batches into the ticks that take them, and keeps them. ``late`` is "refuse" or "next".

    With ``ahead``, a row whose time lies further than that after its arrival, and after the tick that is open then, is
    left out.
    """

    engine: SparkEngine
    coder: RowCoder
    late: str
    ahead: timedelta | None = None

    def __post_init__(self) -> None:
        if self.late not in ("refuse", "next"):
            raise InputError(f'late must be "refuse" or "next", not {self.late!r}.')
        if not self.coder.clock.zone:
            raise InputError(
                "a stream by arrival needs [ticks] start with a time zone, such as 2026-01-01T00:00:00Z: it is "
                "compared with when rows arrived."
            )

    def write(self, frame: Any, batch: int, begun: int, released: int) -> None:
        """Write a batch, begun at a time in microseconds, when ``released`` was the last tick; one there is replaced.

        Also its ticks of an earlier attempt that have no rows now.
        """
        rows = self._taken(self.coder.coded(frame), begun, released)
        self.engine.files.replace(f"{_INTAKE}/{_name(batch)}", rows, by="tick")

    def _path(self, name: str) -> str:
        return f"{self.engine.storage}/{_INTAKE}/{name}"

    def _taken(self, coded: Any, begun: int, released: int) -> Any:
        """Return coded rows in the ticks that take them; those that none takes are left out."""
        from pyspark.sql import functions as sql

        clock = self.coder.clock
        coded = self._said(coded) if self.coder.arrived else coded.withColumn("arrived", sql.lit(begun).cast("long"))
        over = _ticks_until(clock, clock.grace)
        rows = self._scheduled(coded).withColumn("closed", sql.greatest(over, sql.lit(released).cast("long")))
        if self.ahead is not None:
            rows = rows.filter(sql.col("tick") <= sql.greatest(_ticks_until(clock, -self.ahead), sql.lit(0)) + 1)
        if self.late == "next":
            rows = self._scheduled(rows.withColumn("tick", sql.greatest(sql.col("tick"), sql.col("closed") + 1)))
        return rows.filter(sql.col("tick") > sql.col("closed")).drop("closed", "arrived")

    def _scheduled(self, rows: Any) -> Any:
        """Return the rows of ticks that there are."""
        count = self.coder.clock.count
        return rows.filter("tick >= 1" if count is None else f"tick between 1 and {count}")

    def _said(self, coded: Any) -> Any:
        """Return the rows that say when they arrived; unless bad ones are to be dropped, the first of them stops."""
        from pyspark.sql import functions as sql

        there = sql.col("arrived").isNotNull()
        if self.coder.reading.drop_bad:
            return coded.filter(there)
        stop = sql.raise_error(sql.lit(_NOT_SAID)).cast("boolean")
        return coded.filter(sql.when(there, sql.lit(True)).otherwise(stop))

    def rows(self, tick: int, accepted: int) -> Any:
        """Return the rows of a tick from all batches up to the last that was accepted."""
        from pyspark.sql.types import StructType

        session, files = self.engine.session, self.engine.files
        schema = StructType.fromDDL(self.coder.stored_schema)
        names = [f"{name}/{_TICK}{tick}" for name in self._batches() if _number(name) <= accepted]
        there = [self._path(name) for name in names if files.exists(f"{_INTAKE}/{name}")]
        return session.read.schema(schema).parquet(*there) if there else session.createDataFrame([], schema)

    def _batches(self) -> list[str]:
        return [name for name in self.engine.files.names(_INTAKE) if name.startswith(_BATCH)]

    def tidy(self, released: int, accepted: int) -> None:
        """Delete rows of ticks up to ``released``, and accepted batches that hold no others."""
        files = self.engine.files
        for batch in self._batches():
            ticks = [name for name in files.names(f"{_INTAKE}/{batch}") if name.startswith(_TICK)]
            done = [name for name in ticks if int(name.removeprefix(_TICK)) <= released]
            for name in done:
                files.delete(f"{_INTAKE}/{batch}/{name}")
            if len(done) == len(ticks) and _number(batch) <= accepted:
                files.delete(f"{_INTAKE}/{batch}")


def _ticks_until(clock: Clock, wait: timedelta) -> Any:
    """Return how many ticks had ended, and ``wait`` had passed since, when a row arrived."""
    return ticks_since("arrived", clock.first_us + wait // _MICROSECOND, clock.every)


def _name(batch: int) -> str:
    return f"{_BATCH}{batch:010d}"


def _number(name: str) -> int:
    return int(name.removeprefix(_BATCH))
