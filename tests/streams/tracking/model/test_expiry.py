"""What expires is taken off where its block divided otherwise; a stream forgets where expired points were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.domains.binary_tree import BinaryTree
from phdstream.release.soundness import faults
from phdstream.streams.tracking.model.expiry import Expiring, without
from phdstream.streams.tracking.model.split_tree import SplitTree
from phdstream.streams.tracking.parameters import Expiry, TrackingParameters

TREE = BinaryTree(phd.Box([(0, 1)], depth=3))
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
WEEK = phd.Product(phd.Box([(0, 1), (0, 1)], depth=8), phd.DayOfWeek("day"))


def splits(**contrasts: float) -> SplitTree:
    nodes = np.array([int(name[1:]) for name in contrasts])
    return SplitTree(nodes, np.array(list(contrasts.values())), np.full(nodes.size, 1e-6))


def test_a_blocks_own_difference_is_taken_off() -> None:
    """100 points, 75 in the first half, of which 40 expire that were all there: 35 and 25 are left."""
    left = without(Expiry(), TREE, splits(n1=0.5, n2=0.2), splits(n1=1.0), 100.0, 40.0)
    assert left.node.tolist() == [1, 2]
    assert left.contrast[0] == pytest.approx(10 / 60, abs=1e-3)
    assert left.contrast[1] == 0.2  # the block was not measured there: what is left divides as before
    assert left.variance[0] == pytest.approx(1e-6 * 100 / 60, rel=0.01)


def test_what_chance_explains_changes_nothing() -> None:
    known = SplitTree(np.array([1]), np.array([0.5]), np.array([0.1]))
    assert without(Expiry(), TREE, known, splits(n1=0.7), 100.0, 40.0).contrast.tolist() == [0.5]
    assert without(Expiry(chance=0.0), TREE, known, splits(n1=0.7), 100.0, 40.0).contrast[0] < 0.4


@pytest.mark.parametrize("amount", [0.0, 90.0, 100.0, 200.0])
def test_never_more_goes_than_there_is(amount: float) -> None:
    left = without(Expiry(), TREE, splits(n1=0.5, n2=-1.0), splits(n1=-1.0, n2=1.0, n3=0.3), 100.0, amount)
    assert left.sound()
    assert left.node.tolist() == [1, 2]


def test_blocks_expire_tick_by_tick_the_oldest_first() -> None:
    expiring, first, second = Expiring.nothing(), splits(n1=0.1, n2=0.2), splits(n1=0.3)
    expiring.add(2, first, most=1)
    expiring.add(1, second, most=5)
    assert expiring.pass_tick(3).node.size == 0
    assert expiring.pass_tick(2).contrast.tolist() == [0.1]
    again = Expiring.from_arrays(expiring.to_arrays())
    assert [again.pass_tick(held).contrast.tolist() for held in (1, 0, 0)] == [[0.1], [0.3], []]


def weekday(tick: int, number: int = 1500) -> Any:
    rng = np.random.default_rng(tick)
    return {"x": rng.normal(0.4, 0.1, number), "y": rng.normal(0.5, 0.1, number), "day": [DAYS[tick % 7]] * number}


@pytest.mark.parametrize("window", [1, 2, 7])
def test_weekdays_of_daily_ticks_are_those_of_the_window(window: int) -> None:
    """With the rule off half of them, or a third, are of days that are gone."""
    off = {}
    for on in (True, False):
        rules = TrackingParameters().changed({"expiry.on": on})
        stream = phd.TrackingStream(WEEK, 2.0, phd.Event(), window=window, noise=phd.Simulation(1), parameters=rules)
        releases = [stream.update(weekday(tick)) for tick in range(12)]
        table = releases[-1].table(["day"]).to_pandas().set_index("day")
        true = dict.fromkeys(DAYS, 0) | {DAYS[tick % 7]: 1500 for tick in range(12 - window, 12)}
        off[on] = sum(abs(table["value"][day] - true[day]) for day in DAYS) / sum(true.values())
        if on:
            held = [table["low"][day] <= true[day] <= table["high"][day] for day in DAYS]
            assert sum(held) >= 6
    assert off[True] < 0.08
    assert window == 1 or off[False] > 0.2


@pytest.mark.parametrize("kind", ["raises", "NaN"])
def test_a_fault_in_it_stops_no_stream(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def spoilt(rule: Any, tree: Any, known: SplitTree, *rest: Any) -> SplitTree:
        if kind == "raises":
            raise ZeroDivisionError("planted")
        return SplitTree(known.node, known.contrast * np.nan, known.variance)

    monkeypatch.setattr("phdstream.streams.tracking.model.model.without", spoilt)
    stream = phd.TrackingStream(WEEK, 2.0, phd.Event(), window=2, noise=phd.Simulation(1))
    releases = [stream.update(weekday(tick, 300)) for tick in range(5)]
    assert [release.metadata.get("fallback", False) for release in releases] == [False, False, True, True, True]
    assert all(faults(WEEK, release.estimate) == [] for release in releases)
    assert releases[-1].total == pytest.approx(600, abs=60)


def test_a_stream_that_is_stopped_while_something_expires_goes_on_the_same(tmp_path: Path) -> None:
    def made() -> Any:
        return phd.TrackingStream(WEEK, 2.0, phd.Event(), window=6, noise=phd.Simulation(1))

    whole = made()
    for tick in range(15):
        with phd.durable(tmp_path / "state", made()) as kept:
            found = kept.update(weekday(tick, 300))
        expected = whole.update(weekday(tick, 300))
        np.testing.assert_array_equal(found.leaf_unbiased, expected.leaf_unbiased)
        assert (found.sample() == expected.sample()).all()
