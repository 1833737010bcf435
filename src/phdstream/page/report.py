"""`phdstream report`: any folder of releases as one file to look at, which opens without a network. Public.

Counts in a layer's areas are computed here, by `Release.count_in` at every tick. Rectangles and polygons that a reader
draws are counted in the file, on the coarse tree of `phdstream.page.coarse`, by the formulas of `Release.count`.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from phdstream.errors import InputError
from phdstream.io.archive import Archive, open_archive
from phdstream.page.blocks import encode_tree
from phdstream.page.coarse import coarsened
from phdstream.page.document import page_html
from phdstream.page.facts import facts_of_stream, tick_label
from phdstream.page.quantise import Frame, encode_lifetimes
from phdstream.page.surroundings import Layer, read_layer_file
from phdstream.release import Release
from phdstream.release.maps import check_planar
from phdstream.streams.state import replace_file

__all__ = ["write_report"]

_MOST_TICKS = 1000
Progress = Callable[[int, int | None], None]


def write_report(
    folder: Path,
    out: Path,
    layer: Path | None = None,
    title: str = "",
    tiles: str = "",
    progress: Progress = lambda done, total: None,
) -> Path:
    """Write one HTML file with all releases of a folder (the latest thousand), and return where it is."""
    archive = open_archive(folder)
    check_planar(archive.domain)
    manifest, ticks = archive.manifest() or {}, _ticks(archive)
    domain = archive.domain.location
    frame = Frame.of(domain)
    areas = read_layer_file(layer, domain, frame) if layer else None
    made = _Gathered(archive, frame, areas)
    points = encode_lifetimes(made.points(ticks, progress))
    head = facts_of_stream(domain, manifest, made.latest) | {
        "kind": "file",
        "title": title,
        "ticks": [{"tick": t, "label": tick_label(manifest.get("ticks") or {}, t)} for t in ticks],
        "totals": made.totals,
        "layer": None if areas is None else _areas(areas, made.counts),
    }
    page = page_html(head, gzip.compress(_joined([points, *_changed(made.trees)]), 9, mtime=0), tiles).encode()
    try:
        replace_file(out, lambda file: file.write(page), mode=0o644)
    except OSError as error:
        raise InputError(f"the page cannot be written to {out} ({error.strerror}): choose another place.") from None
    return out


def _ticks(archive: Archive) -> list[int]:
    last = archive.last_tick
    ticks = [tick for tick in range(max(1, last - _MOST_TICKS + 1), last + 1) if archive.has(tick)]
    if not ticks:
        raise InputError(f"{archive.folder} has no releases yet.")
    return ticks


class _Gathered:
    """What is taken of each release, as they are read one after the other."""

    def __init__(self, archive: Archive, frame: Frame, areas: Layer | None) -> None:
        self._archive, self._frame, self._areas = archive, frame, areas
        self.trees: list[bytes] = []
        self.totals: list[float] = []
        self.counts: list[Any] = []
        self.latest: Release

    def points(self, ticks: list[int], progress: Progress) -> Iterator[Any]:
        """Read releases, and yield the points of each."""
        for number, tick in enumerate(ticks, start=1):
            release = self.latest = self._archive.release(tick).places()
            self.totals.append(round(release.total, 1))
            self.trees.append(encode_tree(coarsened(release), self._frame))
            if self._areas is not None:
                found = release.count_in(list(self._areas.shapes))
                self.counts.append(np.round(np.stack([found.value, found.low, found.high]), 2))
            progress(number, len(ticks))
            yield self._frame.keys(release.sample())


def _areas(areas: Layer, counts: list[Any]) -> dict[str, Any]:
    """Return a layer's areas with their counts: value, low and high, a list of ticks each."""
    found = np.nan_to_num(np.array(counts), posinf=1e300)  # ticks, ends, areas
    each = [
        dict(zip(("value", "low", "high"), found[:, :, i].T.tolist(), strict=True)) for i in range(len(areas.names))
    ]
    drawn = zip(areas.names, areas.drawn, each, strict=True)
    return {"areas": [{"name": name, "shape": shape} | counted for name, shape, counted in drawn]}


def _changed(blocks: list[bytes]) -> Iterator[bytes]:
    """Yield each block as it differs from the one before, if they are of one size: mostly zeros, then."""
    before = b""
    for block in blocks:
        if len(block) == len(before):
            yield b"\1" + (np.frombuffer(block, np.uint8) ^ np.frombuffer(before, np.uint8)).tobytes()
        else:
            yield b"\0" + block
        before = block


def _joined(blocks: list[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(block)) + block for block in blocks)
