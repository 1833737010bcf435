"""What is released of the splits: smoothed where neighbours say more; none of it changes what is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import shapely

import phdstream as phd
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.emptiness import Emptiness
from phdstream.streams.tracking.model.estimate import to_estimate
from phdstream.streams.tracking.model.regularize import _tilted, regularize
from phdstream.streams.tracking.model.split_tree import SplitTree
from phdstream.streams.tracking.parameters import EmptyHalves, TrackingParameters
from tests.streams.tracking.model.hills import PLANE, bump, leaf_counts, measured_splits

MANY = 10**6
RULES = TrackingParameters()


def view(
    tree: BinaryTree, splits: SplitTree, total: float, limit: int = MANY, rules: TrackingParameters = RULES
) -> SplitTree:
    emptiness = Emptiness.seen_in(rules.empty_halves, splits, total)
    return regularize(rules, tree, splits, total, emptiness, limit)


def test_a_smooth_density_is_found_through_noise() -> None:
    true = bump(10, 20_000)
    errors = []
    for seed in range(3):
        splits = measured_splits(true, 12.0, seed)
        seen = view(PLANE, splits, 20_000)
        errors.append([np.abs(leaf_counts(PLANE, s, 20_000, 10) - true).sum() for s in (splits, seen)])
    plain, smooth = np.mean(errors, axis=0)
    assert smooth < 0.75 * plain


def test_below_what_was_measured_the_slope_goes_on() -> None:
    splits, true = measured_splits(bump(8, 50_000), 1e-3, 1), bump(10, 50_000)
    plain, smooth = (
        np.abs(leaf_counts(PLANE, s, 50_000, 10) - true).sum() for s in (splits, view(PLANE, splits, 50_000))
    )
    assert smooth < 0.4 * plain


def test_a_rugged_density_is_left_as_measured() -> None:
    true = np.random.default_rng(4).lognormal(3, 1.5, 1 << 10)
    splits = measured_splits(true, 0.5, 1)
    total = float(true.sum())
    plain, seen = (np.abs(leaf_counts(PLANE, s, total, 10) - true).sum() for s in (splits, view(PLANE, splits, total)))
    assert seen < 1.1 * plain


def test_mass_is_only_moved() -> None:
    splits = measured_splits(bump(10, 500), 5.0, 7)
    before = splits.contrast.copy()
    seen = view(PLANE, splits, 500.0)
    assert leaf_counts(PLANE, seen, 500.0, 12).sum() == pytest.approx(500)
    assert seen.sound()
    np.testing.assert_array_equal(splits.contrast, before)


def test_a_half_that_noise_emptied_is_filled_again_and_one_decided_to_be_empty_is_not() -> None:
    splits = measured_splits(bump(10, 20_000), 12.0, 1)
    middle = int(np.argmin(np.where(splits.node >= 512, np.abs(splits.contrast), 9)))
    one = np.arange(splits.node.size) == middle
    clipped = SplitTree(splits.node, np.where(one, 1.0, splits.contrast), splits.variance)
    for prior_empty, emptied in ((0.02, False), (0.95, True)):
        seen = regularize(RULES, PLANE, clipped, 20_000, Emptiness(EmptyHalves(), prior_empty), MANY)
        contrast = float(seen.contrast[np.searchsorted(seen.node, splits.node[middle])])
        assert (contrast > 0.999) == emptied


def test_with_little_room_nothing_is_added() -> None:
    splits = measured_splits(bump(8, 5_000), 1.0, 7)
    np.testing.assert_array_equal(view(PLANE, splits, 5_000, limit=300).node, splits.node)


def test_switched_off_it_leaves_what_is_known() -> None:
    splits = measured_splits(bump(8, 5_000), 1.0, 7)
    off = RULES.changed({"smoothing.on": False, "empty_halves.on": False, "empty_children.on": False})
    seen = view(PLANE, splits, 5_000, rules=off)
    np.testing.assert_array_equal(seen.node, splits.node)
    np.testing.assert_array_equal(seen.contrast, splits.contrast)


def test_no_halvings_below_what_was_measured_add_no_nodes() -> None:
    splits = measured_splits(bump(8, 50_000), 1.0, 7)
    flat = replace(RULES, smoothing=replace(RULES.smoothing, halvings=0))
    assert view(PLANE, splits, 50_000, rules=flat).node.size == splits.node.size
    assert view(PLANE, splits, 50_000).node.size > splits.node.size


def test_a_tree_that_is_no_grid_is_not_smoothed() -> None:
    tree = BinaryTree(phd.Cube(10))
    splits = measured_splits(bump(10, 20_000), 12.0, 1)
    seen = view(tree, splits, 20_000)
    open_ = np.abs(seen.contrast) < 1
    np.testing.assert_array_equal(seen.contrast[open_], splits.contrast[open_])


def test_nothing_is_moved_out_of_a_region() -> None:
    region = phd.Region(shapely.Polygon([(0, 0), (1, 0), (0, 1)]), depth=12)
    rng = np.random.default_rng(5)
    points = rng.uniform(size=(4_000, 2))
    stream = phd.TrackingStream(region, 2.0, phd.Event(), noise=phd.Simulation(3))
    release = stream.update(points[points.sum(axis=1) < 1])
    assert region.encode(release.sample())[1].all()


def test_slopes_multiply_the_odds_of_the_measure() -> None:
    prior, slope = np.meshgrid(np.linspace(-1, 1, 41), np.linspace(-0.9, 0.9, 37))
    tilted = _tilted(prior, slope)
    assert np.abs(tilted).max() <= 1
    inner = np.abs(prior) < 1
    odds = [(1 + contrast[inner]) / (1 - contrast[inner]) for contrast in (tilted, prior, slope)]
    np.testing.assert_allclose(odds[0], odds[1] * odds[2])
    np.testing.assert_array_equal(tilted[~inner], prior[~inner])
    np.testing.assert_array_equal(_tilted(np.zeros(37), slope[:, 0]), slope[:, 0])


def test_a_view_searches_for_a_node_once_and_an_estimate_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    splits, search, needles = measured_splits(bump(12, 50_000), 1.0, 1), np.searchsorted, [0]

    def counted(within: Any, sought: Any, *rest: Any, **options: Any) -> Any:
        needles[0] += np.size(sought)
        return search(within, sought, *rest, **options)

    monkeypatch.setattr(np, "searchsorted", counted)
    seen = view(PLANE, splits, 50_000)
    assert splits.node.size <= needles[0] < 1.1 * splits.node.size  # each for its parent
    needles[0] = 0
    estimate = to_estimate(PLANE, seen, 50_000, 1.0, key=1, thin=0.2)
    assert estimate.node.size > splits.node.size
    assert needles[0] < 100
