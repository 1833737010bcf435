"""The journal: accepted events on the disk until their tick is released. **Private.**

One SQLite database (``intake.db``) in the stream's private folder. *Accepted means on disk*: an answer goes out after
its transaction is committed, with ``synchronous=FULL``. Codes are kept, never coordinates: eight bytes an event, and
with users their ids and times, as one blob for each request, tick and sign; so half a million events a second are some
ten rows. SQLite and not files of our own, because an event, the key of its delivery and the answer must commit
together, and because deleting means zeroing (``secure_delete``) and emptying the write-ahead log. It comes with
``apsw``: SQLite from 3.7.0 to 3.51.2 can lose the log when two connections write or checkpoint. Here one connection
does both; others only read.

**Once means once.** ``closed`` is the last tick that takes no more events. It only grows, and is committed before the
tick's events are read; the stream's own state says which ticks are counted. After a crash, events of counted ticks are
purged (they are in the state) and a tick that was closed but not committed is taken anew from the same events: nothing
of it was ever seen.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pyarrow as pa

from phdstream.errors import StateError
from phdstream.io.sources.gathering import joined
from phdstream.service.encryption import Plain
from phdstream.streams.intake import EncodedEvents

__all__ = ["NAME", "Answered", "ClosedTickError", "Delivery", "Followed", "Journal", "Part", "copy_database"]

NAME = "intake.db"
_FORMAT = 2
_LOCK = "intake.lock"
_BUSY = 10_000
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE events (tick INTEGER NOT NULL, sign INTEGER NOT NULL, rows BLOB NOT NULL) STRICT;
CREATE INDEX events_by_tick ON events (tick, sign);
CREATE TABLE deliveries (key BLOB PRIMARY KEY, payload BLOB NOT NULL, received INTEGER NOT NULL, answer TEXT NOT NULL)
  STRICT, WITHOUT ROWID;
"""
_FEEDS = """
CREATE TABLE positions (partition TEXT PRIMARY KEY, position TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE refused (reason TEXT PRIMARY KEY, rows INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""
"""What format 2 has more than format 1: how far sources were read, and what of them was left out and why."""


@dataclass(frozen=True)
class Part:
    """Events of one request, tick and sign: how many, and their columns as an Arrow batch's bytes."""

    tick: int
    sign: int
    number: int
    rows: bytes


class ClosedTickError(StateError):
    """Events were to go into a tick that takes no more. Nothing was stored."""


@dataclass(frozen=True)
class Followed:
    """What was read of a source at a time: events by tick, how far each partition was read, how many rows were left
    out by reason, and how long the file of dead letters is with those that belong to it.
    """

    parts: list[Part]
    positions: dict[str, tuple[int, ...]]
    refused: dict[str, int]
    letters: int


@dataclass(frozen=True)
class Answered:
    """A delivery that was answered before: the digest of its payload, and the answer."""

    payload: bytes
    answer: dict[str, Any]


@dataclass
class Delivery:
    """One request: digests of its key and payload, when it was received (µs), its events, and what to answer."""

    key: bytes
    payload: bytes
    received: int
    parts: list[Part]
    answer: dict[str, Any]


def event_schema(users: bool) -> pa.Schema:
    """Return the columns of a stored batch."""
    columns = [("code", pa.int64())] + ([("time", pa.int64()), ("user", pa.large_binary())] if users else [])
    return pa.schema(columns)


