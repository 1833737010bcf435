"""From rows to ticks and codes on a cluster: what becomes of a row depends on that row alone. **Private.**

Where the columns are plain numbers and times, and the domain's codes can be said in SQL, no row is seen by Python (but
for a region's edges: see `phdstream.engines.spark.codes`). For other domains and columns whole Arrow batches go through
the code that reads files (`phdstream.io.sources`), in the workers' own Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from phdstream.domains import Domain
from phdstream.engines.spark.codes import domain_at_hand, in_sql, with_codes
from phdstream.errors import InputError
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import rows_and_good
from phdstream.io.sources.reading import Reading, Rows
from phdstream.privacy.user_ids import LONGEST_ID

__all__ = ["RowCoder", "ticks_since"]

_MICROSECOND = timedelta(microseconds=1)
_FAR = 1 << 61
"""Microseconds beyond all calendars: sums of two such times are still 64-bit numbers."""
_UNREADABLE = 'a row cannot be read: mend the data, or set bad_rows = "drop" to leave such rows out.'
_NUMBERS = ("double", "float", "tinyint", "smallint", "int")
_MORE = {"arrived": "arrived long", "file": "file string"}
_WHOLE = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class RowCoder:
    """Places the rows of frames: which columns hold what, how times become ticks and places codes. All public.

    ``arrived`` may name a column that says when a row arrived; it is passed on, and so is a column `FILE`.
    """

    FILE: ClassVar[str] = "phdstream file"

    domain: Domain
    clock: Clock
    columns: Columns
    reading: Reading = field(default_factory=Reading)
    arrived: str | None = None

    def coded(self, frame: Any) -> Any:
        """Return a frame of ``tick``, ``sign``, ``code`` and, with users, ``time`` (µs) and ``user``.

        Rows outside the domain are left out; ticks may be any number, also below 1.
        """
        self._check(frame)
        more = ({"arrived": self.arrived} if self.arrived else {}) | (
            {"file": self.FILE} if self.FILE in frame.columns else {}
        )
        frame = frame.select(*(sql_name(name) for name in dict.fromkeys([*self.columns.needed, *more.values()])))
        schema = ", ".join(["tick long", self.stored_schema, *(_MORE[name] for name in more)])
        if self.in_sql(frame):
            return self._by_sql(frame, more).select(*(column.split()[0] for column in schema.split(", ")))
        return frame.mapInArrow(self._by_batches(more), schema)

    @property
    def stored_schema(self) -> str:
        """The columns of coded rows but the tick: what is kept of them until they are counted."""
        return "sign int, code long" + (", time long, user binary" if self.columns.user else "")

    def _check(self, frame: Any) -> None:
        self.columns.find("the table", frame.columns, geometry=False)
        if self.columns.time is None:
            raise InputError("events on Spark need a column that says when each happened: its tick follows from it.")
        if self.arrived and dict(frame.dtypes).get(self.arrived) != "timestamp":
            raise InputError(f"column '{self.arrived}', when a row arrived, must be a timestamp.")

    def in_sql(self, frame: Any) -> bool:
        """Whether a frame's codes are said in SQL."""
        kinds, columns = dict(frame.dtypes), self.columns
        time = "timestamp" if self.reading.zone else "timestamp_ntz"
        return (
            in_sql(self.domain)
            and all(kinds[name] in _NUMBERS for name in columns.coordinates)
            and kinds[str(columns.time)] == time
            and (columns.sign is None or kinds[columns.sign] in _WHOLE)
            and (columns.user is None or kinds[columns.user] in (*_WHOLE, "string", "binary"))
        )

    def _by_sql(self, frame: Any, more: dict[str, str]) -> Any:
        from pyspark.sql import functions as sql

        points = [sql.col(sql_name(name)).cast("double") for name in self.columns.coordinates]
        good = [~sql.isnan(x) & x.isNotNull() for x in points]
        time = sql.unix_micros(sql.col(sql_name(self.columns.time)).cast("timestamp"))
        sign = _sign(sql.col(sql_name(self.columns.sign))) if self.columns.sign else sql.lit(1)
        good += [time.isNotNull(), sign.isNotNull()]
        kept = {"time": time, "sign": sign} | {
            f"x{axis}": sql.coalesce(x, sql.lit(float("nan"))) for axis, x in enumerate(points)
        }
        if self.columns.user:
            kept["user"] = _user_bytes(frame, self.columns.user)
            good.append((sql.length(kept["user"]) > 0) & (sql.length(kept["user"]) <= LONGEST_ID))
        for name, column in more.items():
            kept[name] = sql.unix_micros(sql_name(column)) if name == "arrived" else sql.col(sql_name(column))
        kept["good"] = sql.coalesce(_all(good), sql.lit(False))
        rows = _readable(frame.select(*(column.alias(name) for name, column in kept.items())), self.reading.drop_bad)
        tick = ticks_since("time", self.clock.first_us, self.clock.every) + 1
        return with_codes(rows.withColumn("tick", tick), self.domain)

    def _by_batches(self, more: dict[str, str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return what turns batches of rows into batches of coded events, in a worker's Python."""
        domain = json.dumps(self.domain.to_dict())
        clock, columns, reading = self.clock, self.columns, self.reading

        def coded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            place = domain_at_hand(domain)
            for batch in batches:
                rows = Rows(batch.select(columns.needed))
                events, good = rows_and_good("the table", 1, rows, columns, reading)
                at = np.flatnonzero(good)
                codes, inside = place.encode(events.points[at])
                at, codes = at[inside], codes[inside]
                assert events.time is not None
                table = {"tick": clock.tick_of(events.time[at]), "sign": events.sign[at].astype(np.int32)}
                table |= {"code": codes}
                if events.users is not None:
                    table |= {"time": events.time[at], "user": events.users.take(pa.array(at)).cast(pa.binary())}
                for name, column in more.items():
                    kept = batch.column(column).take(pa.array(at))
                    table[name] = kept.cast(pa.int64()) if name == "arrived" else kept
                yield pa.RecordBatch.from_pydict(table)

        return coded


def sql_name(name: Any) -> str:
    """Return a column's name as SQL takes it, whatever is in it."""
    return "`" + str(name).replace("`", "``") + "`"


def _all(conditions: list[Any]) -> Any:
    first, *others = conditions
    for condition in others:
        first = first & condition
    return first


def _readable(rows: Any, drop_bad: bool) -> Any:
    """Return the rows that can be read; unless bad ones are to be dropped, the first of them stops the job."""
    from pyspark.sql import functions as sql

    if drop_bad:
        return rows.filter("good")
    return rows.filter(
        sql.when(sql.col("good"), sql.lit(True)).otherwise(sql.raise_error(sql.lit(_UNREADABLE)).cast("boolean"))
    )


def _sign(column: Any) -> Any:
    """Return 1 or -1, or null: a cast would stop the job at a number too large, or take it for another."""
    from pyspark.sql import functions as sql

    return sql.when(column == 1, sql.lit(1)).when(column == -1, sql.lit(-1))


def ticks_since(time: str, first: int, every: timedelta) -> Any:
    """Return how many whole ticks lie between ``first`` and a column, rounded down as `Clock.tick_of` does.

    No time, however far, makes the numbers overflow: that would stop the job, and all other rows with it.
    """
    from pyspark.sql import functions as sql

    since, length = f"(greatest(least({time}, {_FAR}L), -{_FAR}L) - {first}L)", every // _MICROSECOND
    return sql.expr(f"({since} - pmod({since}, {length}L)) div {length}L")


def _user_bytes(frame: Any, name: str) -> Any:
    """Return users' ids as bytes; a whole number is its digits."""
    from pyspark.sql import functions as sql

    column, kind = sql.col(sql_name(name)), dict(frame.dtypes)[name]
    return column if kind == "binary" else column.cast("string").cast("binary")
