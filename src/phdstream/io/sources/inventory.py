"""Which files and objects there are, and which of them were read before. Private."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from phdstream.errors import InputError
from phdstream.io.sources.addresses import is_address, local_path
from phdstream.io.sources.objects import StoredObject, find_objects
from phdstream.io.sources.signatures import format_of, ordinary_file

__all__ = [
    "BESIDE",
    "Found",
    "Print",
    "check_unchanged",
    "find_files",
    "fingerprint",
    "fingerprints",
    "grown_from",
    "refuse_twice",
]

_AT_ONCE = 1 << 20
_AT_A_TIME = 16
BESIDE = (".dbf", ".shx")
"""A shapefile is three files."""
Found = Path | StoredObject


@dataclass(frozen=True)
class Print:
    """A file or an object as it was found.

    ``name`` is a file's real path, by whatever path it was found, or an object's address; ``version`` is what an
    object's store calls this content of it. ``digest`` is empty if nothing is known of an object but that it is there.
    ``continues`` is the digest of an earlier content which that of a fetched object begins with.
    """

    name: str
    size: int
    changed: int
    digest: str
    version: str = ""
    continues: str = field(default="", compare=False)

    @property
    def path(self) -> Path:
        """Where a file is."""
        return Path(self.name)

    @property
    def is_object(self) -> bool:
        """Whether it is in a store."""
        return is_address(self.name)


def find_files(patterns: Sequence[str], base: Path) -> list[Found]:
    """Return the files and objects that patterns name, each once for each time it is named.

    A name with ``*``, ``?`` or ``[`` stands for all that match, in order of their names; ``~`` is the home folder.
    """
    found: list[Found] = []
    for named in patterns:
        pattern = local_path(named)
        if pattern is None:
            found += find_objects(named)
            continue
        path = base / Path(pattern).expanduser()
        if not glob.has_magic(pattern) or path.exists():
            found.append(path)
            continue
        matching = sorted(Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file())  # noqa: PTH207
        if not matching:
            raise InputError(f"no file matches {path}.")
        found += matching
    return found


def fingerprints(found: Sequence[Found], known: Sequence[Print] = ()) -> list[Print]:
    """Return what tells each file and object from any other, as far as that can be told without fetching objects.

    One of the same name, size and time (and, of an object, version) as a known one is that one.
    """
    with ThreadPoolExecutor(_AT_A_TIME) as pool:  # each object is a request or two to its store
        objects = pool.map(partial(_look, known=known), [one for one in found if isinstance(one, StoredObject)])
        return [next(objects) if isinstance(one, StoredObject) else fingerprint(one, known) for one in found]


def _look(found: StoredObject, known: Sequence[Print]) -> Print:
    try:
        format_of(Path(found.path))
    except InputError as error:
        raise InputError(str(error).replace(found.path, found.name)) from None
    version = found.look()
    if version is None:
        raise found.missing()
    for old in known:
        if (old.name, old.size, old.changed, old.version) == (found.name, *version):
            return old
    size, changed, told = version
    return Print(found.name, size, changed, "", told)


def fingerprint(path: Path, known: Iterable[Print] = ()) -> Print:
    """Return what tells a file from any other. One of the same name, size and time as a known one is that one."""
    ordinary_file(path)
    try:
        path = path.resolve(strict=True)
        found = path.stat()
        for old in known:
            if (old.name, old.size, old.changed) == (str(path), found.st_size, found.st_mtime_ns):
                return old
        digest = hashlib.sha256()
        beside = [path.with_suffix(ending) for ending in BESIDE if path.suffix.lower() == ".shp"]
        for part in (path, *(other for other in beside if other.is_file())):
            with part.open("rb") as file:
                while piece := file.read(_AT_ONCE):
                    digest.update(piece)
    except (OSError, RuntimeError) as error:  # a link to itself is a RuntimeError
        why = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(f"{path} cannot be read: {why}.") from None
    return Print(str(path), found.st_size, found.st_mtime_ns, digest.hexdigest())


def refuse_twice(prints: Sequence[Print]) -> None:
    """Refuse a file or an object that is named twice, a file by whatever name: its events would count twice."""
    seen: set[str | tuple[int, int]] = set()
    for one in prints:
        which = one.name if one.is_object else (_stat(one).st_dev, _stat(one).st_ino)
        if which in seen:
            same = "it is the same object" if one.is_object else "they are the same file"
            raise InputError(f"{one.name} is named twice: {same}, and its events would count twice.")
        seen.add(which)


def check_unchanged(one: Print) -> None:
    """Refuse a file that was changed while it was read."""
    found = _stat(one)
    if (found.st_size, found.st_mtime_ns) != (one.size, one.changed):
        raise InputError(f"{one.name} changed while it was read: let whoever writes it finish, and run again.")


def _stat(one: Print) -> os.stat_result:
    try:
        return one.path.stat()
    except OSError as error:
        raise InputError(f"{one.name} cannot be read any more: {error.strerror}.") from None


def grown_from(one: Print, before: Print) -> bool:
    """Return whether a file begins with all that it held before, up to the end of a line: so none of that changed."""
    if one.is_object:
        return one.continues == before.digest
    digest, left, last = hashlib.sha256(), before.size, b""
    try:
        with one.path.open("rb") as file:
            while left and (piece := file.read(min(_AT_ONCE, left))):
                digest.update(piece)
                left, last = left - len(piece), piece[-1:]
    except OSError:
        return False
    return not left and last == b"\n" and digest.hexdigest() == before.digest
