"""File formats: each is read as Arrow batches of the columns needed, never more than a batch in memory. Private."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from phdstream.domains.projection import need
from phdstream.errors import InputError
from phdstream.sources.columns import Columns
from phdstream.sources.features import read_features, read_geojson, read_ndjson
from phdstream.sources.geometry import check_kinds, find_geometry, may_be_points, with_coordinates

__all__ = ["file_batches", "is_parquet", "open_parquet", "reading"]

Reader = Callable[[Path, Columns, int], Iterator[pa.RecordBatch]]
_READ_AT_ONCE = 1 << 20
_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4"}


@dataclass(frozen=True)
class _Format:
    """A format's name in messages, and how it is read."""

    name: str
    read: Reader


def file_batches(path: Path, columns: Columns, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows in order, at most ``rows`` at a time, with the columns needed.

    The ending of the file's name decides the format. Of a format with geometries, `Columns.find` says what the points
    stand for. What is wrong with a file as a whole is an `InputError`.
    """
    form = _format_of(path)
    if not path.exists():
        raise InputError(f"there is no file {path}.")
    with reading(path):
        for batch in form.read(path, columns, rows):
            yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what can go wrong while a file is read into an `InputError` that names the file."""
    try:
        yield
    except (pa.ArrowInvalid, UnicodeDecodeError, EOFError) as error:
        reason = (
            str(error).splitlines()[0].split(":")[0] if isinstance(error, pa.ArrowInvalid) else "cut off or not text"
        )
        raise _not_whole(path, _format_of(path).name, reason) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or type(error).__name__}.") from None


def _format_of(path: Path) -> _Format:
    endings = [ending.lower() for ending in path.suffixes]
    while len(endings) > 1 and endings[-1] in _COMPRESSED:
        endings.pop()
    form = _FORMATS.get(endings[-1]) if endings else None
    if form is None:
        known = ", ".join(_FORMATS)
        raise InputError(f"{path} is of a format that is not known: the name must end in one of {known}.")
    return form


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, by its name."""
    return _format_of(path).read is _read_parquet


def _not_whole(path: Path, name: str, reason: str) -> InputError:
    return InputError(f"{path} is not a whole {name} file ({reason}). Is it empty, cut off, or of another format?")


def open_parquet(path: Path) -> Any:
    """Open a Parquet file to be read a little at a time; Arrow would otherwise fetch all of it in advance."""
    return pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_READ_AT_ONCE)


def _read_parquet(path: Path, columns: Columns, rows: int) -> Iterator[pa.RecordBatch]:
    with open_parquet(path) as file:
        schema = file.schema_arrow
        geometry = find_geometry(str(path), schema) if columns.coordinates else None
        found = columns.find(str(path), [name for name in schema.names if name != geometry], geometry is not None)
        extra = [geometry] if found.xy else []
        for batch in file.iter_batches(batch_size=rows, columns=[*found.columns, *extra]):
            yield batch if geometry is None else with_coordinates(str(path), batch, geometry, found)


def _read_csv(path: Path, columns: Columns, rows: int) -> Iterator[pa.RecordBatch]:
    return _read_separated(path, columns, ",")


def _read_tsv(path: Path, columns: Columns, rows: int) -> Iterator[pa.RecordBatch]:
    return _read_separated(path, columns, "\t")


def _read_separated(path: Path, columns: Columns, delimiter: str) -> Iterator[pa.RecordBatch]:
    parsing = pyarrow.csv.ParseOptions(delimiter=delimiter)
    with pyarrow.csv.open_csv(path, parse_options=parsing) as head:
        needed = columns.find(str(path), head.schema.names, geometry=False).columns
    as_text = pyarrow.csv.ConvertOptions(
        include_columns=needed, column_types=dict.fromkeys(needed, pa.string()), strings_can_be_null=True
    )
    with pyarrow.csv.open_csv(path, parse_options=parsing, convert_options=as_text) as file:
        yield from file


def _read_vector(path: Path, columns: Columns, rows: int) -> Iterator[pa.RecordBatch]:
    """Read what GDAL reads. Times come as text, since only so GDAL tells those with a zone from those without."""
    pyogrio = need("pyogrio")
    try:
        layer = _point_layer(pyogrio, path)
        found = columns.find(str(path), pyogrio.read_info(path, layer=layer)["fields"].tolist(), geometry=True)
        options = {"layer": layer, "columns": found.columns, "read_geometry": found.xy is not None}
        with pyogrio.open_arrow(path, batch_size=rows, use_pyarrow=True, datetime_as_string=True, **options) as (
            _,
            reader,
        ):
            geometry = find_geometry(str(path), reader.schema)
            for batch in reader:
                yield with_coordinates(str(path), batch, geometry or "", found)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError):
        beside = " Its .shx and .dbf must lie beside it." if path.suffix.lower() == ".shp" else ""
        raise InputError(f"{_not_whole(path, _format_of(path).name, 'GDAL cannot open it')}{beside}") from None


def _point_layer(pyogrio: Any, path: Path) -> str:
    """Return the layer to read: the only one, or the only one of points."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GDAL's remarks on files it reads nevertheless
        layers = [(str(name), str(kind)) for name, kind in pyogrio.list_layers(path) if kind is not None]
    points = [name for name, kind in layers if may_be_points(kind)]
    if len(layers) == 1:
        check_kinds(str(path), [layers[0][1]])
        return layers[0][0]
    if len(points) != 1:
        names = ", ".join(f"{name} ({kind})" for name, kind in layers) or "none with geometries"
        raise InputError(f"{path} must have one layer of points, but has: {names}. Save that layer as its own file.")
    return points[0]


_FORMATS = {
    ".csv": _Format("CSV", _read_csv),
    ".tsv": _Format("tab-separated", _read_tsv),
    ".txt": _Format("tab-separated", _read_tsv),
    ".parquet": _Format("Parquet", _read_parquet),
    ".pq": _Format("Parquet", _read_parquet),
    ".geoparquet": _Format("Parquet", _read_parquet),
    ".ndjson": _Format("NDJSON", read_ndjson),
    ".jsonl": _Format("NDJSON", read_ndjson),
    ".geojson": _Format("GeoJSON", read_geojson),
    ".geojsonl": _Format("GeoJSON", read_features),
    ".gpkg": _Format("GeoPackage", _read_vector),
    ".shp": _Format("shapefile", _read_vector),
}
