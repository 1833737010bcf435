"""Sound small files of every format, as bytes, to be damaged."""

from __future__ import annotations

import io
import json
from pathlib import Path
from random import Random
from typing import Any

import geopandas
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import shapely

__all__ = ["csv_lines", "json_lines", "rows", "write_events", "write_layers"]

_NUMBERS = ["0.5", "+0.25", ".5", "5.", "1e-1", "1E0", " 0.5", "0.5 ", "-0", "007", "0.1e+1", "1e400", "-inf", "inf"]
_NUMBERS += [
    "nan",
    "NA",
    "",
    "-nan",
    "nan(1)",
    "INFINITY",
    "1e-400",
    "0x1",
    "1_0",
    "1,5",
    "\u00a00.5",
    "0.1\u2009",
    "9" * 400,
]
_TIMES = [
    "2024-01-01", "2024-01-01 06:00", "2024-01-01T06:00:00", "2024-01-02 06:00:00.5", "2024-01-02T0600", "20240102",
    "2024-01-03 06:00:00.123456789", "2024-02-29T23:59:59", "1969-12-31 23:59:59.999999", "2024-01-01 24:00",
    "0001-01-01", "9999-12-31", "2024-01-05 06:00:00,5", "2024/01/02 06:00", "2024-01-01 06", "2024-01-01T06:00:60",
    "0000-01-01", "2024-1-2", "2024-02-30", "2024-01-01T06:00:00.1234567", "2024-01-01 060000", "2024-01-01T06:0000",
]  # fmt: skip
_ZONES = ["Z", "z", "+00:00", "-0530", "+01", " Z", " +02:00", "+24:00", "-00:00", "+23:59", "", "+1", " UTC"]
_SIGNS = ["1", "-1", "+1", "1.0", "-1.0", " 1", "1e0", "", "0", "2"]
_USERS = ["ann", "1", "01", "1.0", "é", "a b", "NULL", "nan", " x", "x", "-", "'q'", "", "\u00a0", "a'", "#"]


def rows(rng: Random, zone: bool = False) -> list[dict[str, str]]:
    """Return rows in which numbers, times, signs and users are spelt in a few ways each; some may be bad."""
    numbers, times, signs, users, zones = (
        rng.sample(ways, rng.choice([1, 2, 2, 4])) if rng.random() < 0.7 else [ways[0]]
        for ways in (_NUMBERS, _TIMES, _SIGNS, _USERS, _ZONES)
    )
    return [
        {
            "when": rng.choice(times) + (rng.choice(zones) if zone else ""),
            "x": rng.choice(numbers),
            "y": rng.choice(numbers),
            "sign": rng.choice(signs),
            "who": rng.choice(users),
        }
        for _ in range(rng.choice([2, 5, 40]))
    ]


def csv_lines(some: list[dict[str, str]], delimiter: str, decimal: str = ".") -> list[bytes]:
    """Return a CSV file's header and rows."""
    lines = [delimiter.join(some[0])]
    for row in some:
        values = [value.replace(".", decimal) if name in "xy" else value for name, value in row.items()]
        lines.append(delimiter.join(f'"{value}"' if delimiter in value else value for value in values))
    return [line.encode() for line in lines]


def json_lines(some: list[dict[str, str]], geometry: bool) -> list[bytes]:
    """Return rows of NDJSON, or lines of GeoJSON features."""
    return [json.dumps(_feature(row) if geometry else _plain(row)).encode() for row in some]


def _plain(row: dict[str, str]) -> dict[str, Any]:
    """Return a row, of which some have numbers where others have text."""
    return row | {name: _number(row[name]) for name in "xy" if row["who"] > "b"}


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return None


def _feature(row: dict[str, str]) -> dict[str, Any]:
    place = [_number(row[name]) for name in "xy"]
    others = {name: row[name] for name in ("when", "sign", "who")}
    return {"type": "Feature", "geometry": {"type": "Point", "coordinates": place}, "properties": others}


def _frame() -> geopandas.GeoDataFrame:
    x, y = [i / 40 for i in range(40)], [(i * 7 % 40) / 40 for i in range(40)]
    when = pd.date_range("2024-01-01", periods=40, freq="3h").astype("datetime64[ms]")
    columns = {"when": when, "sign": [1, -1] * 20, "who": [f"user {i % 7}" for i in range(40)], "x": x, "y": y}
    return geopandas.GeoDataFrame(columns, geometry=geopandas.points_from_xy(x, y), crs="EPSG:4326")


def write_events(folder: Path) -> None:
    """Write a sound file of events in every format that is not lines of text."""
    frame = _frame()
    points = frame.drop(columns=["x", "y"])
    points.to_file(folder / "events.gpkg", driver="GPKG")
    points.assign(when=points["when"].astype(str)).to_file(folder / "events.shp")
    features = [json.loads(line) for line in json_lines(rows(Random("features")), geometry=True)]
    (folder / "events.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    points.to_parquet(folder / "wkb.parquet", row_group_size=10)
    points.to_parquet(folder / "arrow.parquet", geometry_encoding="geoarrow")
    table = pa.Table.from_pandas(pd.DataFrame(frame.drop(columns="geometry")), preserve_index=False)
    kinds: dict[str, dict[str, Any]] = {
        "plain": {"row_group_size": 10, "compression": "none"},
        "snappy": {"data_page_version": "2.0"},
        "zstd": {"compression": "zstd", "use_dictionary": False, "write_statistics": False},
    }
    for name, options in kinds.items():
        target = io.BytesIO()
        pyarrow.parquet.write_table(table, target, **options)
        (folder / f"{name}.parquet").write_bytes(target.getvalue())


def write_layers(folder: Path) -> None:
    """Write sound files of polygons and of lines in every format."""
    squares = [shapely.box(i / 4, 0, i / 4 + 0.2, 0.9) for i in range(4)]
    streets = [shapely.LineString([(0, i / 5), (0.5, 0.5), (1, i / 5)]) for i in range(5)]
    for name, shapes in (("squares", squares), ("streets", streets)):
        frame = geopandas.GeoDataFrame({"name": [str(i) for i in range(len(shapes))]}, geometry=shapes, crs="EPSG:2263")
        for ending in ("gpkg", "geojson", "shp", "fgb"):
            frame.to_file(folder / f"{name}.{ending}")
        frame.to_parquet(folder / f"{name}.parquet")
        frame.to_parquet(folder / f"{name}-arrow.parquet", geometry_encoding="geoarrow")
