"""What a prior is worth, learnt from counts: a fitting one, a wrong one, one that says nothing."""

from __future__ import annotations

import numpy as np
import pytest

import phdstream as phd
from phdstream.arrays import Floats
from phdstream.domains.binary_tree import BinaryTree
from phdstream.priors.splits import divided
from phdstream.streams.tracking.model.least_squares import Layer, NoisyCounts, weighted_least_squares
from phdstream.streams.tracking.model.prior import PriorDensity
from phdstream.streams.tracking.model.refinement import ExpectedCounts, Refinement
from phdstream.streams.tracking.model.split_tree import UNIFORM, SplitTree
from phdstream.streams.tracking.parameters import TrackingParameters

RULES = TrackingParameters()
SQUARE = phd.Box([(0, 1), (0, 1)], depth=12)
TREE = BinaryTree(SQUARE)


def hill(seed: int, number: int = 20_000) -> Floats:
    rng = np.random.default_rng(seed)
    return np.clip(rng.normal([0.3, 0.6], [0.1, 0.2], (number, 2)), 0, 1 - 1e-9)


def counted(points: Floats, depth: int = 8, deviation: float = 10.0) -> list[Layer]:
    """Return noisy counts of all nodes of a level, as layers."""
    codes = SQUARE.encode(points)[0] >> (TREE.total_bits - depth)
    counts = np.bincount(codes, minlength=1 << depth) + np.random.default_rng(1).normal(0, deviation, 1 << depth)
    nodes = np.arange(1 << depth) + (1 << depth)
    return weighted_least_squares(NoisyCounts(nodes, counts, np.full(nodes.size, deviation**2)))


def prior_of(points: Floats) -> PriorDensity:
    codes = SQUARE.encode(points)[0]
    splits = divided(TREE, codes, np.ones(codes.size))
    return PriorDensity.unseen(RULES, TREE, SplitTree(splits.node, splits.contrast, splits.variance))


def test_a_fitting_prior_is_believed_also_below_what_was_counted() -> None:
    learnt = prior_of(hill(2)).learnt(TREE, counted(hill(3)))
    assert (learnt.reliability[4:] > 0.9).all()
    assert (learnt.drift[4:] < 0.05).all()
    assert learnt.drift[-1] == learnt.drift[8]


@pytest.mark.parametrize("wrong", [1 - hill(2), np.random.default_rng(4).random((20_000, 2))], ids=["turned", "even"])
def test_a_wrong_prior_and_one_that_says_nothing_are_left_to_the_measure(wrong: Floats) -> None:
    learnt = prior_of(wrong).learnt(TREE, counted(hill(3)))
    assert (learnt.reliability[7:] == 0).all()
    assert (learnt.drift[7:] == learnt.free).all()
    assert TREE.bits(learnt.believed(TREE).node).max(initial=0) < 7


def test_a_prior_that_is_too_uneven_is_believed_in_part() -> None:
    """A twentieth of the points lies anywhere: contrasts are those of a mixture, nearer to even."""
    points = np.concatenate([hill(3, 20_000), np.random.default_rng(9).random((1_000, 2))])
    learnt = prior_of(hill(2)).learnt(TREE, counted(points, 6, 3.0))
    assert 0.2 < learnt.reliability[1:6].mean() < 0.9


def test_levels_that_are_not_believed_are_as_without_a_prior() -> None:
    prior = prior_of(hill(2))
    none = PriorDensity(prior.splits, prior.rule, prior.free, np.zeros(12), np.full(12, prior.free))
    nodes = np.arange(1 << 5, 1 << 6)
    contrast, variance = none.of(TREE, nodes, 5)
    np.testing.assert_array_equal(contrast, UNIFORM.of(TREE, nodes, 5)[0])
    np.testing.assert_array_equal(variance, np.full(nodes.size, prior.free))
    assert none.believed(TREE).node.size == 0


def test_what_the_prior_does_not_divide_is_divided_by_measure() -> None:
    prior = prior_of(hill(2, 100))
    beyond = np.arange(1 << 11, (1 << 11) + 5)
    contrast, variance = prior.of(TREE, beyond, 11)
    assert (contrast == 0).all()
    assert (variance == prior.free).all()


def test_noise_alone_does_not_pass_for_drift() -> None:
    """Where counts are all noise, a prior is neither borne out nor refuted: it keeps what the levels above say."""
    exact, noisy = (prior_of(hill(2)).learnt(TREE, counted(hill(3), 8, deviation)) for deviation in (1.0, 60.0))
    assert noisy.drift[7] < 0.3
    assert exact.drift[7] <= noisy.drift[7] + 0.05


def test_a_well_known_node_is_worth_counting_only_if_it_holds_more() -> None:
    """With κ = 1 the rule is the usual one; with less a node must hold more, and never less."""
    amounts = np.array([[30.0], [1.0]])
    expected = ExpectedCounts(TREE, np.array([1]), amounts, (UNIFORM, UNIFORM))

    def nodes(drift: Floats | None) -> int:
        rule = Refinement(RULES.fine_counts, expected, ((8.0, 0),), 1.0, None, drift)
        return rule.first()[0].size

    free, known = np.ones(12), np.full(12, 0.01)
    assert nodes(None) == nodes(free) == 4
    assert nodes(known) == 1
