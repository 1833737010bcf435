"""Ticks of rows together: counts under conditions, tables by values, and areas of a map, over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import geopandas
import matplotlib
import numpy as np
import pyarrow as pa
import pytest
import shapely

import phdstream as phd
from phdstream.errors import InputError
from tests.page.folders import write_folder

matplotlib.use("Agg")
CITY = phd.Box([(0, 10), (0, 10)], depth=10, crs="EPSG:3857")
VEHICLE = phd.Category("vehicle", ["bus", "car", "tram"])
HALVES = geopandas.GeoDataFrame(
    {"half": ["west", "east"]}, geometry=[shapely.box(0, 0, 5, 10), shapely.box(5, 0, 10, 10)], crs="EPSG:3857"
)


def rows(tick: int) -> Any:
    rng, n = np.random.default_rng(tick), 900
    vehicle = rng.choice(["bus", "car", "tram"], n, p=[0.2 + 0.1 * tick, 0.6 - 0.1 * tick, 0.2])
    return {"x": rng.uniform(0, 10, n), "y": rng.uniform(0, 10, n), "vehicle": vehicle, "hour": rng.uniform(0, 24, n)}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> phd.Releases:
    domain = phd.Product(CITY, VEHICLE, phd.TimeOfDay("hour", 4))
    stream = phd.TrackingStream(domain, 4.0, phd.Event(), window=1, noise=phd.Simulation(1))
    made = [stream.update(rows(tick)) for tick in range(1, 4)]
    return phd.read_releases(write_folder(tmp_path_factory.mktemp("rows") / "releases", made))


def test_counts_of_some_values_over_time(releases: phd.Releases) -> None:
    table = releases.counts(HALVES, where={"vehicle": "bus"})
    assert type(table) is geopandas.GeoDataFrame
    each = [release.count_in(HALVES, where={"vehicle": "bus"})["value"] for release in releases]
    np.testing.assert_allclose(table["value"], np.concatenate(each))
    buses = releases.counts(where={"vehicle": "bus"})["value"].to_pylist()
    assert buses == sorted(buses)
    assert 150 < buses[0] < 400 < buses[2] < 550


def test_changes_and_rates_of_some_values(releases: phd.Releases) -> None:
    cars = {"vehicle": "car"}
    (change,) = releases[:2].changes(where=cars).to_pylist()
    first, second = releases[:2].counts(where=cars)["value"].to_pylist()
    assert change["value"] == pytest.approx(second - first)
    assert change["low"] < change["value"] < change["high"]
    (rate,) = releases[:1].rates(per="1h", where=cars).to_pylist()
    assert rate["value"] == pytest.approx(first / 24)


def test_tables_by_values_over_time(releases: phd.Releases) -> None:
    table = releases.table(["vehicle"])
    assert table.column_names[:5] == ["tick", "start", "end", "vehicle", "value"]
    assert table["vehicle"].to_pylist() == ["bus", "car", "tram"] * 3
    assert table["tick"].to_pylist() == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    each = pa.concat_arrays([release.table(["vehicle"])["value"].combine_chunks() for release in releases])
    assert table["value"].to_pylist() == each.to_pylist()
    night = releases.table("vehicle", where={"hour": (18, 6)}, to="pandas")
    assert (night["value"].to_numpy() < table["value"].to_numpy()).all()
    by_area = releases.table(["half", "vehicle"], HALVES, to="geopandas")
    assert len(by_area) == 3 * 2 * 3
    assert by_area.geometry.iloc[-1].equals(HALVES.geometry.iloc[1])
    assert by_area.crs == HALVES.crs
    assert "private" in by_area.attrs["privacy"]
    assert len(releases.table(["vehicle"], to="polars")) == 9


def test_they_are_drawn_and_shown_by_places(releases: phd.Releases) -> None:
    axes = releases.plot(areas=HALVES, where={"vehicle": "bus"})
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["west", "east"]
    assert axes.get_xlabel() == "day"
    assert len(releases.plot("cells")) == 3
    with pytest.raises(InputError, match="maps show all points"):
        releases.plot("cells", where={"vehicle": "bus"})
    assert "Releases to explore" in releases.explore(HALVES)._repr_html_()
    picture = releases[-1]._repr_html_()
    assert "Where the points are" in picture
    assert ".table([&#x27;vehicle&#x27;])" in picture


def test_named_places_with_attributes(tmp_path: Path) -> None:
    wards = phd.Hierarchy({"north": ["A", "B"], "south": ["C"]}, names=("ward",))
    domain = phd.Product(wards, phd.Category("illness", ["flu", "burn"]))
    stream = phd.TrackingStream(domain, 4.0, phd.Event(), noise=phd.Simulation(1))
    made = [stream.update([("A", "flu")] * 300 + [("C", "burn")] * 200) for _ in range(2)]
    found = phd.read_releases(write_folder(tmp_path / "releases", made))
    table = found.counts(["north", "C"], where={"illness": ["flu"]})
    assert table["area"].to_pylist() == ["north", "C"] * 2
    np.testing.assert_allclose(table["value"].to_numpy(), [300, 0, 600, 0], atol=40)
    assert found.counts().num_rows == 2
    assert "Where the points are" not in found[0]._repr_html_()


def test_a_few_days_are_marked_as_days(releases: phd.Releases) -> None:
    axes = releases.plot()
    assert [text.get_text() for text in axes.get_xticklabels()] == [
        releases._schedule.label(tick) for tick in releases.ticks
    ]
