"""Ticks open and close by the clock and by an event's own arrival."""

from __future__ import annotations

from datetime import timedelta

import pytest

from phdstream.io.sources.clock import Clock
from phdstream.service import schedule as rules
from phdstream.service.schedule import Schedule
from phdstream.service.settings import ServiceSettings
from tests.service.streams import START, HandClock

CLOCK = Clock(START, timedelta(seconds=10), 100, timedelta(seconds=3))


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def rule(closed: int = 0, started: float = 0.0, **settings: object) -> Schedule:
    return Schedule(CLOCK, ServiceSettings(**settings), closed, START + after(started))  # type: ignore[arg-type]


class TestPlaces:
    @pytest.mark.parametrize(
        ("tick", "arrived", "place"),
        [
            (1, 0.0, 1),
            (1, 12.9, 1),  # within the grace
            (1, 13.0, rules.LATE),
            (2, 13.0, 2),
            (0, 5.0, rules.BEFORE),
            (-7, 5.0, rules.BEFORE),
            (101, 5.0, rules.AFTER),
            (7, 5.0, 7),  # a minute ahead
            (8, 5.0, rules.EARLY),
        ],
    )
    def test_by_the_tick_and_the_arrival(self, tick: int, arrived: float, place: int | str) -> None:
        assert rule(ahead=timedelta(seconds=60)).place(tick, START + after(arrived)) == place

    def test_a_late_event_may_go_to_the_earliest_open_tick(self) -> None:
        moved = rule(late="next")
        assert moved.place(1, START + after(13)) == 2
        assert moved.place(1, START + after(47)) == 5
        assert moved.place(3, START + after(100 * 10 + 3)) == rules.LATE  # none is open any more

    def test_what_closed_once_stays_closed(self) -> None:
        """Though the clock was set back while the service was down."""
        assert rule(closed=5).place(5, START + after(1)) == rules.LATE
        assert rule(closed=5).closed(START + after(1)) == 5


class TestDowntime:
    def test_ticks_that_came_due_meanwhile_stay_open_for_a_while(self) -> None:
        back = rule(closed=2, started=100, catch_up=timedelta(seconds=20))
        assert back.place(3, START + after(119)) == 3
        assert back.place(3, START + after(120)) == rules.LATE
        assert back.closed(START + after(119)) == 2
        assert back.closed(START + after(120)) == 11

    def test_without_a_word_for_as_long_as_the_grace(self) -> None:
        back = rule(closed=2, started=100)
        assert back.closed(START + after(102)) == 2
        assert back.closed(START + after(103)) == 10

    def test_if_nothing_came_due_ticks_close_as_always(self) -> None:
        back = rule(closed=9, started=100, catch_up=timedelta(hours=1))
        assert [back.closed(START + after(x)) for x in (112, 113)] == [10, 11]


class TestJumps:
    def test_small_steps_are_followed_and_it_never_goes_back(self) -> None:
        hand = HandClock()
        steady = hand.steady()
        hand.wall += 4
        assert steady.now() == START + after(4)
        hand.wall -= 3
        assert steady.now() == START + after(4)
        hand.go_to(10)
        assert steady.now() == START + after(10)
        assert not steady.jumped

    @pytest.mark.parametrize("jump", [3600.0, -3600.0])
    def test_a_jump_is_not_followed_before_it_is_steady(self, jump: float) -> None:
        hand = HandClock()
        steady = hand.steady()
        hand.wall += jump
        for _ in range(599):
            hand.wall += 1
            hand.passed += 1
            steady.now()
        assert steady.jumped
        assert steady.now() == START + after(599)
        hand.wall += 2
        hand.passed += 2
        assert steady.now() == START + after(601 + jump if jump > 0 else 599)
        assert not steady.jumped

    def test_a_jump_that_is_taken_back_leaves_no_trace(self) -> None:
        hand = HandClock()
        steady = hand.steady()
        hand.wall += 86400
        assert steady.now() == START
        hand.wall -= 86400
        hand.go_to(5)
        assert steady.now() == START + after(5)
        assert not steady.jumped

    def test_back_and_forth_never_settles(self) -> None:
        hand = HandClock()
        steady = hand.steady()
        for i in range(200):
            hand.passed += 100
            hand.wall = START.timestamp() + 100 * (i + 1) + (10_000 if i % 2 else -10_000)
            steady.now()
        assert steady.jumped
        assert steady.now() == START + after(20_000)

    def test_sleep_is_time_that_has_passed(self) -> None:
        hand = HandClock()
        steady = hand.steady()
        hand.go_to(86400)
        assert steady.now() == START + after(86400)
        assert not steady.jumped
