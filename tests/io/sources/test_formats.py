"""Every format and every kind of table gives the same events; bad files say what is wrong with them."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.errors import InputError
from phdstream.io.sources import events as events_module
from phdstream.io.sources import json_pieces
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import Events, read_events
from phdstream.io.sources.formats import file_rows
from phdstream.io.sources.reading import Reading

gpd = pytest.importorskip("geopandas")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
shapely = pytest.importorskip("shapely")
pytest.importorskip("pyogrio")

ROWS = 500
COLUMNS = Columns(("lon", "lat"), "time", "sign", "who")
SHARED = Path(__file__).parents[4] / "shared" / "data"
Write = Callable[[Any, Path], None]


def frame() -> Any:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "time": pd.date_range("2024-03-01", periods=ROWS, freq="17min"),
            "lon": rng.uniform(0, 10, ROWS).round(6),
            "lat": rng.uniform(40, 50, ROWS).round(6),
            "who": [f"u{i % 7}" for i in range(ROWS)],
            "sign": np.where(np.arange(ROWS) % 5, 1, -1),
            "fare": 1.5,
        }
    )


def geoframe() -> Any:
    data = frame()
    points = gpd.points_from_xy(data.pop("lon"), data.pop("lat"))
    return gpd.GeoDataFrame(data, geometry=points, crs="EPSG:4326")


def to_file(data: Any, path: Path, **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a shapefile has no times
        data.to_file(path, **options)


def to_ndjson(data: Any, path: Path) -> None:
    rows = data.assign(time=data["time"].astype(str)).to_dict(orient="records")
    path.write_text("".join(json.dumps(row) + "\n\n" for row in rows))


FLAT: dict[str, Write] = {
    "a.parquet": lambda d, p: d.to_parquet(p),
    "a.csv": lambda d, p: d.to_csv(p, index=False),
    "a.csv.gz": lambda d, p: d.to_csv(p, index=False),
    "a.tsv": lambda d, p: d.to_csv(p, index=False, sep="\t"),
    "a.txt": lambda d, p: d.to_csv(p, index=False, sep="\t"),
    "a.ndjson": to_ndjson,
    "a.jsonl": to_ndjson,
}
GEO: dict[str, Write] = {
    "wkb.parquet": lambda d, p: d.to_parquet(p),
    "geoarrow.parquet": lambda d, p: d.to_parquet(p, geometry_encoding="geoarrow"),
    "named.parquet": lambda d, p: d.rename_geometry("where").to_parquet(p),
    "a.geojson": lambda d, p: to_file(d, p, COORDINATE_PRECISION=15),
    "a.geojsonl": lambda d, p: to_file(d, p, driver="GeoJSONSeq", COORDINATE_PRECISION=15),
    "a.gpkg": to_file,
    "a.shp": to_file,
}
FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": frame,
    "polars": lambda: pl.from_pandas(frame()),
    "polars, categories": lambda: pl.from_pandas(frame()).with_columns(pl.col("who").cast(pl.Categorical)),
    "arrow": lambda: pa.Table.from_pandas(frame()),
    "arrow batch": lambda: pa.RecordBatch.from_pandas(frame()),
    "geopandas": geoframe,
    "geopandas as arrow": lambda: pa.table(geoframe().to_arrow()),
    "geopandas as geoarrow": lambda: pa.table(geoframe().to_arrow(geometry_encoding="geoarrow")),
    "geopandas as interleaved geoarrow": lambda: pa.table(
        geoframe().to_arrow(geometry_encoding="geoarrow", interleaved=True)
    ),
}


def events(source: Any, columns: Columns = COLUMNS, drop: bool = False, **reading: Any) -> Events:
    options: dict[str, Any] = {"drop_bad": drop, "crs": "EPSG:4326"} | reading
    parts = list(read_events([source], columns, Reading(**options)))
    assert all(len(part) <= events_module.BATCH_ROWS for part in parts)
    joined = Events(
        np.concatenate([p.time for p in parts if p.time is not None]) if columns.time else None,
        np.concatenate([p.points for p in parts]),
        np.concatenate([p.sign for p in parts]),
        pa.concat_arrays([p.users for p in parts if p.users is not None]) if columns.user else None,
    )
    for part in parts:
        for why, number in part.bad.items():
            joined.bad[why] = joined.bad.get(why, 0) + number
    return joined


def check_same(source: Any) -> None:
    data, got = frame(), events(source)
    assert got.time is not None
    assert got.users is not None
    assert got.time.tolist() == data["time"].astype("datetime64[us]").astype("int64").tolist()
    assert got.points.tolist() == data[["lon", "lat"]].to_numpy().tolist()
    assert got.sign.tolist() == data["sign"].tolist()
    assert [user.decode() for user in got.users.to_pylist()] == data["who"].tolist()


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "BATCH_ROWS", 64)


@pytest.mark.usefixtures("small_batches")
class TestTheSameEvents:
    @pytest.mark.parametrize("name", FLAT)
    def test_tables_in_files(self, tmp_path: Path, name: str) -> None:
        FLAT[name](frame(), tmp_path / name)
        check_same(tmp_path / name)

    @pytest.mark.parametrize("name", GEO)
    def test_points_in_files(self, tmp_path: Path, name: str) -> None:
        GEO[name](geoframe(), tmp_path / name)
        check_same(tmp_path / name)

    @pytest.mark.parametrize("kind", FRAMES)
    def test_tables_in_memory(self, kind: str) -> None:
        check_same(FRAMES[kind]())

    def test_files_and_tables_in_one_go(self, tmp_path: Path) -> None:
        frame()[:200].to_parquet(tmp_path / "a.parquet")
        parts = list(read_events([tmp_path / "a.parquet", frame()[200:]], COLUMNS, Reading()))
        assert sum(map(len, parts)) == ROWS

    @pytest.mark.parametrize("name", ["a.gpkg", "a.geojson", "wkb.parquet"])
    def test_columns_of_the_coordinates_names_win_over_the_geometry(self, tmp_path: Path, name: str) -> None:
        data = frame()
        elsewhere = gpd.GeoDataFrame(data, geometry=gpd.points_from_xy(data["lon"] + 100, data["lat"]), crs=4326)
        GEO[name](elsewhere, tmp_path / name)
        check_same(tmp_path / name)

    def test_a_third_coordinate_may_be_a_column(self, tmp_path: Path) -> None:
        GEO["a.gpkg"](geoframe(), tmp_path / "a.gpkg")
        got = events(tmp_path / "a.gpkg", Columns(("lon", "lat", "fare"), "time"))
        assert got.points[:, :2].tolist() == frame()[["lon", "lat"]].to_numpy().tolist()
        assert set(got.points[:, 2]) == {1.5}

    @pytest.mark.parametrize("name", ["a.gpkg", "a.geojson", "a.ndjson", "wkb.parquet"])
    @pytest.mark.slow
    def test_times_with_a_zone_keep_it(self, tmp_path: Path, name: str) -> None:
        data = frame() if name == "a.ndjson" else geoframe()
        data["time"] = data["time"].dt.tz_localize("UTC")
        (GEO | FLAT)[name](data, tmp_path / name)
        assert len(events(tmp_path / name, zone=True)) == ROWS
        with pytest.raises(InputError, match=r"have a time zone, but \[ticks\] start has none"):
            events(tmp_path / name)


@pytest.mark.usefixtures("small_batches")
class TestJson:
    def test_a_user_is_the_same_written_as_number_or_text(self, tmp_path: Path) -> None:
        users = [7, "7", 12345678901234567890, None]
        rows = [{"lon": 1, "lat": 41.5, "who": who} for who in users]
        (tmp_path / "a.ndjson").write_text("\n".join(map(json.dumps, rows)))
        got = events(tmp_path / "a.ndjson", Columns(("lon", "lat"), user="who"), drop=True)
        assert got.users is not None
        assert got.users.to_pylist() == [b"7", b"7", b"12345678901234567890"]
        assert got.bad == {"column 'who' has rows without a user, or one that is not UTF-8 (see encoding)": 1}

    def test_members_before_and_after_the_features(self, tmp_path: Path) -> None:
        feature = {"geometry": {"type": "Point", "coordinates": [1.25, 41, 99]}, "type": "Feature", "properties": None}
        whole = {"name": "x" * 300, "n": 123456789, "features": [feature] * 5, "after": [1, {"a": "}]"}], "z": 1e-06}
        for indent in (None, 2):
            (tmp_path / "a.geojson").write_text(json.dumps(whole, indent=indent))
            assert events(tmp_path / "a.geojson", Columns(("x", "y"))).points.tolist() == [[1.25, 41.0]] * 5

    def test_columns_that_some_rows_leave_out(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text('{"lat": 41}\n{"lon": 2, "lat": 42}\n')
        got = events(tmp_path / "a.jsonl", Columns(("lon", "lat")), drop=True)
        assert got.points.tolist() == [[2.0, 42.0]]
        assert got.bad == {"column 'lon' has rows without a number": 1}

    def test_objects_where_numbers_belong(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text('{"lon": {"deg": 2}, "lat": true}\n')
        with pytest.raises(InputError, match="column 'lon' has text where a number belongs, first in data row 1"):
            events(tmp_path / "a.jsonl", Columns(("lon", "lat")))

    def test_no_features_is_no_events(self, tmp_path: Path) -> None:
        (tmp_path / "a.geojson").write_text('{"type": "FeatureCollection", "features": []}')
        assert list(read_events([tmp_path / "a.geojson"], COLUMNS, Reading())) == []


@pytest.mark.slow
def test_memory_stays_within_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the file takes no more memory."""
    monkeypatch.setattr(json_pieces, "_CHUNK", 1 << 14)
    peaks = []
    for rows in (2_000, 20_000):
        line = '{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":[1.5,41.5]}}'
        (tmp_path / "a.geojson").write_text('{"features":[' + ",\n".join([line] * rows) + "]}")
        tracemalloc.start()
        got = file_rows(tmp_path / "a.geojson", Columns(("x", "y")), Reading(), 500, [])
        assert sum(some.batch.num_rows for some in got) == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


