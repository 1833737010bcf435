"""`[prior]` in a configuration: every kind of file, what is refused, and what was said once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import shapely

from phdstream.app.check import check
from phdstream.app.config import load_config
from phdstream.app.run import run
from phdstream.errors import ConfigError, StateError
from tests.app.test_run import SIMULATED, write

RNG = np.random.default_rng(1)
PLACES = np.column_stack([RNG.uniform(0, 5, 200), RNG.uniform(40, 50, 200)])
ABOUT = 'about = "census"'


def square(x: float, people: int) -> str:
    ring = [[x, 40], [x + 5, 40], [x + 5, 50], [x, 50], [x, 40]]
    shape = {"type": "Polygon", "coordinates": [ring]}
    return json.dumps({"type": "Feature", "geometry": shape, "properties": {"people": people}})


def files(folder: Path) -> None:
    """Write the same public knowledge in every format: all in the western half."""
    table = pa.table({"lon": PLACES[:, 0], "lat": PLACES[:, 1], "people": np.ones(200)})
    pyarrow.csv.write_csv(table, folder / "places.csv")
    pq.write_table(table.rename_columns(["east", "north", "people"]), folder / "places.parquet")
    features = f'{{"type": "FeatureCollection", "features": [{square(0, 7)}, {square(5, 0)}], "crs": null}}'
    (folder / "areas.geojson").write_text(features)
    line = shapely.to_geojson(shapely.LineString([(1, 41), (4, 49)]))
    (folder / "roads.geojson").write_text(f'{{"type": "Feature", "geometry": {line}, "crs": null}}')
    points = shapely.to_geojson(shapely.points(PLACES))
    geometries = ", ".join(f'{{"type": "Feature", "properties": {{}}, "geometry": {each}}}' for each in points)
    (folder / "places.geojson").write_text(f'{{"type": "FeatureCollection", "crs": null, "features": [{geometries}]}}')
    (folder / "grid.asc").write_text("ncols 2\nnrows 1\nxllcorner 0\nyllcorner 40\ncellsize 5\n1 0\n")


SECTIONS = {
    "points": 'points = "places.csv"',
    "points of other columns": 'points = "places.parquet"\ncoordinates = ["east", "north"]\nweights = "people"',
    "points of a geometry": 'points = "places.geojson"',
    "polygons": 'polygons = "areas.geojson"\nweights = "people"',
    "lines": 'lines = "roads.geojson"',
    "raster": 'raster = "grid.asc"',
}


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_every_kind_of_file(tmp_path: Path, section: str) -> None:
    files(tmp_path)
    config = load_config(write(tmp_path, more=f"{SIMULATED}\n[prior]\n{ABOUT}\n{section}"))
    splits = config.stream()._method._beginning.splits  # type: ignore[attr-defined]
    assert splits.node[0] == 1
    assert splits.contrast[0] > 0.9  # the first half is the western
    assert "census" in config.stream().describe()
    run(config)
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["prior"] == "census"


def test_an_earlier_folder_of_releases(tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    run(load_config(write(before)))
    section = 'releases = "before/out"'
    config = load_config(write(tmp_path, more=f"[prior]\n{section}"))
    assert "release of tick 6" in config.stream().describe()
    assert "of tick 2 " in load_config(write(tmp_path, more=f"[prior]\n{section}\ntick = 2")).stream().describe()
    with pytest.raises(ConfigError, match="from 1 to 6"):
        load_config(write(tmp_path, more=f"[prior]\n{section}\ntick = 7"))


def test_check_reads_it_and_what_was_said_once_stays_said(tmp_path: Path) -> None:
    files(tmp_path)
    path = write(tmp_path, more=f"[prior]\n{ABOUT}\n{SECTIONS['points']}")
    check(load_config(path))
    run(load_config(path))
    for more in (f"[prior]\n{ABOUT}\n{SECTIONS['raster']}", ""):
        with pytest.raises(StateError, match="prior"):
            run(load_config(write(tmp_path, more=more)))
    run(load_config(write(tmp_path, more=f"[prior]\n{ABOUT}\n{SECTIONS['points']}")))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("", "one of points"),
        (f'{ABOUT}\npoints = "places.csv"\nraster = "grid.asc"', "one of points"),
        ('points = "places.csv"', "needs about"),
        (f'{ABOUT}\npoints = "nowhere.csv"', "no file"),
        (f'{ABOUT}\npoints = "places.csv"\nweights = "peeple"', "people"),
        (f'{ABOUT}\npoints = "places.parquet"', "coordinates"),
        (f'{ABOUT}\npolygons = "areas.geojson"\nweights = "area"', "no column 'area'"),
        (f'{ABOUT}\npolygons = "areas.geojson"\ntick = 3', "does not go with polygons"),
        (f'{ABOUT}\npolygon = "areas.geojson"', "polygons"),
        (f'{ABOUT}\nraster = "places.csv"', "Esri"),
        (f"{ABOUT}\nraster = 3", "must be a text"),
        ('releases = "nowhere"', "no folder of releases"),
    ],
)
def test_what_is_refused(tmp_path: Path, section: str, message: str) -> None:
    files(tmp_path)
    with pytest.raises(ConfigError, match=message):
        load_config(write(tmp_path, more=f"[prior]\n{section}"))


def test_the_papers_method_takes_none(tmp_path: Path) -> None:
    files(tmp_path)
    more = f'[stream]\nmethod = "phdstream"\n[prior]\n{ABOUT}\n{SECTIONS["raster"]}'
    with pytest.raises(ConfigError, match="PHDStream takes no prior"):
        load_config(write(tmp_path, more=more))
