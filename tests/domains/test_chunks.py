"""Codes of points: as by halving step by step, and neither cuts nor threads show in them."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import numpy as np
import pytest
import shapely

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


@pytest.mark.parametrize("kind", ["region", "network"])
def test_nor_do_they_where_points_are_projected(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyproj")
    here: dict[str, Any] = {"crs": "EPSG:4326", "tree_crs": "EPSG:32618", "depth": 12}
    street, block = shapely.LineString([(-74.0, 40.7), (-73.9, 40.8)]), shapely.box(-74.0, 40.7, -73.9, 40.8)
    domain = phd.Region(block, **here) if kind == "region" else phd.Network([street], snap=2000, **here)
    points = np.random.default_rng(3).uniform((-74.01, 40.69), (-73.89, 40.81), (5000, 2))
    points[::50] = np.nan
    codes, inside = domain.encode(points)
    monkeypatch.setattr(chunks, "_ROWS", 37)
    monkeypatch.setattr(chunks, "_WORTH_THREADS", 10)
    again, still = domain.encode(points)
    np.testing.assert_array_equal(still, inside)
    np.testing.assert_array_equal(again[inside], codes[inside])
    assert 0.1 < inside.mean() < 0.9


def test_work_within_a_thread_is_not_divided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads would wait for all."""
    monkeypatch.setattr(chunks, "_WORTH_THREADS", 1)
    done = np.zeros(1000, dtype=np.int64)

    def within(rows: slice) -> None:
        done[rows] += 1

    chunks.in_chunks(lambda rows: chunks.in_chunks(lambda _: within(rows), 1), done.size)
    assert (done == 1).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_WORTH_THREADS", 1)
    monkeypatch.setattr(chunks, "_processors", lambda: 2)
    box, points = BOXES[0], np.random.default_rng(4).random((1000, 2))
    codes = box.encode(points)[0]
    forked = multiprocessing.get_context("fork").Pool(1)
    with forked:
        np.testing.assert_array_equal(forked.apply_async(box.encode, (points,)).get(timeout=30)[0], codes)


def test_an_error_in_a_thread_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_WORTH_THREADS", 1)

    def fail(rows: slice) -> None:
        if rows.stop == 100:
            raise ValueError("at the end")

    with pytest.raises(ValueError, match="at the end"):
        chunks.in_chunks(fail, 100)
