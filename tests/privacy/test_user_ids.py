"""Users' names, exactly as they came, from whatever holds them."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import phdstream as phd
from phdstream.errors import InputError
from phdstream.privacy import ContributionBound, UserIds, user_ids

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def ids(users: Any) -> UserIds:
    return user_ids(users, 2, "inserts")


TEXT = ["ann", "é\0"]
NUMBERS = [-1, 2**62]
WAYS: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "objects": lambda users: np.array(users, dtype=object),
    "masked": lambda users: np.ma.MaskedArray(np.array(users, dtype=object), mask=[False, False]),
    "pandas": pd.Series,
    "pandas objects": lambda users: pd.Series(users, dtype=object),
    "pandas index": pd.Index,
    "categories": lambda users: pd.Series(users, dtype="category"),
    "polars": pl.Series,
    "arrow": pa.array,
    "chunks": lambda users: pa.chunked_array([users[:1], users[1:]]),
    "dictionary": lambda users: pa.array(users).dictionary_encode(),
    "chunked dictionary": lambda users: pa.chunked_array([users[:1], users[1:]]).dictionary_encode(),
    "slice": lambda users: pa.array([*users[:1], *users])[1:],
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_hold_them_gives_the_same(way: str) -> None:
    text, numbers = ids(WAYS[way](TEXT)), ids(WAYS[way](NUMBERS))
    assert (text.kind, text.ids.to_pylist()) == ("text", [b"ann", "é\0".encode()])
    assert (numbers.kind, numbers.ids.to_pylist()) == ("integers", NUMBERS)
    if "categ" not in way and "index" not in way and way != "polars":
        raw = ids(WAYS[way]([b"\xff\0", b"ann"]))
        assert (raw.kind, raw.ids.to_pylist()) == ("bytes", [b"\xff\0", b"ann"])


@pytest.mark.parametrize(
    "users",
    [
        np.array([1, 2], np.uint8),
        np.array([1, 2], ">i8"),
        np.array([1, 2], np.uint64),
        pd.Series([1, 2], dtype="Int64"),
        pd.Series([1, 2], dtype="int32[pyarrow]"),
        pl.Series([1, 2], dtype=pl.UInt16),
        [np.int16(1), 2],
        range(1, 3),
    ],
)
def test_integers_of_every_width(users: Any) -> None:
    assert ids(users).ids.to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "users",
    [
        np.array(["ab", "c"]),
        np.array(["ab", "c"], np.dtypes.StringDType()),
        pd.Series(["ab", "c"], dtype="string"),
        pl.Series(["ab", "c"], dtype=pl.Categorical),
        pa.array(["ab", "c"], pa.string_view()),
        pa.array(["ab", "c"], pa.large_string()),
        [np.str_("ab"), "c"],
    ],
)
def test_text_of_every_width(users: Any) -> None:
    assert (ids(users).kind, ids(users).ids.to_pylist()) == ("text", [b"ab", b"c"])


def test_names_that_are_no_utf_8_are_names() -> None:
    halves = ids(["\ud800", "\udfff"])
    assert len(set(halves.ids.to_pylist())) == 2
    assert ids(np.array(["\ud800", "\udfff"])).ids.equals(halves.ids)
    assert ids(pa.array([b"ab", b"cd"], pa.binary(2))).kind == "bytes"


MISSING = [
    ["ann", None],
    ["ann", float("nan")],
    ["ann", pd.NA],
    ["ann", pd.NaT],
    [1, None],
    [1, float("nan")],
    [np.nan, np.nan],
    np.array(["ann", np.nan], dtype=object),
    np.array([1.0, np.nan]),
    np.ma.MaskedArray([1, 2], mask=[False, True]),
    np.ma.MaskedArray(np.array(["a", "b"], dtype=object), mask=[False, True]),
    pd.Series(["ann", None]),
    pd.Series([1, None]),
    pd.Series([1, None], dtype="Int64"),
    pd.Series(["ann", None], dtype="category"),
    pd.Series(["ann", np.nan], dtype=object),
    pl.Series(["ann", None]),
    pl.Series([1, None]),
    pl.Series([1.0, float("nan")]),
    pa.array(["ann", None]),
    pa.array(["ann", None]).dictionary_encode(),
    pa.chunked_array([pa.array([1]), pa.array([None], pa.int64())]),
    pa.nulls(2),
]


@pytest.mark.parametrize("users", MISSING, ids=range(len(MISSING)))
def test_a_missing_user_is_refused_not_made_one(users: Any) -> None:
    """NaN of several events were one user "nan", who shared a bound with whoever else had none."""
    with pytest.raises(InputError, match=r"^every event needs a user; at least one came without"):
        ids(users)


REFUSED = [
    [1, "1"],
    ["a", b"a"],
    [True, False],
    [1, True],
    [1.0, 2.0],
    [1, 2.5],
    [[1], [2]],
    [("a",), ("b",)],
    [2**64, 1],
    [-1, 2**64 - 1],
    [-(2**63) - 1, 0],
    np.array([1.0, 2.0]),
    np.array([True, False]),
    np.array([1, "1"], dtype=object),
    np.array([[1], [2]]),
    np.array(7),
    np.array(["2024-01-01", "2024-01-02"], "datetime64[D]"),
    pd.Series([1.5, 2.5]),
    pd.Series([True, False]),
    pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02"])),
    pd.DataFrame({"a": [1, 2], "b": [1, 2]}),
    pl.DataFrame({"a": [1, 2], "b": [1, 2]}),
    pa.table({"a": [1, 2], "b": [1, 2]}),
    pl.Series([1.5, 2.5]),
    pl.Series([True, False]),
    pa.array([True, False]),
    pa.array([1.5, 2.5]),
    pa.array([[1], [2]]),
    "ab",
    b"ab",
    {"a": 1, "b": 2},
    {"a", "b"},
    3,
    ["x" * 1025, "y"],
    ["é" * 513, "y"],
    pa.array(["x" * 1025, "y"]),
    [1],
    [1, 2, 3],
    None,
]


@pytest.mark.parametrize("users", REFUSED, ids=range(len(REFUSED)))
def test_what_is_not_exact_is_refused(users: Any) -> None:
    with pytest.raises(InputError):
        ids(users)


def test_none_is_fine_where_there_are_no_events() -> None:
    assert len(user_ids(None, 0, "deletes")) == len(user_ids([], 0, "deletes")) == 0
    assert len(user_ids(pa.nulls(0), 0, "deletes")) == 0


def test_parts_of_them() -> None:
    users = user_ids(["a", "b", "c"], 3, "inserts")
    assert users.filter(np.array([True, False, True])).ids.to_pylist() == [b"a", b"c"]
    assert users.take(np.array([2, 0])).ids.to_pylist() == [b"c", b"a"]
    none = user_ids(None, 0, "inserts")
    assert UserIds.concat([none, users, users.take(np.array([1]))]).ids.to_pylist() == [b"a", b"b", b"c", b"b"]
    assert len(UserIds.concat([])) == len(UserIds.concat([none, none])) == 0
    large = user_ids(np.array([7, 8], np.uint64), 2, "inserts")
    assert UserIds.concat([large, ids([1, 7])]).ids.to_pylist() == [7, 8, 1, 7]
    with pytest.raises(InputError, match="one kind"):
        UserIds.concat([users, large])


def test_a_column_from_a_file_needs_no_reading() -> None:
    column = pa.array([b"ann", b"bob"], pa.large_binary())
    assert ids(UserIds("text", column)).ids is column
    with pytest.raises(InputError, match="at least one came without"):
        UserIds("text", pa.array([b"ann", None], pa.large_binary()))
    with pytest.raises(InputError, match="cannot be an Arrow array"):
        UserIds("integers", column)


def stream(**options: Any) -> phd.PHDStream:
    square = phd.Box([(0, 1), (0, 1)], depth=8)
    return phd.PHDStream(square, 1.0, phd.User(inserts=1, deletes=1), noise=phd.Simulation(1), **options)


def test_a_stream_refuses_another_kind_before_anything_changes() -> None:
    two = np.full((2, 2), 0.5)
    fresh = stream()
    with pytest.raises(InputError, match="inserts are integers and of deletes text"):
        fresh.update(two, two, [1, 2], ["a", "b"])
    fresh.update(two, users=["a", "b"])
    with pytest.raises(InputError, match="users were text before and are integers now"):
        fresh.update(two, two, ["c", "d"], [1, 2])
    assert fresh.private_tally.over_bound == 0
    fresh.update(two, users=["c", "d"])
    assert fresh.private_tally.over_bound == 0


@pytest.mark.slow
def test_many_events_of_few_users_cost_no_more_than_in_proportion() -> None:
    def seconds(number: int) -> float:
        names = np.random.default_rng(1).integers(0, 1000, number)
        users = pa.array(np.char.add("user ", names.astype(str)).astype(object))
        bound, begin = ContributionBound(limit=20), time.process_time()
        kept = bound.admit(user_ids(users, len(users), "inserts"))
        assert kept.sum() == 20_000
        return time.process_time() - begin

    assert seconds(1_600_000) < 5 * 16 * min(seconds(100_000) for _ in range(3))  # in proportion to its square: 256
