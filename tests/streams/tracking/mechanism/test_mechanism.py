"""The mechanism of tracking refuses plans for which its proof would not hold, and spends what it says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import phdstream as phd
from phdstream.arrays import Ints
from phdstream.errors import BudgetError, StateError
from phdstream.privacy import Budget
from phdstream.streams.private_codes import PrivateCodes, TickEvents
from phdstream.streams.tracking.mechanism import Mechanism
from phdstream.streams.tracking.pieces import Pieces
from tests.noises import RecordingNoise

BITS = 4


def new_mechanism(epsilon: float = 1.0) -> tuple[Mechanism, RecordingNoise]:
    noise = RecordingNoise()
    return Mechanism(Budget.per_event(epsilon, phd.Event()), BITS, noise), noise


def events(codes: list[int], limit: float = 1.0) -> PrivateCodes:
    return PrivateCodes(BITS, Fraction(limit), np.array(codes, dtype=np.int64))


class Division:
    """A refinement rule that says what it was told to say."""

    def __init__(self, *stages: tuple[list[int], int]) -> None:
        self._stages = [(np.array(nodes), levels) for nodes, levels in stages]

    def first(self) -> tuple[Ints, int]:
        return self._stages.pop(0)

    def refine(self, pieces: Pieces, noisy: Ints) -> tuple[Ints, int] | None:
        return self._stages.pop(0) if self._stages else None


def test_a_block_is_counted_from_its_ticks_and_then_forgotten() -> None:
    mechanism, noise = new_mechanism()
    assert mechanism.take_tick(0, events([1, 2]), 0.25) == 2
    assert mechanism.take_tick(0, events([9]), 0.25) == 1
    assert mechanism.count_zones(0, np.array([2, 3]), 0.25).tolist() == [2, 1]
    assert mechanism.take_tick(0, events([8]), 0.25) == 1
    assert mechanism.count_zones(0, np.array([2, 3]), 0.25).tolist() == [0, 1]  # a new batch
    fine = mechanism.count_block(0, Division(([2, 3], 1), ([2, 6, 7], 0)), 0.5)
    assert (fine.node.tolist(), fine.value.tolist()) == ([2, 6, 7], [2, 2, 0])
    assert mechanism.count_block(0, Division(([1], 0)), 0.5).value.tolist() == [0]
    assert [draw.scale for draw in noise.draws][:3] == [4.0, 4.0, 4.0]


def test_no_event_spends_more_than_its_budget() -> None:
    mechanism, _ = new_mechanism()
    mechanism.take_tick(0, events([1]), 0.25)
    mechanism.count_zones(0, np.array([1]), 0.25)
    with pytest.raises(BudgetError):
        mechanism.count_block(0, Division(([1], 0)), np.nextafter(0.5, 1))
    mechanism, _ = new_mechanism()
    mechanism.take_start([TickEvents(events([1]), events([]))])
    mechanism.count_start_total(0.5)
    mechanism.count_start(Division(([1], 0)), 0.5)
    with pytest.raises(BudgetError):
        mechanism.count_start(Division(([1], 0)), 5e-324)
    mechanism.end_start()
    with pytest.raises(StateError, match="counted already"):
        mechanism.count_start_total(0.1)


def test_what_was_spent_is_remembered_over_a_restart() -> None:
    mechanism, _ = new_mechanism()
    mechanism.take_tick(0, events([3]), 0.75)
    again, _ = new_mechanism()
    again.restore(mechanism.to_arrays())
    with pytest.raises(BudgetError):
        again.count_zones(0, np.array([1]), 0.26)


@pytest.mark.parametrize("zones", [[2, 4], [1, 3], [5, 5]])
def test_overlapping_zones_are_refused(zones: list[int]) -> None:
    mechanism, noise = new_mechanism()
    mechanism.take_tick(0, events([1]), 0.25)
    before = len(noise.draws)
    with pytest.raises(StateError, match="overlap"):
        mechanism.count_zones(0, np.array(zones), 0.25)
    assert len(noise.draws) == before


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([([2, 4], 0)], "twice"),
        ([([2], 1), ([4, 8], 0)], "not there"),  # more halvings than there are parts
        ([([2], 1), ([4, 4], 0)], "twice"),
        ([([2], 1), ([4, 6], 0)], "not there"),  # not inside what was counted
        ([([2], 1), ([1], 0)], "not there"),  # larger than what was counted
        ([([2], 1)], "undivided"),
    ],
)
def test_divisions_of_noise_that_is_not_there_are_refused(stages: list[tuple[list[int], int]], said: str) -> None:
    mechanism, _ = new_mechanism()
    with pytest.raises(StateError, match=said):
        mechanism.count_block(0, Division(*stages), 0.5)
