"""One rule for what comes back: see `phdstream.release.tables`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import shapely

import phdstream as phd
from phdstream.errors import InputError
from phdstream.release.counts import COLUMNS
from tests.page.folders import city_releases

KINDS = {"arrow": pa.Table, "pandas": pd.DataFrame, "polars": pl.DataFrame, "geopandas": geopandas.GeoDataFrame}
SQUARES = [shapely.box(-74, 40.72, -73.98, 40.75), shapely.Polygon(), shapely.box(-73.98, 40.72, -73.95, 40.80)]


@pytest.fixture(scope="module")
def release() -> phd.Release:
    return city_releases(2)[-1]


def wards() -> Any:
    columns = {"ward": ["low", "none", "high"], "people": [10, 20, 30]}
    return geopandas.GeoDataFrame(columns, geometry=SQUARES, crs="EPSG:4326", index=[7, 3, 5])


def questions(release: phd.Release) -> dict[str, Callable[[str], Any]]:
    return {
        "sample": lambda to: release.sample(to=to),
        "cells": lambda to: release.cells(to=to),
        "to_h3": lambda to: release.to_h3(7, to=to),
        "count_in": lambda to: release.count_in(SQUARES, to=to),
        "count_in of a frame": lambda to: release.count_in(wards(), to=to),
        "count_in of a series": lambda to: release.count_in(wards().geometry, to=to),
        "changes": lambda to: release.changes().to_table(to),
    }


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize(
    "name", ["sample", "cells", "to_h3", "count_in", "count_in of a frame", "count_in of a series", "changes"]
)
def test_the_same_rows_in_every_kind(release: phd.Release, name: str, to: str) -> None:
    ask = questions(release)[name]
    table, arrow = ask(to), ask("arrow")
    assert type(table) is KINDS[to]
    assert len(table) == len(arrow)
    columns = [c for c in arrow.column_names if c in (list(table.columns) if to != "arrow" else table.column_names)]
    assert len(columns) >= (1 if name in ("sample", "changes") else 5)
    for column in columns:
        np.testing.assert_array_equal(np.asarray(table[column]), np.asarray(arrow[column]))


@pytest.mark.parametrize("to", ["arrow", "pandas", "geopandas"])
def test_what_may_be_claimed_goes_along(release: phd.Release, to: str) -> None:
    for name, ask in questions(release).items():
        table = ask(to)
        privacy = table.schema.metadata[b"privacy"].decode() if to == "arrow" else table.attrs["privacy"]
        assert privacy == "simulated, not private", name


def test_a_frame_comes_back_with_its_own_rows_and_coordinates(release: phd.Release) -> None:
    layer = wards().to_crs("EPSG:2263")
    found = release.count_in(layer)
    assert list(found.columns) == ["ward", "people", "geometry", *COLUMNS]
    assert found.index.tolist() == [7, 3, 5]
    assert found.crs == layer.crs
    assert found.geometry.geom_equals(layer.geometry).tolist() == [True] * 3
    plain = release.count_in(wards().geometry)
    assert isinstance(plain, phd.Counts)
    np.testing.assert_allclose(found["value"], plain.value, rtol=1e-3)
    assert found.loc[3, "value"] == 0
    assert list(layer.columns) == ["ward", "people", "geometry"]  # what came in is as it was


def test_a_named_index_is_kept_where_there_is_none(release: phd.Release) -> None:
    assert release.count_in(wards().set_index("ward"), to="polars")["ward"].to_list() == ["low", "none", "high"]


def test_no_column_is_written_over(release: phd.Release) -> None:
    with pytest.raises(InputError, match="a column 'low' of its own"):
        release.count_in(wards().rename(columns={"people": "low"}))


def test_intervals_of_a_frame_have_the_confidence_asked_for(release: phd.Release) -> None:
    wide, narrow = (release.count_in(wards(), confidence) for confidence in (0.99, 0.5))
    assert ((wide["high"] - wide["low"])[[7, 5]] > (narrow["high"] - narrow["low"])[[7, 5]]).all()
    assert wide.attrs["phdstream"]["confidence"] == 0.99


def test_counts_and_changes_are_tables_too(release: phd.Release) -> None:
    counts = release.count([[-74, 40.7, -73.95, 40.8]])
    assert counts.to_table("polars").columns == list(COLUMNS)
    assert set(release.changes().to_table("pandas")["sign"]) <= {-1, 1}
    with pytest.raises(InputError, match="have no shapes"):
        counts.to_table("geopandas")


def test_a_hierarchy_has_tables_and_no_shapes() -> None:
    places = phd.Hierarchy({"US": ["A", "B"], "FR": ["C"]})
    release = phd.TrackingStream(places, 1.0, phd.Event(), noise=phd.Simulation(1)).update(["A"] * 50)
    assert set(release.sample("polars")["place"]) <= {"US/A", "US/B", "FR/C"}
    assert "place" in release.cells("pandas").columns
    with pytest.raises(InputError, match="two coordinates"):
        release.cells("geopandas")


def test_a_missing_library_is_named(release: phd.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("phdstream.release.tables.import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'polars'"):
        release.cells("polars")


def test_a_series_keeps_its_coordinates_and_index_as_a_frame_does(release: phd.Release) -> None:
    elsewhere = wards().to_crs("EPSG:2263")
    of_frame, of_series = release.count_in(elsewhere), release.count_in(elsewhere.geometry, to="geopandas")
    assert of_series.crs == of_frame.crs == elsewhere.crs
    assert of_series.index.tolist() == [7, 3, 5]
    np.testing.assert_array_equal(of_series["value"], of_frame["value"])
    assert isinstance(release.count_in(elsewhere.geometry), phd.Counts)


def test_changes_are_points_too(release: phd.Release) -> None:
    changes = release.changes()
    frame = changes.to_table("geopandas")
    assert list(frame.columns) == ["sign", "geometry"]
    assert (frame["sign"].to_numpy() == 1).sum() == len(changes.inserts)
    np.testing.assert_array_equal(frame.geometry.x.to_numpy()[-len(changes.inserts) :], changes.inserts[:, 0])
