"""Tracking's privacy loss: computed exactly for whole outputs, and measured at every noise call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phdstream as phd
from phdstream.audit.forcing import ForcedSums, Script, all_outputs, random_choices
from phdstream.audit.taint import Unwrapping, poisoned_buffers
from phdstream.domains.prefixes import are_disjoint
from phdstream.streams.tracking import TrackingParameters
from tests.thorough import cases

TOLERANCE = 1e-9
PRIOR = phd.Prior.from_points(np.random.default_rng(1).beta(1, 4, (500, 2)), about="public")
ON_LINE = phd.Prior.from_points(np.random.default_rng(1).beta(1, 4, (500, 1)), about="public")
pytestmark = pytest.mark.slow
Event = tuple[int, float, int]  # tick, place, sign


def finished(noise: ForcedSums) -> ForcedSums:
    """Return the noise, if in the end every counted node had one part: else the last stage was not the final one."""
    assert all((count.parts == 1).all() for count in noise.open_counts)
    return noise


def play(stream: phd.TrackingStream, events: list[Event], ticks: int, noise: ForcedSums) -> ForcedSums:
    stream.noise = noise
    for tick in range(ticks):
        come = [[x] for t, x, sign in events if t == tick and sign > 0]
        gone = [[x] for t, x, sign in events if t == tick and sign < 0]
        stream.update(come, gone)
    return finished(noise)


class TestExactLoss:
    """The log-probability of whole outputs under neighbouring streams: its difference is the privacy loss, exactly."""

    base: ClassVar[list[Event]] = [(0, 0.1, 1), (1, 0.6, 1), (1, 0.1, -1), (2, 0.6, 1)]
    sums = (-3, 40)
    """Few and many: with many, leaves split; beyond the data the likelihood ratio does not change any more."""

    @staticmethod
    def make(depth: int, **options: Any) -> phd.TrackingStream:
        return phd.TrackingStream(phd.Box([(0, 1)], depth=depth), 1.0, phd.Event(), **options)

    def losses(self, make: Callable[[], phd.TrackingStream], ticks: int, outputs: Iterable[list[int]]) -> list[float]:
        """Return, for each event that could be there in addition, the largest loss over the outputs."""
        kinds = (1, -1) if make().deletes else (1,)
        base = [event for event in self.base if event[2] in kinds]
        others = [[*base, (t, x, sign)] for t in range(ticks) for x in (0.1, 0.6) for sign in kinds]
        losses = np.zeros(len(others))
        for choices in outputs:
            first = play(make(), base, ticks, ForcedSums(Script(list(choices)), self.sums))
            for i, events in enumerate(others):
                other = play(make(), events, ticks, ForcedSums(Script(list(choices)), self.sums))
                losses[i] = max(losses[i], abs(first.log_probability - other.log_probability))
        return losses.tolist()

    def test_every_output_of_a_start_and_a_block(self) -> None:
        rounds = {"start.rounds": ((0.4, ((6.0, 1), (6.0, 0))), (0.6, ((4.5, 0),)))}  # fewer than usual: so are outputs
        make = partial(self.make, 1, insert_only=True, parameters=TrackingParameters().changed(rounds))
        base = [event for event in self.base if event[2] > 0]
        outputs = list(all_outputs(lambda choose: play(make(), base, 2, ForcedSums(choose, self.sums))))
        assert len(outputs) > 200
        losses = self.losses(make, 2, outputs)
        assert max(losses) <= 1.0 + TOLERANCE
        assert min(losses) > 0.999  # all of the budget is spent on every event: the test would notice less noise

    def test_every_output_of_a_start_from_a_prior(self) -> None:
        rounds = {"start.rounds": ((0.4, ((6.0, 1), (6.0, 0))), (0.6, ((4.5, 0),)))}
        parameters = TrackingParameters().changed(rounds)
        make = partial(self.make, 2, insert_only=True, parameters=parameters, prior=ON_LINE)
        base = [event for event in self.base if event[2] > 0]
        outputs = list(all_outputs(lambda choose: play(make(), base, 1, ForcedSums(choose, self.sums))))
        assert len(outputs) > 100
        losses = self.losses(make, 1, outputs)
        assert max(losses) <= 1.0 + TOLERANCE
        assert min(losses) > 0.999

    @pytest.mark.parametrize(
        "options", [{}, {"window": 2}, {"start_after": 2}, {"insert_only": True}, {"prior": ON_LINE}], ids=str
    )
    def test_random_outputs_of_several_blocks(self, options: dict[str, Any]) -> None:
        make, ticks = partial(self.make, 3, **options), 4
        outputs = [np.random.default_rng(seed).integers(0, 2, 400).tolist() for seed in range(cases(12, 40))]
        losses = self.losses(make, ticks, outputs)
        assert max(losses) <= 1.0 + TOLERANCE
        assert max(losses) > 0.9

    def test_blocks_are_among_the_outputs(self) -> None:
        noise = play(self.make(2), self.base, 3, ForcedSums(lambda options: 1, self.sums))
        leaf_scale = min(scale for scale, _, _ in noise.calls)
        assert sum(scale == leaf_scale for scale, _, _ in noise.calls) >= 2


def random_tick(rng: np.random.Generator, deletes: bool) -> tuple[np.ndarray, np.ndarray]:
    return rng.beta(1, 4, (rng.integers(80), 2)), rng.beta(1, 4, (rng.integers(20) if deletes else 0, 2))


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"window": 3},
    "start": {"start_after": 3},
    "few nodes": {"max_nodes": 25},
    "insert only": {"insert_only": True},
    "prior": {"prior": PRIOR},
    "prior of an insert-only start": {"prior": PRIOR, "start_after": 3, "insert_only": True},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@settings(max_examples=cases(8, 25), deadline=None)
@given(seed=st.integers(0, 100_000), sign=st.sampled_from([1, -1]), fanout=st.sampled_from([2, 4]))
def test_every_noise_call_sees_at_most_what_was_declared(
    options: dict[str, Any], seed: int, sign: int, fanout: int
) -> None:
    """Two neighbours forced to the same outputs: all questions are the same; answers differ by the event's share."""
    rng = np.random.default_rng(seed)
    domain = phd.Box([(0, 1), (0, 1)], fanout=fanout, depth=8 if fanout == 2 else 4)
    deletes = phd.TrackingStream(domain, 1.0, phd.Event(), **options).deletes
    if sign < 0 and not deletes:
        return
    event, when = rng.random((1, 2)), int(rng.integers(9))
    ticks = [random_tick(rng, deletes) for _ in range(9)]
    calls, stages = [], []
    for with_event in (False, True):
        stream = phd.TrackingStream(domain, 1.0, phd.Event(), **options)
        noise = stream.noise = ForcedSums(random_choices(seed), (-20, 0, 30, 300))
        for t, (come, gone) in enumerate(ticks):
            if with_event and t == when:
                come, gone = (np.r_[come, event], gone) if sign > 0 else (come, np.r_[gone, event])
            stream.update(come, gone)
        calls.append(finished(noise).calls)
        stages.append(noise.stages)
    assert len(calls[0]) == len(calls[1])
    for stage, stage_2 in zip(*stages, strict=True):  # every stage of a fine count asks the same, too
        np.testing.assert_array_equal(stage, stage_2)
    spent = 0.0
    for (scale, at, values), (scale_2, at_2, values_2) in zip(*calls, strict=True):
        assert scale == scale_2
        np.testing.assert_array_equal(at, at_2)  # what is asked about is public
        difference = np.abs(values - values_2).sum()
        assert difference <= 1
        spent += difference / scale
    assert spent <= stream.budget.count + 1e-12


