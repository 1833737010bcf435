"""A folder of releases: one file of points and one of cells per tick, and a manifest. Public."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from phdstream.errors import InputError, StateError
from phdstream.release import Release
from phdstream.sinks.writers import FORMATS, Encoder, encode_cells, encode_points
from phdstream.state import replace_file

__all__ = ["ReleaseFolder"]

_PUBLIC = 0o644


class ReleaseFolder:
    """Publishes releases: ``points/tick-00001.parquet``, ``cells/tick-00001.parquet``, ..., ``manifest.json``.

    ``format`` is one of `phdstream.sinks.writers.FORMATS`. Every file appears whole or not at all. Publishing a
    release again writes the same content.
    """

    def __init__(self, folder: Path, extra: dict[str, Any], format: str = "parquet") -> None:
        self.folder, self._extra, self._format = folder, extra, format
        try:
            for part in ("points", "cells"):
                (folder / part).mkdir(parents=True, exist_ok=True)
            replace_file(folder / ".writable", lambda file: None)
            (folder / ".writable").unlink()
        except OSError as error:
            raise InputError(
                f"the output folder {folder} cannot be written ({error.strerror}): choose another."
            ) from None

    @property
    def last_tick(self) -> int:
        """The last tick that was published here; 0 for none."""
        path = self.folder / "manifest.json"
        try:
            return int(json.loads(path.read_text())["last_tick"]) if path.exists() else 0
        except (ValueError, KeyError, TypeError):
            raise StateError(f"{path} is damaged; move it away only if you know what was published.") from None

    def check_not_ahead_of(self, tick: int) -> None:
        """Refuse to go on from a state that is older than what was published here."""
        if self.last_tick > tick:
            raise StateError(
                f"{self.folder} has releases up to tick {self.last_tick}, but the state is at tick {tick}. Going on "
                "would release ticks twice with different noise. Restore the state, or start a new stream in a new "
                "folder."
            )

    def publish(self, release: Release) -> None:
        """Write a release's points and cells, then the manifest that names it."""
        try:
            self._write("cells", encode_cells(release, self._format), release.tick)
            self._write("points", encode_points(release, self._format), release.tick)
            self._write_manifest(release)
        except OSError as error:
            raise StateError(
                f"tick {release.tick} is committed but could not be written to {self.folder} "
                f"({error.strerror or error}). Make room or mend the folder, and run again: the same release will be "
                "written."
            ) from error

    def _write(self, part: str, encode: Encoder, tick: int) -> None:
        replace_file(self.folder / part / f"tick-{tick:05d}{FORMATS[self._format]}", encode, _PUBLIC)

    def _write_manifest(self, release: Release) -> None:
        written = {"last_tick": release.tick, "files": ["points/*", "cells/*"], "format": self._format}
        manifest = release.facts | self._extra | written
        text = json.dumps(manifest, indent=2, ensure_ascii=False).encode()
        replace_file(self.folder / "manifest.json", lambda file: file.write(text), _PUBLIC)
