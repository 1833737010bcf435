"""The files of the paper's data: where to get them, how they may be named, and which are turned into Parquet first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from benchmarks.reproduction.checkins import gowalla
from benchmarks.reproduction.taxi import yellow_taxi
from benchmarks.reproduction.uber import uber_pickups
from phdstream.errors import InputError
from phdstream.evaluation.trials import make_folder
from phdstream.streams.state import replace_file

__all__ = ["SOURCES", "Source", "with_files"]


@dataclass(frozen=True)
class Source:
    """Where a file comes from.

    ``originals`` are the names its publisher gives it, read by ``read``; ``others`` are further names for the file as
    it is needed here.
    """

    where: str
    originals: tuple[str, ...] = ()
    read: Callable[[Path], Iterator[pa.RecordBatch]] | None = None
    others: tuple[str, ...] = ()


SOURCES = {
    "gowalla_union.parquet": Source(
        "Gowalla's check-ins: the data set 'loc-gowalla' of SNAP, the Stanford Network Analysis Project",
        ("loc-gowalla_totalCheckins.txt.gz", "loc-gowalla_totalCheckins.txt", "Gowalla_totalCheckins.txt"),
        gowalla,
    ),
    "uber_apr2014_full.parquet": Source(
        "Uber's pickups in New York of April 2014: 'uber-tlc-foil-response' of FiveThirtyEight, or a Parquet file of "
        "them with the columns time, lon, lat",
        ("uber-raw-data-apr14.csv", "uber-raw-data-apr14.csv.gz"),
        uber_pickups,
    ),
    "yellow_taxi_2013-01.parquet": Source(
        "the trips of yellow taxis in January 2013: 'TLC Trip Record Data' of New York's Taxi Commission, the "
        "edition with coordinates (later editions have zones instead), or 'trip_data_1' of its answer of 2014",
        (*(f"yellow_tripdata_2013-01.{kind}" for kind in ("parquet", "csv", "csv.gz")), "trip_data_1.csv"),
        yellow_taxi,
    ),
    "nyc_yellow_taxi_sample_2009_2015.parquet": Source(
        "a sample of the pickups of New York's yellow taxis from January 2009 to June 2015 (TLC; about 90,000 trips), "
        "as a Parquet file with the columns time, lon, lat",
    ),
    "geometry/manhattan_osmnx.gpkg": Source(
        "the streets of Manhattan from OpenStreetMap, an OSMnx graph as GeoPackage: osmnx.save_graph_geopackage("
        "osmnx.graph_from_place('Manhattan, New York, USA', network_type='drive'), 'manhattan_osmnx.gpkg')",
        others=("manhattan_osmnx.gpkg", "geometry/graph.gpkg", "graph.gpkg"),
    ),
    "geometry/nyc_boroughs_nybb.geojson": Source(
        "the five boroughs: 'Borough Boundaries' (nybb) of New York's Department of City Planning, exported as GeoJSON "
        "in longitude and latitude",
        others=(
            "nyc_boroughs_nybb.geojson",
            "nybb.geojson",
            "Borough Boundaries.geojson",
            "Borough_Boundaries.geojson",
        ),
    ),
}
"""By the name that presets give the file. An original, where there is one, is taken before it."""
_DOMAIN_FILES = ("polygons", "lines")


def with_files(spec: dict[str, Any], folder: Path, out: Path) -> dict[str, Any]:
    """Return an experiment's plain data, its files named as they are to be read; say all that is missing at once."""
    named = {("data", "file"): spec["data"].get("file")}
    named |= {("domain", key): spec["domain"].get(key) for key in _DOMAIN_FILES}
    wanted = {place: str(name) for place, name in named.items() if name in SOURCES}
    found = {place: _find(name, folder) for place, name in wanted.items()}
    missing = [wanted[place] for place, path in found.items() if path is None]
    if missing:
        raise InputError(_missing(missing, folder))
    filled = spec | {section: dict(spec[section]) for section in ("data", "domain")}
    for (section, key), path in found.items():
        assert path is not None
        filled[section][key] = _readable(wanted[section, key], path, folder, out)
    return filled


def _find(name: str, folder: Path) -> Path | None:
    """Return the file that is there under one of its names."""
    source = SOURCES[name]
    there = (folder / other for other in (*source.originals, name, *source.others))
    return next((path for path in there if path.is_file()), None)


def _missing(names: list[str], folder: Path) -> str:
    each = [
        f"- Get {SOURCES[name].where}; name it {' or '.join([*SOURCES[name].originals, name, *SOURCES[name].others])}."
        for name in names
    ]
    return "\n".join([f"in {folder.resolve()} there is no file for this (name another folder with --data):", *each])


def _readable(name: str, path: Path, folder: Path, out: Path) -> str:
    """Return how to name a file that was found; an original is turned into Parquet, once."""
    source = SOURCES[name]
    if source.read and path.name in source.originals:
        target = make_folder(out) / f"read-from-original-{name}"
        return str(_as_parquet(path, source.read, target).resolve())
    return str(path.relative_to(folder))


def _as_parquet(path: Path, read: Callable[[Path], Iterator[pa.RecordBatch]], target: Path) -> Path:
    """Write events as a table of time, lon and lat, once; only its owner can read it."""
    if target.is_file() and target.stat().st_mtime_ns > path.stat().st_mtime_ns:
        return target
    table = pa.Table.from_batches(read(path)).select(["time", "x", "y"]).rename_columns(["time", "lon", "lat"])
    replace_file(target, lambda file: pyarrow.parquet.write_table(table, file), mode=0o600)
    return target
