"""Which format a file is: its name's ending says, and its first bytes must agree.

GDAL chooses how to read a file by its content, so a file with a harmless name could make it open other files, or fetch
something from the network. Only a file whose first bytes are those of its format is ever handed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from phdstream.errors import InputError

__all__ = ["FORMATS", "Format", "endings_of", "format_of", "ordinary_file"]

_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4"}
_HEAD = 100


@dataclass(frozen=True)
class Format:
    """A format's name in messages, and what its first and last bytes must be."""

    name: str
    is_one: Callable[[bytes, bytes], bool] = lambda head, tail: True


def _is_parquet(head: bytes, tail: bytes) -> bool:
    return head[:4] == b"PAR1" == tail


def _is_geopackage(head: bytes, tail: bytes) -> bool:
    return head.startswith(b"SQLite format 3\x00") and head[68:72] in (b"GPKG", b"GP10", b"GP11")


def _is_shapefile(head: bytes, tail: bytes) -> bool:
    return head.startswith(b"\x00\x00\x27\x0a")


_CSV, _TSV, _PARQUET = Format("CSV"), Format("tab-separated"), Format("Parquet", _is_parquet)
_NDJSON = Format("NDJSON")
FORMATS = {
    ".csv": _CSV,
    ".tsv": _TSV,
    ".txt": _TSV,
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
    ".geoparquet": _PARQUET,
    ".ndjson": _NDJSON,
    ".jsonl": _NDJSON,
    ".geojson": Format("GeoJSON"),
    ".geojsonl": Format("lines of GeoJSON"),
    ".gpkg": Format("GeoPackage", _is_geopackage),
    ".shp": Format("shapefile", _is_shapefile),
}
"""The formats of events, by the ending of the file's name."""


def format_of(path: Path) -> Format:
    """Return a file's format by its name.

    >>> format_of(Path("events.csv.gz")).name
    'CSV'
    """
    endings = [ending.lower() for ending in path.suffixes]
    while len(endings) > 1 and endings[-1] in _COMPRESSED:
        endings.pop()
    form = FORMATS.get(endings[-1]) if endings else None
    if form is None:
        known = ", ".join(FORMATS)
        raise InputError(f"{path} is of a format that is not known: the name must end in one of {known}.")
    return form


def endings_of(path: str) -> str:
    """Return what of a file's name says its format.

    >>> endings_of("bucket/events.2024-03-01.csv.gz")
    '.csv.gz'
    """
    return "".join(ending for ending in Path(path).suffixes if ending.lower() in {*FORMATS, *_COMPRESSED})


def ordinary_file(path: Path) -> Format:
    """Return the format of a file that is there, is a file, and begins as that format does."""
    form = format_of(path)
    try:
        if not path.exists():
            raise InputError(f"there is no file {path}.")
        if not path.is_file():
            raise InputError(f"{path} is not a file.")
        with path.open("rb") as file:
            head = file.read(_HEAD)
            file.seek(max(0, path.stat().st_size - 4))
            tail = file.read(4)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    if not form.is_one(head, tail):
        raise InputError(f"{path} is not a whole {form.name} file. Is it empty, cut off, or of another format?")
    return form