class Journal:
    """The database, opened by the one process that serves the stream; its threads may share it.

    One connection writes and checkpoints; a second one only reads, so that handing over a tick stops nobody.
    """

    def __init__(self, folder: Path, users: bool, sealed: Plain | None = None) -> None:
        self.path, self.sealed, self._schema = folder / NAME, sealed or Plain(), event_schema(users)
        self._lock, self._reading = threading.RLock(), threading.Lock()
        self._owner = _own(folder / _LOCK)
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # as private as the folder
        try:
            with self._named_errors():
                self._db = apsw.Connection(os.fspath(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
                self._prepare()
                self._reader = apsw.Connection(os.fspath(self.path), flags=apsw.SQLITE_OPEN_READONLY)
                self._reader.set_busy_timeout(_BUSY)
        except BaseException:
            os.close(self._owner)
            raise

    def _prepare(self) -> None:
        self._db.set_busy_timeout(_BUSY)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "temp_store=MEMORY"):
            self._db.execute(f"PRAGMA {pragma}")
        version = self._db.execute("PRAGMA user_version").get
        if version in (0, 1):
            with self._writing() as db:
                if version == 0:
                    db.execute(_TABLES)
                    self._set("secret", secrets.token_hex(32))
                db.execute(_FEEDS)
                db.execute(f"PRAGMA user_version={_FORMAT}")
        elif version != _FORMAT:
            raise StateError(f"{self.path} is of another version of phdstream: use the one that wrote it.")

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into ours, with the path and without any content."""
        try:
            yield
        except (apsw.CorruptError, apsw.NotADBError):
            raise StateError(f"{self.path} is damaged. Restore it from the latest backup.") from None
        except apsw.Error as error:
            kind = type(error).__name__.removesuffix("Error")
            raise StateError(f"{self.path} cannot be used now ({kind}). Nothing was lost; mend it and retry.") from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """One transaction of the connection that writes: committed, and on the disk, at its end."""
        with self._lock, self._named_errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:  # it failed, and SQLite did not roll it back by itself
                    self._db.execute("ROLLBACK")

    def bind(self, stream: str, tick: int) -> None:
        """Tie the journal to a stream whose last counted tick is ``tick``, and forget what is counted already."""
        with self._writing():
            known = self._about("stream")
            if known is None:
                self._set("stream", stream)
            elif known != stream:
                raise StateError(f"{self.path} holds events accepted for another stream. Restore the state it is of.")
            if self.closed < tick:
                self._set("closed", str(tick))
        self.purge(tick)

    def _about(self, name: str) -> str | None:
        found = self._db.execute("SELECT value FROM about WHERE name=?", (name,)).get
        return None if found is None else str(found)

    def _set(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    @property
    def secret(self) -> bytes:
        """The key of the digests of idempotency keys and payloads."""
        with self._lock, self._named_errors():
            return bytes.fromhex(str(self._about("secret")))

    @property
    def closed(self) -> int:
        """The last tick that takes no more events."""
        with self._lock, self._named_errors():
            return int(self._about("closed") or 0)

    def answered(self, key: bytes) -> Answered | None:
        """Return what was answered to a delivery with this key, if it is remembered."""
        with self._reading, self._named_errors():
            row = self._reader.execute("SELECT payload, answer FROM deliveries WHERE key=?", (key,)).fetchone()
        return None if row is None else Answered(row[0], json.loads(row[1]))

    def accept(self, deliveries: Iterable[Delivery]) -> None:
        """Commit deliveries, all or none: their events, keys and answers. On return they are on the disk."""
        with self._writing() as db:
            for one in deliveries:
                self._store(db, one.parts)
                db.execute(
                    "INSERT INTO deliveries VALUES (?, ?, ?, ?)",
                    (one.key, one.payload, one.received, json.dumps(one.answer)),
                )

    def _store(self, db: apsw.Connection, parts: list[Part]) -> None:
        closed = self.closed
        if any(part.tick <= closed for part in parts):  # closing waits for all that arrived before
            raise ClosedTickError("events came for a tick that is closed already. Nothing was stored.")
        rows = [(p.tick, p.sign, self.sealed.seal(p.rows, _about(p.tick, p.sign))) for p in parts]
        db.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)

    def follow(self, some: Followed) -> None:
        """Commit what was read of a source, all or nothing: events and positions together. On return it is on disk."""
        with self._writing() as db:
            self._store(db, some.parts)
            rows = [(name, json.dumps(position)) for name, position in some.positions.items()]
            db.executemany("INSERT OR REPLACE INTO positions VALUES (?, ?)", rows)
            count = "INSERT INTO refused VALUES (?, ?) ON CONFLICT (reason) DO UPDATE SET rows = rows + excluded.rows"
            db.executemany(count, list(some.refused.items()))
            self._set("letters", str(some.letters))

    def positions(self) -> dict[str, tuple[int, ...]]:
        """Return how far each partition of a source was read."""
        with self._lock, self._named_errors():
            found = self._db.execute("SELECT partition, position FROM positions").fetchall()
        return {str(name): tuple(json.loads(str(position))) for name, position in found}

    def refused(self) -> dict[str, int]:
        """Return how many rows of a source were left out so far, by reason. **Private.**"""
        with self._lock, self._named_errors():
            return {str(why): int(rows) for why, rows in self._db.execute("SELECT reason, rows FROM refused")}

    @property
    def letters(self) -> int:
        """How long the file of dead letters is, as far as it was committed."""
        with self._lock, self._named_errors():
            return int(self._about("letters") or 0)

    def close_tick(self, tick: int) -> None:
        """Let a tick, and all before it, take no more events: committed on return."""
        with self._writing():
            if tick > self.closed:
                self._set("closed", str(tick))

    def batches(self, tick: int, sign: int) -> list[pa.RecordBatch]:
        """Return the events of a tick and sign as they are stored."""
        with self._reading, self._named_errors():
            found = self._reader.execute("SELECT rows FROM events WHERE tick=? AND sign=?", (tick, sign))
            stored = [row[0] for row in found]
        blobs = (self.sealed.open(rows, _about(tick, sign)) for rows in stored)
        return [pa.ipc.read_record_batch(pa.py_buffer(rows), self._schema) for rows in blobs]

    def events(self, tick: int) -> tuple[EncodedEvents, EncodedEvents]:
        """Return the inserts and the deletes of a tick."""
        return joined(self.batches(tick, 1)), joined(self.batches(tick, -1))

    def waiting(self, tick: int) -> bool:
        """Whether events wait for a tick after this one."""
        with self._reading, self._named_errors():
            return self._reader.execute("SELECT 1 FROM events WHERE tick > ? LIMIT 1", (tick,)).get is not None

    def purge(self, tick: int, now: int = 0, remember: int = 0) -> None:
        """Remove the events of all ticks up to one that is counted, and with ``remember`` (µs) keys that are older.

        Pages are overwritten, and the log is emptied, so that nothing of them stays in the files.
        """
        with self._lock, self._named_errors():
            with self._writing() as db:
                db.execute("DELETE FROM events WHERE tick <= ?", (tick,))
                if remember:
                    db.execute("DELETE FROM deliveries WHERE received < ?", (now - remember,))
            with self._reading:  # a reader in the middle of a row would keep the log from being emptied
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def copy_to(self, target: Path) -> None:
        """Write a consistent copy to a new file, as private as this one, while others go on writing."""
        with self._reading, self._named_errors():
            _copy(self._reader, target)

    def close(self) -> None:
        """Close the database, and let another process open it."""
        with self._lock, self._reading:
            self._reader.close()
            self._db.close()
            os.close(self._owner)


def copy_database(path: Path, target: Path) -> None:
    """Write a consistent copy of a journal that another process may be using."""
    try:
        database = apsw.Connection(os.fspath(path), flags=apsw.SQLITE_OPEN_READONLY)
        database.set_busy_timeout(_BUSY)
        try:
            _copy(database, target)
        finally:
            database.close()
    except apsw.Error as error:
        raise StateError(f"{path} cannot be copied ({type(error).__name__}).") from None


def _copy(database: apsw.Connection, target: Path) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    copy = apsw.Connection(os.fspath(target))
    try:
        with copy.backup("main", database, "main") as backup:
            backup.step()
        copy.execute("PRAGMA journal_mode=DELETE")
    finally:
        copy.close()


def _own(path: Path) -> int:
    """Return a locked file: one process serves a stream. (Not the database: SQLite's own locks would go with it.)"""
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise StateError(f"another process takes in events for {path.parent}: one is enough.") from None
    return handle


def _about(tick: int, sign: int) -> bytes:
    """Return where a blob belongs, for authentication."""
    return f"phdstream {tick} {sign}".encode()
