"""Releases in the format that a reader asks for. Public, and the same for ever: answers may be cached."""

from __future__ import annotations

import io
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from phdstream.errors import InputError
from phdstream.io.sinks.writers import Encoder, encode_cells, encode_changes, encode_points
from phdstream.release import Release
from phdstream.release.columns import point_columns
from phdstream.service.api.problems import ProblemError

__all__ = ["MEDIA", "Encodings", "Format", "asked_format"]

Format = Literal["json", "geojson", "geoparquet", "parquet", "arrow", "csv"]
MEDIA: dict[str, str] = {
    "json": "application/json",
    "geojson": "application/geo+json",
    "geoparquet": "application/vnd.apache.parquet",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
    "csv": "text/csv; charset=utf-8",
}
"""The formats of releases, and their media types."""
_BY_TYPE = {media.partition(";")[0]: name for name, media in reversed(MEDIA.items())}
_ENCODERS: dict[str, Callable[[Release, str], Encoder]] = {
    "points": encode_points, "cells": encode_cells, "changes": encode_changes,
}  # fmt: skip
_CACHED = 128 << 20


def asked_format(given: Format | None, accept: str | None) -> str:
    """Return the format that is asked for, by name or else by media type; JSON if neither says.

    >>> asked_format(None, "application/geo+json"), asked_format("arrow", "text/html"), asked_format(None, "*/*")
    ('geojson', 'arrow', 'json')
    """
    if given is not None:
        return given
    for part in (accept or "").split(","):
        media = part.partition(";")[0].strip().lower()
        if media in _BY_TYPE:
            return _BY_TYPE[media]
    return "json"


class Encodings:
    """Encodes parts of releases, and keeps what was asked for lately."""

    def __init__(self) -> None:
        self._kept, self._size, self._lock = OrderedDict[tuple[int, str, str], bytes](), 0, threading.Lock()

    def encode(self, release: Release, part: str, form: str) -> bytes:
        """Return the points, cells or changes of a release in a format."""
        return self.keep((release.tick, part, form), lambda: _encoded(release, part, form))

    def keep(self, key: tuple[int, str, str], make: Callable[[], bytes]) -> bytes:
        """Return what was made for a key lately, or make it."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        content = make()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = content
                self._size += len(content)
            while self._size > _CACHED and len(self._kept) > 1:
                self._size -= len(self._kept.popitem(last=False)[1])
        return content


def _encoded(release: Release, part: str, form: str) -> bytes:
    file = io.BytesIO()
    if form == "json":
        return json.dumps(_plain(release, part), ensure_ascii=False, allow_nan=False).encode()
    if form == "arrow":
        table = _table(release, part)
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        return file.getvalue()
    try:
        _ENCODERS[part](release, form)(file)
    except InputError as error:
        raise ProblemError(406, str(error)) from None
    return file.getvalue()


def _table(release: Release, part: str) -> pa.Table:
    if part == "cells":
        return release.cells()
    if part == "changes":
        return release.changes().to_table()
    points, about = release.sample(), {"phdstream": json.dumps(release.metadata), "privacy": release.privacy}
    columns = {name: pa.array(column) for name, column in point_columns(points, release.domain.names).items()}
    return pa.table(columns).replace_schema_metadata(about)


def _plain(release: Release, part: str) -> dict[str, Any]:
    """Return a part column by column, as JSON can hold it: what is not finite is null."""
    columns = {}
    table = _table(release, part)
    for name in table.column_names:
        values = table[name].to_numpy()
        finite = values.dtype.kind != "f" or np.isfinite(values).all()
        columns[name] = values.tolist() if finite else [x if np.isfinite(x) else None for x in values.tolist()]
    return {"tick": release.tick, "privacy": release.privacy, "rows": table.num_rows, part: columns}
