"""Cells and grids are asked alike, and made non-negative by the nearest counts."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.literature.densities import Cells, Grid, Points, grid_counts, project
from scipy.optimize import minimize

from phdstream.arrays import Floats

WHOLE = np.array([[0.0, 0.0, 1.0, 1.0]])


def rectangles(number: int) -> Floats:
    corners = np.sort(np.random.default_rng(3).random((number, 2, 2)), axis=1)
    return np.concatenate([corners[:, 0], corners[:, 1]], axis=1)


def as_cells(grid: Grid) -> Cells:
    side = grid.counts.shape[0]
    corner = np.column_stack([each.ravel() for each in np.indices(grid.counts.shape)])
    return Cells(np.hstack([corner, corner + 1]) / side, grid.counts.ravel())


def test_a_grid_and_its_cells_answer_the_same() -> None:
    grid = Grid(np.random.default_rng(1).normal(size=(7, 7)))
    asked = np.concatenate([rectangles(200), WHOLE])
    np.testing.assert_allclose(grid.count(asked), as_cells(grid).count(asked), atol=1e-12)
    assert grid.count(WHOLE)[0] == pytest.approx(grid.counts.sum())


def test_cells_answer_as_the_definition_says() -> None:
    cells = Cells(np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 0.25], [0.5, 0.25, 1, 1]]), np.array([10.0, 4.0, -2.0]))
    asked = np.array([[0.25, 0, 0.75, 0.5], [0.6, 0.1, 0.7, 0.2], [0, 0, 1, 1]])
    expected = [10 / 4 + 4 / 2 - 2 / 6, 4 * 0.01 / 0.125, 12]
    np.testing.assert_allclose(cells.count(asked), expected)
    np.testing.assert_allclose(cells.count(asked[::-1]), expected[::-1])


def test_points_are_in_the_cell_that_holds_them() -> None:
    points = np.array([[0.1, 0.9], [1.0, 1.0], [0.5, 0.0], [0.1, 0.9]])
    assert grid_counts(points, 2).tolist() == [[0, 2], [1, 1]]
    assert Points(points).count(np.array([[0, 0.5, 0.5, 1], [0, 0, 1, 1]])).tolist() == [2, 4]


def test_the_projection_is_the_nearest() -> None:
    counts = np.random.default_rng(2).normal(0.3, 1, 8)
    found = project(counts)
    solved = minimize(
        lambda x: ((x - counts) ** 2).sum(), np.full(8, counts.sum() / 8), bounds=[(0, None)] * 8,
        constraints={"type": "eq", "fun": lambda x: x.sum() - counts.sum()}, options={"ftol": 1e-14},
    )  # fmt: skip
    np.testing.assert_allclose(found, solved.x, atol=1e-5)
    assert found.sum() == pytest.approx(counts.sum())
    assert found.min() == 0
    assert project(-np.ones((2, 2))).tolist() == [[0, 0], [0, 0]]
    np.testing.assert_allclose(project(np.array([1.0, 2.0])), [1, 2])


def test_non_negative_cells_are_the_same_cells() -> None:
    grid = Grid(np.random.default_rng(1).normal(0.1, 1, (4, 4)))
    cells = as_cells(grid).nonnegative()
    assert cells.counts.tolist() == grid.nonnegative().counts.ravel().tolist()
    assert (cells.bounds == as_cells(grid).bounds).all()
