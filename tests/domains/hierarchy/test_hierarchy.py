"""Hierarchies: named places with any fanout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import phdstream as phd
from phdstream.domains import ROOT
from phdstream.errors import InputError

ROWS = [("US", "NY", "Bellevue"), ("US", "NY", "Harlem"), ("US", "CA", "Kaiser"), ("FR", "Paris", "Necker")]


def _frames() -> list[Any]:
    table = pa.table({"country": [r[0] for r in ROWS], "state": [r[1] for r in ROWS], "hospital": [r[2] for r in ROWS]})
    import polars as pl

    nested = {"US": {"NY": ["Bellevue", "Harlem"], "CA": ["Kaiser"]}, "FR": {"Paris": ["Necker"]}}
    return [ROWS, ["/".join(r) for r in ROWS], table, table.to_pandas(), pl.DataFrame(table), nested]


@pytest.mark.parametrize("places", _frames(), ids=["rows", "paths", "arrow", "pandas", "polars", "nested"])
def test_all_sources_mean_the_same(places: Any) -> None:
    assert phd.Hierarchy(places).to_dict() == phd.Hierarchy(ROWS).to_dict()


def test_places_by_path_by_name_and_by_tuple() -> None:
    domain = phd.Hierarchy([*ROWS, ("US", "CA", "Harlem")])  # two of that name
    codes, inside = domain.encode(domain.points(["US/NY/Bellevue", "Bellevue", "Harlem", "US/CA/Harlem", None]))
    assert inside.tolist() == [True, True, False, True, False]
    assert codes[0] == codes[1]
    assert domain.encode(domain.points([("US", "NY", "Bellevue")]))[0][0] == codes[0]


def test_releases_name_the_places() -> None:
    stream = phd.PHDStream(phd.Hierarchy(ROWS), 8.0, phd.Event(), noise=phd.Simulation(1))
    release = stream.update(["Harlem"] * 300 + ["Necker"] * 100)
    cells = dict(zip(release.cells()["place"].to_pylist(), release.cells()["count"].to_pylist(), strict=True))
    assert cells["US/NY/Harlem"] == pytest.approx(300, abs=20)
    sample = release.sample().ravel().tolist()
    assert sample.count("FR/Paris/Necker") == pytest.approx(100, abs=20)
    assert set(release.changes().to_table()["place"].to_pylist()) <= set(phd.Hierarchy(ROWS).places)


def test_counts_of_groups_and_places() -> None:
    domain = phd.Hierarchy(ROWS)
    stream = phd.PHDStream(domain, 50.0, phd.Event(), noise=phd.Simulation(1))
    release = stream.update(["Harlem"] * 300 + ["Bellevue"] * 200 + ["Necker"] * 100)
    answer = release.count(["US", "US/NY", "Harlem", "FR"])
    assert answer.value == pytest.approx([500, 500, 300, 100], abs=5)
    with pytest.raises(InputError, match="no place or group 'US/NJ': did you mean 'US/NY'"):
        release.count(["US/NJ"])


def test_a_group_that_was_not_split_spreads_over_its_places() -> None:
    """Overlap of a query below a node is the share of places."""
    domain = phd.Hierarchy(ROWS)
    share = domain.overlap(np.array([ROOT]), domain.queries(["US", "FR", "Harlem"]))
    assert share.ravel().tolist() == [0.75, 0.25, 0.25]


def test_any_fanout_and_any_depth() -> None:
    places = {f"region {i}": [f"{i}-{j}" for j in range(1 + 7 * i)] for i in range(9)} | {"alone": []}
    domain = phd.Hierarchy(places)
    assert domain.fanout == 57
    stream = phd.PHDStream(domain, 8.0, phd.Event(), noise=phd.Simulation(1))
    release = stream.update(["alone"] * 500 + ["8-3"] * 200)
    assert release.count(["alone", "8-3"]).value == pytest.approx([500, 200], abs=60)


def test_state_survives(tmp_path: Any) -> None:
    stream = phd.PHDStream(phd.Hierarchy(ROWS), 8.0, phd.Event(), noise=phd.Simulation(1))
    stream.update(["Harlem"] * 10)
    stream.save(tmp_path / "s.npz")
    loaded = phd.PHDStream.load(tmp_path / "s.npz")
    np.testing.assert_array_equal(stream.update(["Kaiser"]).sample(), loaded.update(["Kaiser"]).sample())


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([], "at least one place"),
        ([("a", "b"), ("a", "b")], "'a/b' is there twice"),
        ([("a",), ("a", "b")], "both a place and a group"),
        ([("a", "")], "non-empty text"),
        ([("a", None)], "non-empty text"),
        ([("a/b", "c")], "without '/'"),
        ("abc", "one column a level"),
        (5, "one column a level"),
        ([tuple(f"level {i}" for i in range(70))], "more than 62 bits"),
    ],
)
def test_bad_hierarchies(places: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        phd.Hierarchy(places)
