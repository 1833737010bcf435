"""The plan says what happens: compared with real runs on evenly spread points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.app.plan import Plan, alternatives, expect, explain
from phdstream.app.plan_tracking import explain_rehearsal, rehearse
from phdstream.errors import BudgetError, InputError

SQUARE = phd.Box([(0, 1), (0, 1)])


def plan(**options: Any) -> Plan:
    defaults: dict[str, Any] = {"epsilon": 1.0, "unit": phd.Event(), "events_per_tick": 2000, "ticks": 10}
    return Plan(**(defaults | options))


@pytest.mark.statistical
@pytest.mark.parametrize("options", [{}, {"epsilon": 0.25}, {"ticks": 1}, {"window": 4, "ticks": 12}])
def test_cells_and_errors_are_about_right(options: dict[str, Any]) -> None:
    planned = plan(**options)
    expected = expect(planned)
    insert_only = planned.window is None
    stream = phd.PHDStream(
        SQUARE, planned.epsilon, planned.unit, insert_only=insert_only, window=planned.window, noise=phd.Simulation(1)
    )
    rng = np.random.default_rng(1)
    for _ in range(planned.ticks):
        release = stream.update(rng.random((planned.events_per_tick, 2)))
    assert expected.cells / 4 < release.leaves.size < expected.cells * 4
    side = min(1.0, np.sqrt(expected.smallest_share))
    answer = release.count([[0, 0, side, side]])
    assert answer.stderr[0] / answer.value[0] < 4 * planned.target  # the plan is not too rosy
    assert answer.stderr[0] / answer.value[0] > planned.target / 10  # nor far too gloomy


def test_the_noise_is_the_streams() -> None:
    stream = phd.PHDStream(SQUARE, 1.0, phd.Record())
    expected = expect(plan(unit=phd.Record(), deletes=True, ticks=9))
    assert expected.first_noise**2 == pytest.approx(float(stream.counter.variance(np.array([0]), np.array([1]))[0]))
    assert expected.last_noise == pytest.approx(3 * expected.first_noise)


def test_what_helps_and_what_does_not() -> None:
    options = {name: expect(p).smallest_share for name, p in alternatives(plan(ticks=100)).items()}
    assert options["twice ε"] < options["as planned"] < options["half of ε"]
    assert options["ticks four times as long"] < options["as planned"]
    assert options["four times the events"] < options["as planned"]
    assert expect(plan(unit=phd.User(inserts=5))).smallest_share > expect(plan()).smallest_share


@pytest.mark.parametrize("options", [{"events_per_tick": 0}, {"ticks": 1.5}, {"target": 1.0}])
def test_bad_plans(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        plan(**options)
    with pytest.raises(BudgetError):
        expect(plan(epsilon=0))


def test_it_is_said_in_words() -> None:
    text = explain(plan(ticks=100))
    for words in ("1-differential privacy for each single event", "200,000 points", "as planned", "twice ε", "No data"):
        assert words in text


def test_a_plan_that_comes_to_nothing_is_warned_of() -> None:
    hopeless, fine = (rehearse(plan(events_per_tick=number, ticks=1)).warning for number in (20, 20_000))
    assert "no better than the total alone" in hopeless
    assert fine == ""


@pytest.mark.slow
def test_the_warning_is_in_the_words_of_a_plan() -> None:
    assert "Warning: At this ε the release is expected" in explain_rehearsal(plan(events_per_tick=20, ticks=1))
