"""Many ticks together: what is read, counted, compared, and said where that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import geopandas
import matplotlib
import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.errors import InputError, StateError
from tests.page.folders import CITY, DAILY, city_releases, write_folder

matplotlib.use("Agg")
WARDS = geopandas.GeoDataFrame(
    {"people": [1, 2], "ward": ["south", "north"]},
    geometry=[shapely.box(-74.03, 40.69, -73.9, 40.76), shapely.box(-74.03, 40.76, -73.9, 40.89)],
    crs="EPSG:4326",
)


@pytest.fixture(scope="module")
def made() -> list[phd.Release]:
    return city_releases(5)


@pytest.fixture(scope="module")
def releases(made: list[phd.Release], tmp_path_factory: pytest.TempPathFactory) -> phd.Releases:
    return phd.read_releases(write_folder(tmp_path_factory.mktemp("history") / "releases", made))


def test_it_is_a_sequence_of_releases(releases: phd.Releases, made: list[phd.Release]) -> None:
    assert [one.total for one in releases] == [one.total for one in made]
    assert (len(releases), releases.ticks, releases[-1].tick, releases.at(2).tick) == (5, [1, 2, 3, 4, 5], 5, 2)
    assert releases[1:3].ticks == [2, 3]
    with pytest.raises(StateError, match=r"tick 9 is not among these releases \(ticks 1 to 5\)"):
        releases.at(9)


def test_nothing_is_read_before_it_is_asked_for(made: list[phd.Release], tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "releases", made)
    for file in (folder / "estimates").glob("tick-*"):
        file.write_bytes(b"damaged")
    found = phd.read_releases(folder)
    assert "5 releases" in repr(found)
    with pytest.raises(StateError):
        found.counts()


def test_counts_over_time_are_those_of_each_release(releases: phd.Releases, made: list[phd.Release]) -> None:
    table = releases.counts(WARDS)
    assert type(table) is geopandas.GeoDataFrame
    assert table["ward"].tolist() == ["south", "north"] * 5
    assert table["tick"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert str(table["start"].iloc[2]) == "2024-04-02 00:00:00"
    assert str(table["end"].iloc[2]) == "2024-04-03 00:00:00"
    for tick, release in enumerate(made, start=1):
        own = release.count_in(WARDS)
        for column in ("value", "low", "high", "stderr"):
            np.testing.assert_allclose(table[table["tick"] == tick][column], own[column])


def test_without_areas_it_is_everything(releases: phd.Releases, made: list[phd.Release]) -> None:
    table = releases.counts()
    np.testing.assert_allclose(table["value"].to_numpy(), [release.total for release in made])
    assert table.schema.metadata[b"privacy"] == b"simulated, not private"


@pytest.mark.parametrize("to", ["arrow", "pandas", "polars", "geopandas"])
def test_shapes_without_names_in_every_kind(releases: phd.Releases, to: str) -> None:
    table = releases.counts(list(WARDS.geometry), to=to)
    assert list(np.asarray(table["area"])) == ["Area 1", "Area 2"] * 5
    assert len(table) == 10


def test_an_interval_of_changes_holds_all_that_two_intervals_allow(releases: phd.Releases) -> None:
    changes, counts = releases.changes(WARDS, to="pandas"), releases.counts(WARDS, 0.975, to="pandas")
    assert changes["tick"].tolist() == [2, 2, 3, 3, 4, 4, 5, 5]
    before, now = counts.iloc[:-2].reset_index(), counts.iloc[2:].reset_index()
    np.testing.assert_allclose(changes["value"], now["value"] - before["value"])
    np.testing.assert_allclose(changes["low"], now["low"] - before["high"])
    np.testing.assert_allclose(changes["high"], now["high"] - before["low"])


@pytest.mark.statistical
def test_intervals_of_changes_hold_true_changes(tmp_path: Path) -> None:
    """Squares of a city whose middle moves: at least as many true changes are inside as the confidence says."""
    rng, sides = np.random.default_rng(7), np.linspace(0, 1, 7)
    squares = np.array([[x, y, x + 1 / 6, y + 1 / 6] for x in sides[:-1] for y in sides[:-1]])
    town = phd.Box([(0, 1), (0, 1)])
    inside = total = 0
    for seed in range(3):
        stream = phd.TrackingStream(town, 1.0, phd.Event(), window=2, noise=phd.Simulation(seed))
        days = [rng.normal((0.3 + 0.04 * day, 0.5), 0.15, (1500, 2)) for day in range(6)]
        found = phd.read_releases(write_folder(tmp_path / str(seed), [stream.update(day) for day in days]))
        table = found.changes(list(shapely.box(*squares.T)), 0.8, to="pandas")
        counted = np.array([[((day >= s[:2]) & (day < s[2:])).all(axis=1).sum() for s in squares] for day in days])
        live = counted + np.vstack([np.zeros(36, int), counted[:-1]])
        true = np.diff(live, axis=0).ravel()
        inside += int(((table["low"] <= true) & (true <= table["high"])).sum())
        total += true.size
    assert inside / total > 0.8


def test_rates_where_points_stay_are_changes_by_time(releases: phd.Releases) -> None:
    rates, changes = releases.rates(WARDS, per="1h", to="pandas"), releases.changes(WARDS, to="pandas")
    for column in ("value", "low", "high"):
        np.testing.assert_allclose(rates[column] * 24, changes[column])


def test_rates_of_a_window_are_counts_by_what_it_covers(tmp_path: Path) -> None:
    found = phd.read_releases(write_folder(tmp_path / "w", city_releases(4, window=3)))
    rates, counts = found.rates(to="pandas"), found.counts(to="pandas")
    np.testing.assert_allclose(rates["value"], counts["value"] / [1, 2, 3, 3])
    np.testing.assert_allclose(rates["high"], counts["high"] / [1, 2, 3, 3])


def test_what_cannot_be_compared_is_said(releases: phd.Releases, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two ticks; here is one"):
        releases[:1].changes()
    with pytest.raises(InputError, match="no releases"):
        releases[:0].counts()
    with pytest.raises(InputError, match="tick 2 is missing"):
        releases[::2].changes()
    rows = phd.read_releases(write_folder(tmp_path / "rows", city_releases(2), {"ticks": {"rows": 100}}))
    with pytest.raises(InputError, match="no length in time"):
        rows.rates()
    assert "start" not in rows.counts().column_names
    with pytest.raises(InputError, match="a column 'tick' of its own"):
        releases.counts(WARDS.rename(columns={"people": "tick"}))


def test_a_hierarchy_over_time(tmp_path: Path) -> None:
    places = phd.Hierarchy({"US": ["A", "B"], "FR": ["C"]})
    stream = phd.TrackingStream(places, 2.0, phd.Event(), noise=phd.Simulation(1))
    folder = write_folder(tmp_path / "places", [stream.update(["A"] * 200) for _ in range(2)])
    found = phd.read_releases(folder)
    assert found.counts(to="pandas")["value"].tolist() == pytest.approx([200, 400], abs=30)
    assert found.changes(["US", "FR"], to="pandas")["area"].tolist() == ["US", "FR"]
    with pytest.raises(InputError, match="two coordinates"):
        found.explore()


def test_plots(releases: phd.Releases) -> None:
    axes = releases.plot(areas=WARDS)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["south", "north"]
    found = releases.counts(WARDS, to="pandas")
    np.testing.assert_allclose(axes.lines[0].get_ydata(), found["value"][::2])
    assert [one.get_title()[:10] for one in releases[-2:].plot("points")] == ["2024-04-04", "2024-04-05"]
    with pytest.raises(InputError, match="too many lines"):
        releases.plot(areas=[*WARDS.geometry] * 7)
    matplotlib.pyplot.close("all")


def test_the_page_is_that_of_the_report(releases: phd.Releases) -> None:
    page = releases.explore(WARDS)
    assert '"name": "south"' in page.html
    assert page.html.count('"label": "2024-04-0') == 5
    with pytest.raises(InputError, match="no releases"):
        releases[:0].explore()


@pytest.mark.parametrize("folder", ["", "nothing-here"])
def test_no_folder_of_releases(tmp_path: Path, folder: str) -> None:
    with pytest.raises(InputError, match="no folder of releases"):
        phd.read_releases(tmp_path / folder)


def test_it_says_what_it_is(releases: phd.Releases) -> None:
    shown: Any = releases._repr_html_()
    assert "2024-04-01 to 2024-04-05" in shown
    assert "simulated, not private" in shown
    assert repr(CITY) in repr(releases)
    assert DAILY["ticks"]["every_seconds"] == 86400.0
