"""How files are to be read: what the configuration says about them once, for every row alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["CRS", "IMPLIED_DEGREES", "Reading", "Rows", "text_column"]

CRS = b"phdstream:crs"
"""The key of a batch's metadata that names the coordinate system its geometries are in; empty if it is not known."""
IMPLIED_DEGREES = "implied"
"""That name where a format's standard says longitude and latitude, and the file itself says nothing."""


def text_column(column: pa.Array) -> pa.Array:
    """Return bytes as text; what is not UTF-8 is missing, and nothing else is touched.

    >>> text_column(pa.array([b"a", None, bytes([255])])).to_pylist()
    ['a', None, None]
    """
    try:
        return pc.cast(column, pa.string())
    except pa.ArrowInvalid:
        return pa.array([_decoded(value) for value in column.to_pylist()], pa.string())


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True)
class Reading:
    """What is true of all rows of all files; nothing here is ever taken from a row.

    - ``zone``: whether times carry a time zone;
    - ``drop_bad``: leave out rows that cannot be read, instead of stopping at the first;
    - ``crs``: the coordinate system that points are wanted in; geometries in another are converted;
    - ``delimiter``, ``decimal``, ``encoding``: how text files are written. Without a delimiter the ending of the file's
      name says it, and if the header shows another, that one is taken and the operator told;
    - ``time_format``: how times are written as text, as `datetime.strptime` takes it; without it ISO 8601.
    """

    zone: bool = False
    drop_bad: bool = False
    crs: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    encoding: str | None = None
    time_format: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what decides which event a row is, to be kept with the state: it must not change on the way.

        The delimiter only says how the same text is stored, and ``drop_bad`` whether to stop. The encoding matters
        where text does: `Input` keeps it where there are users or names of places.
        """
        return {"zone": self.zone, "crs": self.crs, "decimal": self.decimal, "time_format": self.time_format}


@dataclass(frozen=True)
class Rows:
    """Some rows of a file as Arrow columns, and how many lines among them were no rows at all.

    ``first_broken`` is the place of the first such line among all lines of the batch, from 0; ``complaint`` says what
    is wrong with it.
    """

    batch: pa.RecordBatch
    broken: int = 0
    first_broken: int = 0
    complaint: str = ""

    @property
    def lines(self) -> int:
        """How many lines of the file these are."""
        return int(self.batch.num_rows) + self.broken