@pytest.mark.parametrize("prior", [None, PRIOR], ids=["no prior", "prior"])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_asked_never_depends_on_the_data(seed: int, prior: phd.Prior | None) -> None:
    """Any two streams forced to the same outputs, one of few events and one of many: all questions are the same.

    One event seldom tips a threshold, so neighbours would hardly show that an exact number decides.
    """
    asked = []
    for number in (3, 200):
        rng = np.random.default_rng(seed)
        stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)], depth=8), 1.0, phd.Event(), prior=prior)
        noise = stream.noise = ForcedSums(random_choices(seed), (-20, 0, 30, 300))
        for _ in range(8):
            stream.update(rng.random((number, 2)), rng.random((number // 3, 2)))
        asked.append([(scale, at.tolist()) for scale, at, _ in finished(noise).calls])
    assert asked[0] == asked[1]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_no_decision_looks_at_private_events(options: dict[str, Any]) -> None:
    """Poisoned events and counts: whoever looks at them outside a noise call is told."""
    rng = np.random.default_rng(1)
    with poisoned_buffers():
        stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)], depth=8), 1.0, phd.Event(), **options)
        stream.noise = Unwrapping(phd.Simulation(seed=1))
        for _ in range(8):
            stream.update(rng.random((60, 2)), rng.random((20, 2)) if stream.deletes else None)
    assert stream.tick == 8


@settings(max_examples=cases(8, 20), deadline=None)
@given(seed=st.integers(0, 100_000))
def test_counted_nodes_are_disjoint(seed: int) -> None:
    """What parallel composition needs: within one call no node lies inside another."""
    rng = np.random.default_rng(seed)
    stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)], depth=8), 1.0, phd.Event())
    noise = stream.noise = ForcedSums(random_choices(seed), (-20, 0, 30, 300))
    for _ in range(8):
        stream.update(*random_tick(rng, deletes=True))
    for _, at, _ in noise.calls:
        assert are_disjoint(at, stream.domain.total_bits)


@pytest.mark.parametrize(
    ("unit", "options", "events"),
    [
        (phd.Event(), {}, 1),
        (phd.Record(), {}, 2),
        (phd.Record(), {"insert_only": True}, 1),
        (phd.Record(), {"window": 5}, 1),
        (phd.User(inserts=3, deletes=2), {}, 5),
        (phd.User(inserts=3, deletes=2), {"window": 5}, 3),
    ],
    ids=str,
)
def test_a_units_events_share_epsilon(unit: Any, options: dict[str, Any], events: int) -> None:
    stream = phd.TrackingStream(phd.Box([(0, 1)]), 1.2, unit, **options)
    assert stream.budget.count <= 1.2 / events
    assert stream.budget.count == pytest.approx(1.2 / events)
    method: Any = stream._method
    assert sum(map(Fraction, method._spending)) <= Fraction(stream.budget.count)


def test_the_open_blocks_events_are_said_to_be_private() -> None:
    stream = phd.TrackingStream(phd.Box([(0, 1), (0, 1)]), 1.0, phd.Event(), noise=phd.Simulation(seed=1))
    for _ in range(3):
        release = stream.update(np.random.default_rng(1).random((50, 2)))
    assert "the events of the open block" in stream.describe()
    assert not any("codes" in name or "batch" in name for name in release.to_arrays())
