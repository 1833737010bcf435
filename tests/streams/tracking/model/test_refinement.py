"""Fine counts in stages: what is divided, how far, with which noise, and that the sum is not biased by choosing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import phdstream as phd
from phdstream.arrays import Floats, Ints
from phdstream.domains.binary_tree import BinaryTree
from phdstream.privacy import Budget, DivisibleNoise, Noise, noise_variance
from phdstream.streams.private_codes import PrivateCodes, TickEvents
from phdstream.streams.tracking.mechanism import Mechanism
from phdstream.streams.tracking.model.least_squares import NoisyCounts
from phdstream.streams.tracking.model.policy import expected_in_block
from phdstream.streams.tracking.model.refinement import Deeper, ExpectedCounts, Refinement
from phdstream.streams.tracking.model.split_tree import UNIFORM, SplitTree
from phdstream.streams.tracking.parameters import FineCounts, Stages
from phdstream.streams.tracking.pieces import Pieces
from tests.noises import KnownNoise

DEEP = BinaryTree(phd.Box([(0, 1)], depth=8))
STAGES: Stages = ((20.0, 3), (10.0, 1), (5.0, 0))
UNEVEN = np.repeat(np.arange(256), np.diff([*(np.arange(32) * 400 // 32), *(400 + np.arange(225) * 100 // 224)]))
"""The codes of 400 events in the first eighth of the line and of 100 in the rest."""


def evenly(number: float) -> ExpectedCounts:
    return ExpectedCounts(DEEP, np.array([1]), np.array([[number], [1.0]]), (UNIFORM, UNIFORM))


def count(
    expected: ExpectedCounts,
    codes: Ints,
    noise: Noise,
    stages: Stages = STAGES,
    limit: int | None = None,
    rule: FineCounts | None = None,
    deeper: Deeper | None = None,
) -> NoisyCounts:
    """Return the outcome of a fine count with ε = 1."""
    bits = expected.tree.total_bits
    mechanism = Mechanism(Budget(1.0, 0.0, 1.0), bits, noise)
    mechanism.take_start([TickEvents(PrivateCodes(bits, Fraction(1), codes), PrivateCodes(bits, Fraction(1)))])
    plan = Refinement(rule or FineCounts(), expected, stages, 1.0, limit, deeper=deeper)
    return plan.outcome(mechanism.count_start(plan, 1.0))


def counted(
    seed: int, stages: Stages = STAGES, limit: int | None = None, rule: FineCounts | None = None
) -> NoisyCounts:
    return count(evenly(500.0), UNEVEN, phd.Simulation(seed), stages, limit, rule)


def true_counts(nodes: Ints) -> Ints:
    first, past = DEEP.code_range(nodes)
    return np.searchsorted(UNEVEN, past) - np.searchsorted(UNEVEN, first)


def assert_tiles(tree: BinaryTree, nodes: Ints) -> None:
    first, past = (np.sort(ends) for ends in tree.code_range(nodes))
    np.testing.assert_array_equal(first[1:], past[:-1])
    assert (first[0], past[-1]) == (0, 1 << tree.total_bits)


def test_the_final_nodes_tile_the_line_and_are_finer_where_more_is() -> None:
    node = counted(seed=1).node
    assert_tiles(DEEP, node)
    dense = DEEP.code_range(node)[0] < 32
    assert DEEP.bits(node[dense]).min() > DEEP.bits(node[~dense]).min()


def test_without_noise_the_counts_are_exact() -> None:
    found = count(evenly(500.0), UNEVEN, KnownNoise())
    np.testing.assert_array_equal(found.value, true_counts(found.node))
    assert found.value.sum() == 500


@pytest.mark.parametrize("limit", [1, 5, 33, 40])
def test_no_more_nodes_than_allowed(limit: int) -> None:
    assert counted(seed=1, limit=limit).node.size <= limit


@pytest.mark.slow
def test_the_sum_is_unbiased() -> None:
    """Though nodes whose noise is large are divided more often, and keep it; else it would be, and shows."""

    def bias(rule: FineCounts) -> float:
        sums = [counted(seed, rule=rule).value.sum() for seed in range(300)]
        return float((np.mean(sums) - 500) / (np.std(sums) / np.sqrt(len(sums))))

    assert abs(bias(FineCounts())) < 4
    assert bias(FineCounts(return_dropped_noise=False)) > 6


def test_what_is_not_divided_is_left_with_one_part_of_noise() -> None:
    errors: list[float] = []
    for seed in range(100):
        found = counted(seed, ((20.0, 3), (1e9, 0)))
        error: Floats = found.value - true_counts(found.node)
        errors.extend(error - error.mean())  # what was given back is the same for all
    assert np.var(errors) == pytest.approx(noise_variance(1.0), rel=0.1)


class CountingParts(KnownNoise):
    """Adds nothing, and remembers how many parts were drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[int] = []

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        """Return parts of nothing."""
        self.drawn.append(int(parts.sum()))
        return super().divisible(scale, parts, at)


def test_no_more_parts_are_drawn_than_memory_allows() -> None:
    noise, stages = CountingParts(), ((20.0, 6), (5.0, 0))
    for limit in (1, 10, 33, 100):
        count(evenly(500.0), UNEVEN, noise, stages, limit)
        assert noise.drawn[-1] <= 4 * limit
    assert noise.drawn[-1] > 100
    count(evenly(500.0), UNEVEN, noise, stages, 100, FineCounts(parts_per_node=1))
    assert noise.drawn[-1] <= 100


