"""Rows in every stream: both methods, all units, with and without a window, in a folder that survives a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phdstream as phd

RIDES = phd.Product(
    phd.Box([(0, 10), (0, 10)], depth=10),
    phd.Category("vehicle", {"road": ["bus", "car"], "rail": ["tram"]}),
    phd.Bins("age", [0, 18, 65, 120]),
    phd.DayOfWeek("day"),
)
UNITS = [phd.Event(), phd.Record(), phd.User(inserts=3, deletes=1)]


def rows(number: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(5, 1, number), "y": rng.normal(5, 1, number), "age": rng.uniform(0, 90, number),
        "vehicle": rng.choice(["bus", "car", "tram"], number), "day": rng.choice(["Mon", "Sun"], number),
    }  # fmt: skip


@pytest.mark.parametrize("window", [None, 1, 2])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: type(unit).__name__)
@pytest.mark.parametrize("method", [phd.TrackingStream, phd.PHDStream], ids=lambda method: method.__name__)
def test_they_go_on_after_a_restart(method: Any, unit: Any, window: int | None, tmp_path: Path) -> None:
    def stream() -> Any:
        return method(RIDES, 40.0, unit, window=window, noise=phd.Simulation(1))

    users = np.arange(400)
    whole = stream()
    with phd.durable(tmp_path / "state", stream()) as kept:
        for tick in (1, 2):
            assert_same(kept.update(rows(400, tick), users=users), whole.update(rows(400, tick), users=users))
    with phd.durable(tmp_path / "state", stream()) as kept:
        gone = None if window else rows(400, 1)
        more = {"inserts": rows(400, 3), "deletes": gone, "users": users, "delete_users": None if window else users}
        release = kept.update(**more)
        assert_same(release, whole.update(**more))
    expected = {None: 800, 1: 400, 2: 800}[window]
    assert release.total == pytest.approx(expected, abs=40)
    found = release.table(["vehicle", "day"])["value"].to_numpy().reshape(3, 7)
    assert found.sum() == pytest.approx(release.total)
    assert found[:, [0, 6]].sum() > 0.5 * release.total  # spread evenly it would be 2 in 7


def assert_same(one: phd.Release, other: phd.Release) -> None:
    assert (one.sample() == other.sample()).all()
    np.testing.assert_array_equal(one.leaf_unbiased, other.leaf_unbiased)
