"""What lies in a folder of releases: JSON files, and files of ticks that are written once. Public."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet

from phdstream.errors import InputError, StateError
from phdstream.streams.durable.folders import Writer
from phdstream.streams.durable.locked_folder import LockedFolder

__all__ = ["ESTIMATES", "PARTS", "Contents"]

PARTS = ("cells", "points")
"""The folders of what people read."""
ESTIMATES = "estimates"
"""The folder of what phdstream reads: see `phdstream.io.sinks.estimates`."""
_PUBLIC = 0o644
_TICK = re.compile(r"tick-([0-9]{5,})\..+")
_LEFTOVER = re.compile(r"\.(stream\.json|manifest\.json|domain\.json|tick-[0-9]{5,}\..+)\.tmp")
_AT_ONCE = 1 << 20


class Contents:
    """The open, locked folder. What cannot be read or is damaged is a StateError with the path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._folder = LockedFolder(path, private=False)
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from None

    def prepare(self) -> None:
        """Make the folders of ticks, and remove what a killed process left half-written."""
        try:
            for part in (*PARTS, ESTIMATES):
                self._folder.make(part, 0o755)
            for part in ("", *PARTS, ESTIMATES):
                for name in filter(_LEFTOVER.fullmatch, self._folder.names(part)):
                    self._folder.remove(f"{part}/{name}" if part else name)
        except OSError as error:
            raise self._unwritable(error) from None

    def claim(self, name: str, content: dict[str, Any]) -> None:
        """Write a JSON file as the first thing in the folder, unless it is there as it should be."""
        try:
            self.put_json(name, content)
        except OSError as error:
            raise self._unwritable(error) from None

    def json(self, name: str) -> dict[str, Any] | None:
        """Return the object in a JSON file; None if there is no such file."""
        try:
            content = self._folder.read(name)
            return None if content is None else dict(json.loads(content))
        except OSError as error:
            raise self._unreadable(name, error) from None
        except (ValueError, TypeError, RecursionError):
            raise self.damaged(name) from None

    def ticks(self, part: str, ending: str = "") -> set[int]:
        """Return the ticks that have a file in a part."""
        try:
            found = [_TICK.fullmatch(name) for name in self._folder.names(part) if name.endswith(ending)]
        except OSError as error:
            raise self._unreadable(part, error) from None
        return {int(tick[1]) for tick in found if tick}

    def has(self, name: str) -> bool:
        """Tell whether there is a file, or anything else, of a name."""
        return self._folder.stamp(name) is not None

    def put_json(self, name: str, content: dict[str, Any]) -> None:
        """Write a JSON file, unless it is there as it should be. OSError is the caller's."""
        if self.json(name) != content:
            text = json.dumps(content, indent=2, ensure_ascii=False).encode()
            self._folder.replace(name, lambda file: file.write(text), _PUBLIC)

    def put_once(self, name: str, write: Writer) -> None:
        """Write a file that is not there yet; refuse if it is there with another content. OSError is the caller's."""
        there = self._folder.open(name)
        if there is None:
            self._folder.replace(name, write, _PUBLIC)
            return
        with there, self._folder.temporary_file() as asked:
            write(asked)
            if _same_bytes(there, asked) or (name.endswith(".parquet") and _same_table(there, asked)):
                return
        raise StateError(
            f"{self.path / name} holds another content than the release in the state, and is never replaced: was it "
            "changed, or written from another copy of the state? Put back what was published, or start a new stream "
            "in new folders (its ε comes on top)."
        )

    def check(self) -> None:
        """Refuse to go on after closing or forking, or if the folder was moved or replaced."""
        self._folder.check()

    def close(self) -> None:
        """Let another process open the folder."""
        self._folder.close()

    def damaged(self, name: str) -> StateError:
        """Return what to say of a file that cannot be understood."""
        return StateError(f"{self.path / name} is damaged. Put back what was published, or use a new folder.")

    def _unreadable(self, name: str, error: OSError) -> StateError:
        return StateError(f"{self.path / name} cannot be read ({error.strerror or error}). Mend that first.")

    def _unwritable(self, error: Exception) -> InputError:
        why = getattr(error, "strerror", None) or error
        return InputError(f"the output folder {self.path} cannot be written ({why}): choose another.")


def _same_bytes(one: IO[bytes], other: IO[bytes]) -> bool:
    one.seek(0)
    other.seek(0)
    while (piece := one.read(_AT_ONCE)) == other.read(_AT_ONCE):
        if not piece:
            return True
    return False


def _same_table(one: IO[bytes], other: IO[bytes]) -> bool:
    """Tell whether two Parquet files hold the same table and metadata, though another library may have written one."""
    one.seek(0)
    other.seek(0)
    try:
        first, second = (pyarrow.parquet.read_table(file) for file in (one, other))
    except (pa.ArrowException, OSError):
        return False
    return bool(first.equals(second, check_metadata=True))
