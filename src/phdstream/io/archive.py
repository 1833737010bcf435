"""A folder of releases, read: which ticks are there, and each release to be asked again. Public.

Reading takes no lock: a tick's files never change once they are there, and the manifest, which is written last, says
which ticks are whole.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from phdstream.domains import Domain, domain_from_dict
from phdstream.errors import InputError, StateError
from phdstream.io.sinks.contents import ESTIMATES, PARTS
from phdstream.io.sinks.estimates import read_release
from phdstream.io.sinks.folder import DOMAIN
from phdstream.io.sinks.writers import FORMATS
from phdstream.release import Release

__all__ = ["Archive", "open_archive"]

_WHOLE_IN_MANIFEST = ("box", "cube", "globe")
"""Domains whose summary in the manifest is all there is to say of them."""


def open_archive(folder: Path) -> Archive:
    """Return the releases in a folder that says itself what its domain is, as every folder written now does."""
    if not (folder / "manifest.json").is_file():
        raise InputError(f"{folder} is no folder of releases: it has no manifest.json.")
    try:
        fields = dict(json.loads((folder / DOMAIN).read_text(encoding="utf-8")))
    except FileNotFoundError:
        fields = _domain_in_manifest(folder)
    except (OSError, ValueError, TypeError):
        raise StateError(f"{folder / DOMAIN} cannot be read. Put back what was published.") from None
    return Archive(folder, domain_from_dict(fields))


def _domain_in_manifest(folder: Path) -> dict[str, Any]:
    """Return the domain that an older folder's manifest states, if it does so in full."""
    try:
        fields = dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["domain"])
    except (OSError, ValueError, TypeError, KeyError):
        raise StateError(f"{folder / 'manifest.json'} cannot be read. Put back what was published.") from None
    if fields.get("type") not in _WHOLE_IN_MANIFEST:
        raise InputError(
            f"{folder} was written before folders had a {DOMAIN}, and its manifest states its domain (of type "
            f"'{fields.get('type')}') in short only. The next tick that is published adds the file."
        )
    return fields


class Archive:
    """The releases in a folder, the latest few of those asked for kept in memory. Threads may share it."""

    def __init__(self, folder: Path, domain: Domain, kept: int = 8) -> None:
        self.folder, self.domain = folder, domain
        self._kept, self._releases = kept, OrderedDict[int, Release]()
        self._lock = threading.Lock()
        self._manifest: tuple[tuple[int, ...], dict[str, Any]] | None = None

    def manifest(self) -> dict[str, Any] | None:
        """Return what the folder says of itself; None before the first release."""
        try:
            with (self.folder / "manifest.json").open("rb") as file:
                found = os.fstat(file.fileno())
                stamp = found.st_ino, found.st_mtime_ns, found.st_size
                if self._manifest is None or self._manifest[0] != stamp:
                    self._manifest = stamp, dict(json.load(file))
                return self._manifest[1]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError):
            raise StateError(f"{self.folder / 'manifest.json'} cannot be read. Put back what was published.") from None

    @property
    def last_tick(self) -> int:
        """The last tick that is whole; 0 before the first release."""
        manifest = self.manifest()
        return 0 if manifest is None else int(manifest.get("last_tick", 0))

    def has(self, tick: int) -> bool:
        """Tell whether a tick's release can be read."""
        return 1 <= tick <= self.last_tick and self._path(tick).is_file()

    def file(self, tick: int, part: str, form: str) -> Path | None:
        """Return the file of a tick's points or cells, if that is how the folder keeps them."""
        manifest = self.manifest()
        if manifest is None or part not in PARTS or manifest.get("format") != form or not self.has(tick):
            return None
        path = self.folder / part / f"tick-{tick:05d}{FORMATS[form]}"
        return path if path.is_file() else None

    def ticks(self, first: int, last: int) -> set[int]:
        """Return which of some ticks can be read."""
        return {tick for tick in range(max(1, first), min(last, self.last_tick) + 1) if self._path(tick).is_file()}

    def release(self, tick: int) -> Release:
        """Return a release; its changes are those since the tick before, if that one is there."""
        with self._lock:
            if tick in self._releases:
                self._releases.move_to_end(tick)
                return self._releases[tick]
        if not self.has(tick):
            raise StateError(f"tick {tick} has no release here.")
        before = read_release(self._path(tick - 1), self.domain) if self.has(tick - 1) else None
        release = read_release(self._path(tick), self.domain, before)
        with self._lock:
            self._releases[tick] = release
            while len(self._releases) > self._kept:
                self._releases.popitem(last=False)
        return release

    def _path(self, tick: int) -> Path:
        return self.folder / ESTIMATES / f"tick-{tick:05d}.parquet"
