"""From weighted codes to contrasts: what is divided, how far, and under which name."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.domains.binary_tree import BinaryTree
from phdstream.priors.splits import MOST_NODES, divided

LINE = BinaryTree(phd.Box([(0, 1)], depth=6))


def test_contrasts_are_those_of_the_weights_drawn_a_little_to_the_measure() -> None:
    codes = np.array([0] * 300 + [63] * 100)
    splits = divided(LINE, codes, np.ones(400))
    assert splits.node[0] == 1
    assert splits.contrast[0] == pytest.approx(0.5 * 400 / 401, abs=1e-6)
    assert splits.variance[0] == pytest.approx((1 - splits.contrast[0] ** 2) / 402, abs=1e-6)


def test_only_the_proportions_of_weights_matter() -> None:
    rng = np.random.default_rng(1)
    codes, weights = rng.integers(0, 64, 500), rng.uniform(1, 5, 500)
    one, other = divided(LINE, codes, weights), divided(LINE, codes, 1000 * weights)
    assert one.digest == other.digest


def test_the_order_of_points_does_not_matter_and_every_number_does() -> None:
    rng = np.random.default_rng(1)
    codes, weights = rng.integers(0, 64, 500), np.ones(500)
    splits, turned = divided(LINE, codes, weights), divided(LINE, codes[::-1], weights)
    assert splits.digest == turned.digest
    codes[0] ^= 63
    assert divided(LINE, codes, weights).digest != splits.digest


def test_what_few_points_tell_is_left_to_the_measure() -> None:
    splits = divided(LINE, np.array([0, 0, 0, 63]), np.ones(4))
    assert splits.node.tolist() == [1]  # the halves hold three points and one
    heavy = divided(LINE, np.array([0, 0, 0, 63]), np.array([1.0, 1.0, 1.0, 1000.0]))
    assert heavy.node.size == 0  # one heavy point is one point


def test_no_more_nodes_than_allowed_and_each_with_its_ancestors() -> None:
    tree = BinaryTree(phd.Box([(0, 1)] * 2, depth=20))
    codes = np.random.default_rng(1).integers(0, 1 << 20, 20_000)
    splits = divided(tree, codes, np.ones(codes.size), most=500)
    assert splits.node.size == 500 < MOST_NODES
    assert np.isin(splits.node[splits.node > 1] >> 1, splits.node).all()
    assert (np.diff(splits.node) > 0).all()


def test_a_half_of_no_measure_holds_nothing() -> None:
    """Smoothing must not put events into the sea."""
    island = phd.Region([shapely.box(0, 0, 1, 1), shapely.box(7, 7, 8, 8)], depth=8)
    points = np.random.default_rng(1).uniform(0, 1, (500, 2))
    codes, inside = island.encode(points)
    tree = BinaryTree(island)
    splits = divided(tree, codes[inside], np.ones(int(inside.sum())))
    lengths = tree.bits(splits.node)
    for bits in np.unique(lengths).tolist():
        nodes = splits.node[lengths == bits]
        measure = 2 * tree.first_share(nodes, bits) - 1
        certain = np.abs(measure) == 1
        np.testing.assert_array_equal(splits.contrast[lengths == bits][certain], measure[certain])
