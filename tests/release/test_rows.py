"""Releases of rows: tables by values, conditions, marginals that add up, and places alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.domains import domain_from_dict
from phdstream.errors import InputError
from phdstream.release.soundness import faults
from tests.page.folders import DAILY, write_folder

gpd = pytest.importorskip("geopandas")

CITY = phd.Box([(0, 10), (0, 10)], depth=12, crs="EPSG:3857")
VEHICLE = phd.Category("vehicle", {"road": ["bus", "car"], "rail": ["tram"]})
RIDES = phd.Product(CITY, VEHICLE, phd.Bins("age", [0, 18, 65, 120]), phd.TimeOfDay("hour", 12))
METHODS = [phd.TrackingStream, phd.PHDStream]
QUARTERS = gpd.GeoDataFrame(
    {"quarter": ["south-west", "south-east", "north"]},
    geometry=[shapely.box(0, 0, 5, 5), shapely.box(5, 0, 10, 5), shapely.box(0, 5, 10, 10)],
    crs="EPSG:3857",
)


def rows(n: int = 4000, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.beta(2, 5, n) * 10,
        "y": rng.beta(3, 3, n) * 10,
        "vehicle": rng.choice(["bus", "car", "tram"], n, p=[0.6, 0.3, 0.1]),
        "age": rng.uniform(0, 90, n),
        "hour": rng.normal(14, 3, n) % 24,
    }


COME = rows()


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: method.__name__)
def release(request: pytest.FixtureRequest) -> phd.Release:
    stream = request.param(RIDES, 4.0, phd.Event(), noise=phd.Simulation(3))
    stream.update(rows(2000, seed=2))
    return stream.update(COME)


def values(table: Any) -> Any:
    return table["value"].to_numpy()


def test_marginals_add_up(release: phd.Release) -> None:
    everything = release.table(["vehicle", "age", "hour"]).to_pandas()
    assert len(everything) == 3 * 3 * 12
    assert everything["value"].sum() == pytest.approx(release.total, rel=1e-9)
    for by in (["vehicle"], ["age"], ["hour", "vehicle"]):
        less = release.table(by).to_pandas()
        sums = everything.groupby(by, sort=False)["value"].sum()
        np.testing.assert_allclose(less.set_index(by)["value"].loc[sums.index], sums, rtol=1e-9)
    by_area = release.table(["quarter", "age"], QUARTERS)
    assert values(by_area).sum() == pytest.approx(release.total, rel=1e-6)
    np.testing.assert_allclose(values(by_area).reshape(3, 3).sum(axis=0), values(release.table("age")), rtol=1e-6)
    np.testing.assert_allclose(values(by_area).reshape(3, 3).sum(axis=1), release.count_in(QUARTERS).value, rtol=1e-6)


def test_a_table_and_a_condition_say_the_same(release: phd.Release) -> None:
    by_vehicle = release.table(["vehicle"])
    assert by_vehicle["vehicle"].to_pylist() == ["rail/tram", "road/bus", "road/car"]
    for name, value, low, high in zip(*(by_vehicle[c].to_pylist() for c in ("vehicle", "value", "low", "high")),
                                      strict=True):  # fmt: skip
        answer = release.count(where={"vehicle": name})
        assert answer.value[0] == pytest.approx(value, rel=1e-9)
        assert (answer.low[0], answer.high[0]) == pytest.approx((low, high), rel=1e-6)
    road = release.count(where={"vehicle": "road"}).value[0]
    assert road == pytest.approx(values(by_vehicle)[1:].sum(), rel=1e-9)
    night = release.count(where={"hour": (22, 6)}).value[0]
    assert night == pytest.approx(sum(release.count(where={"hour": h}).value[0] for h in ((22, 24), (0, 6))), rel=1e-9)
    young = release.table(["vehicle"], where={"age": (0, 18)})
    assert values(young).sum() == pytest.approx(values(release.table(["age"]))[0], rel=1e-9)


def test_true_counts_are_in_the_intervals(release: phd.Release) -> None:
    both = {name: np.concatenate([rows(2000, seed=2)[name], COME[name]]) for name in COME}
    vehicle = both["vehicle"]
    table = release.table(["vehicle"], confidence=0.999).to_pandas()
    for name, low, high in zip(table["vehicle"], table["low"], table["high"], strict=True):
        assert low <= (vehicle == name.split("/")[-1]).sum() <= high
    box = np.array([[2.0, 3.0, 6.0, 7.0]])
    inside = (both["x"] >= 2) & (both["x"] <= 6) & (both["y"] >= 3) & (both["y"] <= 7)
    for where, those in (
        ({"vehicle": "bus"}, vehicle == "bus"),
        (
            {"hour": (12, 16), "vehicle": ["bus", "car"]},
            (both["hour"] >= 12) & (both["hour"] < 16) & (vehicle != "tram"),
        ),
        ({"age": (18, 65)}, (both["age"] >= 18) & (both["age"] < 65)),
    ):
        true = int((inside & those).sum())
        for answer in (
            release.count(box, 0.999, where=where),
            release.count_in([shapely.box(2, 3, 6, 7)], 0.999, where=where),
        ):
            assert answer.low[0] <= true <= answer.high[0]
            assert answer.noise_low[0] >= answer.low[0]
            assert answer.high[0] - answer.low[0] < release.total


def test_without_a_condition_nothing_changes(release: phd.Release) -> None:
    box = [[2.0, 3.0, 6.0, 7.0]]
    plain, all_of_it = release.count(box), release.count(box, where={"vehicle": ["road", "rail"], "age": (0, 120)})
    np.testing.assert_allclose(plain.value, all_of_it.value)
    np.testing.assert_allclose(plain.stderr, all_of_it.stderr)
    assert release.count().value[0] == pytest.approx(release.total)
    assert (release.count(box, where={"age": (200, 300)}).value == 0).all()


def test_places_alone_say_the_same_of_places(release: phd.Release) -> None:
    places = release.places()
    assert places.domain is CITY
    assert faults(CITY, places.estimate) == []
    assert places.total == pytest.approx(release.total)
    boxes = np.array([[0, 0, 5, 10], [2, 3, 6, 7], [0.3, 0.2, 0.9, 0.7], [9, 9, 10, 10]])
    ours, theirs = places.count(boxes), release.count(boxes)
    np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.stderr, theirs.stderr, rtol=0.5)
    assert len(places.sample()) == len(release.sample())
    changes = places.changes()
    before = len(places.sample()) - len(changes.inserts) + len(changes.deletes)
    assert before == release.previous_points.sum()
    assert places.places() is places
    assert CITY.encode(places.sample())[1].all()
    assert len(places.cells("geopandas")) == places.leaves.size


def test_rows_come_and_go(release: phd.Release) -> None:
    sample, changes = release.sample(), release.changes()
    assert sample.dtype.names == ("x", "y", "vehicle", "age", "hour")
    assert abs(len(sample) - release.total) < 1
    assert changes.to_table().column_names == [*sample.dtype.names, "sign"]
    assert list(changes.to_table("geopandas").columns) == ["vehicle", "age", "hour", "sign", "geometry"]
    points = release.sample("geopandas")
    assert list(points.columns) == ["tick", "vehicle", "age", "hour", "geometry"]
    cells = release.cells()
    assert {"x_min", "vehicle", "age", "hour", "count"} <= set(cells.column_names)
    assert len(release.cells("geopandas")) == len(cells)


def test_rows_are_drawn_and_explored_by_their_places(release: phd.Release) -> None:
    pytest.importorskip("matplotlib")
    for what in ("points", "cells", "uncertainty", "changes"):
        assert f"Tick {release.tick}" in release.plot(what).get_title()
    assert "<html" in release.explore().html
    assert release.sample("arrow").column_names == ["tick", "x", "y", "vehicle", "age", "hour"]
    by_area = release.table(["quarter", "age"], QUARTERS, to="geopandas")
    assert len(by_area) == len(QUARTERS) * 3
    assert by_area.geometry.iloc[0].equals(QUARTERS.geometry.iloc[0])


def test_before_the_start_nothing_is_known() -> None:
    stream = phd.TrackingStream(RIDES, 1.0, phd.Event(), start_after=2, noise=phd.Simulation(1))
    held = stream.update(COME)
    assert held.held
    assert np.isinf(held.table(["vehicle"])["high"].to_numpy()).all()
    assert held.places().held
    assert len(held.sample()) == 0


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda r: r.table(["vehicles"]), "did you mean 'vehicle'"),
        (lambda r: r.table([]), "a table is by names"),
        (lambda r: r.table(["age", "age"]), "each once"),
        (lambda r: r.table(["age"], QUARTERS), "exactly one of the names"),
        (lambda r: r.table(["age", "quarter"], [shapely.box(0, 0, 1, 1)]), "GeoDataFrame with such a column"),
        (lambda r: r.table(["quarter"]), "nothing called 'quarter'"),
        (lambda r: r.count([[0, 0, 1, 1]], where={"fare": 3}), "no attribute 'fare'"),
        (lambda r: r.count([[0, 0, 1]]), "rectangles must be an array"),
        (lambda r: r.count([[0, 0, 1], [2]]), "rectangles must be an array"),
        (lambda r: r.count(where={"vehicle": 10**5000}), "a number of thousands of digits"),
        (lambda r: r.count(where={"vehicle": "road/Bus"}), "did you mean 'road/bus'"),
        (lambda r: r.sample(np.zeros(2)), "a table cannot be made"),
        (lambda r: r.changes().to_table(np.zeros(2)), "a table cannot be made"),
        (lambda r: r.count_in(QUARTERS, to=np.zeros(2)), "a table cannot be made"),
    ],
)
def test_what_cannot_be_asked(release: phd.Release, ask: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        ask(release)


def test_a_domain_without_attributes_says_so() -> None:
    release = phd.PHDStream(CITY, 1.0, phd.Event(), noise=phd.Simulation(1)).update(np.full((50, 2), 0.5))
    with pytest.raises(InputError, match="make it part of a Product"):
        release.table(["vehicle"])
    with pytest.raises(InputError, match="make it part of a Product"):
        release.count([[0, 0, 1, 1]], where={"vehicle": "bus"})
    assert release.places() is release


def test_hexagons_take_a_condition_too() -> None:
    pytest.importorskip("h3")
    city = phd.Box([(9.1, 9.3), (45.4, 45.5)], names=("lon", "lat"), crs="EPSG:4326", depth=14)
    stream = phd.TrackingStream(phd.Product(city, VEHICLE), 4.0, phd.Event(), noise=phd.Simulation(1))
    rng = np.random.default_rng(1)
    kind = rng.choice(["bus", "car", "tram"], 3000, p=[0.6, 0.3, 0.1])
    came = stream.update({"lon": rng.normal(9.2, 0.02, 3000), "lat": rng.normal(45.45, 0.01, 3000), "vehicle": kind})
    whole, of = values(came.to_h3(7)), [values(came.to_h3(7, where={"vehicle": v})) for v in ("road", "rail")]
    np.testing.assert_allclose(of[0] + of[1], whole, atol=1e-6)
    assert of[1].sum() == pytest.approx((kind == "tram").sum(), abs=60)


def test_names_of_places_are_grouped_by_too() -> None:
    wards = phd.Hierarchy({"north": ["A", "B"], "south": ["C"]}, names=("ward",))
    stays = phd.Product(wards, phd.Category("illness", ["flu", "burn"]))
    stream = phd.TrackingStream(stays, 4.0, phd.Event(), noise=phd.Simulation(1))
    come = [("A", "flu")] * 300 + [("C", "burn")] * 200 + [("north/B", "burn")] * 100 + [("D", "flu")] * 50
    release = stream.update(come)
    found = dict(zip(*(release.table(["ward"])[c].to_pylist() for c in ("ward", "value")), strict=True))
    assert {ward: round(count, -2) for ward, count in found.items()} == {"north/A": 300, "north/B": 100, "south/C": 200}
    assert release.count(["north"], where={"illness": "flu"}).value[0] == pytest.approx(300, abs=30)
    with pytest.raises(InputError, match="not on a map"):
        release.places()


def test_no_column_of_a_table_hides_another(release: phd.Release, tmp_path: Path) -> None:
    """No attribute has a name that tables use; a column of that name is read all the same."""
    folder = phd.read_releases(write_folder(tmp_path / "releases", [release], DAILY))
    tables = [
        release.cells(), release.sample("arrow"), release.changes().to_table(), release.to_h3(1), release.table("age"),
        folder.counts([shapely.box(0, 0, 1, 1)]),
    ]  # fmt: skip
    for name in {name for table in tables for name in table.column_names} - set(RIDES.names):
        with pytest.raises(InputError, match=f"cannot be called '{name}'"):
            phd.Product(CITY, phd.Category(name, ["a", "b"]))
    named = phd.Product(
        CITY, phd.Category("grade", ["a", "b"], column="value"), phd.Bins("size", [0, 1, 2], column="level")
    )
    stream = phd.TrackingStream(named, 4.0, phd.Event(), noise=phd.Simulation(1))
    came = stream.update({"x": [1.0] * 300, "y": [1.0] * 300, "value": ["b"] * 300, "level": [1.5] * 300})
    assert came.table(["grade", "size"])["value"].to_pylist()[3] == pytest.approx(300, abs=30)
    assert came.domain.to_dict() == domain_from_dict(came.domain.to_dict()).to_dict()