class TestBadFiles:
    def check(self, source: Any, message: str, columns: Columns = COLUMNS) -> None:
        with pytest.raises(InputError, match=message):
            events(source, columns)

    @pytest.mark.parametrize("name", [*FLAT, *GEO])
    def test_missing(self, tmp_path: Path, name: str) -> None:
        self.check(tmp_path / name, "there is no file")

    @pytest.mark.parametrize("name", [*FLAT, *GEO])
    def test_empty(self, tmp_path: Path, name: str) -> None:
        if name.endswith(".gz"):
            (tmp_path / name).write_bytes(gzip.compress(b""))
        else:
            (tmp_path / name).touch()
        self.check(tmp_path / name, "[Ee]mpty")

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["a.parquet", "a.csv.gz", "wkb.parquet", "a.ndjson", "a.geojson", "a.gpkg"])
    def test_cut_off(self, tmp_path: Path, name: str) -> None:
        (FLAT | GEO)[name](geoframe() if name in GEO else frame(), tmp_path / name)
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 3 - 2])
        self.check(tmp_path / name, "whole|cannot be read|cut off")

    def test_a_shapefile_without_its_companions(self, tmp_path: Path) -> None:
        GEO["a.shp"](geoframe(), tmp_path / "a.shp")
        (tmp_path / "a.shx").unlink()
        self.check(tmp_path / "a.shp", "must lie beside it")

    @pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.ndjson", "a.gpkg", "a.geojson"])
    def test_of_another_format(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe\x00")
        self.check(tmp_path / name, "another format|no column|not a whole JSON object")

    @pytest.mark.parametrize("name", ["events.xlsx", "events", "events.json"])
    def test_of_an_unknown_format(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).touch()
        self.check(tmp_path / name, "format that is not known: the name must end in one of .csv")

    def test_json_that_is_not_geojson(self, tmp_path: Path) -> None:
        (tmp_path / "a.geojson").write_text('{"type": "Topology", "objects": {}}')
        self.check(tmp_path / "a.geojson", "no list of features")
        (tmp_path / "b.geojson").write_text('{"features": null}')
        self.check(tmp_path / "b.geojson", "not a whole GeoJSON")
        (tmp_path / "c.ndjson").write_text('{"lon": 1, "lat": 2}\n[1, 2]\n')
        self.check(tmp_path / "c.ndjson", "not a whole JSON object, first in data row 2", Columns(("lon", "lat")))

    def test_text_in_another_encoding(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes("größe,lon,lat\n1,2,3\n".encode("latin-1"))
        self.check(tmp_path / "a.csv", "not a whole CSV file|no column")

    def test_without_the_extra(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        GEO["a.gpkg"](geoframe(), tmp_path / "a.gpkg")
        monkeypatch.setitem(sys.modules, "pyogrio", None)
        with pytest.raises(InputError, match=r"pip install 'phdstream\[geo\]'"):
            list(file_rows(tmp_path / "a.gpkg", COLUMNS, Reading(), 100, []))

    def test_semicolons_are_seen_in_the_header_and_told(self, tmp_path: Path) -> None:
        frame().to_csv(tmp_path / "a.csv", sep=";", index=False)
        notes: list[str] = []
        parts = list(read_events([tmp_path / "a.csv"], COLUMNS, Reading(), notes))
        assert sum(map(len, parts)) == ROWS
        assert notes == [f"{tmp_path / 'a.csv'}: columns are separated by semicolons, as its first line shows."]

    @pytest.mark.parametrize("name", ["a.gpkg", "a.geojson", "a.shp", "wkb.parquet"])
    def test_unknown_column(self, tmp_path: Path, name: str) -> None:
        GEO[name](geoframe().rename(columns={"who": "user"}), tmp_path / name)
        self.check(tmp_path / name, "no column 'who'")
        self.check(tmp_path / name, "stand for two coordinates", Columns(("lon", "lat", "height")))

    def test_two_columns_of_one_name(self) -> None:
        columns = [pa.array([1.0]), pa.array([2.0]), pa.array([3.0])]
        self.check(pa.table(columns, names=["x", "y", "x"]), "more than one column 'x'", Columns(("x", "y")))

    def test_what_is_no_table(self) -> None:
        self.check([1, 2], "not from the builtins list")

    def test_mixed_values_in_memory(self) -> None:
        mixed = pd.DataFrame({"x": [1.0, "a", b"b"], "y": [1.0, 2.0, 3.0]})
        self.check(mixed, "pandas DataFrame: .*different kinds", Columns(("x", "y")))


LINE = "LINESTRING (0 40, 1 41)"


class TestBadGeometries:
    def write(self, folder: Path, name: str, shapes: list[str | None]) -> Path:
        geometry = gpd.GeoSeries([None if s is None else shapely.from_wkt(s) for s in shapes], crs="EPSG:4326")
        GEO[name](gpd.GeoDataFrame({"k": range(len(shapes))}, geometry=geometry), folder / name)
        return folder / name

    @pytest.mark.parametrize("name", ["wkb.parquet", "a.geojson", "a.geojsonl", "a.gpkg"])
    @pytest.mark.parametrize(
        "bad", [None, "POINT EMPTY", LINE, "MULTIPOINT (1 41, 2 42)", "POLYGON ((0 0, 1 1, 1 0, 0 0))"]
    )
    @pytest.mark.slow
    def test_mixed_with_points(self, tmp_path: Path, name: str, bad: str | None) -> None:
        path = self.write(tmp_path, name, ["POINT (1 41)", "POINT (2 42)", bad, "POINT (3 43)"])
        if name == "a.gpkg" and bad and bad.startswith("MULTI"):
            return  # GDAL makes every point of such a file a MultiPoint: see below
        message = "missing or empty" if bad in (None, "POINT EMPTY") else "not a single point"
        with pytest.raises(InputError, match=f"geometry is {message}.*first in data row 3"):
            events(path, Columns(("lon", "lat")))
        left = events(path, Columns(("lon", "lat")), drop=True)
        assert left.points.tolist() == [[1, 41], [2, 42], [3, 43]]
        assert sum(left.bad.values()) == 1

    @pytest.mark.parametrize("name", ["wkb.parquet", "a.gpkg", "a.shp"])
    def test_lines_only(self, tmp_path: Path, name: str) -> None:
        path = self.write(tmp_path, name, [LINE, LINE])
        with pytest.raises(InputError, match=r"LineString geometries, but every event is a point.*Centroids"):
            events(path, Columns(("lon", "lat")), drop=True)

    @pytest.mark.parametrize("name", ["wkb.parquet", "a.gpkg", "a.shp"])
    def test_multipoints_only(self, tmp_path: Path, name: str) -> None:
        path = self.write(tmp_path, name, ["MULTIPOINT (1 41)", "MULTIPOINT (2 42)"])
        with pytest.raises(InputError, match=r"MultiPoint.*Multipart to singleparts"):
            events(path, Columns(("lon", "lat")))

    def test_lines_only_in_geojson(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "a.geojson", [LINE])
        with pytest.raises(InputError, match="not a single point but a line"):
            events(path, Columns(("lon", "lat")))

    def test_lines_in_memory(self) -> None:
        lines = gpd.GeoDataFrame({"k": [1]}, geometry=[shapely.from_wkt(LINE)])
        with pytest.raises(InputError, match="the geopandas GeoDataFrame: the geometry is not a single point"):
            events(lines, Columns(("x", "y")))

    def test_heights_are_left_out(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "a.gpkg", ["POINT Z (1 41 100)", "POINT Z (2 42 200)"])
        assert events(path, Columns(("lon", "lat"))).points.tolist() == [[1, 41], [2, 42]]

    def test_damaged_metadata(self, tmp_path: Path) -> None:
        table = pa.table({"geometry": [b""]}).replace_schema_metadata({"geo": "{"})
        pq.write_table(table, tmp_path / "a.parquet")
        with pytest.raises(InputError, match="description of the geometry is damaged"):
            events(tmp_path / "a.parquet", Columns(("x", "y")))
        geo = json.dumps({"primary_column": "geom", "columns": {"geom": {}}})
        pq.write_table(table.replace_schema_metadata({"geo": geo}), tmp_path / "b.parquet")
        with pytest.raises(InputError, match="none of that name"):
            events(tmp_path / "b.parquet", Columns(("x", "y")))

    def test_several_layers(self, tmp_path: Path) -> None:
        points, lines = geoframe(), gpd.GeoDataFrame({"k": [1]}, geometry=[shapely.from_wkt(LINE)], crs=4326)
        points.to_file(tmp_path / "a.gpkg", layer="events")
        lines.to_file(tmp_path / "a.gpkg", layer="roads")
        check_same(tmp_path / "a.gpkg")
        points.to_file(tmp_path / "a.gpkg", layer="more")
        with pytest.raises(InputError, match=r"one layer of points, but has: events \(Point\), roads"):
            events(tmp_path / "a.gpkg")


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
class TestRealFiles:
    def test_the_nodes_of_a_road_network(self) -> None:
        got = events(SHARED / "geometry" / "manhattan_osmnx.gpkg", Columns(("lon", "lat")))
        assert len(got) > 4000
        assert np.all((got.points > (-74.1, 40.6)) & (got.points < (-73.8, 40.9)))

    def test_boroughs_are_not_points(self) -> None:
        with pytest.raises(InputError, match="not a single point but a line, an area"):
            events(SHARED / "geometry" / "nyc_boroughs_nybb.geojson", Columns(("lon", "lat")))

    def test_check_ins(self) -> None:
        got = events(SHARED / "gowalla_union.parquet", Columns(("lon", "lat"), "time", user="user"))
        assert len(got) == 371_532


CONFIG = """
[input]
files = "{name}"
time = "time"
coordinates = ["lon", "lat"]
sign = "sign"
[ticks]
every = "1d"
start = 2024-03-01
end = 2024-03-07
[domain]
type = "box"
bounds = [[0, 10], [40, 50]]
crs = "EPSG:4326"
[privacy]
epsilon = 1.0
unit = "event"
[output]
releases = "{name}-out"
state = "{name}-state"
[simulation]
seed = 1
"""


@pytest.mark.slow
def test_a_run_on_every_format_releases_the_same(tmp_path: Path) -> None:
    releases = []
    for name in ("a.parquet", "a.ndjson", "a.gpkg", "a.geojson", "wkb.parquet"):
        (FLAT | GEO)[name](geoframe() if name in GEO else frame(), tmp_path / name)
        (tmp_path / "run.toml").write_text(CONFIG.format(name=name))
        run(load_config(tmp_path / "run.toml"))
        folder = tmp_path / f"{name}-out" / "cells"
        releases.append([pq.read_table(path).to_pydict() for path in sorted(folder.glob("*.parquet"))])
    assert len(releases[0]) == 6
    assert all(release == releases[0] for release in releases)
