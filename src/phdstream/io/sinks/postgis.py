"""Points and cells in PostGIS, a transaction for each tick. Public.

A tick's row in ``ticks`` is written first: its primary key makes a second process wait for the first, and find the tick
there. The tables are those of `phdstream.io.sinks.postgis_tables`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from phdstream.domains import Domain
from phdstream.errors import SinkError, StateError
from phdstream.io.sinks.postgis_tables import FORMAT, Tables, has_geometry, rows_as_csv
from phdstream.io.sinks.protocol import driver, other_content, other_stream, release_digest
from phdstream.release import Release

__all__ = ["PostgisSink"]

_SETTINGS = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 60_000, "application_name": "phdstream",
}  # fmt: skip
_NO_LONGER = "SET LOCAL lock_timeout = '60s'"
"""How long to wait for another process."""
_MAKING = 7_304_451_902
"""The advisory lock under which tables are made."""


class PostgisSink:
    """One stream's tables in one database."""

    def __init__(
        self, connection: str, password: str | None, schema: str, prefix: str, stream_id: str, domain: Domain
    ) -> None:
        self._pg: Any = driver("psycopg", "postgres")
        self._stream, self.where = stream_id, f"the tables {schema}.{prefix}*"
        settings = _SETTINGS | ({} if password is None else {"password": password})
        with self._talking():
            given = self._pg.conninfo.conninfo_to_dict(connection)
            self._connection = self._pg.connect(**(settings | given), autocommit=True, prepare_threshold=None)
        try:
            self._tables = Tables(schema, prefix, domain, self._srid(domain))
            self._made = self._check_claim()
        except BaseException:
            self.close()
            raise

    def _srid(self, domain: Domain) -> int | None:
        """Return PostGIS's number for the domain's coordinate system; 0 for none named, None without geometry."""
        if not has_geometry(domain):
            return None
        if not self._one("SELECT count(*) FROM pg_extension WHERE extname = 'postgis'"):
            raise SinkError(
                "PostGIS is not installed in the database: have its owner run CREATE EXTENSION postgis there."
            )
        authority, _, code = ("EPSG:4326" if domain.crs == "OGC:CRS84" else domain.crs or "").partition(":")
        if not authority:
            return 0
        query = "SELECT srid FROM spatial_ref_sys WHERE auth_name = %s AND auth_srid::text = %s"
        srid = self._one(query, (authority, code))
        if srid is None:
            raise StateError(
                "PostGIS (its table spatial_ref_sys) does not know the domain's coordinate system: name it by a code "
                "such as EPSG:25832 in [domain], or add it to that table."
            )
        return int(srid)

    def _check_claim(self) -> bool:
        """Refuse another stream's tables; tell whether ours are there."""
        name = self._tables.name("stream")
        if self._one("SELECT to_regclass(%s)::text", (name.as_string(self._connection),)) is None:
            return False
        with self._talking():
            found = self._connection.execute(self._sql("SELECT stream, format FROM {}", "stream")).fetchone()
        if found is None or found[0] != self._stream:
            raise other_stream(self.where, found[0] if found else "nobody", self._stream)
        if found[1] != FORMAT:
            raise StateError(f"{self.where} were made by another version of phdstream: use another prefix.")
        return True

    def _make(self, release: Release) -> None:
        """Make the tables and claim them, in one transaction."""
        with self._talking(), self._connection.transaction():
            self._connection.execute(_NO_LONGER)
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            if not self._check_claim():
                schema = driver("psycopg.sql", "postgres").Identifier(self._tables.schema)
                if not self._one("SELECT count(*) FROM pg_namespace WHERE nspname = %s", (self._tables.schema,)):
                    self._connection.execute(driver("psycopg.sql", "postgres").SQL("CREATE SCHEMA {}").format(schema))
                for statement in self._tables.statements(release):
                    self._connection.execute(statement)
                self._connection.execute(
                    self._sql("INSERT INTO {} (stream, format, domain) VALUES (%s, %s, %s)", "stream"),
                    (self._stream, FORMAT, json.dumps(self._tables.domain.summary())),
                )
        self._made = True

    def last_tick(self) -> int:
        """Return the last tick that is there."""
        return int(self._one(self._sql("SELECT max(tick) FROM {}", "ticks")) or 0) if self._made else 0

    def has(self, tick: int) -> bool:
        """Tell whether a tick is there."""
        return self._made and bool(self._one(self._sql("SELECT count(*) FROM {} WHERE tick = %s", "ticks"), (tick,)))

    def publish(self, release: Release) -> None:
        """Put a tick's points and cells there, in one transaction."""
        if not self._made:
            self._make(release)
        with self._talking(), self._connection.transaction():
            self._connection.execute(_NO_LONGER)
            if self._announce(release):
                for table in ("points", "cells"):
                    self._copy(release, table)
                return
        digest = self._one(self._sql("SELECT digest FROM {} WHERE tick = %s", "ticks"), (release.tick,))
        if digest != release_digest(release):
            raise other_content(self.where, release.tick)

    def _announce(self, release: Release) -> bool:
        """Write the tick's row; tell whether it was not there."""
        told = release.metadata
        row = (
            release.tick, self._stream, release_digest(release), told.get("epsilon"), json.dumps(told.get("unit")),
            release.total, int(release.points.sum()), int(release.leaves.size), json.dumps(told),
        )  # fmt: skip
        statement = self._sql(
            "INSERT INTO {} (tick, stream, digest, epsilon, unit, total, points, cells, metadata) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (tick) DO NOTHING", "ticks",
        )  # fmt: skip
        return bool(self._connection.execute(statement, row).rowcount)

    def _copy(self, release: Release, table: str) -> None:
        sql = driver("psycopg.sql", "postgres")
        for rows in self._tables.rows(release, table):
            names = sql.SQL(", ").join(map(sql.Identifier, rows.column_names))
            statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(self._tables.name(table), names)
            with self._connection.cursor().copy(statement) as copy:
                copy.write(rows_as_csv(rows))

    def _sql(self, text: str, table: str) -> Any:
        return driver("psycopg.sql", "postgres").SQL(text).format(self._tables.name(table))

    def _one(self, query: Any, values: tuple[Any, ...] = ()) -> Any:
        with self._talking():
            found = self._connection.execute(query, values).fetchone()
        return None if found is None else found[0]

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Turn whatever the database answers or does not into a SinkError."""
        try:
            yield
        except self._pg.Error as error:
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise SinkError(f"{self.where} cannot be written ({said}).") from None

    def close(self) -> None:
        """Let go of the connection; what was not committed is rolled back."""
        self._connection.close()
