"""The private folder of one stream: its latest state, and a marker that tells when an older one was put back.

A commit writes the state, then the marker. A crash between the two leaves the state one commit ahead, which is
accepted and mended; a state behind the marker is refused, since going on from it would release ticks twice.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from phdstream.errors import InputError, StateError
from phdstream.streams.durable.locked_folder import LockedFolder
from phdstream.streams.state import Arrays, decode_state, digest, encode_state, state_pieces

__all__ = ["Commits", "Marker"]

_STATE, _MARKER = "state.npz", "committed"
_PASSING = "fetched-"
_NO_STATE = "0" * 64
_ID = re.compile(r"[0-9a-f]{32}")
_LINE = re.compile(rb"(phdstream-committed ([0-9a-f]{32}) (0|[1-9][0-9]{0,17}) ([0-9a-f]{64})) ([0-9a-f]{64})\n")
_EXTRA = re.compile(r"(?!state$)[a-z][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Marker:
    """The latest commit: stream, tick and the digest of its state file.

    The digest tells another state of the same tick, of a copy of the folder that went on elsewhere with other noise.

    >>> marker = Marker("0" * 32, 3, "f" * 64)
    >>> Marker.decode(marker.encode(), Path("committed")) == marker
    True
    """

    stream: str
    tick: int
    digest: str

    def encode(self) -> bytes:
        """Return the marker as a file's content: one line, which ends with its own checksum."""
        line = f"phdstream-committed {self.stream} {self.tick} {self.digest}"
        return f"{line} {_digest(line.encode())}\n".encode()

    @classmethod
    def decode(cls, content: bytes, path: Path) -> Marker:
        """Return what `encode` wrote, or say that the file is damaged."""
        found = _LINE.fullmatch(content)
        if found is None or _digest(found[1]).encode() != found[5]:
            raise StateError(
                f"{path} is damaged, so it cannot be told which tick was released last. Restore it, and the state "
                "beside it, from the latest backup."
            )
        return cls(found[2].decode(), int(found[3]), found[4].decode())


def _digest(content: bytes) -> str:
    return digest([content])


