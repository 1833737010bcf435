"""Where to count, when, and with how much of the budget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phdstream as phd
from phdstream.domains.binary_tree import BinaryTree
from phdstream.errors import InputError
from phdstream.streams.tracking.model.emptiness import Emptiness
from phdstream.streams.tracking.model.policy import (
    _parts_of,
    block_length,
    choose_zones,
    drift_score,
    due_threshold,
    expected_in_block,
    learning_from,
    places_in_use,
    split_budget,
)
from phdstream.streams.tracking.model.split_tree import SplitTree
from phdstream.streams.tracking.parameters import (
    BlockLength,
    BudgetSplit,
    Drift,
    EmptyHalves,
    TrackingParameters,
)

LINE = BinaryTree(phd.Box([(0, 1)], depth=6))
SPLITS = SplitTree(np.array([1, 2, 5]), np.array([0.6, -0.2, 0.9]), np.array([0.1, 0.1, 0.1]))


@pytest.mark.parametrize("sign", [1, -1])
def test_drift_makes_blocks_shorter_and_the_past_less_trusted(sign: int) -> None:
    scores, half_empty = [0.0, 0.2, 0.5, 1.0, 5.0], Emptiness(EmptyHalves(), 0.5)
    lengths = [due_threshold(BlockLength(), Drift(), 0.3, score) for score in scores]
    trusts = [learning_from(TrackingParameters(), sign, score, half_empty) for score in scores]
    assert lengths[0] == lengths[1] == 0.3
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] < lengths[0]
    assert [trust.drift for trust in trusts] == sorted(trust.drift for trust in trusts)
    assert trusts[-1].drift > trusts[0].drift
    assert {trust.new_variance for trust in trusts} == {half_empty.new_variance}
    assert [trust.kinship for trust in trusts] == [1.0] * 5 if sign > 0 else trusts[-1].kinship == 0


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("score", [0.0, 0.5, 5.0])
def test_with_drift_switched_off_it_changes_nothing(sign: int, score: float) -> None:
    off, emptiness = replace(TrackingParameters(), drift=Drift(on=False)), Emptiness(EmptyHalves(), 0.5)
    assert due_threshold(BlockLength(), off.drift, 0.3, score) == 0.3
    assert learning_from(off, sign, score, emptiness) == learning_from(off, sign, 0.0, emptiness)


def test_blocks_are_shorter_the_less_noise_matters() -> None:
    totals, budgets, rule = [1e2, 1e4, 1e6, 1e8], [0.1, 1.0, 10.0], BlockLength()
    lengths = np.array([[block_length(rule, total, budget, np.inf) for total in totals] for budget in budgets])
    assert (np.diff(lengths, axis=0) <= 0).all()
    assert (np.diff(lengths, axis=1) <= 0).all()
    assert (lengths >= 0.04).all()
    assert (lengths <= 0.6).all()
    assert block_length(rule, 1e4, 1.0, np.inf) == pytest.approx(block_length(rule, 1e6, 0.1, np.inf))
    fixed = replace(rule, adapts=False)
    assert {block_length(fixed, total, budget, 9.0) for total in totals for budget in budgets} == {0.25}


def test_blocks_are_shorter_where_points_are_in_few_places_and_noise_is_small() -> None:
    """At the length where the noise of all counts and the chance of the open block are together least."""
    number, places, epsilon = 12_000.0, 300.0, 8.0
    lengths = np.linspace(0.02, 0.6, 5801)
    age, noise = lengths * number / (2 * places), 2 / epsilon**2 / lengths
    best = float(lengths[np.argmin(age + noise)])
    assert block_length(BlockLength(least=0.01), number, epsilon, places) == pytest.approx(best, abs=1e-3)
    assert block_length(BlockLength(), number, 0.5, places) == block_length(BlockLength(), number, 0.5, np.inf)
    off = BlockLength(by_places=False)
    assert block_length(off, number, epsilon, places) == block_length(off, number, epsilon, np.inf) > 2 * best
    assert block_length(BlockLength(), number, epsilon, 0.0) == BlockLength().least


def test_places_are_finest_cells_that_hold_points_if_nearly_all_do() -> None:
    tree = BinaryTree(phd.Box([(0, 1), (0, 1)], depth=3))
    nodes, even = np.arange(1, 8), np.zeros(7)
    assert places_in_use(tree, SplitTree(nodes, even, even), 800.0, 0.2) == 8
    one_side = np.array([1.0, *even[1:]])
    assert places_in_use(tree, SplitTree(nodes, one_side, even), 800.0, 0.2) == 4
    assert places_in_use(tree, SplitTree(nodes, even, even), 8 * 0.2, 0.2) == 0
    coarse = SplitTree(nodes[:6], even[:6], even[:6])  # a quarter of the points is in a cell that could be divided
    assert places_in_use(tree, coarse, 800.0, 0.2) == np.inf
    assert places_in_use(tree, SplitTree.empty(), 800.0, 0.2) == np.inf


def test_the_fewer_points_the_more_is_spent_on_totals_and_zones() -> None:
    parts = np.array([split_budget(BudgetSplit(), total, 0.5) for total in (0, 1_000, 4_000, 1e5, 1e7)])
    np.testing.assert_allclose(parts.sum(axis=1), 1)
    assert (np.diff(parts[:, :2], axis=0) <= 0).all()
    assert parts[1, 0] > parts[2, 0] > parts[3, 0]
    assert (parts > 0).all()


@given(
    total=st.floats(0, 1e12),
    epsilon=st.floats(1e-6, 1e4),
    shares=st.tuples(st.floats(1e-4, 0.2), st.floats(1e-4, 0.2)),
    growth=st.floats(1, 4.5),
)
def test_something_is_left_for_the_fine_count_whatever_the_parameters(
    total: float, epsilon: float, shares: tuple[float, float], growth: float
) -> None:
    """With the largest shares and the most growth nearly all, or more than all, would go to totals and zones."""
    if growth * sum(shares) > 0.95:
        with pytest.raises(InputError, match="next to nothing would be left"):
            BudgetSplit(total=shares[0], zones=shares[1], growth=growth)
        return
    parts = split_budget(BudgetSplit(total=shares[0], zones=shares[1], growth=growth), total, epsilon)
    assert min(parts) > 0
    assert sum(parts) == pytest.approx(1)


def ends(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, past = (np.sort(edge) for edge in LINE.code_range(nodes))
    return first, past


def assert_tiles(nodes: np.ndarray) -> None:
    first, past = ends(nodes)
    np.testing.assert_array_equal(first[1:], past[:-1])
    assert (first[0], past[-1]) == (0, 64)


def test_zones_tile_the_line_and_hold_no_more_than_they_may() -> None:
    zoning = choose_zones(LINE, SPLITS, 100.0, 10.0, 6)
    assert_tiles(np.concatenate([zoning.zones, zoning.empty]))
    points, measure = _parts_of(LINE, SPLITS, zoning.zones)
    np.testing.assert_array_equal(points, zoning.expected)
    assert points.sum() == pytest.approx(1)
    assert measure.sum() == pytest.approx(1)
    assert (100 * points <= 10 + 1e-9).all()


def test_no_zone_is_finer_than_allowed() -> None:
    zoning = choose_zones(LINE, SPLITS, 1e6, 1.0, 3)
    assert LINE.bits(zoning.zones).tolist() == [3] * 8
    assert choose_zones(LINE, SPLITS, 1e6, 1.0, 0).zones.tolist() == [1]


def test_a_blocks_events_are_expected_where_points_are_and_where_they_were_seen() -> None:
    zones = np.array([2, 6, 7])
    expected = expected_in_block(LINE, SPLITS, zones, np.array([50.0, 0.0, 0.0]), 60.0, 0.1)
    assert expected.number[0] == 50  # seen: more than its share
    assert expected.number.sum() == pytest.approx(50 + 60 * _parts_of(LINE, SPLITS, zones)[0][1:].sum())
    inside = expected.opened(lambda nodes, _, bits: np.full(nodes.size, bits < 2), None)
    evenly = expected_in_block(LINE, SPLITS, zones, np.array([50.0, 0.0, 0.0]), 60.0, 1.0)
    anywhere = evenly.opened(lambda nodes, _, bits: np.full(nodes.size, bits < 2), None)
    assert inside.number[:2] == pytest.approx([0.9 * 20 + 0.1 * 25, 0.9 * 30 + 0.1 * 25])  # the contrast is -0.2
    assert anywhere.number[:2] == pytest.approx([25, 25])


def test_points_where_points_are_make_no_drift_and_others_do() -> None:
    expected, noise = np.array([0.7, 0.2, 0.1]), np.full(3, 4.0)
    assert drift_score(1000 * expected, noise, expected) == 0
    scores = [drift_score(1000 * np.array([0.7 - part, 0.2, 0.1 + part]), noise, expected) for part in (0.1, 0.3, 0.6)]
    assert 0 < scores[0] < scores[1] < scores[2] == pytest.approx(1, abs=0.2)
    assert drift_score(1000 * np.array([0.6, 0.2, 0.2]), np.full(3, 1e5), expected) == 0  # noise explains it
