"""What a value is taken to be, in every form it may come in; and that its company does not matter."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phdstream as phd
from phdstream.domains.columns import is_missing
from phdstream.domains.product import Attribute, attribute_from_dict
from phdstream.errors import InputError

ILLNESS = {"injury": ["burn", "fracture"], "infection": {"virus": ["flu", "measles"], "other": ["plague"]}}
ATTRIBUTES: dict[str, Attribute] = {
    "vehicle": phd.Category("vehicle", ["bus", "tram", "ferry", "12"]),
    "illness": phd.Category("illness", ILLNESS),
    "fare": phd.Category("fare", ["single", "day"], column="value"),
    "age": phd.Bins("age", [0, 18, 40, 65.5, 120]),
    "height": phd.Bins("height", [0, 1, 2.5], column="level"),
    "hour": phd.TimeOfDay("hour"),
    "half hour": phd.TimeOfDay("hour", 48, column="time", zone="America/New_York"),
    "seven": phd.TimeOfDay("hour", 7),
    "day": phd.DayOfWeek("day"),
}
every = pytest.mark.parametrize("attribute", ATTRIBUTES.values(), ids=ATTRIBUTES)


def positions(attribute: Attribute, values: Any) -> list[float]:
    return [round(x, 6) for x in attribute.read(pa.array(values)).tolist()]


@every
def test_it_survives_being_written_down(attribute: Attribute) -> None:
    again = attribute_from_dict(attribute.to_dict())
    assert again.to_dict() == attribute.to_dict()
    assert (again.column, len(again), again.level_bits) == (attribute.column, len(attribute), attribute.level_bits)


@every
def test_every_value_is_one_leaf_of_a_binary_tree(attribute: Attribute) -> None:
    nodes, leaves = np.array([1]), 0
    for _ in range(attribute.depth):
        children, parent, share = attribute.children(nodes)
        assert np.bincount(parent).max() <= 2
        np.testing.assert_allclose(np.bincount(parent, share), 1)
        nodes = children
    leaves = nodes.size
    assert leaves == len(attribute)
    assert (attribute.measure(nodes) == 1).all()
    np.testing.assert_array_equal(attribute.extent(nodes)[0], np.arange(leaves))
    assert 2**attribute.depth < 4 * len(attribute) * 2 or attribute.name == "illness"


@every
def test_values_and_positions_agree(attribute: Attribute) -> None:
    """What rows hold reads as the value it was made of, wherever in the value."""
    at = np.concatenate([np.arange(len(attribute)) + within for within in (0.0, 0.3, np.nextafter(1, 0))])
    at = np.minimum(at, np.nextafter(len(attribute), 0))
    read = attribute.read(pa.array(attribute.values(at)))
    np.testing.assert_array_equal(np.floor(read), np.floor(at))
    assert attribute.encode(read)[1].all()


def test_categories() -> None:
    vehicle, illness = ATTRIBUTES["vehicle"], ATTRIBUTES["illness"]
    assert positions(vehicle, ["tram", "rocket", "", None]) == pytest.approx([1, -1, np.nan, np.nan], nan_ok=True)
    assert positions(vehicle, [12, 13]) == positions(vehicle, [12.0, 13.0]) == [3, -1]
    assert positions(vehicle, [12.0, None, 12.5])[2] == -1
    assert positions(illness, ["flu", "infection/virus/flu", "virus/flu"]) == [1, 1, -1]
    assert illness.intervals("infection") == [(0, 3)]
    assert illness.intervals(["burn", "infection/virus"]) == [(3, 4), (1, 3)]
    assert illness.labels(np.array([0, 0, 3]), np.array([3, 5, 4])).tolist() == ["infection", "", "injury/burn"]
    assert vehicle.label(0, 2) == "bus .. tram"


def test_bins_hold_their_lower_edges_and_the_last_one_its_upper() -> None:
    age = ATTRIBUTES["age"]
    assert np.floor(age.read(pa.array([0, 17.99, 18, 65.5, 120, 120.1, -1]))).tolist() == [0, 0, 1, 3, 3, -1, -1]
    assert positions(age, ["18", " 40 ", "+18", "x", None])[:3] == [1, 2, 1]
    assert np.isnan(positions(age, ["x", None])).all()
    assert age.intervals((18, 40)) == [(1, 2)]
    assert age.intervals([(9, 18), (-5, 0)]) == [(0.5, 1), (0, 0)]
    assert age.label(1, 3) == "18 to 65.5"


def test_times_of_day() -> None:
    hour, local = ATTRIBUTES["hour"], ATTRIBUTES["half hour"]
    assert positions(hour, [datetime(2024, 5, 31, 23, 30)]) == [23.5]
    assert positions(hour, [time(6, 15)]) == [6.25]
    assert positions(hour, [0, 23.5]) == [0, 23.5]
    assert positions(hour, [24.0, -1.0]) == [-1, -1]
    assert positions(hour, ["17:30", "17.5", "9:05:00"]) == [17.5, 17.5, round(9 + 5 / 60, 6)]
    assert np.isnan(positions(hour, ["noon", "25:00", None])).all()
    # New York is five hours behind UTC in winter and four in summer
    moments = [datetime(2024, 1, 1, 5, 30, tzinfo=UTC), datetime(2024, 7, 1, 4, 30, tzinfo=UTC)]
    assert positions(local, moments) == [1.0, 1.0]
    assert positions(hour, moments) == [5.5, 4.5]
    assert hour.intervals((22, 2)) == [(22, 24), (0, 2)]
    assert hour.label(7, 9) == "07:00 to 09:00"


def test_days_of_the_week() -> None:
    day = ATTRIBUTES["day"]
    assert positions(day, [date(1970, 1, 1), date(2026, 11, 18)]) == [3, 2]
    assert positions(day, [datetime(1969, 12, 31, 23)]) == [2]
    assert positions(day, ["Mon", "TUESDAY "]) == [0, 1]
    assert np.isnan(positions(day, ["Someday", "", None])).all()
    assert day.intervals(["Sat", "Sunday"]) == [(5, 6), (6, 7)]
    with pytest.raises(InputError, match="moments or names of days"):
        day.read(pa.array([1, 2]))


TEXTS = ["bus", "12", "12.0", "", " ", "-1", "+3", "1e2", "17:30", "17:30:59.9", "24:00", "mon", "Sunday", "nan", "inf",
         "1e400", "x" * 2000, "2024-05-31 17:30", "flu", "infection/virus/flu", "\0"]  # fmt: skip
COLUMNS: list[list[Any]] = [
    TEXTS,
    [0, 12, -1, 17, 2**53 + 1],
    [0.0, 12.0, 17.5, float("nan"), float("inf"), -0.0, 1e300, 119.9999],
    [datetime(2024, 5, 31, 17), datetime(1900, 1, 1), datetime(2100, 12, 31, 23, 59, 59, 999999)],
    [datetime(2024, 5, 31, 17, tzinfo=UTC), datetime(2024, 11, 3, 5, 30, tzinfo=UTC)],
    [date(2024, 5, 31), date(1, 1, 1)],
    [time(0), time(23, 59, 59, 999999)],
]


@every
@given(data=st.data())
def test_alone_and_in_company(attribute: Attribute, data: st.DataObject) -> None:
    """What becomes of a row never depends on another: each value reads alone as it does among others."""
    kind = data.draw(st.sampled_from(COLUMNS))
    values = data.draw(st.lists(st.sampled_from([*kind, None]), min_size=1, max_size=8))
    product = phd.Product(phd.Box([(0, 1)]), attribute)

    def read(some: list[Any]) -> list[Any]:
        try:
            return np.asarray(product.points({"x": [0.5] * len(some), attribute.name: some}))[:, 1].tolist()
        except InputError:
            return ["refused"] * len(some)

    together, alone = read(values), [read([value])[0] for value in values]
    if together[0] == "refused":  # a column of a kind that cannot be: None alone is of no kind
        assert all(one == "refused" for one, value in zip(alone, values, strict=True) if not is_missing(value))
    else:
        np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize(
    "mixed",
    [
        ["bus", 12],
        [datetime(2024, 5, 31), datetime(2024, 5, 31, tzinfo=UTC)],
        [1, "1"],
        [True, 1],
        ["a", ["b"]],
        [10**30],
    ],
    ids=str,
)
@every
def test_columns_of_several_kinds_are_refused(attribute: Attribute, mixed: list[Any]) -> None:
    """Else an odd row would decide how the others are read."""
    product = phd.Product(phd.Box([(0, 1)]), attribute)
    with pytest.raises(InputError):
        product.points({"x": [0.5] * len(mixed), attribute.name: mixed})


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: phd.Category("v", ["bus"]), "at least two values"),
        (lambda: phd.Category("v", ["bus", "bus"]), "twice"),
        (lambda: phd.Category("v", [1, 2]), "the values of 'v': "),
        (lambda: phd.Category("", ["a", "b"]), "name of an attribute"),
        (lambda: phd.Category("v", ["/".join("a" * 100), "b"]), "leave some levels out"),
        (lambda: phd.Bins("a", [0, 1]), "three finite numbers"),
        (lambda: phd.Bins("a", [0, 2, 1]), "must grow"),
        (lambda: phd.Bins("a", [0, 1, float("inf")]), "finite"),
        (lambda: phd.TimeOfDay("h", 1), "whole number of at least 2"),
        (lambda: phd.TimeOfDay("h", zone="Nowhere/Land"), "time zone"),
        (lambda: phd.DayOfWeek("d", zone=3), "time zone"),  # type: ignore[arg-type]
        (lambda: attribute_from_dict({"type": "bin"}), "did you mean 'bins'"),
        (lambda: attribute_from_dict({"type": "bins", "name": "a"}), "edges"),
        (lambda: attribute_from_dict(7), "unknown type of attribute"),
    ],
)
def test_what_cannot_be_says_why(make: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make()


@pytest.mark.parametrize(
    ("name", "wanted", "says"),
    [
        ("vehicle", "trm", "did you mean 'tram'"),
        ("vehicle", None, "no value or group"),
        ("age", "old", "range"),
        ("age", (40, 18), "lower end first"),
        ("age", (1, 2, 3), "range"),
        ("hour", float("nan"), "range"),
        ("day", "Mo", "no day"),
        ("day", 3, "no day"),
    ],
)
def test_what_cannot_be_asked_for(name: str, wanted: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        ATTRIBUTES[name].intervals(wanted)
