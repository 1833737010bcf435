"""Contrasts of splits: what they say of masses, and how broken ones are mended."""

from __future__ import annotations

import numpy as np
import shapely

import phdstream as phd
from phdstream.domains import Domain
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.split_tree import UNKNOWN, SplitTree

LINE = BinaryTree(phd.Box([(0, 1)], depth=6))


def diamond() -> Domain:
    """Return a region with halves of measure zero on either side."""
    return phd.Region(shapely.Polygon([(0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5)]), depth=8)


def test_what_was_not_measured_divides_as_the_measure_does() -> None:
    tree, nodes = BinaryTree(diamond()), np.arange(4, 8)
    splits = SplitTree(np.array([5]), np.array([0.25]), np.array([0.01]))
    contrast, variance = splits.of(tree, nodes, 2)
    prior = 2 * tree.first_share(nodes, 2) - 1
    np.testing.assert_array_equal(contrast, np.where(nodes == 5, 0.25, prior))
    np.testing.assert_array_equal(variance, np.where(nodes == 5, 0.01, UNKNOWN))
    assert np.abs(prior).max() > 0


def test_updates_replace_and_add_and_change_nothing_in_place() -> None:
    before = SplitTree(np.array([1, 2, 5]), np.array([0.1, 0.2, 0.3]), np.full(3, 0.5))
    after = before.updated(np.array([2, 3]), np.array([0.7, 0.8]), np.array([0.1, 0.2]))
    assert after.node.tolist() == [1, 2, 3, 5]
    assert after.contrast.tolist() == [0.1, 0.7, 0.8, 0.3]
    assert after.variance.tolist() == [0.5, 0.1, 0.2, 0.5]
    assert before.contrast.tolist() == [0.1, 0.2, 0.3]


def test_mended_splits_are_sound_and_keep_out_of_places_without_measure() -> None:
    tree = BinaryTree(diamond())
    nodes = np.arange(1, 64)
    broken = SplitTree(nodes, np.resize([np.nan, 1.7, -3.0, 0.2, np.inf], 63), np.resize([0.1, np.nan, -2.0], 63))
    mended = broken.mended(tree)
    assert not broken.sound()
    assert mended.sound()
    first = np.concatenate([tree.first_share(nodes[(1 << b) - 1 : (2 << b) - 1], b) for b in range(6)])
    assert {0.0, 1.0} < set(first)
    np.testing.assert_array_equal(mended.contrast[first == 1], 1)
    np.testing.assert_array_equal(mended.contrast[first == 0], -1)
    np.testing.assert_array_equal(mended.contrast[0], 2 * first[0] - 1)


def test_trees_of_the_same_nodes_share_their_links() -> None:
    before = SplitTree(np.array([1, 2, 5]), np.array([0.1, 0.2, 0.3]), np.full(3, 0.5))
    assert before.updated(np.array([2]), np.array([0.7]), np.array([0.1])).links is before.links
    assert before.updated(np.array([3]), np.array([0.7]), np.array([0.1])).links is not before.links
    assert sorted(before.to_arrays()) == ["contrast", "node", "variance"]
