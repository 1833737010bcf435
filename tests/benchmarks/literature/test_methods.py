"""The published methods do what their papers say: exact without noise, noise where and as large as stated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from benchmarks.invented import places
from benchmarks.literature.dawa import _counted, _workload, dawa, hilbert, level_scales
from benchmarks.literature.densities import Density, Grid, grid_counts
from benchmarks.literature.grids import adaptive_grid, uniform_grid, uniform_side
from benchmarks.literature.methods import METHODS, PLAIN, POINTS
from benchmarks.literature.privelet import from_wavelets, privelet, sensitivity, to_wavelets
from benchmarks.literature.privtree import privtree, split_noise
from benchmarks.literature.quadtree import height_of, level_budgets, morton, quad_opt, unmorton

from phdstream.arrays import Floats
from phdstream.evaluation import count_points

ONE_SHOT = (uniform_grid, adaptive_grid, quad_opt, privelet, privtree, dawa)


class Silent(np.random.Generator):
    """A generator whose Laplace noise is 0."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(1))

    def laplace(self, loc=0.0, scale=1.0, size=None):  # type: ignore[no-untyped-def]
        return np.zeros(size) if size is not None else 0.0


def points(number: int = 3000) -> Floats:
    return places(np.random.default_rng(1), number, 12, 0.02, 0.2)


def unaligned(number: int = 60) -> Floats:
    corners = np.sort(np.random.default_rng(3).random((number, 2, 2)), axis=1)
    return np.concatenate([corners[:, 0], corners[:, 1]], axis=1)


@pytest.mark.parametrize("make", ONE_SHOT)
def test_without_noise_the_total_is_exact_and_the_rest_near(make: Callable[..., Density]) -> None:
    found = make(points(), 4.0, Silent())
    assert found.count(np.array([[0.0, 0, 1, 1]]))[0] == pytest.approx(3000)
    off = np.abs(found.count(unaligned()) - count_points(points(), unaligned()))
    assert off.mean() < 100


@pytest.mark.parametrize("make", [uniform_grid, quad_opt, privelet])
def test_grids_are_exact_without_noise(make: Callable[..., Grid]) -> None:
    counts = make(points(), 4.0, Silent()).counts
    np.testing.assert_allclose(counts, grid_counts(points(), counts.shape[0]), atol=1e-9)


@pytest.mark.parametrize("make", [adaptive_grid, privtree])
def test_cells_are_exact_without_noise_and_cover_the_square_once(make: Callable[..., Density]) -> None:
    cells = make(points(), 4.0, Silent())
    low, high = cells.bounds[:, :2], cells.bounds[:, 2:]  # type: ignore[attr-defined]
    assert np.prod(high - low, axis=1).sum() == pytest.approx(1)
    within = np.hstack([low, high - (high < 1) * 1e-12])
    np.testing.assert_allclose(cells.counts, count_points(points(), within), atol=1e-6)  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", ONE_SHOT)
@pytest.mark.statistical
def test_large_counts_are_unbiased(make: Callable[..., Density]) -> None:
    quarter, runs = np.array([[0.0, 0, 0.5, 0.5]]), 60
    true = count_points(points(), quarter)[0]
    found = [make(points(), 1.0, np.random.default_rng(seed)).count(quarter)[0] for seed in range(runs)]
    bias = 60 if make in (uniform_grid, privtree, dawa, adaptive_grid) else 0  # cells need not end at the half
    assert abs(np.mean(found) - true) < bias + 4 * np.std(found) / np.sqrt(runs)


def test_sides_are_the_authors() -> None:
    assert uniform_side(100_000, 1.0) == 100
    assert uniform_grid(points(1000), 1.0, Silent()).counts.shape == (10, 10)
    fixed = adaptive_grid(np.full((1000, 2), 0.05), 1.0, Silent())
    assert fixed.counts.size == 99 + 10**2, "99 empty cells of one part; N'/2/5 = 100 parts of the full one"


def test_both_levels_of_an_adaptive_grid_agree_by_least_squares() -> None:
    """One first-level cell with three by three parts: the weighted mean of its count and of its parts' sum."""

    class Fixed(Silent):
        def laplace(self, loc=0.0, scale=1.0, size=None):  # type: ignore[no-untyped-def]
            first = size == 100
            noise = np.zeros(size)
            noise[0 if first else slice(0, 9)] = 7.0 if first else [1, 2, 3, 4, 5, 6, 7, 8, 9]
            return noise

    found = adaptive_grid(np.full((80, 2), 0.05), 1.0, Fixed()).counts[:9]
    parts = np.zeros(9)
    parts[4] = 80
    noisy, below = np.append(87, parts + np.arange(1, 10)), np.vstack([np.ones(9), np.eye(9)])
    np.testing.assert_allclose(found, np.linalg.lstsq(below, noisy, rcond=None)[0], atol=1e-9)


def test_a_quadtrees_leaves_are_in_order() -> None:
    grid = np.arange(64.0).reshape(8, 8)
    leaves = morton(grid)
    assert leaves[:16].reshape(-1).tolist() == morton(grid[:4, :4]).tolist()
    assert leaves[-16:].tolist() == morton(grid[4:, 4:]).tolist()
    assert (unmorton(leaves) == grid).all()
    assert unmorton(morton(grid[:1, :1])).tolist() == [[0]]
    for level in range(4):
        quarters = [each.sum() for row in np.split(grid, 1 << level) for each in np.split(row, 1 << level, axis=1)]
        assert sorted(leaves.reshape(4**level, -1).sum(axis=1)) == sorted(quarters)


