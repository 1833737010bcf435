"""A directory that owns a stream: once means once.

Noise for a tick is drawn once. `DurableStream.update` commits the new state to the disk *before* it hands out
the release; the release can be rebuilt from the state, bit for bit. So after a crash either the tick is
committed and is handed out again as it was, or nothing of it was ever visible and it is taken anew. Refused are
a second process (the operating system locks the directory, so the lock is gone with its owner), a handle that
was closed or forked or whose directory was changed under it, another stream than the one the directory was made
for, and a state older than what was committed (a restored backup would release ticks twice).
"""

from __future__ import annotations

import copy
import json
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from phdstream.domains import Domain
from phdstream.errors import InputError, StateError
from phdstream.privacy import Unit
from phdstream.release import Release
from phdstream.streams.durable.commits import Commits
from phdstream.streams.intake import Intake, PrivateTally
from phdstream.streams.state import Arrays, differing
from phdstream.streams.stream import Stream

__all__ = ["DurableStream", "durable"]


@dataclass(frozen=True)
class _Shown:
    """The stream as it was last committed: all that its handle shows."""

    tick: int
    release: Release | None
    tally: PrivateTally
    description: str
    notes: dict[str, Any]

    @classmethod
    def of(cls, stream: Stream, notes: dict[str, Any]) -> _Shown:
        tally = replace(stream.private_tally)
        return cls(stream.tick, stream.release, tally, stream.describe(), copy.deepcopy(notes))


