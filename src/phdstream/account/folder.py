"""The folder of an account: a log that only grows, its ledger, and a lock that many processes take in turn.

To draw is: lock the folder; read the log and check every line; refuse, or append one line and flush it to the disk;
then put the new ledger in place. So two processes never decide on the same sum, and what a crash left behind is told
apart from what somebody changed (`phdstream.account.recovery`).

The chain is not a signature: who may write here can write it all anew. That shows in what streams have kept of their
charges (`phdstream.account.stream_charge`), and to whoever noted the digest of the last line.

Nothing in it is private. The folder is its owner's only all the same: others could take its lock, or forget charges.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from phdstream.account.book import Book
from phdstream.account.entries import Charge, Opening
from phdstream.account.recovery import Found, recover
from phdstream.account.settings import AccountSettings
from phdstream.errors import BudgetError, ConfigError, StateError
from phdstream.streams.durable.folders import DIRECTORY, make_folder, replace_in

__all__ = ["AccountFolder"]

_LOG, _LEDGER = "log", "ledger"
_PATIENCE = 60.0
"""Seconds to wait for the others: each holds the lock for milliseconds."""
_PAUSE = 0.002


class AccountFolder:
    """One account on the disk. It is made by the first draw, and holds no lock between calls."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path).absolute()

    def read(self) -> Found:
        """Return the account, checked line by line; changes nothing."""
        if not self.path.is_dir():
            return Found(None)
        try:
            with self._held(fcntl.LOCK_SH) as folder:
                return self._find(folder)
        except OSError as error:
            raise StateError(f"the account in {self.path} cannot be read ({error.strerror or error}).") from error

    def draw(
        self,
        settings: AccountSettings,
        stream: str,
        epsilon: str,
        unit: dict[str, Any],
        decided: Callable[[Book, Charge | None], None] = lambda book, before: None,
    ) -> tuple[Book, Charge]:
        """Charge a stream, unless it was charged before; return the account then, and the stream's charge.

        ``decided`` is called once it is clear that there is room, and before anything is written; with the charge that
        was made before, if there is one. If it raises, nothing is drawn.
        """
        try:
            make_folder(self.path, 0o700)
            with self._held(fcntl.LOCK_EX) as folder:
                found = self._find(folder)
                book = found.book or _opened(settings, unit)
                self._check_same(book, settings)
                before = book.of(stream)
                if before is None:
                    book.check_room(epsilon, unit)
                else:
                    self._check_charge(before, epsilon, unit)
                decided(book, before)
                self._mend(folder, found)
                if before is not None:
                    return book, before
                if found.book is None:
                    self._append(folder, book.opening.encode(), book)
                charge = Charge(len(book.charges) + 1, _now(), stream, epsilon, unit, book.digest)
                self._append(folder, charge.encode(), book := book.add(charge))
                return book, charge
        except OSError as error:
            raise StateError(
                f"the account in {self.path} could not be written ({error.strerror or error}), so the stream was not "
                "started. Make room or mend the folder, and start again."
            ) from error

    @contextlib.contextmanager
    def _held(self, kind: int) -> Iterator[int]:
        """Open and lock the folder, waiting for others; give the open directory."""
        until = time.monotonic() + _PATIENCE
        while True:
            folder = os.open(self.path, DIRECTORY)
            try:
                self._check_owner(os.fstat(folder))
                if _locked(folder, kind) and os.path.samestat(os.fstat(folder), self.path.stat()):
                    yield folder
                    return
            finally:
                os.close(folder)  # frees the lock
            if time.monotonic() > until:
                raise StateError(f"the account in {self.path} has been in use for a minute: find out by whom.")
            time.sleep(_PAUSE * (1 + secrets.randbelow(4)))

    def _check_owner(self, found: os.stat_result) -> None:
        if os.geteuid() not in (0, found.st_uid) or found.st_mode & 0o022:
            raise StateError(
                f"others could change {self.path}, and with it what was drawn. It must belong to the user that runs "
                f"the streams, and be writable for that user only. Run: chmod 700 '{self.path}'"
            )

    def _find(self, folder: int) -> Found:
        """Return what is there; refuse what no crash leaves behind."""
        try:
            return recover(_content(folder, _LOG), _content(folder, _LEDGER))
        except StateError as error:
            raise StateError(
                f"the account in {self.path} was changed by something other than phdstream: {error}. No crash does "
                "that. Nothing was drawn. Restore log and ledger together from the latest backup."
            ) from None

    def _check_same(self, book: Book, settings: AccountSettings) -> None:
        for name, was, wanted in (
            ("population", book.opening.population, settings.population),
            ("epsilon", book.opening.epsilon, settings.epsilon),
        ):
            if was != wanted:
                raise ConfigError(
                    f"[account] {name} is {wanted!r}, but the account in {self.path} was opened with {was!r}. It was "
                    "promised then and cannot change: set it back, or name another folder."
                )

    def _check_charge(self, before: Charge, epsilon: str, unit: dict[str, Any]) -> None:
        if (before.epsilon, before.unit) != (epsilon, unit):
            raise BudgetError(
                f"this stream was charged ε = {before.epsilon} for the unit {before.unit} in {self.path}, and asks for "
                f"ε = {epsilon} for {unit} now. Set it back, or start a new stream in new folders (its ε comes on top)."
            )

    def _mend(self, folder: int, found: Found) -> None:
        """Take off a line without an end, and bring the ledger up to the log."""
        if found.torn:
            handle = os.open(_LOG, os.O_WRONLY | os.O_NOFOLLOW, dir_fd=folder)
            try:
                os.ftruncate(handle, found.size)
                os.fsync(handle)
            finally:
                os.close(handle)
        if found.book is not None and found.behind:
            self._acknowledge(folder, found.book)

    def _append(self, folder: int, line: bytes, book: Book) -> None:
        """Write a line, flush it to the disk, and then acknowledge it."""
        handle = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        try:
            content = line + b"\n"
            while content:
                content = content[os.write(handle, content) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        os.fsync(folder)
        self._acknowledge(folder, book)

    def _acknowledge(self, folder: int, book: Book) -> None:
        content = book.ledger.encode()
        replace_in(folder, _LEDGER, lambda file: file.write(content), 0o600)


def _locked(folder: int, kind: int) -> bool:
    try:
        fcntl.flock(folder, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _content(folder: int, name: str) -> bytes | None:
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return None
    with open(handle, "rb") as file:  # noqa: PTH123
        return file.read()


def _opened(settings: AccountSettings, unit: dict[str, Any]) -> Book:
    return Book(Opening(secrets.token_hex(16), _now(), settings.population, settings.epsilon, unit["type"]))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
