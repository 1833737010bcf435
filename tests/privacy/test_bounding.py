"""Contribution bounds, against the plain way to count users."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phdstream.errors import InputError, StateError
from phdstream.privacy import ContributionBound, UserIds, user_ids


class NaiveBound:
    """A dictionary and a loop."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used: Counter[Any] = Counter()

    def admit(self, users: Any) -> list[bool]:
        return [self._admit_one(user) for user in users]

    def _admit_one(self, user: Any) -> bool:
        self.used[user] += 1
        return self.used[user] <= self.limit


few_integers = st.lists(st.lists(st.integers(-3, 3), max_size=12), max_size=6)
few_words = st.lists(
    st.lists(st.sampled_from(["ann", "bob", "anne", "", "é", "ann ", "ann\0", "\0", "\ud800"]), max_size=12), max_size=6
)


def ids(users: Any) -> UserIds:
    return user_ids(users, len(users), "inserts")


def restarted(bound: ContributionBound) -> ContributionBound:
    fresh = ContributionBound(bound.limit)
    fresh.restore(bound.to_arrays())
    return fresh


@settings(deadline=None)
@given(st.one_of(few_integers, few_words), st.integers(0, 5))
def test_against_the_plain_way(ticks: Any, limit: int) -> None:
    bound, naive = ContributionBound(limit), NaiveBound(limit)
    for users in ticks:
        assert bound.admit(ids(users)).tolist() == naive.admit(users)


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), max_size=200), st.integers(1, 3), st.integers(0, 200))
def test_it_does_not_matter_how_events_are_cut_into_ticks(users: list[int], limit: int, cut: int) -> None:
    whole, parts = ContributionBound(limit), ContributionBound(limit)
    together = whole.admit(ids(users)).tolist()
    assert together == parts.admit(ids(users[:cut])).tolist() + parts.admit(ids(users[cut:])).tolist()


@settings(deadline=None)
@given(st.one_of(few_integers, few_words), st.integers(1, 4), st.integers(0, 6))
def test_a_restart_forgets_nothing(ticks: Any, limit: int, restart_at: int) -> None:
    bound, naive = ContributionBound(limit), NaiveBound(limit)
    for tick, users in enumerate(ticks):
        if tick == restart_at:
            bound = restarted(bound)
        assert bound.admit(ids(users)).tolist() == naive.admit(users)


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=6, unique=True))
def test_a_restart_forgets_no_integer_of_64_bits(users: list[int]) -> None:
    bound = ContributionBound(limit=1)
    for user in users:
        assert bound.admit(ids([user])).all()
    bound = restarted(bound)
    for user in users:
        assert not bound.admit(ids([user])).any()


@settings(deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=20)), min_size=1, max_size=8, unique=True))
def test_a_restart_forgets_no_bytes(users: list[bytes]) -> None:
    bound = ContributionBound(limit=1)
    assert bound.admit(ids(users)).all()
    assert not restarted(bound).admit(ids(users)).any()


def test_a_restart_forgets_no_hashed_user() -> None:
    users = np.random.default_rng(1).integers(0, 2**64, 1000, dtype=np.uint64)  # half of them above 2^63
    bound = ContributionBound(limit=1)
    assert bound.admit(ids(users)).all()
    assert not restarted(bound).admit(ids(users)).any()


@pytest.mark.parametrize("kind", ["integers", "text"])
def test_a_restart_forgets_nobody_of_very_many(kind: str) -> None:
    """A table that is cut at some size is whole for every small test."""
    numbers = np.arange(200_000)
    users = ids(numbers if kind == "integers" else [f"user {i}" for i in numbers])
    bound = ContributionBound(limit=1)
    assert bound.admit(users).all()
    assert not restarted(bound).admit(users).any()


def test_the_same_integer_of_another_width_is_the_same_user() -> None:
    bound = ContributionBound(limit=1)
    kept = [bound.admit(ids(np.array([7], dtype=dtype))).item() for dtype in (np.int8, np.int64, np.uint64, ">i4")]
    assert kept == [True, False, False, False]


def test_text_of_digits_stays_text_and_integers_stay_integers_after_a_restart() -> None:
    for users in (["12", "012", "-3"], [12, -3], [b"12", b"\xff\x00\xfe", "é".encode()]):
        bound = ContributionBound(limit=1)
        assert bound.admit(ids(users)).all()
        again = restarted(bound)
        assert not again.admit(ids(users)).any()
        assert again.to_arrays()["used"].size == len(users)


def test_users_that_differ_by_a_trailing_nul_are_two() -> None:
    """NumPy's fixed-width text drops it, so they were one: each used up the other's bound."""
    bound = ContributionBound(limit=1)
    assert bound.admit(ids(["a", "a\0"])).tolist() == [True, True]
    assert restarted(bound).admit(ids(["a\0", "a", "a\0\0"])).tolist() == [False, False, True]


def test_a_saved_table_is_plain_arrays_and_one_long_name_costs_its_own_bytes() -> None:
    """Fixed-width text took the longest name's bytes for every user: 161 MB for one name of 20,000 characters."""
    bound = ContributionBound(limit=3)
    bound.admit(ids([f"user {i}" for i in range(5000)]))
    before = sum(array.nbytes for array in bound.to_arrays().values())
    bound.admit(ids(["x" * 1000]))
    arrays = bound.to_arrays()
    assert all(array.dtype != object for array in arrays.values())
    assert sum(array.nbytes for array in arrays.values()) - before < 1100
    with pytest.raises(InputError, match="at most 1024 bytes"):
        bound.admit(ids(["x" * 20_000]))


@pytest.mark.parametrize("name", ["users", "used", "ends"])
def test_a_cut_off_table_is_refused(name: str) -> None:
    bound = ContributionBound(limit=3)
    bound.admit(ids(["ann", "ann", "bob"]))
    arrays = bound.to_arrays()
    with pytest.raises(StateError, match="not whole"):
        ContributionBound(limit=3).restore(arrays | {name: arrays[name][:-1]})


FORMS: dict[str, Any] = {"integers": [1], "text": ["1"], "bytes": [b"1"]}


@pytest.mark.parametrize(("first", "second"), list(permutations(FORMS, 2)))
def test_another_form_of_users_is_refused_and_changes_nothing(first: str, second: str) -> None:
    bound = ContributionBound(limit=1)
    bound.admit(ids(FORMS[first]))
    for known in (bound, restarted(bound)):
        before = known.to_arrays()
        for refuse in (known.check, known.admit):
            with pytest.raises(InputError, match=f"users were {first} before and are {second} now"):
                refuse(ids(FORMS[second]))
        assert all((before[name] == array).all() for name, array in known.to_arrays().items())


def test_a_tick_without_events_fits_any_form() -> None:
    bound = ContributionBound(limit=1)
    bound.admit(ids(["ann"]))
    assert bound.admit(ids(np.zeros(0, dtype=np.int64))).size == 0
    assert restarted(ContributionBound(limit=1)).admit(ids(["ann"])).tolist() == [True]
