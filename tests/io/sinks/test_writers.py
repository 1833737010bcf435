"""Releases as files: read back by what analysts use, and marked with what they promise."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pyarrow.parquet as pq
import pytest

import phdstream as phd
from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.errors import ConfigError, InputError
from phdstream.io.sinks.writers import FORMATS, check_format, encode_cells, encode_points, write_cells, write_points
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.events import read_events
from phdstream.io.sources.reading import Reading
from phdstream.release import Release

gpd = pytest.importorskip("geopandas")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
shapely = pytest.importorskip("shapely")
pyogrio = pytest.importorskip("pyogrio")

MARK = "simulated, not private"
SQUARE = "POLYGON ((500000 5500000, 510000 5500000, 510000 5510000, 500000 5510000, 500000 5500000))"


def release(domain: Any = None, points: Any = None, **options: Any) -> Release:
    domain = phd.Box([(0, 10), (40, 50)], names=("lon", "lat"), depth=8) if domain is None else domain
    points = np.random.default_rng(1).normal((5, 45), 1, (800, 2)) if points is None else points
    noise = phd.Simulation(seed=3)
    return phd.PHDStream(domain, epsilon=2.0, unit=phd.Event(), noise=noise, **options).update(points)


def regional(crs: str | None) -> Release:
    points = np.random.default_rng(1).uniform((500000, 5500000), (510000, 5510000), (500, 2))
    return release(phd.Region(shapely.from_wkt(SQUARE), crs=crs, depth=6), points)


def geo(path: Path) -> Any:
    return json.loads(pq.read_schema(path).metadata[b"geo"])


class TestGeoParquet:
    def test_points_in_geopandas(self, tmp_path: Path) -> None:
        made = release()
        write_points(made, tmp_path / "p.parquet")
        back = gpd.read_parquet(tmp_path / "p.parquet")
        assert back.get_coordinates().to_numpy().tolist() == made.sample().tolist()
        assert back[["lon", "lat"]].to_numpy().tolist() == made.sample().tolist()
        assert set(back["tick"]) == {1}
        assert back.crs is None

    def test_cells_in_geopandas(self, tmp_path: Path) -> None:
        made = release()
        write_cells(made, tmp_path / "c.parquet")
        back = gpd.read_parquet(tmp_path / "c.parquet")
        assert back.bounds.to_numpy().tolist() == made.domain.bounds(made.leaves).tolist()
        assert back["count"].tolist() == made.cells()["count"].to_pylist()
        assert back.area.sum() == pytest.approx(100)

    def test_the_description(self, tmp_path: Path) -> None:
        made = release()
        write_points(made, tmp_path / "p.parquet")
        described = geo(tmp_path / "p.parquet")
        column = described["columns"][described["primary_column"]]
        assert described["version"] == "1.1.0"
        assert (column["encoding"], column["geometry_types"], column["crs"]) == ("WKB", ["Point"], None)
        assert column["bbox"] == [*made.sample().min(axis=0), *made.sample().max(axis=0)]

    def test_coordinate_systems(self, tmp_path: Path) -> None:
        write_cells(regional("EPSG:32632"), tmp_path / "c.parquet")
        assert gpd.read_parquet(tmp_path / "c.parquet").crs == "EPSG:32632"
        write_cells(regional(None), tmp_path / "d.parquet")
        assert gpd.read_parquet(tmp_path / "d.parquet").crs is None

    def test_other_readers(self, tmp_path: Path) -> None:
        made = release()
        write_points(made, tmp_path / "p.parquet")
        for read in (pd.read_parquet, pl.read_parquet):
            back = read(tmp_path / "p.parquet")
            assert back[["lon", "lat"]].to_numpy().tolist() == made.sample().tolist()

    def test_other_dimensions_are_plain(self, tmp_path: Path) -> None:
        made = release(phd.Box([(0, 1)] * 3), np.full((300, 3), 0.3))
        write_points(made, tmp_path / "p.parquet")
        assert pq.read_table(tmp_path / "p.parquet").column_names == ["tick", "x", "y", "z"]
        with pytest.raises(InputError, match="two coordinates"):
            write_points(made, tmp_path / "p.geojson")
        assert not (tmp_path / "p.geojson").exists()


class TestGeoJson:
    def test_points(self, tmp_path: Path) -> None:
        made = release()
        write_points(made, tmp_path / "p.geojson")
        back = gpd.read_file(tmp_path / "p.geojson")
        assert back.get_coordinates().to_numpy().tolist() == made.sample().tolist()
        assert back.columns.tolist() == ["tick", "geometry"]

    def test_cells(self, tmp_path: Path) -> None:
        made = release()
        write_cells(made, tmp_path / "c.geojson")
        back = pyogrio.read_dataframe(tmp_path / "c.geojson")
        assert back.bounds.to_numpy().tolist() == made.domain.bounds(made.leaves).tolist()
        for name in ("node", "level", "points", "count", "stderr"):
            assert back[name].tolist() == made.cells()[name].to_pylist()

    def test_coordinate_systems(self, tmp_path: Path) -> None:
        write_cells(regional("EPSG:32632"), tmp_path / "c.geojson")
        assert gpd.read_file(tmp_path / "c.geojson").crs == "EPSG:32632"
        unnamed = phd.Region(shapely.from_wkt(SQUARE), crs="+proj=tmerc +lat_0=0 +lon_0=9.3 +k=0.9996", depth=6)
        with pytest.raises(InputError, match="GeoJSON can only name"):
            check_format("geojson", unnamed)

    def test_it_can_be_fed_back(self, tmp_path: Path) -> None:
        made = release()
        write_points(made, tmp_path / "p.geojson")
        (events,) = read_events([tmp_path / "p.geojson"], Columns(("lon", "lat")), Reading())
        assert events.points.tolist() == made.sample().tolist()

    def test_no_points(self, tmp_path: Path) -> None:
        made = release(points=np.empty((0, 2)), threshold=1000)
        for name in ("p.geojson", "p.parquet", "p.csv"):
            write_points(made, tmp_path / name)
        assert len(gpd.read_parquet(tmp_path / "p.parquet")) == len(made.sample())
        assert len(json.loads((tmp_path / "p.geojson").read_text())["features"]) == len(made.sample())

    def test_what_is_not_finite_is_null(self) -> None:
        from phdstream.io.sinks.encoding import write_geojson

        file = io.BytesIO()
        pieces = iter([(pa.table({"a": [np.inf, 1.0]}), shapely.points([[0, 1], [2, 3]]))])
        write_geojson(file, pieces, {"privacy": "x"})
        text = json.loads(file.getvalue(), parse_constant=lambda word: pytest.fail(word))
        assert [feature["properties"]["a"] for feature in text["features"]] == [None, 1.0]


class TestCsv:
    def test_readers_need_no_hint(self, tmp_path: Path) -> None:
        made = release()
        write_points(made, tmp_path / "p.csv")
        for read in (pd.read_csv, pl.read_csv):
            back = read(tmp_path / "p.csv")
            assert list(back.columns) == ["tick", "lon", "lat"]
            assert back[["lon", "lat"]].to_numpy() == pytest.approx(made.sample(), abs=1e-13)
        write_cells(made, tmp_path / "c.csv")
        assert pd.read_csv(tmp_path / "c.csv")["points"].tolist() == made.points.tolist()


class TestWhatGoesWithIt:
    @pytest.mark.parametrize("write", [write_points, write_cells])
    def test_every_format_says_what_it_may_claim(self, tmp_path: Path, write: Any) -> None:
        for name in ("a.parquet", "a.geojson", "a.csv"):
            write(release(), tmp_path / name)
        metadata = pq.read_schema(tmp_path / "a.parquet").metadata
        assert MARK in metadata[b"privacy"].decode()
        assert json.loads(metadata[b"phdstream"])["epsilon"] == 2.0
        whole = json.loads((tmp_path / "a.geojson").read_text())
        assert MARK in whole["privacy"]
        assert whole["phdstream"]["epsilon"] == 2.0
        beside = json.loads((tmp_path / "a.csv-metadata.json").read_text())
        assert MARK in beside["privacy"]

    @pytest.mark.parametrize("form", FORMATS)
    def test_the_same_bytes_every_time(self, form: str) -> None:
        for encode in (encode_points, encode_cells):
            first, second = io.BytesIO(), io.BytesIO()
            encode(release(), form)(first)
            encode(release(), form)(second)
            assert first.getvalue() == second.getvalue()

    def test_bad_names(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"must end in one of .parquet, .geojson, .csv"):
            write_points(release(), tmp_path / "p.xlsx")
        with pytest.raises(InputError, match="cannot be written"):
            write_points(release(), tmp_path / "nowhere" / "p.csv")

    def test_before_the_start_there_is_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="nothing is released yet"):
            write_points(release(start_after=3), tmp_path / "p.parquet")


CONFIG = """
[input]
files = "a.csv"
time = "time"
coordinates = ["lon", "lat"]
[ticks]
every = "1d"
start = 2024-03-01
end = 2024-03-03
[domain]
type = "box"
bounds = [[0, 10], [40, 50]]
[privacy]
epsilon = 1.0
unit = "event"
[output]
releases = "out"
state = "private"
{output}
[simulation]
seed = 1
"""


class TestConfiguration:
    def configured(self, folder: Path, output: str) -> Path:
        (folder / "a.csv").write_text("time,lon,lat\n" + "2024-03-01 10:00,5,45\n" * 300)
        (folder / "run.toml").write_text(CONFIG.format(output=output))
        return folder / "run.toml"

    def test_a_run_writes_the_format_asked_for(self, tmp_path: Path) -> None:
        run(load_config(self.configured(tmp_path, 'format = "geojson"')))
        run(load_config(tmp_path / "run.toml"))
        assert len(list((tmp_path / "out" / "points").glob("*.geojson"))) == 2
        assert len(gpd.read_file(tmp_path / "out" / "cells" / "tick-00002.geojson")) > 1

    @pytest.mark.parametrize(
        ("output", "message"),
        [
            ('format = "geojsn"', "did you mean 'geojson'"),
            ("format = 3", "must be a non-empty text"),
            ("form = 1", "unknown key"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, output: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            load_config(self.configured(tmp_path, output))

    def test_maps_need_two_coordinates(self, tmp_path: Path) -> None:
        path = self.configured(tmp_path, 'format = "geoparquet"')
        text = path.read_text().replace('["lon", "lat"]', '["lon"]').replace(", [40, 50]]", "]")
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"\[output\] maps need points with two coordinates"):
            load_config(path)


class TestSpreadsheets:
    """A cell that begins like a formula is one, for a spreadsheet."""

    NAMES = ("=HYPERLINK(0)", "+1", "-1", "@SUM(1)", "\tx", "\rx", "Paris", "a=b")

    def test_no_text_in_csv_is_a_formula(self, tmp_path: Path) -> None:
        domain = phd.Hierarchy([[name] for name in self.NAMES], names=("=place",))
        stream = phd.PHDStream(domain, 50.0, phd.Event(), noise=phd.Simulation(1))
        made = stream.update(list(self.NAMES) * 40)
        for write, file in ((write_points, "p.csv"), (write_cells, "c.csv")):
            write(made, tmp_path / file)
            table = pyarrow.csv.read_csv(tmp_path / file)
            assert "'=place" in table.column_names
            texts = table["'=place"].to_pylist()
            assert not any(text[:1] in tuple("=+-@\t\r") for text in texts if text)
            assert {"Paris", "a=b", "'=HYPERLINK(0)", "'-1"} <= set(texts)
        note = json.loads((tmp_path / "p.csv-metadata.json").read_text())["csv"]
        assert "apostrophe" in note

    def test_numbers_are_as_they_are(self, tmp_path: Path) -> None:
        box = phd.Box([(-2, -1), (-2, -1)], depth=4)
        made = phd.PHDStream(box, 5.0, phd.Event(), noise=phd.Simulation(1)).update([(-1.5, -1.5)] * 50)
        write_points(made, tmp_path / "p.csv")
        table = pyarrow.csv.read_csv(tmp_path / "p.csv")
        np.testing.assert_allclose(table["x"].to_numpy(), made.sample()[:, 0])


@pytest.mark.parametrize("form", ["parquet", "geoparquet", "geojson", "csv"])
def test_files_written_in_pieces_are_the_same_files(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    made = release()

    def written() -> list[bytes]:
        files = []
        for encode in (encode_points, encode_cells):
            encoder = encode(made, form)
            for _ in range(2):  # an encoder can be asked again
                encoder(file := io.BytesIO())
                files.append(file.getvalue())
        return files

    at_once = written()
    assert at_once[0] == at_once[1]
    assert at_once[2] == at_once[3]
    monkeypatch.setattr("phdstream.io.sinks.writers._ROW_GROUP", 7)
    monkeypatch.setattr("phdstream.io.sinks.writers._AT_ONCE", 7)
    pieces = written()
    if "parquet" not in form:
        assert pieces == at_once
    else:
        for whole, parts in zip(at_once, pieces, strict=True):
            tables = [pyarrow.parquet.read_table(io.BytesIO(content)) for content in (whole, parts)]
            assert tables[0].equals(tables[1], check_metadata=True)
