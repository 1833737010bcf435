"""Which files there are, and which of them were read before. Private."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from phdstream.errors import InputError
from phdstream.io.sources.signatures import ordinary_file

__all__ = ["Print", "check_unchanged", "find_files", "fingerprint", "grown_from", "refuse_twice"]

_AT_ONCE = 1 << 20
_BESIDE = (".dbf", ".shx")
"""A shapefile is three files."""


@dataclass(frozen=True)
class Print:
    """A file as it was found; its path is the real one, by whatever path it was found."""

    path: Path
    size: int
    changed: int
    digest: str


def find_files(patterns: Sequence[str], base: Path) -> list[Path]:
    """Return the files that patterns name, each once for each time it is named; ``~`` is the home folder.

    A name with ``*``, ``?`` or ``[`` stands for all files that match, in order of their names.
    """
    found: list[Path] = []
    for pattern in patterns:
        path = base / Path(pattern).expanduser()
        if not glob.has_magic(pattern) or path.exists():
            found.append(path)
            continue
        matching = sorted(Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file())  # noqa: PTH207
        if not matching:
            raise InputError(f"no file matches {path}.")
        found += matching
    return found


def fingerprint(path: Path, known: Iterable[Print] = ()) -> Print:
    """Return what tells a file from any other. One of the same name, size and time as a known one is that one."""
    ordinary_file(path)
    try:
        path = path.resolve(strict=True)
        found = path.stat()
        for old in known:
            if (old.path, old.size, old.changed) == (path, found.st_size, found.st_mtime_ns):
                return old
        digest = hashlib.sha256()
        beside = [path.with_suffix(ending) for ending in _BESIDE if path.suffix.lower() == ".shp"]
        for part in (path, *(other for other in beside if other.is_file())):
            with part.open("rb") as file:
                while piece := file.read(_AT_ONCE):
                    digest.update(piece)
    except (OSError, RuntimeError) as error:  # a link to itself is a RuntimeError
        why = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(f"{path} cannot be read: {why}.") from None
    return Print(path, found.st_size, found.st_mtime_ns, digest.hexdigest())


def refuse_twice(prints: Sequence[Print]) -> None:
    """Refuse a file that is named twice, by whatever name: its events would count twice."""
    seen: set[tuple[int, int]] = set()
    for one in prints:
        found = _stat(one)
        if (found.st_dev, found.st_ino) in seen:
            raise InputError(f"{one.path} is named twice: they are the same file, and its events would count twice.")
        seen.add((found.st_dev, found.st_ino))


def check_unchanged(one: Print) -> None:
    """Refuse a file that was changed while it was read."""
    found = _stat(one)
    if (found.st_size, found.st_mtime_ns) != (one.size, one.changed):
        raise InputError(f"{one.path} changed while it was read: let whoever writes it finish, and run again.")


def _stat(one: Print) -> os.stat_result:
    try:
        return one.path.stat()
    except OSError as error:
        raise InputError(f"{one.path} cannot be read any more: {error.strerror}.") from None


def grown_from(one: Print, before: Print) -> bool:
    """Return whether a file begins with all that it held before, up to the end of a line: so none of that changed."""
    digest, left, last = hashlib.sha256(), before.size, b""
    try:
        with one.path.open("rb") as file:
            while left and (piece := file.read(min(_AT_ONCE, left))):
                digest.update(piece)
                left, last = left - len(piece), piece[-1:]
    except OSError:
        return False
    return not left and last == b"\n" and digest.hexdigest() == before.digest
