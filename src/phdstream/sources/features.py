"""JSON row by row: NDJSON, GeoJSON, and lines of GeoJSON features. Every value comes as the text that was written.

Text, so that a number that is a user's name is the same user in every batch, and no digit of a coordinate is lost.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from phdstream.errors import InputError
from phdstream.sources.columns import Columns, Found
from phdstream.sources.geometry import KIND

__all__ = ["read_features", "read_geojson", "read_ndjson"]

_CHUNK = 1 << 20
_LONGEST = 1 << 26
"""No single row is as long as this many characters: what is must be damaged."""
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
_SPACE = re.compile(r"\s*")
_Row = dict[str, Any]


def read_ndjson(path: Path, columns: Columns, rows: int) -> Iterator[pa.RecordBatch]:
    """Read one JSON object a line."""
    with _open(path) as file:
        yield from _batches(path, _lines(path, file), columns, rows, geometry=False)


def read_features(path: Path, columns: Columns, rows: int) -> Iterator[pa.RecordBatch]:
    """Read one GeoJSON feature a line."""
    with _open(path) as file:
        yield from _batches(path, map(_flat, _lines(path, file)), columns, rows, geometry=True)


def read_geojson(path: Path, columns: Columns, rows: int) -> Iterator[pa.RecordBatch]:
    """Read a FeatureCollection, feature by feature."""
    with _open(path) as file:
        yield from _batches(path, map(_flat, _features(_Text(path, file.read))), columns, rows, geometry=True)


def _open(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(pa.input_stream(path), encoding="utf-8-sig")


def _batches(
    path: Path, objects: Iterable[_Row], columns: Columns, rows: int, geometry: bool
) -> Iterator[pa.RecordBatch]:
    """Yield batches. Which columns there are, the first batch says: JSON leaves out what a row does not have."""
    source, found = iter(objects), None
    while some := list(islice(source, rows)):
        there = {name for row in some for name in row if name != KIND}
        found = found or columns.find(str(path), sorted(there), geometry)
        yield _batch(some, found)


def _batch(some: list[_Row], found: Found) -> pa.RecordBatch:
    columns = {name: pa.array([_as_text(row.get(name)) for row in some], pa.string()) for name in found.columns}
    if found.xy is not None:
        points = [_point(row[KIND]) for row in some]
        columns |= {name: pa.array([p[i] for p in points], pa.string()) for i, name in enumerate((*found.xy, KIND))}
    return pa.RecordBatch.from_pydict(columns)


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _flat(feature: _Row) -> _Row:
    """Return a feature's properties, and its geometry under `KIND`."""
    properties = feature.get("properties")
    return (properties if isinstance(properties, dict) else {}) | {KIND: feature.get("geometry")}


def _point(geometry: Any) -> tuple[str | None, str | None, str | None]:
    """Return a geometry's x, y and kind; all None if it is missing or empty."""
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    place = geometry.get("coordinates", geometry.get("geometries")) if isinstance(geometry, dict) else None
    if not isinstance(kind, str) or not isinstance(place, list) or not place:
        return None, None, None
    if kind != "Point":
        return None, None, kind
    return (_as_text(place[0]), _as_text(place[1]), kind) if len(place) > 1 else (None, None, None)


def _lines(path: Path, file: io.TextIOWrapper) -> Iterator[_Row]:
    number = 0
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST), ""), 1):
        text = line.strip("\x1e \t\r\n")
        try:
            row = _DECODER.decode(text) if text else {}
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError(
                f"{path}: line {number} is not a whole JSON object. There must be one on each line; is the file cut "
                "off, or of another format? (Do not publish this message.)"
            )
        if text:
            yield row
    if number == 0:
        raise InputError(f"{path} has no rows. Is it empty, cut off, or of another format?")


def _features(text: _Text) -> Iterator[_Row]:
    """Yield the features of a FeatureCollection, wherever among its members they are."""
    text.expect("{")
    seen = False
    while text.peek() == '"':
        name = text.value()
        text.expect(":")
        if name == "features":
            seen = True
            yield from _elements(text)
        else:
            text.value()
        if text.peek() == ",":
            text.expect(",")
    text.expect("}")
    if not seen:
        raise InputError(f"{text.path} has no list of features: a GeoJSON FeatureCollection of points is needed.")


def _elements(text: _Text) -> Iterator[_Row]:
    text.expect("[")
    while text.peek() == "{":
        yield text.value()
        if text.peek() == ",":
            text.expect(",")
    text.expect("]")


class _Text:
    """JSON read a piece at a time: at any moment it holds little more than the value it stands at."""

    def __init__(self, path: Path, read: Callable[[int], str]) -> None:
        self.path, self._read = path, read
        self._text, self._at, self._ended = "", 0, False

    def peek(self) -> str:
        """Return the next character that is not space; nothing at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._more()

    def expect(self, mark: str) -> None:
        """Step over a mark, which must be next."""
        if self.peek() != mark:
            raise self._broken()
        self._at += 1

    def value(self) -> Any:
        """Step over a whole value, and return it."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError):
                if self._ended or len(self._text) - self._at > _LONGEST:
                    raise self._broken() from None
            else:
                if end < len(self._text) or self._ended:  # else a number may go on
                    self._at = end
                    return value
            self._more()

    def _more(self) -> None:
        rest = self._text[self._at :]
        piece = self._read(max(_CHUNK, len(rest)))
        self._text, self._at, self._ended = rest + piece, 0, not piece

    def _broken(self) -> InputError:
        return InputError(f"{self.path} is not a whole GeoJSON file. Is it empty, cut off, or of another format?")
