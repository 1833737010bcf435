"""Damaged files of events, read in a process of their own: events come, or an `InputError`.

Of lines of text more is checked: damage within one line changes nothing but what that line says.
"""

from __future__ import annotations

import bz2
import gzip
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.damage import damaged, damaged_within
from fuzz.samples import csv_lines, json_lines, rows, write_events
from phdstream.io.sources import apart, events
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.reading import Reading

__all__ = ["prepare", "ready", "run"]

_ALL = Columns(("x", "y"), "when", "sign", "who")
_COLUMNS = [_ALL, _ALL, Columns(("x", "y"), "when"), Columns(("x", "y"), user="who"), Columns(("who",), names=True)]
_TEXT = {"ndjson": "ndjson", "geojsonl": "geojsonl", "jsonl": "ndjson", "csv": ",", "tsv": "\t", "txt": "\t"}
_ENCODINGS = [
    None,
    None,
    None,
    "utf-8",
    "latin-1",
    "cp1252",
    "gb18030",
    "shift_jis",
    "big5",
    "euc_kr",
    "utf-16",
    "utf-32",
]


def prepare(folder: Path) -> None:
    """Write the sound files, and set limits that suit small ones."""
    apart.PATIENCE, apart.MEMORY = 4.0, 2 << 30
    write_events(folder)
    (folder / "sound.csv").write_text("x\n1\n")


def ready(folder: Path) -> None:
    """Start the process that reads, if the last case ended it: that takes longer than any case."""
    current = apart._Reader._current
    if current is None or not current.idle or current._process.poll() is not None:
        list(events.read_events([folder / "sound.csv"], Columns(("x",)), Reading()))


def run(rng: Random, folder: Path) -> None:
    """Read one damaged file."""
    events.BATCH_ROWS = rng.choice([1 << 17, 1 << 17, 1, 3, 16])
    if rng.random() < 0.5:
        _lines(rng, folder)
    else:
        _whole(rng, folder)


def _whole(rng: Random, folder: Path) -> None:
    """Read a file with damage anywhere, or with damage in what lies beside it."""
    names = sorted(path.name for path in folder.iterdir() if path.name != "sound.csv")
    path = folder / rng.choice(names)
    content = damaged(rng, path.read_bytes())
    path.write_bytes(content)
    if path.suffix in (".dbf", ".shx", ".prj", ".cpg"):
        path = path.with_suffix(".shp")
    reading = Reading(drop_bad=rng.random() < 0.5, crs=rng.choice([None, "EPSG:4326", "EPSG:3857"]))
    _read(path, rng.choice(_COLUMNS), reading)


def _lines(rng: Random, folder: Path) -> None:
    """Read lines of text of which one is damaged, or the header, or how it is packed."""
    ending = rng.choice(sorted(_TEXT))
    kind, decimal = _TEXT[ending], rng.choice([".", ","]) if ending in ("tsv", "txt") else "."
    separated = len(kind) == 1
    zone = rng.random() < 0.3
    some = rows(rng, zone)
    lines = csv_lines(some, kind, decimal) if separated else json_lines(some, kind == "geojsonl")
    encoding = rng.choice(_ENCODINGS) if separated else None
    columns = rng.choice(_COLUMNS)
    form = rng.choice([None, None, None, "%Y-%m-%d", "%Y-%m-%d %H:%M%z" if zone else "%Y-%m-%d %H:%M"])
    reading = Reading(zone, drop_bad=True, decimal=decimal, encoding=encoding, time_format=form)
    if rng.random() < 0.2:  # anything goes, and nothing but one of our errors may come
        content = _packed(damaged(rng, b"\n".join(lines)), path := _path(rng, folder, ending))
        path.write_bytes(damaged(rng, content) if rng.random() < 0.5 else content)
        _read(path, columns, replace(reading, drop_bad=rng.random() < 0.5))
        return
    at = rng.randrange(1 if separated else 0, len(lines))
    new = damaged_within(rng, lines[at])
    others, all_of_them = ([*lines[:at], *middle, *lines[at + 1 :]] for middle in ([], [new]))
    end = rng.choice([b"\n", b"\r\n", b"\r"]) if separated else rng.choice([b"\n", b"\r\n"])
    found = []
    for kept in (others, all_of_them):
        path = _path(rng, folder, ending)
        text = end.join(kept) + end
        if str(encoding).startswith(("utf-16", "utf-32")):  # of which characters are damaged, not bytes
            text = text.decode("latin-1").encode(str(encoding))
        path.write_bytes(_packed(text, path))
        found.append(_read(path, columns, reading))
    without, with_it = found
    room = 1 + new.count(b"\n") + new.count(b"\r")
    assert not without - with_it, "events of sound lines are gone"
    assert (with_it - without).total() <= room, "a damaged line became too many events"


def _path(rng: Random, folder: Path, ending: str) -> Path:
    return folder / f"lines.{ending}{rng.choice(['', '', '', '.gz', '.bz2'])}"


def _packed(content: bytes, path: Path) -> bytes:
    if path.suffix == ".gz":
        return gzip.compress(content)
    return bz2.compress(content) if path.suffix == ".bz2" else content


def _read(path: Path, columns: Columns, reading: Reading) -> Counter[Any]:
    """Return the events of a file, each with the times it came."""
    found: Counter[Any] = Counter()
    for some in events.read_events([path], columns, reading):
        size = len(some)
        times = [None] * size if some.time is None else some.time.tolist()
        users = [None] * size if some.users is None else some.users.to_pylist()
        assert len(times) == len(users) == len(some.sign) == size, "columns of events differ in length"
        assert columns.names or not np.isnan(some.points.astype(float)).any(), "an event has no place"
        assert None not in users or columns.user is None, "an event has no user"
        found.update(zip(times, map(tuple, some.points.tolist()), some.sign.tolist(), users, strict=True))
    return found
