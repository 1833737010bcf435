"""`phdstream check`, `run`, `report` and `evaluate` on rows: files in every format, resumed, and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from phdstream.app.check import check
from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.domains import domain_from_dict
from phdstream.errors import ConfigError
from phdstream.io.archive import open_archive
from phdstream.page import write_report

CONFIG = """
[input]
files = {files}
time = "time"
coordinates = {coordinates}
bad_rows = "drop"
{more}
[ticks]
every = "1d"
start = 2024-05-01
end = {end}
[domain]
type = "product"
[domain.place]
{place}
[[domain.attributes]]
type = "category"
name = "vehicle"
values = {values}
[[domain.attributes]]
type = "bins"
name = "age"
edges = [0, 18, 65, 120]
[[domain.attributes]]
type = "time_of_day"
name = "hour"
column = "time"
[privacy]
epsilon = 4.0
unit = "event"
[output]
releases = "releases"
state = "private"
format = "{form}"
[simulation]
seed = 1
"""
BOX = 'type = "box"\nbounds = [[0, 10], [40, 50]]\ncrs = "EPSG:4326"\ndepth = 12'
DEFAULTS = {
    "files": '"a.csv"', "coordinates": '["lon", "lat"]', "end": "2024-05-04", "place": BOX, "form": "parquet",
    "values": '["bus", "tram", "ferry"]', "more": "",
}  # fmt: skip


def table(n: int = 900) -> pa.Table:
    rng = np.random.default_rng(1)
    seconds = (rng.uniform(0, 3 * 86_400, n)).astype("timedelta64[s]")
    return pa.table(
        {
            "time": np.datetime64("2024-05-01", "us") + seconds,
            "lon": rng.normal(5, 1, n),
            "lat": rng.normal(45, 1, n),
            "vehicle": rng.choice(["bus", "tram", "ferry", "rocket"], n, p=[0.6, 0.3, 0.05, 0.05]),
            "age": rng.integers(0, 130, n),
        }
    )


def write(folder: Path, name: str) -> None:
    made = table()
    if name.endswith(".csv"):
        pyarrow.csv.write_csv(made, folder / name)
    elif name.endswith(".ndjson"):
        rows = [row | {"time": row["time"].isoformat(sep=" ")} for row in made.to_pylist()]
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif name == "a.parquet":
        pq.write_table(made, folder / name, row_group_size=100)
    else:
        gpd = pytest.importorskip("geopandas")
        frame = made.to_pandas()
        points = gpd.points_from_xy(frame.pop("lon"), frame.pop("lat"))
        made = gpd.GeoDataFrame(frame, geometry=points, crs="EPSG:4326").to_crs(3857 if name == "b.parquet" else 4326)
        made.to_parquet(folder / name) if name == "b.parquet" else made.to_file(folder / name)


def configured(folder: Path, **more: str) -> Any:
    (folder / "stream.toml").write_text(CONFIG.format(**DEFAULTS | more))
    return load_config(folder / "stream.toml")


@pytest.mark.parametrize("name", ["a.ndjson", "a.parquet", "b.parquet", "a.gpkg"])
@pytest.mark.slow
def test_every_format_gives_the_same_releases(tmp_path: Path, name: str) -> None:
    releases = {}
    for each in ("a.csv", name):
        folder = tmp_path / each.replace(".", "-")
        folder.mkdir()
        write(folder, each)
        run(configured(folder, files=json.dumps(each)))
        releases[each] = pq.read_table(folder / "releases" / "points" / "tick-00003.parquet")
    first = releases["a.csv"]
    assert first.column_names == ["tick", "lon", "lat", "vehicle", "age", "hour"]
    assert set(first["vehicle"].to_pylist()) == {"bus", "tram", "ferry"}
    # coordinates that came through a projection may lie in a neighbouring cell of 270 m
    assert abs(first.num_rows - releases[name].num_rows) < 10
    if name != "b.parquet":
        assert releases[name].equals(first)
    assert 700 < first.num_rows < 900


@pytest.mark.parametrize("form", ["geoparquet", "geojson", "csv"])
def test_every_output_has_all_columns(tmp_path: Path, form: str) -> None:
    write(tmp_path, "a.csv")
    run(configured(tmp_path, form=form, end="2024-05-02"))
    points = tmp_path / "releases" / "points" / f"tick-00001.{'parquet' if form == 'geoparquet' else form}"
    if form == "geojson":
        feature = json.loads(points.read_text())["features"][0]
        assert set(feature["properties"]) >= {"vehicle", "age", "hour"}
        assert feature["geometry"]["type"] == "Point"
        assert "lon" not in feature["properties"]
    elif form == "csv":
        assert points.read_text().splitlines()[0].replace('"', "") == "tick,lon,lat,vehicle,age,hour"
    else:
        assert pq.read_table(points).column_names == ["tick", "lon", "lat", "vehicle", "age", "hour", "geometry"]


def test_stopped_and_resumed_and_read_again(tmp_path: Path) -> None:
    write(tmp_path, "a.csv")
    run(configured(tmp_path, end="2024-05-03"))
    run(configured(tmp_path))
    archive = open_archive(tmp_path / "releases")
    assert archive.domain.to_dict() == domain_from_dict(archive.domain.to_dict()).to_dict()
    release = archive.release(3)
    assert release.table(["vehicle"])["vehicle"].to_pylist() == ["bus", "tram", "ferry"]
    written = pq.read_table(tmp_path / "releases" / "points" / "tick-00003.parquet")
    assert written["vehicle"].to_pylist() == release.sample()["vehicle"].tolist()
    changes = release.changes()
    before = archive.release(2).sample()
    assert len(before) + len(changes.inserts) - len(changes.deletes) == len(release.sample())
    once = tmp_path / "once"
    once.mkdir()
    write(once, "a.csv")
    run(configured(once))
    again = pq.read_table(once / "releases" / "points" / "tick-00003.parquet")
    assert again.equals(written)
    page = write_report(tmp_path / "releases", tmp_path / "report.html")
    assert page.stat().st_size > 10_000


def test_a_hierarchy_of_places_and_a_file_of_values(tmp_path: Path) -> None:
    made = table()
    place = np.random.default_rng(2).choice(["A", "B", "C", "nowhere"], made.num_rows)
    pyarrow.csv.write_csv(made.append_column("ward", pa.array(place)), tmp_path / "a.csv")
    (tmp_path / "wards.csv").write_text("town,ward\nnorth,A\nnorth,B\nsouth,C\n")
    (tmp_path / "vehicles.csv").write_text("kind,vehicle\nroad,bus\nrail,tram\nwater,ferry\n")
    run(configured(tmp_path, coordinates='["ward"]', place='type = "hierarchy"\nplaces = "wards.csv"',
                   values='"vehicles.csv"'))  # fmt: skip
    points = pq.read_table(tmp_path / "releases" / "points" / "tick-00003.parquet")
    assert points.column_names == ["tick", "ward", "vehicle", "age", "hour"]
    assert set(points["ward"].to_pylist()) == {"north/A", "north/B", "south/C"}
    assert set(points["vehicle"].to_pylist()) == {"road/bus", "rail/tram", "water/ferry"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('[domain.place]\n', '[domain.elsewhere]\n'), "unknown key 'elsewhere'"),
        (("[domain.place]\n" + BOX, ""), "needs a place"),
        (('type = "bins"', 'type = "bin"'), "did you mean 'bins'"),
        (("edges = [0, 18, 65, 120]", "edges = [0]"), "three finite numbers"),
        (("edges = ", "steps = "), "steps"),
        (('name = "age"', 'name = "lon"'), "different names"),
        (('type = "product"', 'type = "product"\nschedule = ["place"]'), "a schedule says"),
        (('type = "product"', 'type = "product"\nbounds = [[0, 1]]'), r"\[domain.place\]\?"),
        (('["bus", "tram", "ferry"]', '"none.csv"'), "there is no file"),
        (('["lon", "lat"]', '["lon"]'), "2 coordinates"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    text = CONFIG.format(**DEFAULTS)
    assert change[0] in text
    (tmp_path / "stream.toml").write_text(text.replace(*change, 1))
    with pytest.raises(ConfigError, match=says):
        load_config(tmp_path / "stream.toml")


def test_what_is_said_of_attributes(tmp_path: Path) -> None:
    write(tmp_path, "a.csv")
    config = configured(tmp_path)
    assert "Attributes: vehicle (3 values), age (3 values), hour (24 values)." in config.stream().describe()
    assert any("a value that is in no list" in line for line in run(config).private_notes)


@pytest.mark.parametrize(
    ("every", "attribute", "said"),
    [
        ("1d", "day_of_week", True),
        ("1w", "day_of_week", False),
        ("1h", "time_of_day", True),
        ("2h", "time_of_day", False),
    ],
)
def test_what_every_tick_says_by_itself_is_no_attribute(tmp_path: Path, every: str, attribute: str, said: bool) -> None:
    write(tmp_path, "a.csv")
    text = CONFIG.format(**DEFAULTS | {"end": "2024-05-08"}).replace('every = "1d"', f'every = "{every}"')
    (tmp_path / "stream.toml").write_text(text.replace('type = "time_of_day"', f'type = "{attribute}"'))
    lines = check(load_config(tmp_path / "stream.toml")).lines
    assert any("leave 'hour' out" in line for line in lines) == said


def test_experiments_are_of_places() -> None:
    from phdstream.evaluation import read_experiment

    with pytest.raises(ConfigError, match="not rows: give the place alone"):
        read_experiment({"data": {"circles": "growing"}, "domain": {"type": "product"}}, Path())