def test_what_holds_much_is_divided_as_often_as_it_may_be() -> None:
    """One place holds everything: from stage to stage it is found more closely, four halvings in all."""
    stages = ((200.0, 4), (100.0, 2), (10.0, 0))
    found = count(evenly(500.0), np.full(500, 77), phd.Simulation(1), stages)
    first, past = DEEP.code_range(found.node)
    here = (first <= 77) & (past > 77)
    assert DEEP.bits(found.node[here]).tolist() == [2 + 4]
    assert found.value[here][0] == pytest.approx(500, abs=20)


WORLD = BinaryTree(phd.Box([(0, 1)], depth=30))
LOOK, SHALLOW = Deeper(60.0, 2**16), ((20.0, 3), (10.0, 0))


def in_one_place(seed: int, deeper: Deeper | None) -> tuple[NoisyCounts, int]:
    """Count five thousand events of one place of a world; return how long its node is, too."""
    number, place = 5000, 123_456_789
    expected = ExpectedCounts(WORLD, np.array([1]), np.array([[number], [1.0]]), (UNIFORM, UNIFORM))
    found = count(expected, np.full(number, place), phd.Simulation(seed), SHALLOW, deeper=deeper)
    first, past = WORLD.code_range(found.node)
    here = (first <= place) & (past > place)
    assert found.value[here][0] == pytest.approx(number, abs=25)
    return found, int(WORLD.bits(found.node[here])[0])


def test_looking_deeper_finds_one_place_that_holds_everything() -> None:
    for seed in range(20):
        found, bits = in_one_place(seed, LOOK)
        assert_tiles(WORLD, found.node)
        assert bits == in_one_place(seed, None)[1] + 5
        assert found.node.size < 2 * in_one_place(seed, None)[0].node.size  # noise opens hardly anything


@pytest.mark.slow
def test_looking_deeper_the_sum_is_unbiased_and_hardly_worse_known() -> None:
    def errors(deeper: Deeper | None) -> Floats:
        return np.array([in_one_place(seed, deeper)[0].value.sum() for seed in range(300)]) - 5000

    shallow, deep = errors(None), errors(LOOK)
    assert abs(deep.mean()) < 4 * deep.std() / np.sqrt(deep.size)
    assert deep.std() < 1.5 * shallow.std()


def test_looking_deeper_draws_no_more_parts_than_allowed_and_needs_no_noise() -> None:
    noise = CountingParts()
    for parts in (1, 300, 5000):
        count(evenly(500.0), UNEVEN, noise, deeper=Deeper(60.0, parts))
        assert noise.drawn[-1] <= max(parts, 32 * 8)  # without looking deeper 32 nodes have 8 parts each
    found = count(evenly(500.0), UNEVEN, KnownNoise(), deeper=LOOK)
    np.testing.assert_array_equal(found.value, true_counts(found.node))


def test_what_is_not_divided_is_expected_to_hold_what_it_was() -> None:
    before = evenly(100.0).opened(lambda nodes, _, bits: np.full(nodes.size, bits < 2), None)
    after = before.corrected(np.array([500, 25, 0, 60]), np.full(4, 2.0), latitude=1.0)
    after = after.opened(lambda nodes, _, bits: (nodes == 4) & (bits == 2), None).unless_whole(before)
    assert after.node.tolist() == [5, 6, 7, 8, 9]
    assert after.number == pytest.approx([25, 25, 25, 250, 250], abs=3)
    plan = Refinement(FineCounts(), evenly(500.0), STAGES, 1.0, None, deeper=LOOK)
    nodes, levels = plan.first()
    assert levels > STAGES[0][1]
    same = plan.refine(Pieces.whole(DEEP.total_bits, nodes, levels), np.full(nodes.size, 40))
    assert same is not None
    np.testing.assert_array_equal(same[0], nodes)
    assert plan.expected.number == pytest.approx([500 / nodes.size] * nodes.size)


def test_a_block_is_counted_where_its_events_are_expected() -> None:
    line = BinaryTree(phd.Box([(0, 1)], depth=6))
    splits = SplitTree(np.array([1, 2, 5]), np.array([0.6, -0.2, 0.9]), np.array([0.1, 0.1, 0.1]))
    zones = np.array([2, 6, 7])
    expected = expected_in_block(line, splits, zones, np.array([50.0, 0.0, 0.0]), 60.0, 0.1)
    found = count(expected, np.zeros(0, np.int64), phd.Simulation(1), ((5.0, 2), (3.0, 0)))
    assert found.node.size > zones.size
    assert_tiles(line, found.node)


def test_more_is_expected_where_more_was_seen_and_nothing_less_than_nothing() -> None:
    expected = evenly(100.0).opened(lambda nodes, _, bits: np.full(nodes.size, bits < 2), None)
    seen, variance = np.array([500, 25, 0, -300]), np.full(4, 2.0)
    corrected = expected.corrected(seen, variance, latitude=1.0).number
    assert corrected == pytest.approx([500, 25, 0, 0], abs=3)
    assert (corrected >= 0).all()
    unmoved = expected.corrected(seen, np.full(4, 1e12), latitude=1.0).number
    assert unmoved == pytest.approx([25] * 4, abs=0.01)
