"""What `phdstream plan` says of the default method: compared with streams that it did not invent itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.app.plan.advice import explain_rehearsal, needed
from phdstream.app.plan.rehearsal import SIDES, Rehearsal, rehearse, smallest_good, square_errors
from phdstream.app.plan.stream_plan import StreamPlan, alternatives, ladder, parse_unit
from phdstream.errors import BudgetError, InputError


def plan(**options: Any) -> StreamPlan:
    defaults: dict[str, Any] = {"epsilon": 1.0, "unit": phd.Event(), "events_per_tick": 400, "ticks": 6}
    return StreamPlan(**(defaults | options))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_another_city_goes_about_as_planned(epsilon: float) -> None:
    """Other places, other noise: the errors of the total and of areas are within a factor of four of those planned."""
    planned = plan(epsilon=epsilon, events_per_tick=2000, ticks=10)
    said = rehearse(planned)
    rng = np.random.default_rng(99)
    centres, widths = rng.random((25, 2)), 0.01 * np.exp(rng.normal(0.5, 1.0, 25))
    totals, areas = [], []
    for seed in range(4):
        stream = phd.TrackingStream(
            phd.Box([(0, 1), (0, 1)]), epsilon, phd.Event(), insert_only=True, noise=phd.Simulation(seed)
        )
        live = np.zeros((0, 2))
        for _ in range(planned.ticks):
            which = rng.integers(0, 25, planned.events_per_tick)
            come = np.clip(rng.normal(centres[which], widths[which, None]), 0, 1)
            live, release = np.concatenate([live, come]), stream.update(come)
        totals.append(abs(release.total - len(live)) / len(live))
        areas.append(square_errors(release, live, (planned.area**0.5,), rng)[0])
    assert said.total_error / 4 < np.mean(totals) < 4 * said.total_error
    assert said.area_error / 4 < np.mean(areas) < 4 * said.area_error


@pytest.mark.slow
def test_scale_and_epsilon_are_exchanged() -> None:
    """A hundred times the points at a hundredth of ε is tried as the same stream, and so gives the same answer."""
    large = rehearse(plan(events_per_tick=100_000, epsilon=0.01, ticks=6))
    small = rehearse(plan(events_per_tick=50_000, epsilon=0.02, ticks=6))
    assert large.map_error == pytest.approx(small.map_error, rel=1e-9)


@pytest.mark.slow
def test_hopeless_plans_are_called_so() -> None:
    hopeless = rehearse(plan(events_per_tick=2, ticks=3, epsilon=0.1))
    assert hopeless.verdict == "worse than publishing nothing"
    assert hopeless.smallest_share == 1
    good = rehearse(plan(events_per_tick=20_000, ticks=2, epsilon=5.0))
    assert good.verdict == ""


def one(map_error: float, area_error: float) -> Rehearsal:
    return Rehearsal(0.01, 10, map_error, 0.9, area_error, 0.5)


def test_which_epsilon_is_needed() -> None:
    found = {0.5: one(0.5, 0.3), 1.0: one(0.3, 0.08), 2.0: one(0.2, 0.05)}
    assert "take ε = 1 or more" in needed(plan(), found)
    assert "No ε up to 1 gives counts" in needed(plan(), {0.5: one(0.5, 0.3), 1.0: one(0.3, 0.2)})
    assert "gives a usable map: publish the total alone" in needed(plan(), {0.5: one(2, 3), 1.0: one(0.95, 2)})


def test_the_smallest_area_is_one_above_which_all_are_good() -> None:
    errors = np.full(len(SIDES), 0.01)
    assert smallest_good(errors, 0.1) == SIDES[-1] ** 2
    errors[3] = 0.5
    assert smallest_good(errors, 0.1) == SIDES[2] ** 2
    errors[0] = 0.5
    assert smallest_good(errors, 0.1) == 1.0


def test_trades_keep_the_stream_as_long() -> None:
    planned = plan(ticks=40, window=8)
    others = alternatives(planned)
    assert others["ticks four times as long"] == replace(planned, events_per_tick=1600, ticks=10, window=2)
    assert [rung.epsilon for rung in ladder(plan(epsilon=2.0))] == [0.2, 1.0, 2.0, 4.0, 20.0]
    assert parse_unit("user:2,1") == phd.User(inserts=2, deletes=1)


@pytest.mark.parametrize("options", [{"area": 0}, {"area": 1.5}, {"window": 0}, {"target": 0}])
def test_bad_plans(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        plan(**options)


def test_an_epsilon_that_cannot_be_is_named_as_it_was_given() -> None:
    with pytest.raises(BudgetError, match="not -1"):
        plan(epsilon=-1.0)


@pytest.mark.slow
def test_it_is_said_in_words() -> None:
    moves: list[int] = []
    text = explain_rehearsal(plan(events_per_tick=300, ticks=9, window=4), lambda done, total: moves.append(done))
    for words in ("1-differential privacy", "1,200 points", "73.1%", "17.14", "publishing nothing", "no data was"):
        assert words in text
    assert moves == list(range(len(moves)))
