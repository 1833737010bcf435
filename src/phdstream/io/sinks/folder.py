"""A folder of releases: a file of points, one of cells and one of estimates per tick, and a manifest. Public.

A folder belongs to one stream, which it names in ``stream.json``, and to one process at a time. A tick's file, once
there, is never replaced by another content: two contents of one tick would be two draws of its noise.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any

from phdstream.errors import StateError
from phdstream.io.sinks.contents import ESTIMATES, PARTS, Contents
from phdstream.io.sinks.estimates import encode_estimate
from phdstream.io.sinks.writers import FORMATS, encode_cells, encode_points
from phdstream.release import Release

__all__ = ["DOMAIN", "ReleaseFolder"]

_CLAIM, _MANIFEST = "stream.json", "manifest.json"
DOMAIN = "domain.json"
"""The whole domain, where the manifest has its summary: with it, a folder can be read by who has nothing else."""


class ReleaseFolder:
    """Publishes releases: ``points/tick-00001.parquet``, ``cells/tick-00001.parquet``, ..., ``manifest.json``.

    Beside them ``estimates/tick-00001.parquet`` is the release itself, to ask it further questions, and ``domain.json``
    the domain, which is public by construction: with both, `phdstream.io.archive.open_archive` needs nothing else.

    ``stream_id`` is `DurableStream.id`, ``extra`` goes into the manifest, ``format`` is one of
    `phdstream.io.sinks.writers.FORMATS`, and ``first_tick`` is the first tick that the stream releases. Use it in a
    ``with`` statement, after `open`. A file appears whole or not at all; publishing a release again changes nothing.
    """

    def __init__(
        self, folder: Path, stream_id: str, extra: dict[str, Any], format: str = "parquet", first_tick: int = 1
    ) -> None:
        self.folder, self.first_tick = folder, first_tick
        self._stream, self._extra, self._format = stream_id, extra, format
        self._last, self._bound = 0, False
        self._contents: Contents | None = None

    def open(self, stream_tick: int = 0, new_folder: bool = False) -> ReleaseFolder:
        """Create, lock and claim the folder for a stream whose last committed tick is ``stream_tick``.

        Refused are a folder of another stream or format, one with files of unknown origin, one that is ahead of the
        stream, and one without releases if the stream has released before; with ``new_folder`` that last one is taken,
        and holds the ticks from ``stream_tick`` on.
        """
        self._contents = Contents(self.folder)
        try:
            self._last = self._find_last()
            ours = self._check_claim()
            self._check_ticks(stream_tick, ours, new_folder)
            self._held.claim(_CLAIM, self._claim())
            self._held.prepare()
        except BaseException:
            self.close()
            raise
        return self

    def bind(self) -> None:
        """Make the claim final, once the stream has begun: from now on no other stream can have the folder."""
        if not self._bound:
            self._bound = True
            self._held.claim(_CLAIM, self._claim())

    def _claim(self) -> dict[str, Any]:
        about = {"stream": self._stream, "format": self._format, "first_tick": self.first_tick}
        return {"product": "phdstream"} | about | ({"begun": True} if self._bound else {})

    def _find_last(self) -> int:
        """Return the last tick that was published here: files are enough to tell, whatever the manifest says."""
        manifest = self._held.json(_MANIFEST)
        stated = 0 if manifest is None else manifest.get("last_tick")
        if type(stated) is not int or stated < 0:
            raise self._held.damaged(_MANIFEST)
        return max([stated, *(tick for part in (*PARTS, ESTIMATES) for tick in self._held.ticks(part))])

    def _check_claim(self) -> bool:
        """Refuse a folder of another stream; tell whether it was claimed for ours.

        A claim for a stream that never began does not bind: its run failed before its first tick.
        """
        claim, manifest = self._held.json(_CLAIM), self._held.json(_MANIFEST)
        if claim is None and self._last:
            raise StateError(
                f"{self.folder} has releases up to tick {self._last}, but no {_CLAIM} that says of which stream. Put "
                "that file back, or choose a new folder."
            )
        ours = claim is not None and all(said.get("stream") == self._stream for said in (claim, manifest or claim))
        begun = claim is not None and claim.get("begun") is True
        if (self._last or begun) and not ours:
            what = f"has releases up to tick {self._last} of" if self._last else "belongs to"
            raise StateError(
                f"{self.folder} {what} another stream than the one in the state. Was "
                "the state lost? Restore it. Otherwise choose a new folder for this stream (its ε comes on top)."
            )
        if claim is not None and ours:
            self._bound = begun
            self._take_over(claim)
        return ours

    def _take_over(self, claim: dict[str, Any]) -> None:
        if self._last and claim.get("format") != self._format:
            raise StateError(
                f"{self.folder} was begun with format {claim.get('format')!r}, but {self._format!r} was asked for. Set "
                "it back: a folder of releases has one format."
            )
        first = claim.get("first_tick")
        if type(first) is not int or first < 1:
            raise self._held.damaged(_CLAIM)
        self.first_tick = first

    def _check_ticks(self, stream_tick: int, ours: bool, new_folder: bool) -> None:
        if self._last > stream_tick:
            raise StateError(
                f"{self.folder} has releases up to tick {self._last}, but the state is at tick {stream_tick}. Going on "
                "would release ticks twice with different noise. Restore the state, or start a new stream in a new "
                "folder."
            )
        # In a folder of ours the first release may be missing: a crash between commit and publication.
        if self._last or stream_tick < self.first_tick or (ours and stream_tick == self.first_tick):
            return
        if not new_folder:
            raise StateError(
                f"the stream has released ticks up to {stream_tick}, but {self.folder} has none of them. Put its "
                "folder back, or say that later ticks are to go to a new folder."
            )
        self.first_tick = stream_tick

    @property
    def last_tick(self) -> int:
        """The last tick that was published here; 0 for none."""
        return self._last

    def missing(self, stream_tick: int, first_release: int = 1) -> list[int]:
        """Return the ticks up to a stream's last one, from its first release on, whose files are not both here.

        Publishing the last release again brings back its files; earlier ones are not in the state any more.
        """
        whole = set.intersection(*(self._held.ticks(part, FORMATS[self._format]) for part in PARTS))
        return [tick for tick in range(max(first_release, self.first_tick), stream_tick + 1) if tick not in whole]

    def lacks(self, release: Release | None) -> bool:
        """Tell whether a release is to be published here and is not there yet, whole."""
        if release is None or release.held or release.tick < self.first_tick:
            return False
        return self._last < release.tick or bool(self.missing(release.tick, release.tick))

    def publish(self, release: Release) -> None:
        """Write a release's points and cells, then the manifest that names it. Files that are there are kept."""
        contents, tick = self._held, release.tick
        try:
            files = {f"{ESTIMATES}/tick-{tick:05d}.parquet": encode_estimate(release)}
            for part, encode in (("cells", encode_cells), ("points", encode_points)):
                files[f"{part}/tick-{tick:05d}{FORMATS[self._format]}"] = encode(release, self._format)
            for name, write in files.items():
                if tick < self._last and not contents.has(name):
                    raise StateError(
                        f"{self.folder} has releases up to tick {self._last}: {name}, which was taken away, is not "
                        "written again from an older state. Put it back from a copy."
                    )
                contents.put_once(name, write)
            if not contents.has(DOMAIN):
                contents.put_json(DOMAIN, release.domain.to_dict())
            if tick >= self._last:
                contents.put_json(_MANIFEST, self._manifest(release))
                self._last = tick
        except OSError as error:
            raise StateError(
                f"tick {tick} is committed but could not be written to {self.folder} ({error.strerror or error}). Make "
                "room or mend the folder, and run again: the same release will be written."
            ) from error

    def _manifest(self, release: Release) -> dict[str, Any]:
        written = {"last_tick": release.tick, "files": ["points/*", "cells/*", "estimates/*"], "format": self._format}
        here = {"stream": self._stream, "first_tick": self.first_tick}
        manifest: dict[str, Any] = json.loads(json.dumps(release.metadata | self._extra | written | here))
        return manifest

    @property
    def _held(self) -> Contents:
        if self._contents is None:
            raise StateError(f"{self.folder} was not opened yet.")
        self._contents.check()
        return self._contents

    def close(self) -> None:
        """Let another process open the folder."""
        if self._contents:
            self._contents.close()

    def __enter__(self) -> ReleaseFolder:
        return self if self._contents else self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
