"""Noisy counts of nested nodes: what the tree of estimates gives is least squares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phdstream.privacy import noise_variance, scale_for
from phdstream.streams.tracking.model.least_squares import (
    KNOWN_EMPTY,
    NoisyCounts,
    count_variance,
    weighted_least_squares,
)


@given(seed=st.integers(0, 10_000))
def test_the_best_estimate_of_the_root_is_least_squares(seed: int) -> None:
    """Against the normal equations on the unknown counts of the leaves."""
    rng = np.random.default_rng(seed)
    leaves = np.array([4, 5, 6, 14, 15])
    nodes = np.concatenate([leaves, [1, 2, 3, 7, 6]])
    value, variance = rng.normal(10, 5, nodes.size), rng.uniform(0.5, 4, nodes.size)
    holds = np.array([[_inside(leaf, node) for leaf in leaves] for node in nodes], dtype=float)
    weighted = holds / np.sqrt(variance)[:, None]
    best = np.linalg.lstsq(weighted, value / np.sqrt(variance), rcond=None)[0]
    root = weighted_least_squares(NoisyCounts(nodes, value, variance))[0]
    assert root.value[0] == pytest.approx(best.sum())
    assert root.variance[0] == pytest.approx(np.linalg.inv(weighted.T @ weighted).sum())


@given(seed=st.integers(0, 10_000))
def test_what_counts_share_is_in_the_variance_of_their_sums(seed: int) -> None:
    """Every estimate is a sum of counts, by some weights: its variance is that of these, shared errors included."""
    rng = np.random.default_rng(seed)
    fine = NoisyCounts(np.array([4, 5, 6, 14, 15]), np.zeros(5), rng.uniform(0.5, 4, 5), rng.uniform(0, 2, (1, 5)))
    coarse = NoisyCounts(np.array([2, 3]), np.zeros(2), rng.uniform(0.5, 4, 2), rng.uniform(0, 2, (1, 2)))
    counts = NoisyCounts.concat(fine, coarse, NoisyCounts(np.array([1]), np.zeros(1), rng.uniform(0.5, 4, 1)))
    assert counts.loading.shape == (2, 8)
    covariance = np.diag(counts.variance) + counts.loading.T @ counts.loading
    for level, layer in enumerate(weighted_least_squares(counts)):
        weights = np.array(
            [
                weighted_least_squares(NoisyCounts(counts.node, unit, counts.variance, counts.loading))[level].value
                for unit in np.eye(8)
            ]
        )
        np.testing.assert_allclose(layer.total_variance, np.diag(weights.T @ covariance @ weights))


def test_a_sum_whose_parts_share_an_error_counts_less_beside_another_count() -> None:
    halves, root = np.array([2, 3]), NoisyCounts(np.array([1]), np.array([12.0]), np.array([2.0]))
    alone = NoisyCounts(halves, np.array([4.0, 4.0]), np.ones(2))
    shared = NoisyCounts(halves, np.array([4.0, 4.0]), np.ones(2), np.ones((1, 2)))  # of variance 2 + 2² as a sum
    assert weighted_least_squares(NoisyCounts.concat(alone, root))[0].value[0] == pytest.approx(10)
    assert weighted_least_squares(NoisyCounts.concat(shared, root))[0].value[0] == pytest.approx(11)


def _inside(leaf: int, node: int) -> bool:
    while leaf > node:
        leaf >>= 1
    return leaf == node


def test_layers_are_the_levels_of_the_tree() -> None:
    leaves = np.array([2, 6, 14, 15])
    layers = weighted_least_squares(NoisyCounts(leaves, np.ones(4), np.ones(4)))
    assert [layer.node.tolist() for layer in layers] == [[1], [2, 3], [6, 7], [14, 15]]
    assert [layer.inner.tolist() for layer in layers] == [[True], [False, True], [False, True], [False, False]]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 100.0, 1e4])
def test_no_count_is_taken_for_what_is_known_to_be_empty(epsilon: float) -> None:
    """Noise vanishes at a large ε; three counts of one node are still told from a place where nothing can be."""
    variance = count_variance(epsilon)
    assert variance >= noise_variance(scale_for(epsilon))
    counted = NoisyCounts(np.array([1, 1, 1]), np.zeros(3), np.full(3, variance))
    assert weighted_least_squares(counted)[0].variance[0] > KNOWN_EMPTY
    empty = weighted_least_squares(NoisyCounts.known_empty(np.arange(256, 512)))
    assert empty[0].variance[0] < KNOWN_EMPTY