class DurableStream:
    """A stream whose every tick is committed to a private directory before its release is seen. Made by `durable`.

    What it shows is always what was last committed. ``notes`` is a small plain dictionary for its user, committed with
    each tick (where the input stands, say); if a commit fails, it is set back to what was committed.
    """

    def __init__(self, directory: Path, stream: Stream) -> None:
        self.directory = directory
        self.notes: dict[str, Any] = {}
        self._failed = ""
        self._commits = Commits(directory)
        try:
            self._stream = self._resume(stream)
            self._shown = _Shown.of(self._stream, self.notes)
            if self._stream.tick:
                self.begin()  # a stream that took ticks before it came here
        except BaseException:
            self.close()
            raise

    def _resume(self, stream: Stream) -> Stream:
        saved = self._commits.load()
        if saved is None:
            return stream
        meta, arrays = saved
        try:
            _check_same(meta["parameters"], stream.parameters, self.directory)
            self.notes = dict(meta["notes"])
            resumed = type(stream).from_state(meta, arrays)
        except StateError:
            raise
        except Exception as error:  # whatever a file that no version of ours wrote may lead to
            raise StateError(
                f"the state in {self.directory} holds no stream that can go on ({type(error).__name__}). Restore it."
            ) from error
        self._commits.mend()
        return resumed

    def begin(self) -> None:
        """Commit the stream and its notes as they stand before the first tick; nothing happens if it has begun.

        From here on the promise is fixed in the directory. The first `update` begins too.
        """
        if not self._commits.begun:
            self._check_may_go_on()
            self._commit()

    def claim(self) -> None:
        """Keep the stream's id for it, before it begins: opened again after a crash, the directory has the same one.

        For what must be written elsewhere under that id before the first commit. Nothing is fixed but the id.
        """
        if not self._commits.begun:
            self._check_may_go_on()
            self._commits.claim()

    def update(self, inserts: Any = None, deletes: Any = None, users: Any = None, delete_users: Any = None) -> Release:
        """Take one tick's events, commit, and only then return the release. See `Stream.update`.

        Refused, before anything changes, after `close`, in a forked process, if the directory or the files in it are
        no longer those of the last commit, and after a commit that failed.
        """
        self._check_may_go_on()
        self._stream.update(inserts, deletes, users, delete_users)
        self._commit()
        assert self._shown.release is not None
        return self._shown.release

    def _check_may_go_on(self) -> None:
        if self._failed:
            raise StateError(self._failed)
        self._commits.check()
        if self._stream.tick != self._shown.tick:
            raise StateError("the stream failed half-way, or took a tick past its directory: open the directory again.")
        try:
            json.dumps(self.notes)
        except (TypeError, ValueError, RecursionError):
            raise InputError("notes must be plain data, as JSON has it: text, numbers, lists, dictionaries.") from None

    def _commit(self) -> None:
        """Save the stream as it is now; only when it is on the disk is it shown."""
        tick = self._stream.tick
        self._failed = f"tick {tick} could not be committed; open the directory again to go on before it."
        try:
            shown = _Shown.of(self._stream, self.notes)
            meta, arrays = self._stream.to_state()
            marker = self._commits.save(tick, meta | {"notes": self.notes}, arrays)
        except BaseException as error:
            self.notes.clear()
            self.notes.update(copy.deepcopy(self._shown.notes))
            if not isinstance(error, OSError):
                raise
            raise StateError(
                f"tick {tick} could not be saved in {self.directory} ({error.strerror or error}). Nothing of it was "
                "released and all earlier ticks are safe. Make room or mend the folder, and start again."
            ) from error
        self._shown = shown
        self._failed = f"tick {tick} is saved; open the directory again to go on after it."
        try:
            self._commits.mark(marker)
        except OSError as error:
            raise StateError(
                f"tick {tick} is saved; only the mark of it could not be written in {self.directory} "
                f"({error.strerror or error}). Make room or mend the folder, and open the folder again to go on: its "
                "release is there."
            ) from error
        self._failed = ""

    @property
    def id(self) -> str:
        """The stream's name for ever, once it has begun or `claim` was called: 32 random hex digits. Public."""
        return self._commits.id

    @property
    def parameters(self) -> dict[str, Any]:
        """All that fixes the stream before it sees data: ε, unit, domain, method and its numbers. Public."""
        return self._stream.parameters

    @property
    def tick(self) -> int:
        """The last committed tick."""
        return self._shown.tick

    @property
    def domain(self) -> Domain:
        """Where points can be."""
        return self._stream.domain

    @property
    def unit(self) -> Unit:
        """To whom ε is promised."""
        return self._stream.unit

    @property
    def deletes(self) -> bool:
        """Whether deletes are taken."""
        return self._stream.deletes

    @property
    def release(self) -> Release | None:
        """The release of the last committed tick, as it was."""
        return self._shown.release

    @property
    def private_tally(self) -> PrivateTally:
        """What was dropped up to the last committed tick, for the operator. **Private: do not publish.**"""
        return replace(self._shown.tally)

    def intake(self) -> Intake:
        """Return a copy of what stands before the mechanism, users' bounds as they are, to see what it would drop."""
        own = self._stream._intake
        copied = Intake(own.domain, own.unit, own.deletes, own.budget)
        copied.restore(own.to_arrays(), own.tally.to_dict())
        return copied

    def held_parts(self, engine: str) -> set[str]:
        """Return the parts that an engine must still hold for this stream: those of its open block."""
        return self._stream.held_parts(engine)

    def describe(self) -> str:
        """Return the promise, the budget and the noise in plain words, as of the last committed tick."""
        return self._shown.description

    def plot(self, what: str = "points", axes: Any = None) -> Any:
        """Draw the release of the last committed tick: see `Release.plot`."""
        if self.release is None:
            raise StateError("there is nothing to draw before the first tick: call update(...).")
        return self.release.plot(what, axes)

    def _repr_html_(self) -> str:
        return self._stream.card("Durable ")

    def __repr__(self) -> str:
        return f"<Durable, in {self.directory.name}: {self._stream!r}>"

    def read_extra(self, name: str) -> tuple[dict[str, Any], Arrays] | None:
        """Return what `write_extra` wrote under a name for this stream, or None. Private."""
        return self._commits.read_extra(name)

    def write_extra(self, name: str, meta: dict[str, Any], arrays: Arrays) -> None:
        """Write plain data and arrays to a further file of the directory, with a checksum, whole or not at all."""
        self._commits.write_extra(name, meta, arrays)

    def temporary_file(self) -> IO[bytes]:
        """Return a new file in the directory, for private bytes: without a name, and gone when it is closed."""
        return self._commits.temporary_file()

    def passing_file(self, ending: str) -> AbstractContextManager[tuple[IO[bytes], Path]]:
        """Give a new private file of the directory whose name ends so, open for writing, and where it is.

        It is removed afterwards; what a kill left of it, when the directory is opened again.
        """
        return self._commits.passing_file(ending)

    def close(self) -> None:
        """Let another process open the directory; one made for a stream that never began is removed."""
        self._commits.close()

    def __enter__(self) -> DurableStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def durable(directory: str | Path, stream: Stream) -> DurableStream:
    """Let a directory own a stream: create it, or go on where it was left.

    The directory is private: keep it where private data may be. ``stream`` says what is promised; if a stream has begun
    in the directory, that one goes on, provided the promise is the same. Otherwise nothing is written before the first
    `update` (or `DurableStream.begin`).

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


def _check_same(saved: dict[str, Any], asked: dict[str, Any], directory: Path) -> None:
    """Refuse a stream that was promised otherwise. It goes on with the numbers it was tuned by when it began."""
    for name, value in asked.items():
        if name != "parameters" and saved.get(name) != value:
            was, wanted = differing(saved.get(name), value)
            raise StateError(
                f"{directory} holds a stream with {name} = {was}, but {wanted} was asked for. What was promised cannot "
                "change on the way: set it back, or start a new stream in a new folder (its ε comes on top)."
            )
