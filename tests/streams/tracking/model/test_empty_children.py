"""Halves next to nothing, judged by the other halves of their length and by their neighbours."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.arrays import Floats
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.empty_children import empty_children
from phdstream.streams.tracking.model.kalman import Learning, kalman_update
from phdstream.streams.tracking.model.least_squares import NoisyCounts, weighted_least_squares
from phdstream.streams.tracking.model.split_tree import SplitTree
from phdstream.streams.tracking.parameters import EmptyChildren, EmptyHalves, Filter
from tests.streams.tracking.model.hills import BOX, PLANE, leaf_counts
from tests.thorough import cases

LEAVES, NOISE = np.arange(1 << 10) + (1 << 10), 5.0
BLACK = (np.floor(8 * BOX.bounds(LEAVES)[:, :2]).sum(axis=1) % 2).astype(bool)
RULES = EmptyHalves(), EmptyChildren()


def nothing_emptied(splits: SplitTree) -> np.ndarray:
    return np.zeros(splits.node.size, dtype=bool)


def counted(true: Floats, seed: int, tree: BinaryTree = PLANE) -> SplitTree:
    noisy = true + np.random.default_rng(seed).normal(0, NOISE, true.size)
    layers = weighted_least_squares(NoisyCounts(LEAVES, noisy, np.full(true.size, NOISE**2)))
    return kalman_update(tree, SplitTree.empty(), layers, noisy.sum(), noisy.sum(), Learning(Filter(), 1.0))


@cache
def on_black(thin: float, seed: int, *, clear: bool) -> float:
    """Return how many points seem to be on the black squares of a chessboard whose white ones are dense."""
    true = np.where(BLACK, thin, 60.0)
    splits = counted(true, seed)
    if clear:
        splits, _ = empty_children(RULES, PLANE, splits, true.sum(), nothing_emptied(splits))
    return float(leaf_counts(PLANE, splits, true.sum(), 10)[BLACK].sum())


def test_where_nothing_is_less_remains() -> None:
    before, after = (sum(on_black(0.0, seed, clear=clear) for seed in range(8)) for clear in (False, True))
    assert after < 0.4 * before


@pytest.mark.parametrize("thin", [3.0, 10.0])
def test_what_is_thin_but_there_stays(thin: float) -> None:
    kept = np.mean([on_black(thin, seed, clear=True) for seed in range(8)])
    assert kept == pytest.approx(thin * BLACK.sum(), rel=0.1)


def test_switched_off_nothing_more_is_emptied() -> None:
    splits = counted(np.where(BLACK, 0.0, 60.0), 1)
    already = np.random.default_rng(1).random(splits.node.size) < 0.1
    off = RULES[0], replace(RULES[1], on=False)
    seen, emptied = empty_children(off, PLANE, splits, 30_720, already)
    np.testing.assert_array_equal(emptied, already)
    np.testing.assert_array_equal(seen.contrast, np.where(already, np.sign(splits.contrast), splits.contrast))


def test_neighbours_tell_a_hole_from_the_sea() -> None:
    """An island with small thin places, and nothing around it: knowing of neighbours, less is wrong."""
    middle = BOX.bounds(LEAVES) @ np.array([[0.5, 0], [0, 0.5], [0.5, 0], [0, 0.5]])
    holes = np.random.default_rng(9).random(LEAVES.size) < 0.15
    true = np.where(np.hypot(*(middle - 0.47).T) < 0.4, np.where(holes, 6.0, 40.0), 0.0)

    def wrong(tree: BinaryTree) -> float:
        total = 0.0
        for seed in range(6):
            splits = counted(true, seed)
            seen, _ = empty_children(RULES, tree, splits, true.sum(), nothing_emptied(splits))
            total += float(np.abs(leaf_counts(PLANE, seen, true.sum(), 10) - true).sum())
        return total

    unaware = BinaryTree(BOX)
    unaware.axes = ()
    assert wrong(PLANE) < wrong(unaware)


TREES = {"plane": PLANE, "cube": BinaryTree(phd.Cube(10)), "line": BinaryTree(phd.Box([(0, 1)], depth=10))}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@settings(max_examples=cases(8, 100))
@given(seed=st.integers(0, 10**6))
def test_only_smaller_halves_are_emptied_and_only_what_is_said(tree: BinaryTree, seed: int) -> None:
    true = np.random.default_rng(seed).lognormal(1, 2, 1 << 10) * (np.arange(1 << 10) % 3 > 0)
    splits = counted(true, seed, tree)
    before = splits.contrast.copy()
    already = np.random.default_rng(seed + 1).random(splits.node.size) < 0.1
    seen, emptied = empty_children(RULES, tree, splits, float(true.sum()), already)
    assert emptied[already].all()
    np.testing.assert_array_equal(seen.contrast[~emptied], splits.contrast[~emptied])
    np.testing.assert_array_equal(seen.contrast[emptied], np.sign(splits.contrast[emptied]))
    np.testing.assert_array_equal(seen.variance, splits.variance)
    np.testing.assert_array_equal(splits.contrast, before)  # what is known is not changed


def test_places_where_nothing_can_be_do_not_tell_how_much_is_empty() -> None:
    """Of half the nodes of the last level one half has no measure, of the rest one is thin, and stays so."""
    second = LEAVES % 2 == 1
    other = np.repeat(np.random.default_rng(3).random(LEAVES.size // 2) < 0.5, 2)
    there = ~(second & other)
    region = phd.Region(shapely.union_all(shapely.box(*BOX.bounds(LEAVES[there]).T)), depth=10)
    true = np.where(second, 10.0, 60.0)[there]
    noisy = true + np.random.default_rng(2).normal(0, NOISE, true.size)
    counts = NoisyCounts(LEAVES[there], noisy, np.full(true.size, NOISE**2))
    tree, nowhere = BinaryTree(region), NoisyCounts.known_empty(LEAVES[~there])
    layers = weighted_least_squares(NoisyCounts.concat(counts, nowhere))
    splits = kalman_update(tree, SplitTree.empty(), layers, true.sum(), true.sum(), Learning(Filter(), 1.0))
    seen, emptied = empty_children(RULES, tree, splits, true.sum(), nothing_emptied(splits))
    assert leaf_counts(tree, seen, true.sum(), 10)[~there].sum() == 0
    whole = LEAVES[second & there] >> 1
    assert emptied[np.searchsorted(splits.node, whole)].mean() < 0.05
