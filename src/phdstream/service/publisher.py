"""Ticks close by the schedule and are released, one after the other, each once.

For a tick that is due, in this order: every request received before is committed, and all that a source held; the
journal closes the tick, for ever; its events are counted and the stream's new state, release included, is committed;
the events, now in the state as far as the method needs them, are erased from the journal; the state is copied to the
backup, if there is one; the release is written to the public folder; readers are told. A crash before the state is
committed leaves a closed tick whose events are all there, and of which nothing was seen: it is counted anew. A crash
after it leaves a release in the state that is published as it is at the next start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from phdstream.errors import PhdstreamError
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.service.intake import Intake
from phdstream.service.journal import Journal
from phdstream.service.schedule import Schedule, SteadyClock, microseconds
from phdstream.streams.durable.stream import DurableStream

__all__ = ["Publisher"]

_LOG = logging.getLogger("phdstream.service")
_LOOK, _RETRY = 0.25, 5.0
"""Seconds between two looks at the clock, and before what failed is tried again."""
_MICROSECOND = timedelta(microseconds=1)
Opened = tuple[DurableStream, ReleaseFolder]


class Publisher:
    """Owns the stream and its folder of releases, and runs in a thread of its own once started.

    ``open_stream`` opens both, and again after a failure; ``copy`` is called after every commit, before the release is
    shown; ``announce`` is told of every tick that can be read; ``drain`` waits for all that was sent before a moment.
    ``failure`` says what keeps ticks from being released.
    """

    def __init__(
        self,
        open_stream: Callable[[], Opened],
        opened: Opened,
        journal: Journal,
        intake: Intake,
        schedule: Schedule,
        clock: SteadyClock,
        copy: Callable[[], None] = lambda: None,
        announce: Callable[[int], None] = lambda tick: None,
        drain: Callable[[datetime], None] | None = None,
    ) -> None:
        self._open, self._journal, self._intake = open_stream, journal, intake
        self._schedule, self._clock, self._copy, self._announce = schedule, clock, copy, announce
        self._opened: Opened | None = opened
        self.failure, self.tick, self.first_release = "", opened[0].tick, opened[1].first_tick
        self._copied = -1
        self._drain = intake.drain if drain is None else drain
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        """Begin to look at the clock."""
        self._thread.start()

    def _run(self) -> None:
        wait = 0.0
        while not self._stop.wait(wait):
            wait = self._try()

    def _try(self) -> float:
        """Release what is due; return how long to wait before the next look. A failure is kept, and tried again."""
        try:
            self.release_due()
        except Exception as error:
            if self._stop.is_set():
                return 0.0
            known = isinstance(error, PhdstreamError)
            self.failure = str(error) if known else f"an error that should not happen ({type(error).__name__})"
            _LOG.error("releases are held up", extra={"why": self.failure})
            self._let_go()
            return _RETRY
        if self.failure:
            _LOG.info("releases go on")
        self.failure = ""
        return _LOOK

    def release_due(self) -> None:
        """Release every tick that is due, and the last one once more should it not have been shown."""
        if self._opened is None:
            self._opened = self._open()
            self._journal.bind(self._opened[0].id, self._opened[0].tick)
        stream, folder = self._opened
        self._show(stream, folder)
        now = self._clock.now()
        for tick in range(stream.tick + 1, self._schedule.closed(now) + 1):
            self._drain(now)
            self._journal.close_tick(tick)
            stream.update(*self._journal.events(tick))
            remember = self._intake.settings.remember // _MICROSECOND
            self._journal.purge(tick, microseconds(self._clock.now()), remember)
            self._show(stream, folder)
            if self._stop.is_set():
                return

    def _show(self, stream: DurableStream, folder: ReleaseFolder) -> None:
        """Copy what was committed; publish its release, unless it is there already, whole; then tell readers."""
        release, shown = stream.release, self.tick
        if self._copied != stream.tick:
            self._copy()
            self._copied = stream.tick
        if release is not None and folder.lacks(release):
            folder.publish(release)
            shown = -1
        self.tick, self.first_release = stream.tick, folder.first_tick
        if shown != stream.tick:
            self._announce(stream.tick)
            _LOG.info("tick taken", extra={"tick": stream.tick})

    def _let_go(self) -> None:
        if self._opened is not None:
            stream, folder = self._opened
            self._opened = None
            folder.close()
            stream.close()

    def stopping(self) -> None:
        """Begin no further tick, and wait for none that cannot be closed."""
        self._stop.set()

    def stop(self) -> None:
        """Finish the tick that is being taken, and let go of the stream."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._let_go()
