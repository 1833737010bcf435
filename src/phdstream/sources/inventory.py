"""Which files there are, and which of them were read before. Private."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from phdstream.errors import InputError
from phdstream.sources.signatures import ordinary_file

__all__ = ["Print", "find_files", "fingerprint", "refuse_twice"]

_AT_ONCE = 1 << 20
_BESIDE = (".dbf", ".shx")
"""A shapefile is three files."""


@dataclass(frozen=True)
class Print:
    """A file as it was when it was looked at."""

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
        if path.exists() or not glob.has_magic(pattern):
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
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or type(error).__name__}.") from None
    return Print(path, found.st_size, found.st_mtime_ns, digest.hexdigest())


def refuse_twice(prints: Sequence[Print]) -> None:
    """Refuse a file that is named twice, by whatever name: its events would count twice."""
    seen: dict[tuple[int, int], Path] = {}
    for one in prints:
        found = one.path.stat()
        before = seen.setdefault((found.st_dev, found.st_ino), one.path)
        if before is not one.path:
            raise InputError(f"{one.path} and {before} are the same file, and its events would count twice.")
