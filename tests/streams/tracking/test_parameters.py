"""The parameters of tracking: ranges, names, JSON, and that every switch does something."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.errors import InputError
from phdstream.streams.tracking import TrackingParameters

SWITCHES: dict[str, Any] = {
    "budget.growth": 1.0,
    "fine_counts.stages": ((3.0, 0),),
    "fine_counts.return_dropped_noise": False,
    "block_length.adapts": False,
    "zones.on": False,
    "drift.on": False,
    "exploration.inserts": 0.0,
    "filter.uneven_vary_less": False,
    "filter.prior_from_emptiness": False,
    "empty_halves.on": False,
    "empty_children.on": False,
    "smoothing.on": False,
    "smoothing.halvings": 0,
}


def test_they_survive_json() -> None:
    changed = TrackingParameters().changed(SWITCHES)
    assert TrackingParameters.from_dict(json.loads(json.dumps(changed.to_dict()))) == changed
    assert TrackingParameters.from_dict({}) == TrackingParameters()


def test_a_state_with_parameters_that_are_gone_is_taken_without_them() -> None:
    earlier = {"zones": {"fill": 30.0, "batch": 0.08}}
    assert TrackingParameters.from_dict(earlier) == TrackingParameters().changed({"zones.fill": 30.0})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("smoothing.steepest", 2.0, "from 0 to 0.99"),
        ("smoothing.on", 1, "True or False"),
        ("budget.total", -0.1, "from 0.0001"),
        ("smoothing.onn", True, "did you mean 'on'"),
        ("smothing.on", True, "did you mean 'smoothing'"),
    ],
)
def test_what_is_out_of_range_or_unknown_is_refused(name: str, value: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        TrackingParameters().changed({name: value})


def test_every_parameter_has_a_unit_and_a_reason() -> None:
    for group in fields(TrackingParameters):
        own = getattr(TrackingParameters(), group.name)
        about = fields(own) if hasattr(own, "__dataclass_fields__") else [group]
        assert all(part.metadata["unit"] and part.metadata["why"] for part in about)


@pytest.mark.slow
@pytest.mark.parametrize("name", SWITCHES)
def test_every_switch_changes_what_is_released(name: str) -> None:
    """On a stream with few points at first, empty places, and a crowd that moves half-way."""
    released: list[list[np.ndarray]] = []
    for parameters in (TrackingParameters(), TrackingParameters().changed({name: SWITCHES[name]})):
        rng = np.random.default_rng(1)
        stream = phd.TrackingStream(
            phd.Box([(0, 1), (0, 1)], depth=14), 1.0, phd.Event(), parameters=parameters, noise=phd.Simulation(2)
        )
        released.append([])
        for tick in range(15):
            centre = 0.3 if tick < 7 else 0.7
            come = np.clip(rng.normal(centre, 0.05, (400, 2)), 0, 1)
            released[-1].append(stream.update(come, come[:100] if tick else None).estimate.count)
    assert any(not np.array_equal(*ticks) for ticks in zip(*released, strict=True))
