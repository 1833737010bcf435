"""Constrained inference is the least squares solution, and what is exact stays exact."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.literature.least_squares import consistent_leaves

from phdstream.arrays import Floats


def incidence(fanout: int, height: int) -> Floats:
    """Return which leaves (columns) are below which nodes (rows), level by level."""
    levels = [np.repeat(np.eye(fanout**level), fanout ** (height - level), axis=1) for level in range(height + 1)]
    return np.concatenate(levels)


@pytest.mark.parametrize(("fanout", "height"), [(2, 4), (4, 2), (3, 1), (2, 0)])
def test_it_is_the_dense_solution(fanout: int, height: int) -> None:
    rng, below = np.random.default_rng(fanout), incidence(fanout, height)
    noisy, variances = rng.normal(size=(len(below), 3)), rng.uniform(0.5, 4, height + 1)
    sizes = fanout ** np.arange(height + 1)
    weight = np.repeat(variances**-0.5, sizes)[:, None]
    solved = np.linalg.lstsq(below * weight, noisy * weight, rcond=None)[0]
    levels = np.split(noisy, np.cumsum(sizes)[:-1])
    np.testing.assert_allclose(consistent_leaves(levels, variances.tolist(), fanout), solved, atol=1e-10)


def test_a_level_that_was_not_counted_says_nothing() -> None:
    leaves = np.array([1.0, 2, 3, 4])
    levels = [np.array([99.0]), np.array([99.0, -99.0]), leaves]
    assert consistent_leaves(levels, [np.inf, np.inf, 1.0], 2).tolist() == leaves.tolist()
    found = consistent_leaves([np.array([14.0]), np.array([0.0, 0.0]), leaves], [1e-12, np.inf, 1.0], 2)
    np.testing.assert_allclose(found, leaves + 1)