def test_a_quadtrees_budget_is_geometric() -> None:
    budgets = level_budgets(0.7, 5)
    assert budgets.sum() == pytest.approx(0.7)
    np.testing.assert_allclose(budgets[1:] / budgets[:-1], 2 ** (1 / 3))
    assert height_of(10, 0.1) == 2
    assert height_of(10**9, 2.0) == 10


def test_wavelets_restore_exactly() -> None:
    grid = np.random.default_rng(1).normal(size=(16, 16))
    np.testing.assert_allclose(from_wavelets(to_wavelets(grid)), grid, atol=1e-12)
    assert to_wavelets(grid)[0, 0] == pytest.approx(grid.sum())


@pytest.mark.parametrize("side", [1, 2, 8])
def test_the_sensitivity_of_wavelets_is_what_one_point_moves(side: int) -> None:
    moved = set()
    for i in range(side * side):
        one = np.zeros((side, side))
        one.flat[i] = 1
        moved.add(float(np.abs(to_wavelets(one)).sum()))
    assert moved == {sensitivity(side)}


def test_noise_of_wavelets_is_the_authors() -> None:
    """Their coefficient of a node is half the difference of its halves' means, with noise of scale ρ/(ε·weight).

    The weight is the number of cells below, so that ours, which is larger by the weight, has noise of scale ρ/ε.
    """
    row = np.random.default_rng(2).normal(size=(8, 1))
    ours = to_wavelets(row @ np.ones((1, 1)))[:, 0]
    halves = [row[:4].mean() - row[4:].mean(), row[:2].mean() - row[2:4].mean(), row[0, 0] - row[1, 0]]
    np.testing.assert_allclose(ours[[1, 2, 4]], np.array(halves) / 2 * [8, 4, 2])


def test_splits_of_privtree_have_the_authors_noise() -> None:
    scale, bias = split_noise(0.5)
    assert scale == pytest.approx((2 * 4 - 1) / (4 - 1) / 0.5)
    assert bias == pytest.approx(scale * np.log(4))


def test_privtree_without_noise_splits_down_to_its_bias() -> None:
    """A thousand points at one place: split while the count less δ per level is positive."""
    _, bias = split_noise(2.0)
    cells = privtree(np.full((1000, 2), 0.1), 4.0, Silent())
    depth = min(20, int(np.ceil(1000 / bias)))
    assert cells.counts.size == 1 + 3 * depth
    assert cells.counts.max() == 1000


@pytest.mark.statistical
def test_empty_cells_of_privtree_are_split_as_often_as_the_paper_says() -> None:
    """The root, with no level above, at even odds; below it one in 2β, so that of four half a one is expected."""
    sizes = np.array([privtree(np.zeros((0, 2)), 1.0, np.random.default_rng(s)).counts.size for s in range(4000)])
    assert np.mean(sizes > 1) == pytest.approx(0.5, abs=0.04)
    assert np.mean((sizes[sizes > 1] - 1) / 3) == pytest.approx(2, rel=0.15)


def test_the_curve_visits_every_cell_and_never_jumps() -> None:
    for bits in range(6):
        row, column = hilbert(bits)
        assert len(set(zip(row.tolist(), column.tolist(), strict=True))) == 4**bits
        assert (np.abs(np.diff(row)) + np.abs(np.diff(column)) == 1).all()


def test_a_workload_is_what_rectangles_cover() -> None:
    share, (row, column) = _workload(4), hilbert(4)
    grids = np.zeros((24, 16, 16))
    grids[:, row, column] = share.T
    areas = grids.mean(axis=(1, 2))
    assert ((areas[:8] >= 1e-4) & (areas[:8] <= 1e-3)).all()
    assert ((areas[-8:] >= 1e-2) & (areas[-8:] <= 0.1)).all()


def test_levels_of_dawa_spend_all_of_epsilon() -> None:
    for ratio in (1.0, 1.7, 4.0, np.inf):
        assert (1 / level_scales(0.3, 6, ratio)).sum() == pytest.approx(0.3)


def test_a_tree_helps_dawa_where_queries_are_wide_and_not_where_they_are_single() -> None:
    rng, exact = np.random.default_rng(1), np.full(64, 100.0)

    def off(asked: Floats) -> float:
        found = [_counted(exact, asked, 1.0, rng) - exact for _ in range(300)]
        return float(np.mean([np.abs(asked.T @ each).mean() for each in found]))

    single, wide = np.eye(64), np.ones((64, 1))
    assert off(single) == pytest.approx(1.0, rel=0.05), "Laplace noise of scale 1"
    assert off(wide) < 0.7 * np.sqrt(64 * 2) * np.sqrt(2 / np.pi)


def test_all_methods_publish_their_variants() -> None:
    for name, method in METHODS.items():
        found = method.publish(points(500), 12, 1.0, 3)
        assert PLAIN in found
        assert len(found) == (1 if name in ("nothing", "total") else 2), name
    ours = METHODS["tracking"].publish(points(), 12, 8.0, 3)
    whole = ours[POINTS].count(unaligned())
    assert np.abs(whole - ours[PLAIN].count(unaligned())).mean() < 10
    assert np.abs(whole - count_points(points(), unaligned())).mean() < 40
