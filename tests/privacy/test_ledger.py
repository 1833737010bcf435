"""The ledger: exact to the last float, never more than the limit, also when sets of events are joined."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phdstream.errors import BudgetError
from phdstream.privacy import Budget, Event, Ledger, Record, User

amounts = st.floats(0, 10, allow_subnormal=True)
limits = st.floats(1e-6, 100)


@given(limits, st.lists(amounts, max_size=12))
def test_it_holds_to_the_limit_in_exact_arithmetic(limit: float, charges: list[float]) -> None:
    ledger, spent = Ledger(Fraction(limit)), Fraction(0)
    for charge in charges:
        if spent + Fraction(charge) <= Fraction(limit):
            ledger.charge(charge)
            spent += Fraction(charge)
        else:
            with pytest.raises(BudgetError, match="more than the budget of an event"):
                ledger.charge(charge)
        assert ledger.spent == spent  # a charge that is refused is not made
        assert ledger.limit == Fraction(limit)


@given(limits, st.lists(st.floats(1e-3, 1), min_size=1, max_size=6))
def test_the_last_float_decides(limit: float, parts: list[float]) -> None:
    """The budget, divided and spent to its end, fits; with any one part a float larger it may, but no more."""
    budget = Budget(limit, 0.0, limit)
    charges = budget.divide_count(parts)
    ledger = Ledger(budget.of_delete)
    for charge in charges:
        ledger.charge(charge)
    left = ledger.limit - ledger.spent
    assert 0 <= left <= sum(Fraction(math.ulp(charge)) for charge in charges)
    more = float(left)
    while Fraction(more) <= left:
        more = math.nextafter(more, math.inf)
    with pytest.raises(BudgetError):
        ledger.charge(more)


def test_floats_that_seem_to_fit_and_do_not() -> None:
    assert 0.75 + 0.25 + 2**-54 <= 1.0  # rounded
    ledger = Ledger(Fraction(1.0))
    ledger.charge(0.75)
    ledger.charge(0.25)
    for charge in (2**-54, 5e-324):
        with pytest.raises(BudgetError):
            ledger.charge(charge)
    ledger.charge(0.0)


@pytest.mark.parametrize("charge", [-5e-324, -1.0, math.nan, math.inf, -math.inf])
def test_what_is_no_amount_is_refused(charge: float) -> None:
    ledger = Ledger(Fraction(1), Fraction(1, 2))
    with pytest.raises((ValueError, OverflowError)):
        ledger.charge(charge)
    assert ledger.spent == Fraction(1, 2)


accounts = st.builds(Ledger, st.fractions(0, 2), st.fractions(0, 1))


@given(accounts, accounts, accounts, amounts)
def test_joined_events_may_spend_no_more_than_any_of_them(a: Ledger, b: Ledger, c: Ledger, charge: float) -> None:
    """Whatever is refused to one of the sets is refused to all together."""
    joined = Ledger(a.limit, a.spent)
    joined.join(b)
    joined.join(c)
    alone = [Ledger(one.limit, one.spent) for one in (a, b, c)]

    def takes(ledger: Ledger) -> bool:
        try:
            ledger.charge(charge)
        except BudgetError:
            return False
        return True

    if takes(joined):
        assert all(map(takes, alone))
        assert joined.spent >= max(one.spent for one in alone)
    assert joined.limit == min(one.limit for one in alone)


@pytest.mark.parametrize("deletes", [True, False])
@pytest.mark.parametrize("unit", [Event(), Record(), User(inserts=3, deletes=2)], ids=str)
def test_a_units_events_at_their_limits_cost_epsilon(unit: Event | Record | User, deletes: bool) -> None:
    for budget in (Budget.solve(1.7, unit, deletes=deletes), Budget.per_event(1.7, unit, deletes=deletes)):
        for inserts, gone in unit.worst_cases():
            spent = inserts * budget.of_insert + (gone * budget.of_delete if deletes else 0)
            assert spent == budget.spent_by(inserts, gone if deletes else 0)
            assert spent <= Fraction(1.7)
