"""When ticks open and close: by a public rule of the clock and of when an event arrived, never of other events.

An event goes to the tick of its own time. That tick takes it if it *arrived* (its request was received whole) before
the tick closed, which is ``grace`` after the tick's end. One that arrives later is refused, or goes to the earliest
tick that is still open, as ``late`` says. A time too far ahead (``ahead``) is refused.

**After downtime** the ticks that came due meanwhile stay open for ``catch_up`` more, so that senders can deliver what
they kept. **If the machine's clock jumps**, the service goes on by the time that has really passed: it follows a new
time at once if it is off by a few seconds, otherwise after that time has been steady for ten minutes. Its own time
never goes back, so a tick that is closed stays closed.

**From a broker** (`phdstream.service.feeds`) the same rule, by the broker's own stamp of arrival: when the service was
up, and how fast it read, plays no part.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from phdstream.io.sources.clock import Clock
from phdstream.service.settings import ServiceSettings

__all__ = ["Schedule", "SteadyClock", "microseconds"]

TOLERANCE, SETTLED = 5.0, 600.0
"""Seconds by which the machine's clock may be off, and for which it must be steady to be followed if it is more."""
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATE, EARLY = "its tick is closed", "its time is too far in the future"
BEFORE, AFTER = "its time is before the first tick", "its time is after the last tick"


def microseconds(moment: datetime) -> int:
    """Return a moment in microseconds since 1970.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return (moment - _EPOCH) // _MICROSECOND


def _since_boot() -> float:
    """Return seconds that have really passed, also while the machine slept."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SteadyClock:
    """The machine's clock without its jumps; see the module's first lines. Threads may share it."""

    def __init__(self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = _since_boot) -> None:
        self._wall, self._passed, self._lock = wall, passed, threading.Lock()
        self._at, self._then = wall(), passed()
        self._last = self._at
        self._jump: tuple[float, float] | None = None  # since when the clock is off, and by how much

    def now(self) -> datetime:
        """Return the service's time."""
        with self._lock:
            wall, passed = self._wall(), self._passed()
            expected = self._at + passed - self._then
            off = wall - expected
            if abs(off) <= TOLERANCE or self._settled(off, passed):
                self._at, self._then, self._jump, expected = wall, passed, None, wall
            self._last = max(self._last, expected)
            return _EPOCH + timedelta(seconds=self._last)

    def _settled(self, off: float, passed: float) -> bool:
        if self._jump is None or abs(off - self._jump[1]) > TOLERANCE:
            self._jump = passed, off
        return passed - self._jump[0] >= SETTLED

    @property
    def jumped(self) -> bool:
        """Whether the machine's clock has jumped and is not followed yet."""
        return self._jump is not None


@dataclass(frozen=True)
class Schedule:
    """The rule: ``clock`` and ``settings`` as configured, ``closed`` when the service started, at ``started``."""

    clock: Clock
    settings: ServiceSettings
    closed_before: int
    started: datetime

    def closed(self, now: datetime) -> int:
        """Return the last tick that takes no more events at a moment."""
        over = self.clock.over(now)
        caught_up = self.started + (self.clock.grace if self.settings.catch_up is None else self.settings.catch_up)
        if self.clock.over(self.started) > self.closed_before and now < caught_up:
            return self.closed_before
        return max(self.closed_before, over)

    def due(self, tick: int) -> datetime | None:
        """Return when a tick closes by the clock, as the clock writes times."""
        end = self.clock.end_of(tick)
        return None if end is None else end + self.clock.grace

    def place(self, tick: int, arrived: datetime) -> int | str:
        """Return the tick that an event of ``tick`` goes to if it arrived at a moment, or why it goes to none."""
        return self._place(tick, arrived, self.closed(arrived))

    def place_stamped(self, tick: int, arrived: datetime, closed: int) -> int | str:
        """Return the same for an event that a broker stamped with its arrival, maybe long before it is read here.

        The stamp and the clock decide, not when the service was up: the tick takes it if it was stamped before the
        tick closed by the clock. (``closed`` ticks were handed over, and take nothing more whatever the stamp is.)
        """
        return self._place(tick, arrived, max(closed, self.clock.over(arrived)))

    def alike(self, arrived: datetime) -> tuple[int, int]:
        """Return what `place_stamped` asks about a stamp: events of the same tick and equal answers go together."""
        return self.clock.over(arrived), self.clock.until(arrived + self.settings.ahead)

    def _place(self, tick: int, arrived: datetime, closed: int) -> int | str:
        if tick < 1:
            return BEFORE
        if self.clock.count is not None and tick > self.clock.count:
            return AFTER
        if tick > self.clock.until(arrived + self.settings.ahead) + 1:
            return EARLY
        if tick > closed:
            return tick
        if self.settings.late == "refuse" or (self.clock.count is not None and closed >= self.clock.count):
            return LATE
        return closed + 1
