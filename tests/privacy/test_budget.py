"""Units of privacy, and how ε is divided for them."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phdstream.errors import BudgetError
from phdstream.privacy import Budget, Event, Record, User, unit_from_dict

epsilons = st.floats(1e-6, 1e4)
shares = st.floats(1e-3, 1 - 1e-3)
users = st.builds(User, st.integers(1, 10**6), st.integers(0, 10**6))


# --- the equation of PRIVACY.md, section 5 ---


def spent(budget: Any, inserts: Any, deletes: Any) -> Any:
    tree, count = Fraction(budget.tree), Fraction(budget.count)
    return inserts * (tree + count) + deletes * count


@settings(deadline=None)
@given(epsilons, users, shares, st.booleans())
def test_a_user_costs_epsilon_and_never_more(epsilon: Any, user: Any, share: Any, deletes: Any) -> None:
    budget = Budget.solve(epsilon, user, deletes=deletes, tree_share=share)
    cost = spent(budget, user.inserts, user.deletes if deletes else 0)
    assert cost <= Fraction(epsilon)
    assert cost >= Fraction(epsilon) * (1 - Fraction(1, 10**12))


@settings(deadline=None)
@given(epsilons, shares, st.booleans())
def test_a_record_costs_epsilon_and_never_more(epsilon: Any, share: Any, deletes: Any) -> None:
    budget = Budget.solve(epsilon, Record(), deletes=deletes, tree_share=share)
    cost = spent(budget, 1, 1 if deletes else 0)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**12)) <= cost <= Fraction(epsilon)


@settings(deadline=None)
@given(epsilons, shares, st.booleans())
def test_an_event_costs_epsilon_and_never_more(epsilon: Any, share: Any, deletes: Any) -> None:
    budget = Budget.solve(epsilon, Event(), deletes=deletes, tree_share=share)
    assert spent(budget, 0, 1) < spent(budget, 1, 0) <= Fraction(epsilon)
    assert spent(budget, 1, 0) >= Fraction(epsilon) * (1 - Fraction(1, 10**12))


@settings(deadline=None)
@given(epsilons, users, shares)
def test_the_tree_gets_its_share(epsilon: Any, user: Any, share: Any) -> None:
    budget = Budget.solve(epsilon, user, tree_share=share)
    assert budget.tree / (budget.tree + budget.count) == pytest.approx(share, rel=1e-9)


@settings(deadline=None)
@given(epsilons, users, st.integers(0, 50), st.integers(0, 50))
def test_spent_by_is_exact(epsilon: Any, user: Any, inserts: Any, deletes: Any) -> None:
    budget = Budget.solve(epsilon, user)
    assert budget.spent_by(inserts, deletes) == spent(budget, inserts, deletes)


def test_plain_cases() -> None:
    assert Budget.solve(1, Event()) == Budget(1.0, 0.5, 0.5)
    assert Budget.solve(1.0, User(inserts=4), deletes=False) == Budget(1.0, 0.125, 0.125)
    assert Budget.solve(1.5, Record()) == Budget(1.5, 0.5, 0.5)
    assert Budget.solve(1.5, Record(), deletes=False) == Budget(1.5, 0.75, 0.75)
    assert Budget.solve(1.0, Event()).to_dict() == {"epsilon": 1.0, "tree": 0.5, "count": 0.5}


@pytest.mark.parametrize("epsilon", [0, -1, -0.5, math.nan, math.inf, -math.inf, True, "1", None, 1e9])
def test_an_epsilon_that_promises_nothing_is_refused(epsilon: Any) -> None:
    with pytest.raises(BudgetError, match="epsilon"):
        Budget.solve(epsilon, Event())


def test_numpy_floats_are_numbers() -> None:
    assert Budget.solve(np.float64(1.0), Event()) == Budget.solve(1.0, Event())


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, math.nan, True])
def test_a_tree_share_outside_zero_to_one_is_refused(share: Any) -> None:
    with pytest.raises(BudgetError, match="tree_share"):
        Budget.solve(1.0, Event(), tree_share=share)


def test_an_epsilon_too_small_to_divide_is_refused_or_leaves_something() -> None:
    try:
        budget = Budget.solve(5e-324, User(inserts=1000))
    except BudgetError:
        return
    assert budget.tree > 0
    assert budget.count > 0


def test_budget_errors_are_value_errors() -> None:
    with pytest.raises(ValueError, match="positive, finite"):
        Budget.solve(0, Event())


# --- units ---


@pytest.mark.parametrize("unit", [Event(), Record(), User(3), User(inserts=2, deletes=5)])
def test_plain_data_gives_the_same_unit_back(unit: Any) -> None:
    assert unit_from_dict(json.loads(json.dumps(unit.to_dict()))) == unit


def test_worst_cases() -> None:
    assert set(Event().worst_cases()) == {(1, 0), (0, 1)}
    assert Record().worst_cases() == ((1, 1),)
    assert User(4, 2).worst_cases() == ((4, 2),)
    assert User(4).worst_cases() == ((4, 0),)


@pytest.mark.parametrize("inserts", [0, -1, 1.0, True, "2", None])
def test_a_user_needs_a_whole_number_of_inserts(inserts: Any) -> None:
    with pytest.raises(BudgetError, match=re.escape("User(inserts=...) must be a whole number of at least 1")):
        User(inserts=inserts)


@pytest.mark.parametrize("deletes", [-1, 0.0, True, "2", None])
def test_a_user_needs_a_whole_number_of_deletes(deletes: Any) -> None:
    with pytest.raises(BudgetError, match=re.escape("User(deletes=...) must be a whole number of at least 0")):
        User(inserts=1, deletes=deletes)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"type": "usr", "inserts": 1}, "did you mean 'user'"),
        ({}, "unknown unit of privacy None"),
        ({"type": "event", "inserts": 2}, "the others nothing"),
        ({"type": "user", "insert": 2}, "inserts and deletes"),
        ({"type": "user", "inserts": "2"}, "whole number"),
    ],
)
def test_a_bad_description_of_a_unit_is_refused(spec: Any, message: Any) -> None:
    with pytest.raises(BudgetError, match=message):
        unit_from_dict(spec)


def test_a_user_without_inserts_is_told_what_is_missing() -> None:
    with pytest.raises(BudgetError, match="came with nothing; a user unit takes inserts"):
        unit_from_dict({"type": "user"})


# --- promises ---


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (Event(), ["each single event", "appearance", "disappearance"]),
        (Record(), ["each record", "appearance", "later disappearance"]),
        (User(4, 3), ["each user", "at most 4 appearances", "3 disappearances", "ever"]),
    ],
)
def test_promises_say_to_whom(unit: Any, words: Any) -> None:
    assert unit.guarantee.startswith("each ")
    assert all(word in unit.guarantee for word in words)
    assert not re.search(r"[_{}]|None|ε", unit.guarantee)


def test_promises_use_the_singular_for_one() -> None:
    assert "1 appearance and 1 disappearance " in User(1, 1).guarantee
