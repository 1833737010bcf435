"""A folder that one process owns.

A `LockedFolder` is owned by its open directory, not by its name: the lock is on the directory itself (there is no lock
file that could be deleted), and every file is reached from there, so a folder that is moved away or replaced under a
running process is noticed and never mixed up with the one at its path.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from phdstream.errors import StateError
from phdstream.streams.durable.folders import DIRECTORY, NEW_FILE, Writer, make_folder, replace_in

__all__ = ["LockedFolder"]

_TRIES = 10
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)


class LockedFolder:
    """A folder that this process alone may use, until it is closed or the process ends.

    It is created if it is missing (``created`` tells). A ``private`` one is made for its owner only, and refused if
    anybody else could look into it. What the operating system refuses comes out as OSError, all else as StateError.
    Files are named relative to the folder, such as ``"points/tick-00001.csv"``.
    """

    def __init__(self, path: Path, *, private: bool) -> None:
        self.path = Path(path).absolute()  # should the process change its working directory
        self._pid = os.getpid()
        self.created, self._handle = False, -1
        for _ in range(_TRIES):
            self.created |= make_folder(self.path, 0o700 if private else 0o755)
            handle = _locked(self.path, private)
            if _is_at(handle, self.path):
                self._handle = handle
                return
            os.close(handle)  # its last owner removed it just before we had the lock
        raise StateError(f"{self.path} is replaced again and again: find out by whom, and stop that.")

    def check(self) -> None:
        """Refuse to go on unless this is the open folder at its path, in the process that opened it."""
        if self._handle < 0:
            raise StateError(f"{self.path} was closed here: open it again to go on.")
        if os.getpid() != self._pid:
            raise StateError(
                f"{self.path} was opened before this process was forked and belongs to its parent: two processes "
                "would release ticks twice. Open it in one process only, after forking."
            )
        if not _is_at(self._handle, self.path):
            raise StateError(
                f"{self.path} is no longer the folder that was opened here: it was moved, deleted or replaced. Put "
                "it back, or open what is there now."
            )

    @contextlib.contextmanager
    def _holding(self, name: str) -> Iterator[tuple[int, str]]:
        """Give the open directory that holds a file, and the file's name in it."""
        self.check()
        part, _, leaf = name.rpartition("/")
        if not part:
            yield self._handle, leaf
            return
        handle = os.open(part, DIRECTORY | os.O_NOFOLLOW, dir_fd=self._handle)
        try:
            yield handle, leaf
        finally:
            os.close(handle)

    def replace(self, name: str, write: Writer, mode: int = 0o600) -> None:
        """Put a file in place at once and durably, as `replace_file` does."""
        with self._holding(name) as (folder, leaf):
            replace_in(folder, leaf, write, mode)

    def open(self, name: str) -> IO[bytes] | None:
        """Open a plain file for reading; None if there is none."""
        try:
            with self._holding(name) as (folder, leaf):
                handle = os.open(leaf, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EINVAL, "it is not a plain file")
        return open(handle, "rb")  # noqa: PTH123

    def read(self, name: str) -> bytes | None:
        """Return a plain file's content; None if there is none."""
        file = self.open(name)
        if file is None:
            return None
        with file:
            return file.read()

    def stamp(self, name: str) -> tuple[int, ...] | None:
        """Return what changes whenever a file does (but may also change when its content does not)."""
        try:
            with self._holding(name) as (folder, leaf):
                found = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def names(self, part: str = "") -> list[str]:
        """Return what the folder, or a folder in it, holds; nothing if that is missing."""
        try:
            with self._holding(f"{part}/" if part else "") as (folder, _):
                return sorted(os.listdir(folder))  # noqa: PTH208 (a descriptor, which pathlib cannot list)
        except FileNotFoundError:
            return []

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError), self._holding(name) as (folder, leaf):
            os.unlink(leaf, dir_fd=folder)

    def make(self, part: str, mode: int) -> None:
        """Make a folder in this one, durably, unless it is there."""
        self.check()
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, mode, dir_fd=self._handle)
            os.fsync(self._handle)

    def temporary_file(self) -> IO[bytes]:
        """Return a new file for reading and writing that has no name, is its owner's only, and goes when closed."""
        self.check()
        with contextlib.suppress(AttributeError, OSError):  # not every system, nor every file system, has it
            return open(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600, dir_fd=self._handle), "w+b")  # noqa: PTH123
        name = f".{secrets.token_hex(8)}.tmp"
        handle = os.open(name, os.O_RDWR | NEW_FILE, 0o600, dir_fd=self._handle)
        os.unlink(name, dir_fd=self._handle)
        return open(handle, "w+b")  # noqa: PTH123

    def new_file(self, name: str) -> IO[bytes]:
        """Return a new file for writing that is its owner's only; refuse a name that is taken, also by a link."""
        with self._holding(name) as (folder, leaf):
            return open(os.open(leaf, os.O_WRONLY | NEW_FILE, 0o600, dir_fd=folder), "wb")  # noqa: PTH123

    def close(self, remove_empty: bool = False) -> None:
        """Let others open the folder; remove it first if that is asked for and it is empty."""
        handle, self._handle = self._handle, -1
        if handle < 0:
            return
        if os.getpid() == self._pid:  # a forked child must not free what is its parent's
            if remove_empty and _is_at(handle, self.path):
                with contextlib.suppress(OSError):
                    self.path.rmdir()
            fcntl.flock(handle, fcntl.LOCK_UN)  # a child may still have it open
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Tell whether an open folder is the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


def _locked(path: Path, private: bool) -> int:
    """Open a folder and lock it."""
    handle = os.open(os.path.realpath(path), DIRECTORY | os.O_NOFOLLOW)
    try:
        if private:
            _check_private(os.fstat(handle), path)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if error.errno in _BUSY:
            raise StateError(
                f"another process (or another handle in this one) is using {path}; two must not. Wait for it or stop "
                "it."
            ) from None
        raise StateError(
            f"{path} cannot be locked ({error.strerror}), so a second process could not be kept out: choose a folder "
            "on a local disk."
        ) from None
    except BaseException:
        os.close(handle)
        raise
    return handle


def _check_private(found: os.stat_result, path: Path) -> None:
    if os.geteuid() not in (0, found.st_uid):
        raise StateError(f"{path} belongs to another user, who could read and change private state: choose another.")
    if found.st_mode & 0o077:
        raise StateError(f"others can look into {path}, and it is for private state. Run: chmod 700 '{path}'")
