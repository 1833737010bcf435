"""The mechanism of the paper's method refuses plans for which its proof would not hold, and charges what it says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import phdstream as phd
from phdstream.arrays import Bools, Ints
from phdstream.errors import BudgetError, StateError
from phdstream.privacy import Budget, calibrate_split
from phdstream.streams.paper.counters import Block, Counter, Simple
from phdstream.streams.paper.mechanism import Mechanism, one_tick
from phdstream.streams.private_codes import PrivateCodes, TickEvents
from tests.noises import RecordingNoise

BITS = 4
BUDGET = Budget.solve(1.0, phd.Event())
RULE = calibrate_split(BUDGET.tree, 2, 0)


def new_mechanism(counter: Counter | None = None, budget: Budget = BUDGET) -> tuple[Mechanism, RecordingNoise]:
    noise = RecordingNoise()
    return Mechanism(budget, RULE, counter or Simple(BUDGET.count), BITS, noise), noise


def inserts(codes: list[int]) -> PrivateCodes:
    return PrivateCodes(BITS, BUDGET.of_insert, np.array(codes, dtype=np.int64))


def deletes(codes: list[int]) -> PrivateCodes:
    return PrivateCodes(BITS, BUDGET.of_delete, np.array(codes, dtype=np.int64))


def tick(come: list[int], gone: list[int]) -> TickEvents:
    return TickEvents(inserts(come), deletes(gone))


class Levels:
    """A plan that says what it was told to say: levels of nodes, the public part of their score, their length."""

    def __init__(self, *levels: tuple[list[int], list[int], int]) -> None:
        self._levels = list(levels)
        self.outcomes: list[list[bool]] = []
        self._next()

    def _next(self) -> None:
        nodes, past, self.bits = self._levels.pop(0) if self._levels else ([], [], 0)
        self.nodes: Ints = np.array(nodes, dtype=np.int64)
        self.past: Ints = np.array(past, dtype=np.int64)

    def split(self, splits: Bools) -> None:
        """Take the outcome."""
        self.outcomes.append(splits.tolist())
        self._next()


MUCH = 1000
"""So much that a node splits at any level."""


def test_the_score_is_what_was_released_and_what_comes_less_the_bias() -> None:
    mechanism, noise = new_mechanism()
    plan = Levels(([1], [MUCH], 0), ([2, 3], [MUCH, 0], 1), ([4, 5], [MUCH, 0], 2))
    mechanism.select(inserts([0, 1, 9]), plan)
    assert [draw.at.tolist() for draw in noise.draws] == [[1], [2, 3], [4, 5]]
    assert {draw.scale for draw in noise.draws} == {RULE.scale}
    scores = [[MUCH + 3], [MUCH + 2, 1], [MUCH + 2, 0]]
    for depth, (draw, score) in enumerate(zip(noise.draws, scores, strict=True)):
        expected = np.maximum(np.array(score) - depth * RULE.bias, RULE.floor)
        assert draw.values.tolist() == expected.tolist()
    assert plan.outcomes == [[True], [True, False], [True, False]]


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([([2, 2], [1, 1], 1)], "in order, each once"),
        ([([3, 2], [1, 1], 1)], "in order, each once"),
        ([([1], [MUCH], 0), ([2, 3], [MUCH + 1, 0], 1)], "above its parent's"),
        ([([2, 3], [0, MUCH], 1), ([6, 7], [MUCH, MUCH + 1], 2)], "above its parent's"),
        ([([2, 3], [0, MUCH], 1), ([4, 5], [0, 0], 2)], "above its parent's"),  # their parent did not split
        ([([3], [MUCH], 1), ([4, 5], [0, 0], 2)], "above its parent's"),  # their parent was not tested
        ([([2], [MUCH], 1), ([2], [MUCH], 1)], "above its parent's"),  # tested again
        ([([4], [MUCH], 2), ([2], [MUCH], 1)], "above its parent's"),  # back up
    ],
    ids=str,
)
def test_a_plan_for_which_the_proof_would_not_hold_is_refused(
    levels: list[tuple[list[int], list[int], int]], said: str
) -> None:
    mechanism, noise = new_mechanism()
    whole = levels if levels[0][0] == [1] else [([1], [2000], 0), *levels]
    with pytest.raises(StateError, match=said):
        mechanism.select(inserts([9]), Levels(*whole))
    assert len(noise.draws) == len(whole) - 1  # nothing is drawn for what is refused


@pytest.mark.parametrize(
    "first",
    [([2, 3], [5, 5], 1), ([1], [5], 1), ([1], [-(1 << 62)], 0), ([1], [1 << 62], 0)],
    ids=["below", "bits", "-", "+"],
)
def test_a_tree_begins_at_its_root_with_a_score_in_range(first: tuple[list[int], list[int], int]) -> None:
    mechanism, noise = new_mechanism()
    with pytest.raises(StateError):
        mechanism.select(inserts([9]), Levels(first))
    assert not noise.draws


@pytest.mark.parametrize("rows", [[0, 0, 0], [0, -1], [-1]])
def test_no_counter_becomes_two(rows: list[int]) -> None:
    mechanism, _ = new_mechanism()
    with pytest.raises(StateError, match="one counter would become two"):
        mechanism.keep(np.array(rows))


def test_a_score_equal_to_its_parents_is_not_above_it() -> None:
    plan = Levels(([1], [MUCH], 0), ([2, 3], [MUCH, MUCH], 1))
    new_mechanism()[0].select(inserts([]), plan)
    assert plan.outcomes == [[True], [True, True]]


def test_levels_may_take_several_bits() -> None:
    plan = Levels(([1], [MUCH], 0), ([5, 7], [MUCH, 1], 2), ([20, 23], [MUCH, MUCH], 4))
    new_mechanism()[0].select(inserts([]), plan)
    assert plan.outcomes[2] == [True, True]


def test_a_split_test_that_costs_more_than_its_budget_is_refused() -> None:
    noise = RecordingNoise()
    dear = replace(RULE, scale=0.999 * RULE.scale)
    assert dear.loss > BUDGET.tree
    with pytest.raises(StateError, match="more than its budget"):
        Mechanism(BUDGET, dear, Simple(BUDGET.count), BITS, noise).select(inserts([]), Levels(([1], [0], 0)))
    assert noise.draws == []


@pytest.mark.parametrize("leaves", [[1, 2], [2, 2], [3, 7, 4], [2, 6, 12]], ids=str)
def test_overlapping_leaves_are_refused(leaves: list[int]) -> None:
    mechanism, noise = new_mechanism()
    with pytest.raises(StateError, match="overlap"):
        mechanism.count(tick([1], []), np.arange(len(leaves)), np.array(leaves))
    assert noise.draws == []


def test_two_leaves_with_one_counter_are_refused() -> None:
    mechanism, noise = new_mechanism()
    with pytest.raises(StateError, match="one counter"):
        mechanism.count(tick([1], []), np.array([4, 4]), np.array([2, 3]))
    assert noise.draws == []


@pytest.mark.parametrize("counter", [Simple(BUDGET.count), Block(BUDGET.count, size=2)], ids=str)
def test_leaves_are_counted_by_counters_that_go_on(counter: Counter) -> None:
    mechanism, _ = new_mechanism(counter)
    totals, steps = mechanism.count(tick([0, 1, 9], [8]), np.array([5, 2]), np.array([2, 3]))
    assert (totals.tolist(), steps.tolist()) == ([2, 0], [1, 1])
    totals, steps = mechanism.count(tick([9], []), np.array([2]), np.array([3]))
    assert (totals.tolist(), steps.tolist()) == ([1], [2])
    mechanism.keep(np.array([5, 2]))  # now rows 0 and 1
    totals, steps = mechanism.count(tick([9, 1], []), np.array([0, 1]), np.array([2, 3]))
    assert (totals.tolist(), steps.tolist()) == ([3, 2], [2, 3])
    again, _ = new_mechanism(counter)
    again.restore(mechanism.to_array())
    totals, steps = again.count(tick([], [9]), np.array([0, 1]), np.array([2, 3]))
    assert (totals.tolist(), steps.tolist()) == ([3, 1], [3, 4])


class TestLedger:
    def test_an_insert_pays_for_the_tree_and_its_count_and_a_delete_for_its_count(self) -> None:
        mechanism, _ = new_mechanism()
        events = tick([1], [2])
        mechanism.select(events.inserts, Levels(([1], [0], 0)))
        mechanism.count(events, np.array([0]), np.array([1]))
        spent = [Fraction(str(kind.to_arrays()["account"][1])) for kind in events]
        assert spent == [BUDGET.of_insert, BUDGET.of_delete]

    @pytest.mark.parametrize("kind", [0, 1], ids=["inserts", "deletes"])
    def test_nothing_can_be_counted_twice(self, kind: int) -> None:
        mechanism, noise = new_mechanism()
        events = tick([1], [2])
        mechanism.select(events.inserts, Levels(([1], [0], 0)))
        mechanism.count(events, np.array([0]), np.array([1]))
        drawn = len(noise.draws)
        again = TickEvents(*(events[k] if k == kind else tick([], [])[k] for k in range(2)))
        with pytest.raises(BudgetError):
            mechanism.count(again, np.array([1]), np.array([1]))
        assert len(noise.draws) == drawn

    def test_a_tree_cannot_be_selected_twice_and_then_counted(self) -> None:
        mechanism, _ = new_mechanism()
        events = tick([1], [])
        for _ in range(2):
            mechanism.select(events.inserts, Levels(([1], [0], 0)))
        with pytest.raises(BudgetError):
            mechanism.count(events, np.array([0]), np.array([1]))

    def test_deletes_have_no_budget_for_the_tree(self) -> None:
        """The paper's score has them in; with a tree for half the budget they could not be counted any more."""
        mechanism, _ = new_mechanism()
        events = tick([], [2])
        mechanism.select(events.deletes, Levels(([1], [0], 0)))
        with pytest.raises(BudgetError):
            mechanism.count(events, np.array([0]), np.array([1]))

    def test_a_counter_with_a_float_more_than_its_budget_is_refused(self) -> None:
        mechanism, _ = new_mechanism(Simple(float(np.nextafter(BUDGET.count, 1))))
        with pytest.raises(BudgetError):
            mechanism.count(tick([], [2]), np.array([0]), np.array([1]))

    def test_ticks_of_a_start_become_one_and_each_event_is_in_it_once(self) -> None:
        ticks = [tick([1, 2], [3]), tick([4], []), tick([], [5, 6])]
        one = one_tick(ticks)
        root = np.array([1])
        assert [kind.spend(0.0).within(root).tolist() for kind in one] == [[3], [3]]
        for other in ticks[1:]:
            assert [kind.spend(0.0).within(root).tolist() for kind in other] == [[0], [0]]
