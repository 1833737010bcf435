"""A table of PostgreSQL (13 or newer) to which rows are added. Needs the extra ``postgres``.

**In order, although transactions commit in any order.** A sequence's number is drawn when a row is inserted, and the
row is seen when its transaction commits: a row with a smaller number may appear after one with a larger number was
read. So the table has a second column, the number of the transaction that inserted the row (type ``xid8``, filled by
its default ``pg_current_xact_id()``), and rows are read in the order of (transaction, number), and only those of
transactions below ``pg_snapshot_xmin`` of the reading snapshot.

*Why none is missed.* Every transaction below a snapshot's xmin has ended when the snapshot is taken. Those that
committed are seen whole; those that were rolled back never are; none of them can add a row any more; and a new
transaction is given a number that is not below it. So the rows below xmin are final, and everything that appears later
comes after them in this order. (Prepared transactions count as running. A number belongs to the whole transaction, with
its savepoints.)

*All before the close.* The mark is the snapshot's ``xmax``: transactions that had a number then are below it. It is
reached once xmin has passed it, that is when they have all ended, and the rows below are read. So a transaction that is
open when its tick is to close holds the tick up until it ends: its rows, stamped in time, are in time.

**Arrival** is a column that the database fills by its default, ``clock_timestamp()`` (with ``now()`` it would be when
the transaction began, which may be long before its first row).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from phdstream.errors import InputError
from phdstream.io.sources.features import LONGEST_LINE
from phdstream.service.feeds.protocol import FeedError, Message, Position, moment
from phdstream.service.feeds.settings import PostgresSettings

__all__ = ["PostgresFeed"]

_AT_ONCE = 5000
_XMIN = "pg_snapshot_xmin(pg_current_snapshot())"


class PostgresFeed:
    """One table, which is one partition, as `Feed`."""

    def __init__(self, settings: PostgresSettings) -> None:
        try:
            import psycopg
        except ImportError:
            raise InputError("a PostgreSQL source needs more: pip install 'phdstream[postgres]'") from None
        self._psycopg, self._settings = psycopg, settings
        self._db: Any = None
        self._at: Position = (0, 0)
        self._whole = 0  # all rows of transactions below this one were handed over
        self._query = self._written()

    def _written(self) -> Any:
        sql, given = self._psycopg.sql, self._settings
        row = sql.SQL("row_to_json(t)") if given.event is None else sql.SQL("t.{}").format(sql.Identifier(given.event))
        return sql.SQL(
            "SELECT {xid}::text, {number}::bigint, (extract(epoch FROM {arrived}::timestamptz) * 1000000)::bigint, "
            "left({row}::text, {longest}) FROM {table} t "
            f"WHERE ({{xid}}, {{number}}) > (%s::text::xid8, %s) AND {{xid}} < {_XMIN} "
            "ORDER BY {xid}, {number} LIMIT %s"
        ).format(
            xid=sql.Identifier("t", given.transaction), number=sql.Identifier("t", given.number),
            arrived=sql.Identifier("t", given.arrived), row=row, longest=sql.Literal(LONGEST_LINE),
            table=sql.Identifier(*given.table.split(".")),
        )  # fmt: skip

    def open(self, positions: Mapping[str, Position]) -> None:
        """Connect."""
        self._at, self._whole = positions.get(self._settings.table, (0, 0)), 0
        self._db = self._asked(
            lambda: self._psycopg.connect(
                self._settings.url, password=self._settings.password(), connect_timeout=10, autocommit=True,
                options="-c timezone=UTC -c default_transaction_read_only=on -c statement_timeout=60s -c datestyle=ISO",
                application_name="phdstream", keepalives_idle=10, keepalives_interval=5, keepalives_count=3,
                tcp_user_timeout=30_000,
            )
        )  # fmt: skip
        if self.mark() < self._at[0]:
            raise FeedError(
                "the database is younger than what was read of it: it was restored from a dump or is another one. Set "
                "it back, or start a new stream in new folders (its ε comes on top)."
            )

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except self._psycopg.Error as error:
            state = f" ({error.sqlstate})" if error.sqlstate else ""
            raise FeedError(f"PostgreSQL cannot be asked: {type(error).__name__}{state}.") from None

    def read(self, most: int, seconds: float) -> list[Message]:
        """Return some of the next rows."""
        most = min(most, _AT_ONCE)
        xmin, rows = self._asked(lambda: self._rows(most))
        if len(rows) < most:
            self._whole = xmin
        if not rows:
            self._asked(lambda: self._db.execute("SELECT pg_sleep(%s)", (seconds,)))
        found = []
        for xid, number, stamp, content in rows:
            self._at = int(xid), number
            arrived = None if stamp is None else moment(stamp)
            found.append(
                Message(self._settings.table, self._at, arrived, None if content is None else content.encode())
            )
        return found

    def _rows(self, most: int) -> tuple[int, list[Any]]:
        """Return a snapshot's xmin and some rows below it, both of one snapshot."""
        with self._db.transaction():
            self._db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            xmin = int(self._db.execute(f"SELECT {_XMIN}::text").fetchone()[0])
            return xmin, self._db.execute(self._query, (str(self._at[0]), self._at[1], most)).fetchall()

    def now(self) -> datetime | None:
        """Return the time by the database's clock."""
        asked = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        return moment(int(self._asked(lambda: self._db.execute(asked).fetchone())[0]))

    def mark(self) -> int:
        """Return a number above those of all transactions so far."""
        asked = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
        return int(self._asked(lambda: self._db.execute(asked).fetchone())[0])

    def reached(self, mark: int) -> bool:
        """Whether all transactions below the mark have ended, and their rows were handed over."""
        return self._whole >= mark

    def acknowledge(self, positions: Mapping[str, Position]) -> None:
        """Do nothing: the table is not ours to write to."""

    def close(self) -> None:
        """Let go of the connection."""
        db, self._db = self._db, None
        if db is not None:
            db.close()
