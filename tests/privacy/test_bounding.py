"""Contribution bounds, against the plain way to count users."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phdstream.errors import InputError
from phdstream.privacy import ContributionBound


class NaiveBound:
    """A dictionary and a loop."""

    def __init__(self, limit):
        self.limit, self.used = limit, Counter()

    def admit(self, users):
        return [self._admit_one(user) for user in users]

    def _admit_one(self, user):
        self.used[user] += 1
        return self.used[user] <= self.limit


few_integers = st.lists(st.lists(st.integers(-3, 3), max_size=12), max_size=6)
few_words = st.lists(st.lists(st.sampled_from(["ann", "bob", "anne", "", "é", "ann "]), max_size=12), max_size=6)


def array_of(users, kind):
    return np.array(users, dtype=None if users else kind)


@settings(deadline=None)
@given(few_integers, st.integers(0, 5))
def test_integers_against_the_plain_way(ticks, limit):
    bound, naive = ContributionBound(limit), NaiveBound(limit)
    for users in ticks:
        assert bound.admit(array_of(users, np.int64)).tolist() == naive.admit(users)


@settings(deadline=None)
@given(few_words, st.integers(0, 5))
def test_words_against_the_plain_way(ticks, limit):
    bound, naive = ContributionBound(limit), NaiveBound(limit)
    for users in ticks:
        assert bound.admit(array_of(users, "<U1")).tolist() == naive.admit(users)


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), max_size=200), st.integers(1, 3), st.integers(0, 200))
def test_it_does_not_matter_how_events_are_cut_into_ticks(users, limit, cut):
    users = np.array(users, dtype=np.int64)
    whole, parts = ContributionBound(limit), ContributionBound(limit)
    assert whole.admit(users).tolist() == parts.admit(users[:cut]).tolist() + parts.admit(users[cut:]).tolist()


@settings(deadline=None)
@given(st.one_of(few_integers, few_words), st.integers(1, 4), st.integers(0, 6))
def test_a_restart_forgets_nothing(ticks, limit, restart_at):
    kind = np.int64 if all(isinstance(user, int) for users in ticks for user in users) else "<U1"
    bound, naive = ContributionBound(limit), NaiveBound(limit)
    for tick, users in enumerate(ticks):
        if tick == restart_at:
            bound = restarted(bound)
        assert bound.admit(array_of(users, kind)).tolist() == naive.admit(users)


def restarted(bound):
    fresh = ContributionBound(bound.limit)
    fresh.restore(bound.to_arrays())
    return fresh


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=6, unique=True))
def test_a_restart_forgets_no_integer_of_64_bits(users):
    bound = ContributionBound(limit=1)
    for user in users:
        assert bound.admit(one_user(user)).all()
    bound = restarted(bound)
    for user in users:
        assert not bound.admit(one_user(user)).any()


def test_a_restart_forgets_no_hashed_user():
    users = np.random.default_rng(1).integers(0, 2**64, 1000, dtype=np.uint64)  # half of them above 2^63
    bound = ContributionBound(limit=1)
    assert bound.admit(users).all()
    assert not restarted(bound).admit(users).any()


def one_user(user):
    return np.array([user], dtype=np.uint64 if user >= 2**63 else np.int64)


def test_the_same_integer_of_another_width_is_the_same_user():
    bound = ContributionBound(limit=1)
    kept = [bound.admit(np.array([7], dtype=dtype)).item() for dtype in (np.int8, np.int64, np.uint64)]
    assert kept == [True, False, False]


def test_bytes_of_any_kind_are_users_also_after_a_restart():
    users = np.array([b"ann", "é".encode(), b"\xff\x00\xfe", b"12"])
    bound = ContributionBound(limit=1)
    assert bound.admit(users).all()
    assert not restarted(bound).admit(users).any()


def test_text_of_digits_stays_text_and_integers_stay_integers_after_a_restart():
    for users in (np.array(["12", "012", "-3"]), np.array([12, -3])):
        bound = ContributionBound(limit=1)
        assert bound.admit(users).all()
        assert not restarted(bound).admit(users).any()
        assert bound.to_arrays()["users"].size == users.size


def test_a_saved_table_is_plain_arrays():
    bound = ContributionBound(limit=3)
    bound.admit(np.array(["ann", "ann", "bob"]))
    arrays = bound.to_arrays()
    assert dict(zip(arrays["users"].tolist(), arrays["used"].tolist(), strict=True)) == {"ann": 2, "bob": 1}
    assert all(array.dtype != object for array in arrays.values())


FORMS = {"integers": np.array([1]), "text": np.array(["1"]), "bytes": np.array([b"1"])}


@pytest.mark.parametrize(("first", "second"), list(permutations(FORMS, 2)))
def test_another_form_of_users_is_refused_and_changes_nothing(first, second):
    bound = ContributionBound(limit=1)
    bound.admit(FORMS[first])
    for known in (bound, restarted(bound)):
        before = known.to_arrays()
        for refuse in (known.check, known.admit):
            with pytest.raises(InputError, match=f"users were {first} before and are {second} now"):
                refuse(FORMS[second])
        assert all((before[name] == array).all() for name, array in known.to_arrays().items())


def test_a_tick_without_events_fits_any_form():
    bound = ContributionBound(limit=1)
    bound.admit(np.array(["ann"]))
    assert bound.admit(np.zeros(0, dtype=np.int64)).size == 0
    assert restarted(ContributionBound(limit=1)).admit(np.array(["ann"])).tolist() == [True]
