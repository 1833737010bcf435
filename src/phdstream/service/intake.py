"""From a request to the journal: each delivery once, on the disk before it is answered. **Private.**

*Once.* A delivery carries an idempotency key (IETF draft, "The Idempotency-Key HTTP Header Field"). Keyed digests of
key and payload are committed in one transaction with its events and its answer. The same key with the same payload is
given that answer again; with another payload it is refused; while the first is being taken it is told to wait.

*By its own arrival.* What becomes of an event depends on its row, on the schedule and on the moment its request was
received whole (`phdstream.service.schedule`): closing a tick waits for every request that was received before.

*Within bounds.* The bytes of all requests being taken are bounded; beyond that a request is refused before it is read,
and its sender told when to come again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from types import TracebackType
from typing import Any

from phdstream.errors import PhdstreamError, StateError
from phdstream.service.bodies import OUTSIDE, Body
from phdstream.service.journal import Delivery, Journal, Part
from phdstream.service.reader import PATIENCE, Readers
from phdstream.service.schedule import Schedule, SteadyClock, microseconds
from phdstream.service.settings import ServiceSettings

__all__ = ["InFlightError", "Intake", "MismatchError", "NoRoomError", "Ticket", "UnreadableError"]

_AT_ONCE, _BYTES_AT_ONCE = 256, 64 << 20
"""Deliveries, and bytes of events, that one transaction takes at most."""
Answer = dict[str, Any]


class InFlightError(PhdstreamError):
    """A delivery with the same key is being taken."""


class MismatchError(PhdstreamError):
    """The key was used before, with another payload."""


class NoRoomError(PhdstreamError):
    """Too many bytes are being taken at the moment."""


class UnreadableError(PhdstreamError):
    """Not one row of the body could be read; nothing was stored."""

    def __init__(self, rejected: dict[str, int]) -> None:
        super().__init__("not one row of the body could be read; nothing was stored.")
        self.rejected = rejected


class Intake:
    """Takes deliveries for one stream: `open` before a body is received, `deliver` after."""

    def __init__(
        self, journal: Journal, readers: Readers, schedule: Schedule, clock: SteadyClock, settings: ServiceSettings
    ) -> None:
        self._journal, self._readers, self._schedule, self._clock = journal, readers, schedule, clock
        self.settings = settings
        self._secret, self._taken = journal.secret, 0
        self._keys: set[bytes] = set()
        self._outstanding: dict[Ticket, datetime] = {}
        self._changed = threading.Condition()
        self._pool = ThreadPoolExecutor(settings.readers + 2, "intake")
        self._queue: queue.SimpleQueue[tuple[Delivery, Future[None]] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="journal", daemon=True)
        self._writer.start()

    def open(self, key: str) -> Ticket:
        """Begin a delivery: its key is held, and room for its body as it grows, until the ticket is closed."""
        digest = blake2b(key.encode("utf-8", "surrogatepass"), key=self._secret, digest_size=32).digest()
        with self._changed:
            if digest in self._keys:
                raise InFlightError("a delivery with this Idempotency-Key is being taken: ask again for its answer.")
            self._keys.add(digest)
        return Ticket(self, digest)

    async def deliver(self, ticket: Ticket, kind: str, content: bytearray) -> Answer:
        """Take a body that was received whole just now: committed to the disk on return. Return what to answer.

        What was received is taken to its end even if the sender goes away meanwhile.
        """
        with self._changed:
            arrived = self._outstanding[ticket] = self._clock.now()
            ticket.handed_over = True
        return await asyncio.shield(asyncio.create_task(self._deliver(ticket, kind, content, arrived)))

    async def _deliver(self, ticket: Ticket, kind: str, content: bytearray, arrived: datetime) -> Answer:
        try:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._pool, self._read, ticket.key, kind, content, arrived)
            if not isinstance(found, Delivery):
                return found
            committed: Future[None] = Future()
            self._queue.put((found, committed))
            try:
                await asyncio.wrap_future(committed)
            finally:
                found.parts.clear()
            return found.answer
        finally:
            with contextlib.suppress(BufferError):  # something still looks at it, and goes with its error
                content.clear()  # now: futures hold each other, and what they hold, until Python looks for such circles
            with self._changed:
                del self._outstanding[ticket]
                self._changed.notify_all()
            ticket.close()

    def _read(self, key: bytes, kind: str, content: bytearray, arrived: datetime) -> Delivery | Answer:
        payload = blake2b(content, key=self._secret, digest_size=32, person=kind[-16:].encode()).digest()
        before = self._journal.answered(key)
        if before is not None:
            if not hmac.compare_digest(before.payload, payload):
                raise MismatchError("this Idempotency-Key was used before, with another payload: use a new key.")
            return before.answer
        body = self._readers.read(kind, content)
        if not _readable(body):
            raise UnreadableError(body.rejected)
        answer, parts = self._judge(body, arrived)
        return Delivery(key, payload, microseconds(arrived), parts, answer)

    def _judge(self, body: Body, arrived: datetime) -> tuple[Answer, list[Part]]:
        """Return what to answer, and the events by the tick that takes them."""
        parts = []
        for part in body.parts:
            place = self._schedule.place(part.tick, arrived)
            if isinstance(place, str):
                body.reject(place, part.number)
            else:
                parts.append(replace(part, tick=place))
        rejected = [{"reason": why, "rows": number} for why, number in sorted(body.rejected.items())]
        return {"accepted": sum(part.number for part in parts), "rejected": rejected}, parts

    def _write(self) -> None:
        """Commit deliveries as they come, those that wait together in one transaction."""
        while (first := self._queue.get()) is not None:
            some, size = [first], _size(first[0])
            while len(some) < _AT_ONCE and size < _BYTES_AT_ONCE:
                try:
                    more = self._queue.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    self._queue.put(None)
                    break
                some.append(more)
                size += _size(more[0])
            self._commit(some)

    def _commit(self, some: list[tuple[Delivery, Future[None]]]) -> None:
        try:
            self._journal.accept(one for one, _ in some)
        except BaseException as error:
            known = error if isinstance(error, PhdstreamError) else StateError("the journal could not be written.")
            for _, committed in some:
                committed.set_exception(known)
            return
        for _, committed in some:
            committed.set_result(None)

    def drain(self, before: datetime) -> None:
        """Wait until every request that was received before a moment is committed or refused."""

        def none_left() -> bool:
            return all(arrived >= before for arrived in self._outstanding.values())

        with self._changed:
            if not self._changed.wait_for(none_left, 4 * PATIENCE):
                raise StateError("requests that were received before the tick closed are still being read.")

    def close(self) -> None:
        """Finish what was received, and take no more."""
        self._queue.put(None)
        self._writer.join()
        self._pool.shutdown()
        self._readers.close()


class Ticket:
    """One delivery that is being received: its key, and the bytes it holds of those that all may hold together."""

    def __init__(self, intake: Intake, key: bytes) -> None:
        self._intake, self.key, self._held, self.handed_over = intake, key, 0, False

    def grow(self, size: int) -> None:
        """Hold so many bytes in all, or say that there is no room now."""
        with self._intake._changed:
            if self._intake._taken + size - self._held > self._intake.settings.memory:
                raise NoRoomError("too much is being taken in at the moment: send it again later.")
            self._intake._taken += size - self._held
            self._held = size

    def close(self) -> None:
        """Let go of key and bytes."""
        with self._intake._changed:
            self._intake._taken -= self._held
            self._held = 0
            self._intake._keys.discard(self.key)

    def __enter__(self) -> Ticket:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self.handed_over:
            self.close()


def _readable(body: Body) -> bool:
    """Whether at least one row was an event, wherever or whenever it was."""
    return bool(body.parts) or OUTSIDE in body.rejected


def _size(delivery: Delivery) -> int:
    return sum(len(part.rows) for part in delivery.parts) + len(json.dumps(delivery.answer))
