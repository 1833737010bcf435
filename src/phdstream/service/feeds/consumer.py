"""Follows a source: its messages into the journal, each once, and all of them before a tick is closed. **Private.**

**The rule for ticks.** An event goes to the tick of its own time. That tick takes it if the *broker* stamped its
arrival before the tick closed by the clock (`Schedule.place_stamped`); otherwise it is late. So what becomes of an
event depends on its content, its stamp and the public schedule: not on when this process ran, how fast it read, what
came together, or in which order.

**All before the close.** When a tick is due, the broker's clock must have passed that moment too, where it can be
asked; then ``settle`` passes, for clocks that are a little apart and messages on their way; then the broker is asked
for a mark of all that it holds, and everything before the mark is read and committed. Only then is the tick closed. A
message that comes still later with a stamp from before (a broker's clock that was set back, or is further off than
``settle``) is late.

**A source that cannot be read holds ticks up**: none is closed without it. The reason is in `failure`, the service says
that it is not ready, and it is tried again until it works.

**Once.** Events, positions and the length of the file of dead letters are one transaction; the broker is told after it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from phdstream.errors import PhdstreamError, StateError
from phdstream.service.feeds.dead_letters import DeadLetters
from phdstream.service.feeds.protocol import Feed, FeedError, Message, Position
from phdstream.service.feeds.sifting import Read, sift
from phdstream.service.journal import ClosedTickError, Followed, Journal, Part
from phdstream.service.schedule import Schedule

__all__ = ["Consumer"]

_LOG = logging.getLogger("phdstream.service")
_MOST, _LOOK, _RETRY, _PATIENCE = 20_000, 0.2, 1.0, 30.0
"""Messages at a time; seconds to wait for some, before another try, and without progress before a tick is held up."""


@dataclass
class _Asked:
    """A wait for all that the broker has: since when, from which moment on, the mark once it is set, how it ended."""

    before: datetime
    since: float
    moved: float
    mark: Any = None
    done: bool = False
    error: str = ""


class Consumer:
    """Reads one source into the journal, in a thread of its own once started; or by `catch_up`, in the caller's."""

    def __init__(
        self, feed: Feed, journal: Journal, read: Read, schedule: Schedule, letters: DeadLetters, settle: timedelta
    ) -> None:
        self._feed, self._journal, self._read, self._schedule = feed, journal, read, schedule
        self._letters, self._settle = letters, settle.total_seconds()
        self._known: dict[str, Position] = {}
        self._asked: _Asked | None = None
        self._drained: datetime | None = None
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="consumer", daemon=True)
        self.failure = ""

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._open()
                while not self._stop.is_set():
                    self._step()
            except Exception as error:
                self._fail(error)
                self._stop.wait(_RETRY)
            finally:
                self._feed.close()

    def _open(self) -> None:
        self._known = self._journal.positions()
        self._feed.open(self._known)

    def _fail(self, error: Exception) -> None:
        known = isinstance(error, PhdstreamError)
        why = str(error) if known else f"an error that should not happen ({type(error).__name__})"
        if why != self.failure:
            _LOG.error("the source cannot be read", extra={"why": why})
        with self._changed:
            self.failure = why
            if self._asked is not None:
                self._asked.error = why
            self._changed.notify_all()

    def _step(self) -> None:
        """Read some messages; set the mark of whoever waits, when it is time, and tell them once it is reached."""
        asked = self._asked
        if asked is not None and asked.mark is None and self._settled(asked):
            asked.mark = (self._feed.mark(),)
            self._works()
        messages = self._feed.read(_MOST, _LOOK)
        self._take(messages)
        if messages:
            self._works()
        if asked is None:
            return
        if messages or asked.mark is None:
            asked.moved = time.monotonic()
        if asked.mark is not None and self._feed.reached(asked.mark[0]):
            with self._changed:
                asked.done = True
                self._changed.notify_all()
        elif time.monotonic() - asked.moved > _PATIENCE:
            raise FeedError(
                "the source has not handed over all that it held when the tick was to close: is it down, or is a "
                "transaction open?"
            )

    def _works(self) -> None:
        if self.failure:
            _LOG.info("the source can be read again")
        self.failure = ""

    def _settled(self, asked: _Asked) -> bool:
        """Whether the broker's clock, where it can be asked, has passed the moment, and clocks had time to agree."""
        there = self._feed.now()
        if there is not None and there < asked.before:
            if time.monotonic() - asked.since > _PATIENCE + self._settle:
                raise FeedError("the clock of the source is behind this machine's: set both right.")
            return False
        return time.monotonic() - asked.since >= self._settle

    def _take(self, messages: list[Message]) -> None:
        """Commit what messages hold, and how far they go, at once; then tell the broker."""
        fresh, ends = self._beyond(messages)
        if not fresh:
            return
        alike: dict[Any, list[Message]] = {}
        for one in fresh:
            alike.setdefault(None if one.arrived is None else self._schedule.alike(one.arrived), []).append(one)
        lots = [(some[0].arrived, sift(self._read, some)) for some in alike.values()]
        length = self._letters.append((letter for _, lot in lots for letter in lot.letters), self._journal.sealed)
        while True:
            refused: dict[str, int] = {}
            parts: list[Part] = []
            for arrived, lot in lots:
                self._place(lot.parts, arrived, parts, refused)
                for why, number in lot.refused.items():
                    refused[why] = refused.get(why, 0) + number
            try:
                self._journal.follow(Followed(parts, ends, refused, length))
                break
            except ClosedTickError:  # closed just now: what is stamped from before is late
                continue
        self._letters.keep(length)
        self._known |= ends
        self._feed.acknowledge(ends)

    def _beyond(self, messages: list[Message]) -> tuple[list[Message], dict[str, Position]]:
        """Return the messages that were not taken before, and how far they go."""
        fresh, ends = [], dict[str, Position]()
        for one in messages:
            if one.position > ends.get(one.partition, self._known.get(one.partition, (-1,))):
                fresh.append(one)
                ends[one.partition] = one.position
        return fresh, ends

    def _place(self, found: list[Part], arrived: datetime | None, parts: list[Part], refused: dict[str, int]) -> None:
        closed = self._journal.closed
        for part in found:
            assert arrived is not None  # a message without a stamp is a dead letter
            place = self._schedule.place_stamped(part.tick, arrived, closed)
            if isinstance(place, str):
                refused[place] = refused.get(place, 0) + part.number
            else:
                parts.append(Part(place, part.sign, part.number, part.rows))

    def drain(self, before: datetime) -> None:
        """Wait until all that the broker held at some moment after ``before`` is committed; or say why it cannot be."""
        with self._changed:
            if self._drained is not None and before <= self._drained:
                return
            asked = self._asked = _Asked(before, time.monotonic(), time.monotonic())
            try:
                self._changed.wait_for(lambda: asked.done or asked.error or self._stop.is_set())
            finally:
                self._asked = None
            if not asked.done:
                raise StateError(f"the source was not read to its end: {asked.error or 'the service ends'}")
            self._drained = before

    def catch_up(self, before: datetime, progress: Callable[[], None] = lambda: None) -> None:
        """Read all that the source holds, in this thread, and return; for a consumer that was not started."""
        asked = self._asked = _Asked(before, time.monotonic(), time.monotonic())
        try:
            self._open()
            while not asked.done:
                self._step()
                progress()
        finally:
            self._asked = None
            self._feed.close()

    def stop(self) -> None:
        """Finish the messages at hand, and let go of the source."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self._letters.close()
