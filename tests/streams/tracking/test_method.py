"""Tracking's own state: how the budget is divided, what the model has seen, the view after a restart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.errors import BudgetError, InputError
from phdstream.streams.tracking import TrackingParameters
from phdstream.streams.tracking.model.policy import Spending

LINE, SQUARE = phd.Box([(0, 1)]), phd.Box([(0, 1), (0, 1)])


def new_stream(domain: phd.Domain = SQUARE, **options: Any) -> phd.TrackingStream:
    return phd.TrackingStream(domain, 1.0, phd.Event(), noise=phd.Simulation(1), **options)


def test_a_block_divides_its_budget_to_its_end_as_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of the open block have spent on totals and zones: with another division they would spend more than ε."""
    stream = new_stream(LINE)
    stream.update([(0.5,)] * 50)
    state = stream.to_state()
    monkeypatch.setattr("phdstream.streams.tracking.model.model.split_budget", lambda *_: Spending(0.1, 0.2, 0.7))
    method, again = stream._method, phd.TrackingStream.from_state(*state)._method
    assert again._spending == method._spending  # type: ignore[attr-defined]


def test_a_division_of_more_than_the_budget_is_refused_by_the_ledger() -> None:
    """Whatever the model says: the mechanism spends no more than an event may."""
    stream = new_stream(LINE)
    stream.update([(0.5,)] * 50)
    method: Any = stream._method
    method._spending = Spending(0.5, 0.5, 0.5)
    with pytest.raises(BudgetError, match="more than the budget of an event"):
        _ = [stream.update([(0.5,)] * 50) for _ in range(20)]


def test_a_state_at_hand_does_not_change_with_the_stream() -> None:
    rng = np.random.default_rng(2)
    stream = new_stream()
    stream.update(rng.uniform(size=(2_000, 2)) / 2)
    own = stream.to_state()[0]["own"]
    before = list(own["drift_scores"])
    for _ in range(3):
        stream.update(rng.uniform(size=(2_000, 2)) / 2 + 0.5)
    assert max(stream.to_state()[0]["own"]["drift_scores"]) > 0
    assert own["drift_scores"] == before


def test_the_view_is_the_same_after_a_restart() -> None:
    rng = np.random.default_rng(1)
    stream = new_stream(window=10)
    for _ in range(8):
        stream.update(rng.beta(2, 5, size=(800, 2)))
    again = phd.TrackingStream.from_state(*stream.to_state())
    events = rng.beta(2, 5, size=(20, 2))
    first, second = (s.update(events).estimate for s in (stream, again))
    for column in ("node", "count", "variance", "points"):
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))


def test_parameters_are_saved_and_a_stream_goes_on_with_them(tmp_path: Any) -> None:
    changed = TrackingParameters().changed({"smoothing.on": False, "zones.bits": 3})
    with phd.durable(tmp_path, new_stream(parameters=changed)) as stream:
        stream.update(np.random.default_rng(1).random((500, 2)))
    with phd.durable(tmp_path, new_stream()) as stream:  # other defaults do not stop it, nor change it
        assert stream._stream._method.parameters == changed  # type: ignore[attr-defined]
        assert stream.update(np.random.default_rng(2).random((500, 2))).tick == 2


def test_parameters_of_another_type_are_refused() -> None:
    with pytest.raises(InputError, match="TrackingParameters"):
        new_stream(parameters=3)
