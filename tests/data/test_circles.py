"""The simulated circles."""

from __future__ import annotations

import numpy as np
import pytest

from phdstream.data import moving_circles
from phdstream.errors import InputError


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