class Commits:
    """Owns the folder: locked, and for its owner only. A commit is `save`, then `mark`.

    ``id`` is the stream's, random until `load` finds one; ``begun`` tells whether there is a state. Every failure is a
    StateError that names the file, except in `save` and `mark`: their caller says what an OSError means for the tick.

    A marker of tick 0 without a state is a claim: the id of a stream that is about to begin.
    """

    def __init__(self, directory: Path) -> None:
        self.directory, self.id = directory, secrets.token_hex(16)
        self.begun = False
        self._marker: Marker | None = None  # as it is on the disk
        self._latest: Marker | None = None  # as it belongs to the state on the disk
        self._stamp: tuple[int, ...] | None = None
        self._written: set[str] = set()
        try:
            self._folder = LockedFolder(directory, private=True)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise StateError(f"the state folder {directory} cannot be written ({why}): choose another one.") from None
        self._sweep()

    def load(self) -> tuple[dict[str, Any], Arrays] | None:
        """Return the latest state, or None if no stream has begun here; refuse one that is not the latest."""
        marker, content = self._read(_MARKER), self._read(_STATE)
        self._marker = None if marker is None else Marker.decode(marker, self.directory / _MARKER)
        if content is None:
            if self._marker and self._marker.tick:
                raise StateError(
                    f"{self.directory} has released {self._marker.tick} tick(s), but its state is gone. Restore it."
                )
            self.id = self._marker.stream if self._marker else self.id
            return None
        meta, arrays = decode_state(content, self.directory / _STATE)
        name, tick = meta.get("id"), meta.get("tick")
        if not (isinstance(name, str) and _ID.fullmatch(name) and type(tick) is int and tick >= 0):
            raise StateError(f"{self.directory / _STATE} was not written by durable(). Restore the one that was.")
        self._check_latest(Marker(name, tick, _digest(content)), self._marker)
        self.id, self.begun = name, True
        self._stamp = self._folder.stamp(_STATE)
        return meta, arrays

    def _check_latest(self, state: Marker, committed: Marker | None) -> None:
        if committed is None:
            if state.tick:
                raise StateError(
                    f"{self.directory / _MARKER} is gone, so it cannot be told whether the state beside it is the "
                    "latest. Restore both from the latest backup."
                )
        elif committed.stream != state.stream:
            raise StateError(f"the files in {self.directory} are of two streams. Restore them from one backup.")
        elif state.tick < committed.tick:
            raise StateError(
                f"the state in {self.directory} is of tick {state.tick}, but tick {committed.tick} was released "
                "already. Going on would release ticks twice with different noise. Restore the latest state."
            )
        elif state.tick == committed.tick and state.tick and state.digest != committed.digest:
            raise StateError(
                f"the state in {self.directory} is not the one of tick {state.tick} that was committed here: a copy "
                "went on elsewhere. Going on would release ticks twice with different noise. Restore the one of here."
            )
        self._latest = state

    def mend(self) -> None:
        """Write the marker anew if a crash came between the two files of a commit."""
        if self._latest and self._marker != self._latest:
            try:
                self._mark(self._latest)
            except OSError as error:
                raise self._unusable(_MARKER, error, "written") from error

    def claim(self) -> None:
        """Write the id down before the first commit, so that whoever opens the folder after a crash has the same."""
        if self._marker is None:
            try:
                self._mark(Marker(self.id, 0, _NO_STATE))
            except OSError as error:
                raise self._unusable(_MARKER, error, "written") from error

    def check(self) -> None:
        """Refuse unless this process holds the folder at its path and the files in it are those it left there."""
        self._folder.check()
        state = self._folder.stamp(_STATE) == self._stamp or self._same_state()
        if not state or self._read(_MARKER) != (self._marker and self._marker.encode()):
            raise StateError(
                f"the files in {self.directory} are not those that were committed last: somebody changed them, or put "
                "a backup back. Going on could release ticks twice. Restore the latest ones, and open it again."
            )

    def _same_state(self) -> bool:
        content = self._read(_STATE)
        return content is not None and self._marker is not None and _digest(content) == self._marker.digest

    def save(self, tick: int, meta: dict[str, Any], arrays: Arrays) -> Marker:
        """Write a state, the first half of a commit: from here on the tick is saved. Return what `mark` is to write."""
        pieces = state_pieces(meta | {"id": self.id, "owner": "directory"}, arrays)
        if self._marker is None or self._marker.stream != self.id:  # so that a first tick is never without a marker
            self._mark(Marker(self.id, 0, _NO_STATE))
        self._folder.replace(_STATE, lambda file: file.writelines(pieces))
        self.begun = True
        return Marker(self.id, tick, digest(pieces))

    def mark(self, marker: Marker) -> None:
        """Write the marker of a saved state, the second half of a commit."""
        self._mark(marker)
        self._stamp = self._folder.stamp(_STATE)

    def _mark(self, marker: Marker) -> None:
        self._folder.replace(_MARKER, lambda file: file.write(marker.encode()))
        self._marker = marker

    def read_extra(self, name: str) -> tuple[dict[str, Any], Arrays] | None:
        """Return what `write_extra` wrote for this stream, or None; another stream's is refused."""
        content = self._read(_extra_file(name))
        if content is None or not (self.begun or name in self._written):  # or left by a run that never began
            return None
        meta, arrays = decode_state(content, self.directory / _extra_file(name))
        if meta.pop("id", None) != self.id:
            raise StateError(f"{self.directory / _extra_file(name)} is of another stream. Restore the one of this.")
        return meta, arrays

    def write_extra(self, name: str, meta: dict[str, Any], arrays: Arrays) -> None:
        """Write another file with a checksum beside the state, whole or not at all."""
        content = encode_state(meta | {"id": self.id, "owner": "directory"}, arrays)
        try:
            self._folder.replace(_extra_file(name), lambda file: file.write(content))
            self._written.add(name)
        except OSError as error:
            raise self._unusable(_extra_file(name), error, "written") from error

    def temporary_file(self) -> IO[bytes]:
        """Return a new private file without a name; see `LockedFolder.temporary_file`."""
        try:
            return self._folder.temporary_file()
        except OSError as error:
            raise self._unusable("", error, "written") from error

    @contextmanager
    def passing_file(self, ending: str) -> Iterator[tuple[IO[bytes], Path]]:
        """Give a new private file whose name ends so, and where it is. It goes afterwards; after a kill, at the next
        opening of the folder.
        """
        name = _PASSING + ending
        try:
            file = self._folder.new_file(name)
        except OSError as error:
            raise self._unusable(name, error, "written") from error
        try:
            with file:
                yield file, self._folder.path / name
        finally:
            self._folder.remove(name)

    def _sweep(self) -> None:
        """Remove private files that a process left which was killed."""
        try:
            for name in self._folder.names():
                if name.startswith(_PASSING):
                    self._folder.remove(name)
        except OSError as error:
            self._folder.close()
            raise self._unusable("", error, "written") from error

    def close(self) -> None:
        """Let others open the folder; one that was made here and in which nothing began is removed."""
        self._folder.close(remove_empty=self._folder.created and not self.begun)

    def _read(self, name: str) -> bytes | None:
        try:
            return self._folder.read(name)
        except OSError as error:
            raise self._unusable(name, error) from error

    def _unusable(self, name: str, error: OSError, what: str = "read") -> StateError:
        return StateError(
            f"{self.directory / name} cannot be {what} ({error.strerror or error}). Mend it and try again."
        )


def _extra_file(name: str) -> str:
    if not _EXTRA.fullmatch(name):
        raise InputError(f"a further file of the state needs a plain lower-case name, not {name!r}.")
    return f"{name}.npz"
