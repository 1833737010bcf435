"""JSON row by row: NDJSON, GeoJSON, and lines of GeoJSON features. Every value comes as the text that was written.

Text, so that a number that is a user's name is the same user in every batch, and no digit of a coordinate is lost. A
line that is no JSON object is no row, and the lines after it are read all the same.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from phdstream.errors import InputError
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.geometry import COLUMNS, KIND
from phdstream.io.sources.json_pieces import DECODER, JsonPieces
from phdstream.io.sources.reading import CRS, IMPLIED_DEGREES, Reading, Rows, text_column

__all__ = ["LONGEST_LINE", "read_features", "read_geojson", "read_ndjson", "text_rows"]

LONGEST_LINE = 1 << 20
"""No line is as long as this many characters: one that is, is no row."""
_BLANK = "\x1e \t\r\n"
_NO_OBJECT = "a line is not a whole JSON object"
_URN = re.compile(r"(?i)urn:ogc:def:crs:(\w+):[\w.]*:(\w+)")
_Row = dict[str, Any] | None


def read_ndjson(path: Path, columns: Columns, reading: Reading, rows: int) -> Iterator[Rows]:
    """Read one JSON object a line."""
    with _open(path) as file:
        yield from _batches(path, _lines(path, file), columns, reading, rows, geometry=False)


def read_features(path: Path, columns: Columns, reading: Reading, rows: int) -> Iterator[Rows]:
    """Read one GeoJSON feature a line."""
    with _open(path) as file:
        yield from _batches(path, map(_flat, _lines(path, file)), columns, reading, rows, geometry=True)


def read_geojson(path: Path, columns: Columns, reading: Reading, rows: int) -> Iterator[Rows]:
    """Read a FeatureCollection, feature by feature."""
    with _open(path) as file:
        collection = _Collection(path, JsonPieces(path, file.read))
        for some in _batches(path, map(_flat, collection.features()), columns, reading, rows, geometry=True):
            batch = some.batch.replace_schema_metadata({CRS: collection.crs.encode()})
            yield Rows(batch, some.broken, some.first_broken, some.complaint)


def text_rows(lines: list[bytes], columns: Columns) -> Rows:
    """Return lines of NDJSON, none of them blank, as the lines of a file are read: broken if they hold no object."""
    texts = (line.decode("utf-8", "surrogateescape") for line in lines)
    each = [_object(text.strip(_BLANK)) if len(text) < LONGEST_LINE else None for text in texts]
    broken = [place for place, row in enumerate(each) if row is None]
    batch = _batch([row for row in each if row is not None], columns, geometry=False)
    return Rows(batch, len(broken), min(broken, default=0), _NO_OBJECT if broken else "")


def _open(path: Path) -> io.TextIOWrapper:
    """Open a file as text; a byte that is not UTF-8 spoils the row it is in, and no other."""
    return io.TextIOWrapper(pa.input_stream(path), encoding="utf-8-sig", errors="surrogateescape")


def _batches(
    path: Path, objects: Iterable[_Row], columns: Columns, reading: Reading, rows: int, geometry: bool
) -> Iterator[Rows]:
    """Yield batches. JSON leaves out what a row does not have.

    A column that no row of the first batch has is mistyped, and that is said, unless bad rows are to be left out: then
    each such row is one.
    """
    source, first = iter(objects), not reading.drop_bad
    while some := list(islice(source, rows)):
        there = [row for row in some if row is not None]
        if first and there:
            names = sorted({name for row in there for name in row if name != KIND})
            columns.find(str(path), names, geometry, show=False)
        first = False
        broken = [place for place, row in enumerate(some) if row is None]
        yield Rows(_batch(there, columns, geometry), len(broken), min(broken, default=0), _NO_OBJECT if broken else "")


def _batch(some: list[dict[str, Any]], columns: Columns, geometry: bool) -> pa.RecordBatch:
    """Return rows as columns of text. A row's two coordinates are its geometry's if it has no members of their names.

    That is decided for each row by itself.
    """
    if geometry:
        some = [_with_point(row, columns.coordinates) for row in some]
    names = [*columns.needed, *([KIND] if geometry else [])]
    return pa.RecordBatch.from_pydict(
        {name: text_column(pa.array([_as_bytes(row.get(name)) for row in some], pa.binary())) for name in names}
    )


def _with_point(row: dict[str, Any], coordinates: tuple[str, ...]) -> dict[str, Any]:
    absent = [name for name in coordinates if name not in row]
    if len(absent) != 2:
        return row | {KIND: COLUMNS}
    x, y, kind = _point(row[KIND])
    return row | {absent[0]: x, absent[1]: y, KIND: kind}


def _as_bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "surrogatepass")  # what was no text is none afterwards either


def _flat(feature: _Row) -> _Row:
    """Return a feature's properties, and its geometry under `KIND`."""
    if feature is None:
        return None
    properties = feature.get("properties")
    return (properties if isinstance(properties, dict) else {}) | {KIND: feature.get("geometry")}


def _point(geometry: Any) -> tuple[Any, Any, str | None]:
    """Return a geometry's x, y and kind; all None if it is missing or empty."""
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    place = geometry.get("coordinates", geometry.get("geometries")) if isinstance(geometry, dict) else None
    if not isinstance(kind, str) or not isinstance(place, list) or not place:
        return None, None, None
    if kind != "Point":
        return None, None, kind
    return (place[0], place[1], kind) if len(place) > 1 else (None, None, None)


def _lines(path: Path, file: io.TextIOWrapper) -> Iterator[_Row]:
    """Yield the object of each line that is not blank; None for a line that holds none."""
    empty = True
    for line in iter(lambda: file.readline(LONGEST_LINE), ""):
        empty = False
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            while (more := file.readline(LONGEST_LINE)) and not more.endswith("\n"):
                pass
            yield None
        elif text := line.strip(_BLANK):
            yield _object(text)
    if empty:
        raise InputError(f"{path} has no rows. Is it empty, cut off, or of another format?")


def _object(text: str) -> _Row:
    try:
        row = DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


class _Collection:
    """A GeoJSON FeatureCollection, read from its beginning to its end."""

    def __init__(self, path: Path, text: JsonPieces) -> None:
        self.path, self._text = path, text
        self.crs = IMPLIED_DEGREES

    def features(self) -> Iterator[_Row]:
        """Yield the features, wherever among the members they are; None for one that is no object."""
        text, seen = self._text, False
        text.expect("{")
        while text.peek() == '"':
            name = text.value()
            text.expect(":")
            if name == "features":
                seen = True
                yield from text.elements()
            elif name == "crs":
                self._take_crs(text.value(), seen)
            else:
                text.value()
            if text.peek() == ",":
                text.expect(",")
        text.expect("}")
        if not seen:
            raise InputError(f"{self.path} has no list of features: a GeoJSON FeatureCollection of points is needed.")

    def _take_crs(self, member: Any, late: bool) -> None:
        """Heed the old member ``crs``; after the features it comes too late to mean anything."""
        properties = member.get("properties") if isinstance(member, dict) else None
        name = properties.get("name") if isinstance(properties, dict) else None
        if not isinstance(name, str):
            return
        if late:
            raise InputError(f"{self.path} names its coordinate system after the features: put 'crs' before them.")
        urn = _URN.fullmatch(name)
        system = f"{urn[1]}:{urn[2]}" if urn else name
        self.crs = IMPLIED_DEGREES if system == "OGC:CRS84" else system  # what GeoJSON means anyway
