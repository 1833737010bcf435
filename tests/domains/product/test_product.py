"""Products: their codes and schedules, and rows in every form."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import phdstream as phd
from phdstream.domains.product.interleaving import Interleaving
from phdstream.errors import InputError

gpd = pytest.importorskip("geopandas")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

CITY = phd.Box([(0, 10), (40, 50)], names=("lon", "lat"), crs="EPSG:4326", depth=12)
RIDES = phd.Product(CITY, phd.Category("vehicle", ["bus", "tram", "ferry"]), phd.Bins("age", [0, 18, 65, 120]))
ROWS: list[tuple[Any, ...]] = [
    (1.53, 42.47, "tram", 33.0),
    (9.25, 49.5, "bus", 120.0),
    (1.53, 42.47, "rocket", 33.0),
    (1.53, 42.47, None, 33.0),
    (99.0, 42.5, "bus", 33.0),
    (1.53, 42.47, "bus", float("nan")),
    (3.0, 44.0, "ferry", 17.5),
]
INSIDE = [True, True, False, False, False, False, True]
COLUMNS = {name: [row[i] for row in ROWS] for i, name in enumerate(RIDES.names)}


def structured() -> Any:
    rows = np.empty(len(ROWS), dtype=[("age", float), ("vehicle", "U6"), ("lon", float), ("lat", float)])
    for name in COLUMNS:
        rows[name] = ["" if value is None else value for value in COLUMNS[name]]
    return rows


FORMS: dict[str, Any] = {
    "list of rows": ROWS,
    "array of objects": np.array(ROWS, dtype=object),
    "columns": COLUMNS,
    "other order, more columns": {"fare": [1.0] * 7} | dict(reversed(COLUMNS.items())),
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, categories": pd.DataFrame(COLUMNS).astype({"vehicle": "category"}),
    "polars": pl.DataFrame(COLUMNS),
    "polars, categories": pl.DataFrame(COLUMNS, schema_overrides={"vehicle": pl.Categorical}),
    "arrow": pa.table(COLUMNS),
    "arrow, chunked": pa.concat_tables([pa.table(COLUMNS).slice(0, 3), pa.table(COLUMNS).slice(3)]),
    "named fields": structured(),
    "geodataframe": gpd.GeoDataFrame(
        {name: COLUMNS[name] for name in ("vehicle", "age")},
        geometry=gpd.points_from_xy(COLUMNS["lon"], COLUMNS["lat"]),
        crs="EPSG:4326",
    ),
    "geodataframe, projected": gpd.GeoDataFrame(
        {name: COLUMNS[name] for name in ("vehicle", "age")},
        geometry=gpd.points_from_xy(COLUMNS["lon"], COLUMNS["lat"]),
        crs="EPSG:4326",
    ).to_crs(3857),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_rows_are_the_same_in_every_form(form: Any) -> None:
    codes, inside = RIDES.encode(RIDES.points(form))
    assert inside.tolist() == INSIDE
    expected = RIDES.encode(RIDES.points(ROWS))[0]
    np.testing.assert_array_equal(codes[inside], expected[inside])
    release = phd.TrackingStream(RIDES, 1.0, phd.Event(), noise=phd.Simulation(1)).update(form)
    assert release.total == phd.TrackingStream(RIDES, 1.0, phd.Event(), noise=phd.Simulation(1)).update(ROWS).total


def test_what_comes_out_goes_in_again() -> None:
    rows = RIDES.rows(RIDES.sample(np.array([1]), np.array([500]), key=3))
    assert rows.dtype.names == ("lon", "lat", "vehicle", "age")
    assert set(rows["vehicle"].tolist()) == {"bus", "tram", "ferry"}
    codes, inside = RIDES.encode(RIDES.points(rows))
    assert inside.all()
    np.testing.assert_array_equal(codes, RIDES.encode(RIDES.sample(np.array([1]), np.array([500]), key=3))[0])
    np.testing.assert_array_equal(codes, RIDES.encode(RIDES.points(pd.DataFrame(rows)))[0])


def test_rows_of_different_values_do_not_lie_on_each_other() -> None:
    finest = RIDES.first_nodes[-1] + RIDES.encode(RIDES.points([(5, 45, v, 20) for v in ("bus", "tram", "ferry")]))[0]
    points = np.asarray(RIDES.sample(finest, np.full(3, 5), key=1))[:, :2]
    assert len(np.unique(points, axis=0)) == 15


@pytest.mark.parametrize("bits", [[(1, 1, 1), (1, 1)], [(2, 2), (1,), (3, 1)], [(1,) * 40, (1,) * 22]])
def test_interleaving_is_undone(bits: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(1)
    order = np.repeat(np.arange(len(bits)), [len(part) for part in bits])
    mixed = Interleaving(bits, tuple(rng.permutation(order).tolist()))
    codes = [rng.integers(0, 1 << sum(part), 300) for part in bits]
    whole = mixed.join(codes)
    assert len(np.unique(whole)) == len({*zip(*[code.tolist() for code in codes], strict=True)})
    assert whole.max() < 1 << sum(map(sum, bits))
    for part, code in enumerate(codes):
        np.testing.assert_array_equal(mixed.codes_of(whole, part), code)


def test_a_schedule_says_what_is_divided_first() -> None:
    first = ["vehicle"] * 2 + ["age"] * 2 + ["place"] * 12
    product = phd.Product(CITY, *RIDES.attributes, schedule=first)
    third = product.children(product.children(np.array([1]))[0])[0]
    assert sorted(product.cell_columns(third)["vehicle"].tolist()) == ["bus", "ferry", "tram"]
    assert set(product.cell_columns(third)["age"].tolist()) == {""}
    assert product.to_dict()["schedule"] == first
    codes = RIDES.encode(RIDES.points(ROWS))[0]
    assert (product.encode(product.points(ROWS))[0] != codes).any()


def test_a_column_may_be_told_from_another() -> None:
    calls = phd.Product(CITY, phd.TimeOfDay("hour", column="time"))
    late = datetime(2024, 5, 31, 23, 30)
    by_time = calls.points({"lon": [1.0], "lat": [41.0], "time": [late]})
    by_name = calls.points({"lon": [1.0], "lat": [41.0], "hour": [23.5], "time": [datetime(2020, 1, 1)]})
    np.testing.assert_array_equal(by_time, by_name)


def test_midnight_is_beside_midnight() -> None:
    """Of a part that comes round, the first and last nodes are neighbours as soon as they exist."""
    from phdstream.domains.binary_tree import BinaryTree

    calls = phd.Product(phd.Box([(0, 1)], depth=2), phd.TimeOfDay("hour", 8), schedule=["hour"] * 3 + ["place"] * 2)
    tree = BinaryTree(calls)
    (before, _), (after, _) = tree.neighbours(np.array([4, 5, 6, 7]), 2)
    assert before.tolist() == [7, 4, 5, 6]
    assert after.tolist() == [5, 6, 7, 4]


BOX = phd.Box([(0, 1), (0, 1)])
BUS = phd.Category("vehicle", ["bus", "tram"])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: phd.Product(BOX), "needs an attribute"),
        (lambda: phd.Product(BUS, BUS), "begins with its place"),
        (lambda: phd.Product(BOX, BOX), "after the place come attributes"),  # type: ignore[arg-type]
        (lambda: phd.Product(RIDES, BUS), "begins with its place"),
        (lambda: phd.Product(BOX, BUS, BUS), "different names"),
        (lambda: phd.Product(BOX, phd.Category("x", ["a", "b"])), "different names"),
        (lambda: phd.Product(BOX, phd.Category("place", ["a", "b"])), "'place'"),
        (lambda: phd.Product(phd.Box([(0, 1), (0, 1)], depth=50), phd.Bins("a", range(10_000))), "2 bits less"),
        (lambda: phd.Product(BOX, BUS, schedule=["place"]), "20 times 'place', 1 times 'vehicle'"),
        (lambda: phd.Product(BOX, BUS, schedule="place"), "a schedule says"),
        (lambda: phd.Product.from_dict({"place": BOX.to_dict()}), "'attributes' is missing"),
        (lambda: phd.Product.from_dict({"place": BOX.to_dict(), "attributes": [], "x": 1}), "'x' is not known"),
        (lambda: RIDES.points({"lon": [1.0], "lat": [41.0], "vehicle": ["bus"]}), "no column 'age'"),
        (lambda: RIDES.points([(1.0, 41.0)]), "lon, lat, vehicle, age"),
        (lambda: RIDES.points(7), "rows come as"),
        (lambda: RIDES.points({"lon": [1.0], "lat": [41.0], "vehicle": ["bus"] * 2, "age": [3.0]}), "equally long"),
        (lambda: RIDES.within({"vehicles": "bus"}), "did you mean 'vehicle'"),
        (lambda: RIDES.within("bus"), "where names"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_says_why(make: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make()
