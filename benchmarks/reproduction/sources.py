"""The files of the paper's data: where to get them, and those that must be turned into Parquet first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from benchmarks.reproduction.checkins import gowalla
from benchmarks.reproduction.taxi import yellow_taxi
from phdstream.errors import InputError
from phdstream.evaluation.trials import make_folder
from phdstream.streams.state import replace_file

__all__ = ["SOURCES", "Source", "with_files"]


@dataclass(frozen=True)
class Source:
    """Where a file of events comes from; ``originals`` are the names its publisher gave it, read by ``read``."""

    where: str
    originals: tuple[str, ...] = ()
    read: Callable[[Path], Iterator[pa.RecordBatch]] | None = None


SOURCES = {
    "gowalla_union.parquet": Source(
        "Gowalla's check-ins: the data set 'loc-gowalla' of SNAP, the Stanford Network Analysis Project",
        ("loc-gowalla_totalCheckins.txt.gz",),
        gowalla,
    ),
    "uber_apr2014_full.parquet": Source(
        "Uber's pickups in New York of April 2014 (TLC, by freedom of information), columns time, lon, lat"
    ),
    "yellow_taxi_2013-01.parquet": Source(
        "the trips of yellow taxis in January 2013 ('TLC Trip Record Data', the edition with coordinates)",
        tuple(f"yellow_tripdata_2013-01.{kind}" for kind in ("parquet", "csv", "csv.gz")),
        yellow_taxi,
    ),
    "nyc_yellow_taxi_sample_2009_2015.parquet": Source(
        "a sample of New York's yellow taxi trips from 2009 to 2015 (TLC), columns time, lon, lat"
    ),
}
"""By the name that presets give the file. An original, where there is one, is taken before it."""


def with_files(spec: dict[str, Any], folder: Path, out: Path) -> dict[str, Any]:
    """Return an experiment's plain data, its file named as it is to be read; say what to get if it is not there."""
    if "file" not in spec["data"]:
        return spec
    name = spec["data"]["file"]
    source = SOURCES[name]
    for original in source.originals:
        if (folder / original).is_file() and source.read:
            path = _as_parquet(folder / original, source.read, make_folder(out) / f"read-from-original-{name}")
            return spec | {"data": spec["data"] | {"file": str(path.resolve())}}
    if not (folder / name).is_file():
        names = " or ".join([*source.originals, name])
        raise InputError(
            f"there is no file {names} in {folder.resolve()}. Get {source.where}, or name its folder with --data."
        )
    return spec


def _as_parquet(path: Path, read: Callable[[Path], Iterator[pa.RecordBatch]], target: Path) -> Path:
    """Write events as a table of time, lon and lat, once; only its owner can read it."""
    if target.is_file() and target.stat().st_mtime_ns > path.stat().st_mtime_ns:
        return target
    table = pa.Table.from_batches(read(path)).select(["time", "x", "y"]).rename_columns(["time", "lon", "lat"])
    replace_file(target, lambda file: pyarrow.parquet.write_table(table, file), mode=0o600)
    return target
