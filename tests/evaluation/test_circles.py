"""The simulated circles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from phdstream.errors import InputError
from phdstream.evaluation.circles import growing_circles, moving_circles

SHARED = Path(__file__).parents[3] / "shared" / "data"


def radius(points: np.ndarray) -> np.ndarray:
    return np.hypot(points[:, 0] - 0.5, points[:, 1] - 0.5)


def test_points_leave_the_outer_circle_for_the_inner() -> None:
    ticks = list(moving_circles(points=3000, ticks=30, seed=1))
    filling, moving = ticks[:10], ticks[10:]
    assert all(len(t.deletes) == 0 for t in filling)
    assert sum(len(t.inserts) for t in filling) == 3000
    assert all(len(t.inserts) == len(t.deletes) for t in moving)
    assert np.median(radius(np.concatenate([t.inserts for t in filling]))) == pytest.approx(0.42, abs=0.01)
    assert np.median(radius(np.concatenate([t.inserts for t in moving]))) == pytest.approx(0.28, abs=0.01)


def test_only_what_is_there_vanishes() -> None:
    live: set[tuple[float, ...]] = set()
    for tick in moving_circles(points=500, ticks=12):
        gone = set(map(tuple, tick.deletes.tolist()))
        assert gone <= live
        live = (live - gone) | set(map(tuple, tick.inserts.tolist()))


@pytest.mark.parametrize("arguments", [{"points": 0}, {"ticks": 2}, {"ticks": 1.5}])
def test_bad_arguments(arguments: dict[str, float]) -> None:
    with pytest.raises(InputError):
        list(moving_circles(**arguments))  # type: ignore[arg-type]


class TestGrowingCircles:
    def test_both_circles_grow_alike(self) -> None:
        ticks = list(growing_circles(points=10_000, ticks=10, seed=1))
        assert [len(t.inserts) for t in ticks] == [1000] * 10
        assert not any(len(t.deletes) for t in ticks)
        for tick in ticks:
            outer = radius(tick.inserts) > 0.35
            assert outer.mean() == pytest.approx(0.5, abs=0.1)
            assert np.median(radius(tick.inserts)[outer]) == pytest.approx(0.42, abs=0.01)
            assert np.median(radius(tick.inserts)[~outer]) == pytest.approx(0.28, abs=0.01)

    @pytest.mark.parametrize("arguments", [{"points": 0}, {"ticks": 0}, {"ticks": 1.5}])
    def test_bad_arguments(self, arguments: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            list(growing_circles(**arguments))

    @pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
    def test_they_look_like_the_authors_own(self) -> None:
        theirs = pq.read_table(SHARED / "peer_circles.parquet")
        both = [np.column_stack([theirs["x"], theirs["y"]])]
        both.append(np.concatenate([t.inserts for t in growing_circles()]))
        theirs_r, ours_r = (np.quantile(radius(points), np.linspace(0.02, 0.98, 25)) for points in both)
        assert ours_r == pytest.approx(theirs_r, abs=0.02)
