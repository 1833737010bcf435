"""One stream that is served: what takes its events in, what releases its ticks, what its readers see."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from phdstream.io.archive import Archive
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.io.sinks.follower import Follower
from phdstream.io.sinks.protocol import OpenSink
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.reading import Reading
from phdstream.service.backup import copy_state
from phdstream.service.encryption import sealing
from phdstream.service.feeds.choice import consumer_of
from phdstream.service.feeds.consumer import Consumer
from phdstream.service.feeds.settings import SourceSettings
from phdstream.service.intake import Intake
from phdstream.service.journal import Journal
from phdstream.service.publisher import Publisher
from phdstream.service.reader import Readers
from phdstream.service.schedule import Schedule, SteadyClock
from phdstream.service.settings import ServiceSettings
from phdstream.service.sink_threads import SinkThread
from phdstream.service.ticks import TickBoard
from phdstream.service.tokens import Tokens
from phdstream.streams.durable.stream import DurableStream

__all__ = ["Announcer", "Source", "StreamService"]

_LOG = logging.getLogger("phdstream.service")


@dataclass(frozen=True)
class Source:
    """What a stream to be served is made of. ``open`` opens its private folder and its folder of releases.

    ``feed``: where events are read from, besides those that are posted.
    """

    open: Callable[[], tuple[DurableStream, ReleaseFolder]]
    state: Path
    clock: Clock
    columns: Columns
    reading: Reading
    settings: ServiceSettings
    about: dict[str, Any] = field(default_factory=dict)
    card: Callable[[int], dict[str, Any]] | None = None
    reload: Callable[[], ServiceSettings] | None = None
    sinks: dict[str, OpenSink] = field(default_factory=dict)
    feed: SourceSettings | None = None


class Announcer:
    """Tells readers, each waiting in an event loop, of new ticks; told by the thread that releases them."""

    def __init__(self) -> None:
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._lock, self.closed = threading.Lock(), False

    def announce(self, tick: int) -> None:
        """Wake all who wait."""
        with self._lock:
            for loop, woken in self._waiting:
                with contextlib.suppress(RuntimeError):  # its loop has ended
                    loop.call_soon_threadsafe(woken.set)

    def close(self) -> None:
        """Wake all for the last time: the service ends."""
        self.closed = True
        self.announce(0)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[asyncio.Event]:
        """Give an event that is set at every new tick."""
        mine = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            self._waiting.add(mine)
        try:
            yield mine[1]
        finally:
            with self._lock:
                self._waiting.discard(mine)

    @property
    def listeners(self) -> int:
        """How many wait."""
        return len(self._waiting)


class StreamService:
    """A stream, served. `start` begins to release ticks; `stop` finishes what was received and lets go."""

    def __init__(self, source: Source, clock: SteadyClock | None = None) -> None:
        self.source, self.settings = source, source.settings
        self.clock = clock or SteadyClock()
        stream, folder = opened = source.open()
        try:
            self.domain, self.stream_id, self.description = stream.domain, stream.id, stream.describe()
            self.unit = source.columns.user is not None
            self._journal = Journal(source.state, self.unit, sealing(self.settings.key_file))
            self._journal.bind(stream.id, stream.tick)
            started: datetime = self.clock.now()
            schedule = Schedule(source.clock, self.settings, self._journal.closed, started)
            readers = Readers(self.settings.readers, self.domain, source.clock, source.columns, source.reading)
            self.consumer: Consumer | None = None
            if source.feed is not None:
                self.consumer = consumer_of(source.feed, source.state, self._journal, readers.read, schedule)
        except BaseException:
            if hasattr(self, "_journal"):
                self._journal.close()
            folder.close()
            stream.close()
            raise
        self.archive = Archive(folder.folder, self.domain)
        self.announcer, self.tokens, self.started = Announcer(), Tokens(source.state), started
        self.prepare: Callable[[int], object] = lambda tick: None
        self.intake = Intake(self._journal, readers, schedule, self.clock, self.settings)
        self.publisher = Publisher(
            source.open, opened, self._journal, self.intake, schedule, self.clock, self._copy, self._announce,
            self._drain,
        )  # fmt: skip
        self.board = TickBoard(self.archive, self.publisher, schedule, self.clock)
        self.schedule = schedule
        self.sinks = [
            SinkThread(Follower(name, opens, Archive(folder.folder, self.domain, kept=1)))
            for name, opens in source.sinks.items()
        ]

    def _drain(self, before: datetime) -> None:
        """Wait for all that was sent before a moment, by whichever way."""
        if self.consumer is not None:
            self.consumer.drain(before)
        self.intake.drain(before)

    def _copy(self) -> None:
        if self.settings.backup is not None:
            copy_state(self.source.state, self.settings.backup, self._journal)

    def _announce(self, tick: int) -> None:
        """Tell readers of a tick; what listeners will ask for at once is made ready first (``prepare``)."""
        if self.announcer.listeners and self.archive.has(tick):
            try:
                self.prepare(tick)
            except Exception as error:  # the release is out: nothing that is made of it may hold up the next
                _LOG.error("a tick could not be made ready for the page", extra={"kind": type(error).__name__})
        self.announcer.announce(tick)
        for sink in self.sinks:
            sink.wake()

    def why_not_ready(self) -> list[str]:
        """Return what is wrong, in words that may be public; nothing if all is well."""
        why = ["releases are held up: see the log"] if self.publisher.failure else []
        why += ["the source cannot be read: see the log"] if self.consumer and self.consumer.failure else []
        why += ["the machine's clock has jumped"] if self.clock.jumped else []
        missing = self.board.missing()
        return why + ([f"ticks are missing: {', '.join(map(str, missing[:10]))}"] if missing else [])

    def reload(self) -> None:
        """Take the configuration's changed limits and keys; whatever fixes the promise cannot change."""
        if self.source.reload is not None:
            self.settings = self.intake.settings = self.source.reload()
            self._journal.sealed = sealing(self.settings.key_file)

    def start(self) -> None:
        """Begin to read the source, if there is one, and to release ticks."""
        if self.consumer is not None:
            self.consumer.start()
        self.publisher.start()
        for sink in self.sinks:
            sink.start()

    def stop(self) -> None:
        """Finish what was received and the tick that is being taken, and let go of everything."""
        self.announcer.close()
        self.publisher.stopping()
        if self.consumer is not None:
            self.consumer.stop()
        self.intake.close()
        self.publisher.stop()
        for sink in self.sinks:
            sink.stop()
        self._journal.close()
