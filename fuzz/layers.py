"""Damaged files of polygons and lines, and files that are not what they are called.

GDAL opens what the content of some formats names: other files, or addresses. None may be opened, whatever a file holds.
"""

from __future__ import annotations

import os
import socket
import threading
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import phdstream as phd
from fuzz.damage import damaged
from fuzz.samples import write_layers
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import read_events
from phdstream.io.sources.reading import Reading

__all__ = ["prepare", "run"]

_ENDINGS = ["gpkg", "geojson", "json", "shp", "fgb", "parquet", "csv", "geojsonl", "vrt", "gml", "kml"]
_HEADS = [
    b"", b"\xef\xbb\xbf", b"\n ", b"SQLite format 3\0", b"SQLite format 3\0" + b"\0" * 52 + b"GPKG" + b"\0" * 28,
    b"\0\0\x27\x0a", b"fgb\x03fgb\0", b"PAR1", b'{"type": "FeatureCollection", "features": []}',
]  # fmt: skip
_LAYER = '<OGRVRTLayer name="{name}"><SrcDataSource>{source}</SrcDataSource><SrcLayer>x</SrcLayer></OGRVRTLayer>'
_HOSTILE = [
    f"<OGRVRTDataSource>{_LAYER}</OGRVRTDataSource>",
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "{source}">]><kml><Document>&x;</Document></kml>',
    '{{"type": "FeatureCollection", "crs": {{"type": "link", "properties": {{"href": "{source}"}}}}, "features": []}}',
    '{{"type": "Topology", "url": "{source}"}}', "{source}", "GeoJSON:{source}",
    "<OGRWFSDataSource><URL>{source}</URL>",
    '{{"type": "STACIT", "stac_version": "1", "features": [{{"assets": {{"a": {{"href": "{source}"}}}}}}]}}',
]  # fmt: skip


class _Listener:
    """A server on this machine that counts who comes, and answers nobody."""

    def __init__(self) -> None:
        self.hits = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            self.hits += 1
            connection.close()


@cache
def _listener() -> _Listener:
    return _Listener()


@cache
def _release() -> phd.Release:
    domain = phd.Box([(0, 1), (0, 1)], crs="EPSG:2263", depth=8)
    stream = phd.PHDStream(domain, 1.0, phd.Event(), noise=phd.Simulation(1))
    return stream.update(np.linspace(0.01, 0.99, 200).reshape(-1, 2))


def prepare(folder: Path) -> None:
    """Write the sound files."""
    write_layers(folder)


def run(rng: Random, folder: Path) -> None:
    """Use one file as a region, a network, a layer to count in, or as events."""
    if rng.random() < 0.2:
        _hostile(rng, folder)
        return
    names = sorted(path.name for path in folder.iterdir())
    path = folder / rng.choice(names)
    path.write_bytes(damaged(rng, path.read_bytes()))
    if path.suffix in (".dbf", ".shx", ".prj", ".cpg"):
        path = path.with_suffix(".shp")
    _use(rng, path)


def _use(rng: Random, path: Path) -> None:
    """Open the file in one of the ways there are; what comes must be of use."""
    way, ticks = rng.random(), np.linspace(0.01, 0.99, 20).reshape(-1, 2)
    if way < 0.35:
        counts = _release().count_in(path if rng.random() < 0.5 else str(path))
        assert np.isfinite(counts.value).all(), "a count is not finite"
        return
    domain: Any = phd.Network(path, snap=0.1, depth=8) if "streets" in path.name else phd.Region(path, depth=8)
    codes, _ = domain.encode(ticks)
    assert len(codes) == len(ticks)
    assert (domain.measure(np.array([1])) > 0).all(), "a domain of measure zero"


def _hostile(rng: Random, folder: Path) -> None:
    """Use a file that names another: neither a file nor an address may be opened."""
    other = folder / "squares.geojson"
    os.utime(other, (1, 2))  # so that reading it would show, on file systems that keep such times
    listener = _listener()
    before = listener.hits
    sources = [str(other), f"/vsicurl/http://127.0.0.1:{listener.port}/a.geojson", f"http://127.0.0.1:{listener.port}/"]
    text = rng.choice(_HOSTILE).format(source=rng.choice(sources), name="x")
    path = folder / f"hostile-{rng.choice(['streets', 'squares'])}.{rng.choice(_ENDINGS)}"
    path.write_bytes(rng.choice(_HEADS) + text.encode() + rng.choice([b"", b"PAR1", b"\n" * 200]))
    try:
        if rng.random() < 0.3:
            list(read_events([path], Columns(("x", "y")), Reading(drop_bad=rng.random() < 0.5)))
        else:
            _use(rng, path)
    finally:
        assert listener.hits == before, "a file made us open a connection"
        assert other.stat().st_atime == 1, "a file made us open another file"
