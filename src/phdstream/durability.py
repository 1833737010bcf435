"""A directory that owns a stream: once means once.

Noise for a tick is drawn once. `DurableStream.update` commits the new state to the disk *before* it hands out
the release; the release can be rebuilt from the state, bit for bit. So after a crash either the tick is
committed and is handed out again as it was, or nothing of it was ever visible and it is taken anew. Three
things are refused: a second process (a lock held by the operating system, so it is gone with its owner),
another stream than the one the directory was made for, and a state older than what was committed (a restored
backup would release ticks twice).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from phdstream.domains import Domain
from phdstream.errors import StateError
from phdstream.intake import PrivateTally
from phdstream.promise import parameters
from phdstream.release import Release
from phdstream.state import read_state, replace_file, write_state
from phdstream.streaming import Stream

__all__ = ["DurableStream", "durable"]


class DurableStream:
    """A stream whose every tick is committed to a private directory before its release is seen. Made by `durable`.

    ``notes`` is a small plain dictionary for its user, committed with each tick (where the input stands, say).
    """

    def __init__(self, directory: Path, stream: Stream) -> None:
        self.directory = directory
        self.notes: dict[str, Any] = {}
        self._lock = _lock(directory)
        try:
            self._stream = self._resume(stream)
        except BaseException:
            self.close()
            raise
        self._failed = False

    def _resume(self, stream: Stream) -> Stream:
        path, committed = self._state_path, self._committed_tick()
        if not path.exists():
            if committed:
                raise StateError(
                    f"{self.directory} has released {committed} tick(s), but its state is gone. Restore it."
                )
            self._commit(stream)
            return stream
        meta, arrays = read_state(path)
        if meta["tick"] < committed:
            raise StateError(
                f"the state in {self.directory} is of tick {meta['tick']}, but tick {committed} was released already. "
                "Going on would release ticks twice with different noise. Restore the latest state."
            )
        _check_same(meta["parameters"], parameters(stream), self.directory)
        self.notes = meta.get("notes", {})
        return type(stream).from_state(meta, arrays)

    @property
    def _state_path(self) -> Path:
        return self.directory / "state.npz"

    def _committed_tick(self) -> int:
        path = self.directory / "committed"
        return int(path.read_text()) if path.exists() else 0

    def update(self, inserts: Any = None, deletes: Any = None, users: Any = None, delete_users: Any = None) -> Release:
        """Take one tick's events, commit, and only then return the release. See `Stream.update`."""
        if self._failed:
            raise StateError("the last tick could not be committed; open the directory again to go on before it.")
        release = self._stream.update(inserts, deletes, users, delete_users)
        self._failed = True
        self._commit(self._stream)
        self._failed = False
        return release

    def _commit(self, stream: Stream) -> None:
        meta, arrays = stream.to_state()
        try:
            write_state(self._state_path, meta | {"owner": "directory", "notes": self.notes}, arrays)
            replace_file(self.directory / "committed", lambda file: file.write(str(stream.tick).encode()))
        except OSError as error:
            raise StateError(
                f"tick {stream.tick} could not be saved in {self.directory} ({error.strerror or error}). Nothing of "
                "it was released and all earlier ticks are safe. Make room or mend the folder, and start again."
            ) from error

    @property
    def tick(self) -> int:
        """The last committed tick."""
        return self._stream.tick

    @property
    def domain(self) -> Domain:
        """Where points can be."""
        return self._stream.domain

    @property
    def release(self) -> Release | None:
        """The release of the last committed tick, as it was."""
        return self._stream.release

    @property
    def private_tally(self) -> PrivateTally:
        """What was dropped so far, for the operator. **Private: do not publish.**"""
        return self._stream.private_tally

    def describe(self) -> str:
        """Return the promise, the budget and the noise in plain words."""
        return self._stream.describe()

    def close(self) -> None:
        """Let another process open the directory."""
        os.close(self._lock) if self._lock >= 0 else None
        self._lock = -1

    def __enter__(self) -> DurableStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def durable(directory: str | Path, stream: Stream) -> DurableStream:
    """Let a directory own a stream: create it, or go on where it was left.

    The directory is private: keep it where private data may be. ``stream`` says what is promised; if the directory
    holds a stream already, that one goes on, provided the promise is the same.

    >>> import tempfile, phdstream as phd
    >>> box = phd.Box([(0, 1), (0, 1)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with phd.durable(folder, phd.PHDStream(box, epsilon=1.0, unit=phd.Event())) as stream:
    ...         release = stream.update([(0.5, 0.5)])
    ...     with phd.durable(folder, phd.PHDStream(box, epsilon=1.0, unit=phd.Event())) as stream:
    ...         print(stream.tick, stream.release.total == release.total)
    1 True
    """
    return DurableStream(Path(directory), stream)


def _lock(directory: Path) -> int:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StateError(
            f"the state folder {directory} cannot be written ({error.strerror}): choose another one."
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise StateError(
            f"another process is running the stream in {directory}; two must not. Wait for it or stop it."
        ) from None
    return handle


def _check_same(saved: dict[str, Any], asked: dict[str, Any], directory: Path) -> None:
    for name, value in asked.items():
        if saved.get(name) != value:
            raise StateError(
                f"{directory} holds a stream with {name} = {saved.get(name)}, but {value} was asked for. What was "
                "promised cannot change on the way: set it back, or start a new stream in a new folder (its ε "
                "comes on top)."
            )
