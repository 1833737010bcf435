"""The page of some releases, as one HTML text: each is read once, and what the page draws is kept of it. Public."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from phdstream.domains import Domain
from phdstream.page.blocks import encode_tree
from phdstream.page.coarse import coarsened
from phdstream.page.document import page_html
from phdstream.page.facts import facts_of_stream, tick_label
from phdstream.page.quantise import Frame, encode_lifetimes
from phdstream.page.surroundings import Layer
from phdstream.release import Release

__all__ = ["Progress", "releases_page"]

Progress = Callable[[int, int | None], None]


def releases_page(
    domain: Domain,
    manifest: dict[str, Any],
    releases: Iterable[Release],
    areas: Layer | None = None,
    title: str = "",
    tiles: str = "",
    progress: Progress = lambda done, total: None,
) -> str:
    """Return the page of at least one release, in the order of ticks; ``manifest`` says what their folder's does.

    It shows places, whatever else rows hold.
    """
    domain = domain.location
    frame = Frame.of(domain)
    made = _Gathered(frame, areas)
    points = encode_lifetimes(made.points(releases, progress))
    head = facts_of_stream(domain, manifest, made.latest) | {
        "kind": "file",
        "title": title,
        "ticks": [{"tick": t, "label": tick_label(manifest.get("ticks") or {}, t)} for t in made.ticks],
        "totals": made.totals,
        "layer": None if areas is None else _areas(areas, made.counts),
    }
    return page_html(head, gzip.compress(_joined([points, *_changed(made.trees)]), 9, mtime=0), tiles)


class _Gathered:
    """What is taken of each release, as they are read one after the other."""

    def __init__(self, frame: Frame, areas: Layer | None) -> None:
        self._frame, self._areas = frame, areas
        self.ticks: list[int] = []
        self.trees: list[bytes] = []
        self.totals: list[float] = []
        self.counts: list[Any] = []
        self.latest: Release

    def points(self, releases: Iterable[Release], progress: Progress) -> Iterator[Any]:
        """Read releases, and yield the points of each."""
        for number, whole in enumerate(releases, start=1):
            release = self.latest = whole.places()
            self.ticks.append(release.tick)
            self.totals.append(round(release.total, 1))
            self.trees.append(encode_tree(coarsened(release), self._frame))
            if self._areas is not None:
                found = release.count_in(list(self._areas.shapes))
                self.counts.append(np.round(np.stack([found.value, found.low, found.high]), 2))
            progress(number, None)
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
