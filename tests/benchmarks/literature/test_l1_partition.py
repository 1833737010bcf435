"""DAWA's first stage: deviations as defined, the cheapest division of all, and noise of the stated scale."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from benchmarks.literature.l1_partition import best_ends, deviations, noisy_costs, private_ends


def test_deviations_are_as_defined() -> None:
    rng = np.random.default_rng(1)
    for counts in (rng.poisson(1.5, 37), rng.integers(0, 200, 16), np.zeros(5, np.int64), np.array([7])):
        for level, found in enumerate(deviations(counts)):
            length = 1 << level
            windows = np.lib.stride_tricks.sliding_window_view(counts, length)
            expected = np.abs(windows - windows.mean(axis=1, keepdims=True)).sum(axis=1)
            np.testing.assert_allclose(found, expected, atol=1e-9)
        assert 1 << len(deviations(counts)) > counts.size


def divisions(size: int) -> Iterator[list[int]]:
    """Yield where intervals end in every division into intervals of 1, 2, 4, ... counts."""
    if size == 0:
        yield []
    for level in range(size.bit_length()):
        if (length := 1 << level) <= size:
            yield from ([*rest, size] for rest in divisions(size - length))


@pytest.mark.parametrize("size", [1, 2, 7, 11])
def test_the_division_is_the_cheapest_of_all(size: int) -> None:
    rng = np.random.default_rng(size)
    costs = [rng.uniform(0, 1 + level, size - (1 << level) + 1) for level in range(size.bit_length())]

    def cost(ends: list[int]) -> float:
        return sum(
            float(costs[(end - start).bit_length() - 1][start]) for start, end in zip([0, *ends], ends, strict=False)
        )

    every = list(divisions(size))
    assert cost(best_ends(costs).tolist()) == pytest.approx(min(cost(ends) for ends in every))
    assert best_ends(costs).tolist() in every


def test_without_noise_it_finds_where_counts_change() -> None:
    counts = np.repeat([3, 50, 0], [4, 2, 10])
    assert private_ends(counts, 1e9, 1.0, np.random.default_rng(1)).tolist() in ([4, 6, 8, 16], [4, 6, 14, 16])


def test_a_cost_moves_by_no_more_than_its_noise_is_for() -> None:
    """One point more moves an interval's deviation by at most 2 - 2/length, which the scale times ε is at least."""
    rng, size = np.random.default_rng(4), 32
    for _ in range(20):
        counts = rng.poisson(2, size)
        more = counts + (np.arange(size) == rng.integers(size))
        for level, (one, other) in enumerate(zip(deviations(counts), deviations(more), strict=True)):
            moved = np.abs(one - other)
            assert moved.max() <= 2 - 2 * 0.5**level + 1e-9
            assert moved.max() <= 2 - 0.5**level - 1 / size + 1e-9 or not level
            assert (moved > 1e-12).sum() <= 1 << level


@pytest.mark.statistical
def test_noise_has_the_stated_scale() -> None:
    counts, first, second = np.full(1 << 12, 10**6), 1e-4, 0.5
    counts[::2] = 0  # deviations are far above the noise, so that none is cut at 0
    for level, found in enumerate(noisy_costs(counts, first, second, np.random.default_rng(1))[:8]):
        noise = found - deviations(counts)[level] - 1 / second
        scale = (2 - 0.5**level - 1 / counts.size) / first if level else 0
        assert np.abs(noise).mean() == pytest.approx(scale, rel=0.1, abs=1e-6)
