"""`phdstream run` on real geography: every kind of domain from the configuration file, into every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from phdstream.app.check import check
from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.domains.outlines import land
from phdstream.errors import ConfigError, StateError, UnusableError

pytestmark = pytest.mark.slow

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
START = np.datetime64("2024-03-01", "us")
ISLAND = shapely.Polygon([(4, 50), (6, 50), (6, 51), (5, 51), (5, 52), (4, 52)])
ROADS = [shapely.LineString([(4, 50.5), (6, 50.5)]), shapely.LineString([(4.5, 50), (4.5, 52)])]
CONFIG = """
[input]
files = "events.parquet"
time = "time"
coordinates = {coordinates}
[ticks]
every = "1d"
start = 2024-03-01
end = 2024-03-04
[domain]
{domain}
[privacy]
epsilon = 4.0
unit = "event"
[output]
releases = "out"
state = "private"
format = "{format}"
[simulation]
seed = 1
"""


def prepare(folder: Path, domain: str, columns: dict[str, Any], form: str = "geoparquet") -> Path:
    n = len(next(iter(columns.values())))
    times = START + np.sort(np.random.default_rng(1).uniform(0, 3, n)) * np.timedelta64(1, "D")
    pq.write_table(pa.table({"time": times} | columns), folder / "events.parquet")
    coordinates = str(list(columns)).replace("'", '"')
    config = folder / "stream.toml"
    config.write_text(CONFIG.format(coordinates=coordinates, domain=domain, format=form))
    return config


def degrees(n: int = 600, west: float = 4.0, south: float = 50.0, size: float = 2.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {"lon": west + size * rng.random(n), "lat": south + size * rng.random(n)}


def points(folder: Path) -> Any:
    return geopandas.read_parquet(sorted((folder / "out" / "points").glob("*.parquet"))[-1])


def test_a_region_from_a_file(tmp_path: Path) -> None:
    geopandas.GeoSeries([ISLAND], crs="EPSG:4326").to_file(tmp_path / "island.gpkg")
    run(load_config(prepare(tmp_path, 'type = "region"\npolygons = "island.gpkg"\ndepth = 14', degrees())))
    frame = points(tmp_path)
    assert frame.crs == "EPSG:4326"
    assert len(frame) > 300
    assert shapely.intersects(frame.geometry.to_numpy(), ISLAND).all()
    cells = geopandas.read_parquet(sorted((tmp_path / "out" / "cells").glob("*.parquet"))[-1])
    assert cells.geometry.union_all().difference(ISLAND.buffer(1e-4)).area < 1e-9


def test_the_packaged_land(tmp_path: Path) -> None:
    config = prepare(tmp_path, 'type = "region"\npolygons = "land"', degrees(2000, -120, 30, 40))
    run(load_config(config))
    frame = points(tmp_path)
    assert shapely.intersects(frame.geometry.to_numpy(), land()).all()


def test_a_network_from_a_file(tmp_path: Path) -> None:
    geopandas.GeoSeries(ROADS, crs="EPSG:4326").to_file(tmp_path / "roads.gpkg")
    domain = 'type = "network"\nlines = "roads.gpkg"\nsnap = 20000\ntree_crs = "EPSG:32631"\ndepth = 14'
    report = run(load_config(prepare(tmp_path, domain, degrees())), anyway=True)
    assert any("farther than 20000 from any line" in note for note in report.private_notes)
    frame = points(tmp_path)
    roads = geopandas.GeoSeries([shapely.MultiLineString(ROADS)], crs="EPSG:4326").segmentize(0.01).to_crs(32631)
    assert (
        frame.to_crs(32631).distance(roads.iloc[0]).max() < 205
    )  # a hundredth of the snap distance, on roads 140 km long


def test_a_hierarchy_from_a_table(tmp_path: Path) -> None:
    (tmp_path / "hospitals.csv").write_text("country,hospital\nUS,A\nUS,B\nFR,C\n")
    rng = np.random.default_rng(1)
    where = np.array([("US", "A"), ("FR", "C"), ("XX", "Z")])[rng.choice(3, 600, p=[0.6, 0.3, 0.1])]
    columns = {"country": where[:, 0], "hospital": where[:, 1]}
    domain = 'type = "hierarchy"\nplaces = "hospitals.csv"'
    report = run(load_config(prepare(tmp_path, domain, columns, form="csv")))
    assert any("outside the domain" in note for note in report.private_notes)
    text = (tmp_path / "out" / "points" / "tick-00003.csv").read_text()
    assert text.count("US/A") == pytest.approx(360, abs=60)


def test_the_globe(tmp_path: Path) -> None:
    run(load_config(prepare(tmp_path, 'type = "globe"\ndepth = 8', degrees(), form="geojson")))
    frame = geopandas.read_file(tmp_path / "out" / "points" / "tick-00003.geojson")
    assert len(frame) == pytest.approx(600, abs=100)


def test_swapped_columns_are_noticed(tmp_path: Path) -> None:
    box = 'type = "box"\nbounds = [[-74.3, -73.7], [40.5, 41.0]]\ncrs = "EPSG:4326"'
    swapped = {"lat": np.full(500, -74.0), "lon": np.full(500, 40.7)}
    config = prepare(tmp_path, box, {"lon": swapped["lon"], "lat": swapped["lat"]})
    with pytest.raises(UnusableError, match="longitude and latitude in the right order"):
        run(load_config(config))
    report = run(load_config(config), anyway=True)
    assert any("longitude and latitude in the right order" in note for note in report.private_notes)
    assert points(tmp_path).crs == "EPSG:4326"


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ('type = "region"', "needs 'polygons'"),
        ('type = "region"\npolygons = "nowhere.geojson"', "no file"),
        ('type = "network"\nlines = "roads.gpkg"\nsnap = 50', "EPSG:32631"),
        ('type = "network"\nlines = "roads.gpkg"\ntree_crs = "EPSG:32631"', "snap"),
        ('type = "hierarchy"\nplaces = "nowhere.csv"', "no file"),
        ('type = "globe"\nbounds = [[0, 1]]', "bounds"),
    ],
)
def test_bad_domains(tmp_path: Path, domain: str, message: str) -> None:
    geopandas.GeoSeries(ROADS, crs="EPSG:4326").to_file(tmp_path / "roads.gpkg")
    with pytest.raises(ConfigError, match=message):
        load_config(prepare(tmp_path, domain, degrees()))


BOX = 'type = "box"\nbounds = [[4, 6], [50, 52]]\n'


def test_degrees_have_cells_of_ten_metres_unless_told(tmp_path: Path) -> None:
    depths = {}
    for fine in ("", 'resolution = "10 m"', 'resolution = "0.5 km"', "resolution = 0.01", "depth = 9"):
        config = load_config(prepare(tmp_path, BOX + fine, degrees()))
        depths[fine] = config.domain.depth
    assert list(depths.values()) == [28, 28, 17, 15, 9]
    lines = check(config).lines
    assert "depth: 9, finest cells about 7.8 km wide" in lines
    with pytest.raises(ConfigError, match="not both"):
        load_config(prepare(tmp_path, BOX + 'depth = 9\nresolution = "10 m"', degrees()))


def test_a_stream_begun_with_another_depth_says_which(tmp_path: Path) -> None:
    run(load_config(prepare(tmp_path, BOX + "depth = 20", degrees())))
    with pytest.raises(StateError, match=r"domain = \{'depth': 20\}, but \{'depth': 28\} was asked for.*set it back"):
        run(load_config(prepare(tmp_path, BOX, degrees())))


@pytest.mark.skipif(not SHARED.exists(), reason="no shared data here")
class TestRealFiles:
    """Two ticks each; maps of whole months are in docs/geography.md, drawn by benchmarks/geography.py."""

    def config(self, folder: Path, file: str, domain: str, start: str, end: str) -> Path:
        text = CONFIG.format(coordinates='["lon", "lat"]', domain=domain, format="geoparquet")
        text = text.replace("events.parquet", str(SHARED / file)).replace('every = "1d"', 'every = "2d"')
        text = text.replace("start = 2024-03-01", f"start = {start}").replace("end = 2024-03-04", f"end = {end}")
        path = folder / "stream.toml"
        path.write_text(text)
        return path

    @pytest.mark.slow
    def test_gowalla_over_land(self, tmp_path: Path) -> None:
        domain = 'type = "region"\npolygons = "land"'
        run(load_config(self.config(tmp_path, "gowalla_union.parquet", domain, "2010-08-01", "2010-08-05")))
        assert shapely.intersects(points(tmp_path).geometry.to_numpy(), land()).all()

    @pytest.mark.slow
    def test_uber_over_manhattans_streets(self, tmp_path: Path) -> None:
        lines = SHARED / "geometry" / "manhattan_osmnx.gpkg"
        domain = f'type = "network"\nlines = "{lines}"\nsnap = 50\ntree_crs = "EPSG:32618"'
        run(load_config(self.config(tmp_path, "uber_apr2014_full.parquet", domain, "2014-04-01", "2014-04-05")))
        streets = geopandas.read_file(lines, layer="edges").to_crs(32618).geometry.to_numpy()
        _, distance = shapely.STRtree(streets).query_nearest(
            points(tmp_path).to_crs(32618).geometry.to_numpy(), return_distance=True, all_matches=False
        )
        assert distance.max() < 1e-3
