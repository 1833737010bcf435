"""Reading a file of any known format as Arrow batches of the columns needed, never more than a batch in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from phdstream.errors import InputError
from phdstream.io.sources.columnar import read_parquet, read_vector
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.features import read_features, read_geojson, read_ndjson
from phdstream.io.sources.reading import Reading, Rows, text_column
from phdstream.io.sources.separated import read_separated
from phdstream.io.sources.signatures import format_of, ordinary_file

__all__ = ["file_rows"]


def file_rows(path: Path, columns: Columns, reading: Reading, rows: int, notes: list[str]) -> Iterator[Rows]:
    """Yield a file's rows, at most ``rows`` at a time, with the columns needed; ``notes`` is told what was guessed.

    The ending of the file's name and its first bytes decide the format. Of a format with geometries, `Columns.find`
    says what the points stand for. What is wrong with a file as a whole is an `InputError`.
    """
    ordinary_file(path)
    with _reading(path):
        for some in _read(path, columns, reading, rows, notes):
            yield from _in_pieces(_sound(some), rows)


def _read(path: Path, columns: Columns, reading: Reading, rows: int, notes: list[str]) -> Iterator[Rows]:
    name = format_of(path).name
    if name in ("CSV", "tab-separated"):
        return read_separated(path, columns, reading, "," if name == "CSV" else "\t", notes)
    if name == "Parquet":
        return read_parquet(path, columns, rows)
    if name in ("GeoPackage", "shapefile"):
        return read_vector(path, columns, rows)
    json_readers = {"NDJSON": read_ndjson, "GeoJSON": read_geojson, "lines of GeoJSON": read_features}
    return json_readers[name](path, columns, reading, rows)


def _sound(some: Rows) -> Rows:
    """Return the same rows; text that is not UTF-8 is missing in its row, and a batch that is damaged is an error."""
    try:
        some.batch.validate(full=True)
        return some
    except pa.ArrowInvalid:
        columns = [_sound_text(column) for column in some.batch.columns]
    batch = pa.RecordBatch.from_arrays(columns, names=some.batch.schema.names)
    batch = batch.replace_schema_metadata(some.batch.schema.metadata)
    batch.validate(full=True)
    return Rows(batch, some.broken, some.first_broken, some.complaint)


def _sound_text(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return _sound_text(column.dictionary).take(column.indices)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return text_column(column.cast(pa.large_binary()).cast(pa.binary()))
    return column


def _in_pieces(some: Rows, rows: int) -> Iterator[Rows]:
    """Yield no more rows at a time than wanted; what was broken is told with the first of them."""
    some = replace(some, batch=_without_dictionaries(some.batch))
    yield Rows(some.batch.slice(0, rows), some.broken, some.first_broken, some.complaint)
    for start in range(rows, some.batch.num_rows, rows):
        yield Rows(some.batch.slice(start, rows))


def _without_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return categories as what they stand for: batches are handed on one by one, without their dictionaries."""
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names).replace_schema_metadata(batch.schema.metadata)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what can go wrong while a file is read into an `InputError` that names the file, and quotes none of it."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        if error.strerror is None:  # Arrow's, about what the file holds
            raise _not_whole(path) from None
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except (pa.ArrowException, UnicodeError, EOFError, ValueError, RecursionError, OverflowError, TypeError):
        raise _not_whole(path) from None
    except MemoryError:
        raise InputError(f"{path} would take far more memory than a whole file of its size needs.") from None


def _not_whole(path: Path) -> InputError:
    name = format_of(path).name
    return InputError(f"{path} is not a whole {name} file. Is it empty, cut off, or of another format?")
