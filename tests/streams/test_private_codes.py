"""Private codes: every event is counted once however it is kept, in one set only, and pays for every count."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phdstream.arrays import Ints
from phdstream.domains.prefixes import code_range
from phdstream.errors import BudgetError
from phdstream.streams import private_codes
from phdstream.streams.private_codes import PrivateCodes, TickEvents

BITS = 6
NODES = np.arange(1, 2 << BITS)
ONE = Fraction(1)


def private(codes: list[int] | Ints, limit: Fraction = ONE) -> PrivateCodes:
    return PrivateCodes(BITS, limit, np.array(codes, dtype=np.int64))


def counts_of(codes: Ints, nodes: Ints = NODES) -> list[int]:
    first, past = code_range(nodes, BITS)
    return [int(((codes >= a) & (codes < b)).sum()) for a, b in zip(first, past, strict=True)]


@given(
    seed=st.integers(0, 10_000),
    many=st.sampled_from([5, 50, 10_000]),
    most_bits=st.sampled_from([BITS - 1, BITS]),
    ticks=st.integers(1, 6),
)
def test_every_event_is_counted_once_however_it_is_kept(seed: int, many: int, most_bits: int, ticks: int) -> None:
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(private_codes, "_MANY", many)
        patch.setattr(private_codes, "_MOST_BITS", most_bits)
        events, every = PrivateCodes(BITS, ONE), np.zeros(0, np.int64)
        for tick in range(ticks):
            codes = rng.integers(1 << BITS, size=int(rng.integers(40)))
            every = np.concatenate([every, codes])
            events.absorb(private(codes))
            assert events.spend(0.0).within(NODES).tolist() == counts_of(every)  # also between two ticks
            if tick == ticks // 2:
                events = PrivateCodes.from_arrays(BITS, events.to_arrays())
        exact = events.spend(0.0)
        assert exact.within(NODES).tolist() == counts_of(every)
        for bits in range(BITS + 1):
            level = np.arange(1 << bits, 2 << bits)
            assert exact.within(level, bits).tolist() == counts_of(every, level)


def test_many_are_kept_as_numbers_by_node_not_as_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_codes, "_MANY", 100)
    events = private(np.zeros(101, np.int64))
    arrays = events.to_arrays()
    assert [arrays[name].tolist() for name in ("codes", "finest", "numbers")] == [[], [0], [101]]
    monkeypatch.setattr(private_codes, "_MOST_BITS", BITS - 1)  # too many nodes to list
    assert private(np.zeros(101, np.int64)).to_arrays()["codes"].size == 101


def test_an_event_is_in_one_set_only() -> None:
    """Absorbed events are gone from where they were: counting there again counts nothing."""
    first, second = private([1, 2, 3]), private([3, 4])
    first.absorb(second)
    assert first.spend(0.5).within(np.array([1])).tolist() == [5]
    assert second.spend(0.5).within(np.array([1])).tolist() == [0]
    assert second.to_arrays()["codes"].size == 0
    first.absorb(second)
    assert first.spend(0.5).within(np.array([1])).tolist() == [5]


def test_an_event_kept_by_node_is_in_one_set_only_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_codes, "_MANY", 1)
    first, second = private([1, 2, 3]), private([3, 4])
    second.spend(0.25)  # what was counted before it moved must not be remembered
    first.absorb(second)
    assert first.spend(0.5).within(np.array([1])).tolist() == [5]
    assert second.spend(0.5).within(np.array([1])).tolist() == [0]


def test_what_is_spent_is_refused_at_the_last_float() -> None:
    events = private([1])
    events.spend(0.25)
    events.spend(0.5)
    with pytest.raises(BudgetError):
        events.spend(math.nextafter(0.25, 1))
    events.spend(0.25)
    for amount in (5e-324, 0.1, 1.0):
        with pytest.raises(BudgetError):
            events.spend(amount)


def test_counting_nobody_must_be_paid_for_as_well() -> None:
    """Else a refusal would tell whether there were events."""
    nobody = private([])
    nobody.spend(1.0)
    with pytest.raises(BudgetError):
        nobody.spend(0.1)


@pytest.mark.parametrize("many", [1, 1000], ids=["by node", "as codes"])
def test_what_was_spent_is_saved(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_codes, "_MANY", many)
    events = private([1, 5, 5], Fraction(0.7))
    events.spend(0.1)
    events.spend(0.2)
    again = PrivateCodes.from_arrays(BITS, events.to_arrays())
    assert again.to_arrays()["account"].tolist() == events.to_arrays()["account"].tolist()
    left = Fraction(0.7) - Fraction(0.1) - Fraction(0.2)
    largest = float(left) if Fraction(float(left)) <= left else math.nextafter(float(left), 0)
    with pytest.raises(BudgetError):
        again.spend(math.nextafter(largest, 1))
    assert again.spend(largest).within(NODES).tolist() == counts_of(np.array([1, 5, 5]))


@given(
    spent=st.tuples(st.floats(0, 0.5), st.floats(0, 0.5)),
    limits=st.tuples(st.floats(0.5, 2), st.floats(0.5, 2)),
    charge=st.floats(0, 2),
)
def test_absorbed_events_bring_what_they_spent(
    spent: tuple[float, float], limits: tuple[float, float], charge: float
) -> None:
    """What either set may not spend, both together may not."""
    sets = [private([1, 2], Fraction(limit)) for limit in limits]
    for events, amount in zip(sets, spent, strict=True):
        events.spend(amount)
    sets[0].absorb(sets[1])
    fits = Fraction(charge) + Fraction(max(spent)) <= Fraction(min(limits))
    if fits:
        assert sets[0].spend(charge).within(np.array([1])).tolist() == [4]
    else:
        with pytest.raises(BudgetError):
            sets[0].spend(charge)


def test_nothing_is_shown_of_it() -> None:
    shown = repr(TickEvents(private([12, 34]), private([56])))
    assert shown == "TickEvents(inserts=PrivateCodes(...), deletes=PrivateCodes(...))"
    assert str(private([12])) == f"{private([12])}" == "PrivateCodes(...)"


@given(st.lists(st.tuples(st.lists(st.integers(0, 63)), st.lists(st.integers(0, 63))), max_size=5), st.floats(0, 1))
def test_ticks_of_events_are_saved_with_what_each_has_spent(ticks: list[tuple[list[int], list[int]]], x: float) -> None:
    made = [TickEvents(private(come), private(gone, Fraction(1, 2))) for come, gone in ticks]
    for tick in made[1:]:
        tick.inserts.spend(x)
    again = TickEvents.many_from_arrays(BITS, TickEvents.many_to_arrays(made))
    assert len(again) == len(ticks)
    for before, after, (come, gone) in zip(made, again, ticks, strict=True):
        for kind, kind_after in zip(before, after, strict=True):
            assert kind.to_arrays()["account"].tolist() == kind_after.to_arrays()["account"].tolist()
        assert after.inserts.spend(0.0).within(NODES).tolist() == counts_of(np.array(come, dtype=np.int64))
        assert after.deletes.spend(0.0).within(NODES).tolist() == counts_of(np.array(gone, dtype=np.int64))
