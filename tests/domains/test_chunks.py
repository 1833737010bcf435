"""Codes of points: as by halving step by step, and neither cuts nor threads show in them."""

from __future__ import annotations

import numpy as np
import pytest

import phdstream as phd
from phdstream.arrays import Floats
from phdstream.domains import chunks
from tests import plain

BOXES = [
    phd.Box([(0, 1), (0, 1)]),
    phd.Box([(0, 1), (0, 1)], depth=27),
    phd.Box([(-74.3, -73.7), (40.5, 41.0)], fanout=4, depth=9),
    phd.Box([(-1e-3, 7.0)], depth=14),
    phd.Box([(0, 3), (-5, 5), (1e6, 1e6 + 1)], fanout=8, depth=4),
    phd.Box([(0, 3), (-5, 5), (0, 1)], depth=4),
]
every_box = pytest.mark.parametrize("box", BOXES, ids=repr)


def on_and_off_the_edges(box: phd.Box, rng: np.random.Generator, number: int) -> Floats:
    """Points anywhere, on dividing lines, the least step beside them, outside, and not numbers at all."""
    points = np.empty((number, box.dimension))
    for axis in range(box.dimension):
        edges = box.edges(axis)
        kind = rng.integers(5, size=number)
        x = rng.uniform(edges[0], edges[-1], number)
        on = rng.choice(edges, number)
        x = np.choose(kind, [x, on, np.nextafter(on, -np.inf), np.nextafter(on, np.inf), x])
        points[:, axis] = x
    points[rng.random(points.shape) < 0.01] = np.nan
    points[rng.random(points.shape) < 0.01] = -np.inf
    return points


@pytest.mark.slow
@every_box
def test_codes_are_those_of_halving_step_by_step(box: phd.Box) -> None:
    points = on_and_off_the_edges(box, np.random.default_rng(1), 2000)
    codes, inside = box.encode(points)
    assert list(zip(codes.tolist(), inside.tolist(), strict=True)) == [plain.encode(box, tuple(p)) for p in points]


@every_box
def test_neither_cuts_nor_threads_show_in_codes(box: phd.Box, monkeypatch: pytest.MonkeyPatch) -> None:
    points = on_and_off_the_edges(box, np.random.default_rng(2), 5000)
    whole = box.encode(points)
    monkeypatch.setattr(chunks, "_ROWS", 37)
    monkeypatch.setattr(chunks, "_WORTH_THREADS", 10)
    for rows in (5000, 4999, 11, 1, 0):
        codes, inside = box.encode(points[:rows])
        np.testing.assert_array_equal(codes, whole[0][:rows])
        np.testing.assert_array_equal(inside, whole[1][:rows])


def test_an_error_in_a_thread_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_WORTH_THREADS", 1)

    def fail(rows: slice) -> None:
        if rows.stop == 100:
            raise ValueError("at the end")

    with pytest.raises(ValueError, match="at the end"):
        chunks.in_chunks(fail, 100)
