"""From the coded rows of one tick to held events: bounded per user, grouped by code, written as parts. **Private.**

Bounding is `phdstream.privacy.bounding`'s, said in SQL: of every user the first events of the tick, by their time and
then their code, are kept until the user has had as many as the bound allows over the whole stream. Which of several
events at one time and place are kept makes no difference. The table of users lies with the parts, one for each tick
that may still be the last: that of tick t is made from that of t - 1, and written before t is committed. So whatever
is taken anew after a crash gives the same table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from phdstream.engines.spark.counting import SparkEngine
from phdstream.errors import InputError, StateError
from phdstream.privacy import Unit, User
from phdstream.streams.durable.stream import DurableStream
from phdstream.streams.engine import HeldEvents
from phdstream.streams.stream import Stream

__all__ = ["TickHolder", "tick_name"]

_USERS = "users"
_KINDS = (("inserts", 1), ("deletes", -1))


def tick_name(tick: int) -> str:
    """Return what a tick's folder is called.

    >>> tick_name(12)
    'tick-00000012'
    """
    return f"tick-{tick:08d}"


@dataclass(frozen=True)
class TickHolder:
    """Hands the events of ticks over to an engine, for a stream that promises to ``unit`` and may take ``deletes``."""

    engine: SparkEngine
    unit: Unit
    deletes: bool = True

    def hold(self, tick: int, coded: Any) -> tuple[HeldEvents, HeldEvents | None]:
        """Return the inserts and deletes of a tick, from its coded rows, as `Stream.update` takes them."""
        if not self.deletes and not coded.filter("sign = -1").isEmpty():
            raise InputError("this stream was declared without deletes (insert_only or window), but deletes came.")
        inserts, *deletes = (
            self._hold(tick, kind, coded.filter(f"sign = {sign}"), limit)
            for (kind, sign), limit in zip(_KINDS, self._limits(), strict=True)
            if self.deletes or sign > 0
        )
        return inserts, deletes[0] if deletes else None

    def _limits(self) -> tuple[int | None, int | None]:
        return (self.unit.inserts, self.unit.deletes) if isinstance(self.unit, User) else (None, None)

    def _hold(self, tick: int, kind: str, rows: Any, limit: int | None) -> HeldEvents:
        part = f"{tick_name(tick)}-{kind}"
        if limit is None:
            return self.engine.hold_frame(part, rows)
        return self.engine.hold_frame(part, self._bounded(tick, kind, rows, limit), limit)

    def _bounded(self, tick: int, kind: str, rows: Any, limit: int) -> Any:
        """Return the rows within their users' bounds, and write down how many events each user has had by now."""
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        used = self._used(tick - 1, kind)
        first = Window.partitionBy("user").orderBy("time", "code")
        ranked = rows.withColumn("rank", sql.row_number().over(first)).join(used, "user", "left")
        kept = ranked.filter(sql.col("rank") + sql.coalesce("used", sql.lit(0)) <= limit).select("code", "user")
        now = used.unionByName(kept.groupBy("user").agg(sql.count("*").alias("used")))
        table = now.groupBy("user").agg(sql.sum("used").cast("long").alias("used"))
        self.engine.files.replace(f"{_USERS}/{tick_name(tick)}-{kind}", table)
        return kept

    def _table(self, tick: int, kind: str) -> str:
        return f"{self.engine.storage}/{_USERS}/{tick_name(tick)}-{kind}"

    def _used(self, tick: int, kind: str) -> Any:
        """Return how many events each user has had up to a tick."""
        session, schema = self.engine.session, "user binary, used long"
        if tick == 0:
            return session.createDataFrame([], schema)
        if not self.engine.files.exists(f"{_USERS}/{tick_name(tick)}-{kind}/_SUCCESS"):
            raise StateError(
                f"{self._table(tick, kind)}, the table of users after tick {tick}, is gone: users would be given their "
                "bound anew. Restore it."
            )
        return session.read.schema(schema).parquet(self._table(tick, kind))

    def tidy(self, stream: Stream | DurableStream) -> None:
        """Forget, after a commit, all parts and tables that the stream no longer needs."""
        self.engine.keep_only(stream.held_parts(self.engine.name))
        for table in self.engine.files.names(_USERS):
            if not table.startswith(tick_name(stream.tick)):
                self.engine.files.delete(f"{_USERS}/{table}")
