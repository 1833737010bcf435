"""Events from any table of times and coordinates, and checks that loaders share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from phdstream.errors import InputError, did_you_mean

__all__ = ["events_table", "existing", "on_earth", "reason"]

_TIME = pa.timestamp("us")


def events_table(path: str | Path, time: str = "time", x: str = "x", y: str = "y", user: str | None = None) -> pa.Table:
    """Return the events of a Parquet or CSV file with a header: columns ``time``, ``x``, ``y`` and, if named, ``user``.

    Times with a zone are taken as UTC. Every row needs a time; a row without coordinates has NaN.
    """
    file = existing(path, "Give the path of a Parquet or CSV file with a time and two coordinates in each row.")
    names = {"time": time, "x": x, "y": y} | ({} if user is None else {"user": user})
    table = _read(file, list(names.values()))
    moments = table[time]
    if not pa.types.is_timestamp(moments.type) or moments.null_count:
        raise InputError(f"{file}: column '{time}' must hold a time (such as 2024-05-31 18:00) in every row.")
    columns = {"time": pc.cast(moments, pa.timestamp("us", moments.type.tz), safe=False).cast(_TIME)}
    columns |= {name: _floats(file, table, names[name]) for name in ("x", "y")}
    return pa.table(columns | ({} if user is None else {"user": table[user]}))


def _read(file: Path, names: list[str]) -> pa.Table:
    try:
        if file.suffix.lower() in (".parquet", ".pq"):
            _check_columns(file, names, pyarrow.parquet.read_schema(file).names)
            return pyarrow.parquet.read_table(file, columns=names)
        with pyarrow.csv.open_csv(file) as head:
            _check_columns(file, names, head.schema.names)
        return pyarrow.csv.read_csv(file, convert_options=pyarrow.csv.ConvertOptions(include_columns=names))
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as Parquet or CSV ({reason(error)}).") from None


def _check_columns(file: Path, names: Sequence[str], there: Sequence[str]) -> None:
    for name in names:
        if name not in there:
            raise InputError(f"{file} has no column '{name}': {did_you_mean(name, there)}")


def _floats(file: Path, table: pa.Table, name: str) -> pa.ChunkedArray:
    try:
        return pc.fill_null(pc.cast(table[name], pa.float64()), float("nan"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"{file}: column '{name}' holds {table[name].type}, not numbers.") from None


def existing(path: str | Path, where: str) -> Path:
    """Return the path of a file that is there, or say where to get it."""
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}. {where}")
    return Path(path)


def reason(error: Exception) -> str:
    """Return why Arrow could not read something, without the value it stumbled over."""
    return str(error).splitlines()[0].split(": invalid value")[0].split(", got")[0].rstrip(". ")


def on_earth(batch: pa.RecordBatch, source: str) -> pa.RecordBatch:
    """Return the rows whose x and y are a longitude and a latitude; refuse a batch where most are not."""
    x, y = batch.column("x"), batch.column("y")
    there = pc.and_(pc.less_equal(pc.abs(x), 180.0), pc.less_equal(pc.abs(y), 90.0))
    kept = batch.filter(pc.fill_null(there, False))
    if 2 * kept.num_rows < batch.num_rows:
        raise InputError(f"{source}: most rows have no longitude within ±180 and latitude within ±90: wrong columns?")
    return kept
