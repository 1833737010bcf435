"""Objects in stores, by Arrow's file systems: found, looked at, fetched. Private.

An object is known by its name (its address without settings), and is taken to be as it was if its size, its time and
its version (the store's ETag, or generation) are: so the store is trusted to change one of them when an object is
overwritten. What was fetched is told from all else by its own digest, as a file is.

An object is replaced as a whole; reading one takes several requests. So it is looked at before and after: if it is not
the same, what was read may be of both, and is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import has_magic
from typing import Any

import pyarrow as pa

from phdstream.errors import InputError
from phdstream.io.sources.addresses import Address

__all__ = ["StoredObject", "Version", "find_objects"]

_AT_ONCE = 8 << 20
_VERSION = ("etag", "generation")
_PARTS = (".dbf", ".shx", ".prj", ".cpg")
"""What belongs to a shapefile."""
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE|TOKEN|FORBIDDEN|PERMISSION_?DENIED|UNAUTHENTICATED|UNAUTHORIZED|"
    r"CREDENTIAL|HTTP STATUS 40[13]"
)
_UNREACHED = re.compile(r"NETWORK_CONNECTION|UNAVAILABLE|SLOW_DOWN|THROTTL|TIMEOUT|TIMED OUT|RESOLVE HOST|CONNECT")
Version = tuple[int, int, str]
"""Size, time (nanoseconds since 1970) and version of an object: what changes if it does."""


@dataclass(frozen=True)
class StoredObject:
    """An object of a store: its name for people, and its path in Arrow's file system."""

    name: str
    store: Any
    path: str

    def look(self) -> Version | None:
        """Return what the object is like now; None if there is none. A shapefile's version is that of all its parts."""
        alone = self._look()
        if alone is None:
            return None
        versions = [alone[2], *(f"{ending} {part._look()}" for ending, part in self.beside())]
        return alone[0], alone[1], " ".join(versions)

    def _look(self) -> Version | None:
        from pyarrow.fs import FileType

        with _asking(self.name):
            found = self.store.get_file_info([self.path])[0]
            if found.type != FileType.File:
                return None
            with self.store.open_input_file(self.path) as file:
                about = {key.lower(): value for key, value in _about(file).items()}
                version = " ".join(about[key].decode("latin-1") for key in _VERSION if key in about)
                return file.size(), found.mtime_ns or 0, version

    def beside(self) -> Iterator[tuple[str, StoredObject]]:
        """Yield the other parts of a shapefile that are there, each with its ending."""
        for ending in _PARTS if self.path.lower().endswith(".shp") else ():
            name, path = (text.rpartition(".")[0] + ending for text in (self.name, self.path))
            if (part := StoredObject(name, self.store, path))._look() is not None:
                yield ending, part

    def pieces(self) -> Iterator[bytes]:
        """Yield the object, piece by piece. If it is overwritten meanwhile, they may be of both contents."""
        with _asking(self.name):
            file = self.store.open_input_file(self.path)
        with file:
            while piece := self._read(file):
                yield piece

    def _read(self, file: Any) -> bytes:
        with _asking(self.name):
            piece: bytes = file.read(_AT_ONCE)
            return piece

    def missing(self) -> InputError:
        """Return what to say of an object that is not there."""
        return InputError(f"there is no object {self.name}. Nothing was spent.")


def _about(file: Any) -> dict[str, bytes]:
    try:
        return dict(file.metadata() or {})
    except (pa.ArrowException, OSError, NotImplementedError):  # not every store knows more than size and time
        return {}


def find_objects(text: str) -> list[StoredObject]:
    """Return the objects that an address names, in order of their names.

    ``*`` stands for anything within a part of the key, ``?`` for a character, ``[...]`` for some characters, ``**`` for
    parts, also none: as for files, and as for files not for names that begin with a dot.
    """
    address = Address.parse(text)
    with _asking(address.name):
        from pyarrow.fs import FileSystem

        store, root = FileSystem.from_uri(address.store)
    base = f"{root.rstrip('/')}/" if root else ""
    if not has_magic(address.key):
        return [StoredObject(address.name, store, base + address.key)]
    parts = address.key.split("/")
    fixed = next(at for at, part in enumerate(parts) if has_magic(part))
    folder = base + "".join(f"{part}/" for part in parts[:fixed])
    keys = _listed(address, store, folder.rstrip("/") or "/", recursive=len(parts) > fixed + 1 or "**" in parts)
    keys = sorted(key for path in keys if _matches((key := path.removeprefix(base)).split("/"), parts))
    if not keys:
        raise InputError(f"no object matches {address.name}. Nothing was spent.")
    return [StoredObject(address.with_key(key), store, base + key) for key in keys]


def _listed(address: Address, store: Any, folder: str, recursive: bool) -> list[str]:
    from pyarrow.fs import FileSelector, FileType

    with _asking(address.name):
        try:
            found = store.get_file_info(FileSelector(folder, recursive=recursive))
        except FileNotFoundError:
            return []
    return [one.path for one in found if one.type == FileType.File]


def _matches(names: list[str], parts: list[str]) -> bool:
    """Whether a key, by its parts, is as a pattern says.

    >>> _matches(["a", "b", "c.csv"], ["**", "*.csv"]), _matches(["a", ".c.csv"], ["a", "*.csv"])
    (True, False)
    """
    if not parts:
        return not names
    hidden = bool(names) and names[0].startswith(".") and not parts[0].startswith(".")
    if parts[0] == "**":
        return _matches(names, parts[1:]) or (bool(names) and not hidden and _matches(names[1:], parts))
    return bool(names) and not hidden and fnmatchcase(names[0], parts[0]) and _matches(names[1:], parts[1:])


@contextmanager
def _asking(name: str) -> Iterator[None]:
    """Turn what can go wrong with a store into an `InputError` that says what to do, and quotes none of its answer."""
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, NotImplementedError, ImportError, ValueError) as error:
        raise InputError(f"{_why(name, error)} Nothing was spent.") from None


def _why(name: str, error: Exception) -> str:
    text, code = str(error).upper(), re.search(r"AWS Error ([A-Z_]+)", str(error))
    if "NO_SUCH_BUCKET" in text:
        return f"{name}: there is no such bucket at this store."
    if isinstance(error, FileNotFoundError):
        return f"{name} is not there (any more)."
    if _REFUSED.search(text):
        return (
            f"{name} may not be read, or listed, with the credentials that were found here (if any were). "
            "docs/sources.md says where they are looked for, and what they must be allowed to do."
        )
    if _UNREACHED.search(text):
        return f"{name}: its store cannot be reached. Is the network up, and endpoint_override or region right?"
    if "LIBJVM" in text or "LIBHDFS" in text or isinstance(error, NotImplementedError | ImportError):
        return f"{name}: this machine lacks what Arrow needs for such addresses (Hadoop's libraries, for hdfs)."
    kind = code[1] if code else type(error).__name__
    return f"{name} cannot be read from its store ({kind}): is the address right, and may it be read?"
