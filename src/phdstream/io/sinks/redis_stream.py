"""A Redis stream of synthetic changes. Public.

An entry's id is ``tick-index``, and Redis refuses an id that is not greater than the last: no entry can be there twice.
Entries go in by transactions (``WATCH``, ``MULTI``), so many at a time, each on condition that the last entry is the
one that was seen. So two processes cannot mix, and a server that lost entries at a crash is noticed. A tick with more
entries than one transaction takes may be seen in part until its last entry, the one that says that it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from phdstream.errors import SinkError
from phdstream.io.sinks.messages import batches, completion, tick_messages
from phdstream.io.sinks.protocol import driver, other_content, other_stream, release_digest
from phdstream.release import Release

__all__ = ["RedisSink"]

FIELD = b"message"
"""The field of an entry that holds its message."""
AT_ONCE = 10_000
"""Entries in one transaction."""
_PATIENCE = 30.0


class RedisSink:
    """The entries of one stream under one key; ``KEY:stream`` says whose they are."""

    def __init__(self, url: str, password: str | None, key: str, stream_id: str) -> None:
        self._redis: Any = driver("redis", "redis")
        self._key, self._stream, self.where = key, stream_id, f"the Redis stream {key}"
        no_retry = driver("redis.retry", "redis").Retry(driver("redis.backoff", "redis").NoBackoff(), 0)
        secret = {} if password is None else {"password": password}
        with self._talking():
            self._client = self._redis.Redis.from_url(
                url, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE, retry=no_retry, **secret
            )
            self._claim()

    def _claim(self) -> None:
        claim = f"{self._key}:stream"
        self._client.set(claim, self._stream, nx=True)
        theirs = (self._client.get(claim) or b"").decode(errors="replace")
        if theirs != self._stream:
            raise other_stream(self.where, theirs, self._stream)

    def last_tick(self) -> int:
        """Return the last tick that is there, whole."""
        with self._talking():
            tick, _, message = self._last(self._client)
            if not tick or completion(message):
                return tick
            before = self._client.xrevrange(self._key, max=f"({tick}-0", count=1)
            return _number(before[0][0])[0] if before else 0

    def has(self, tick: int) -> bool:
        """Tell whether a tick is there, whole."""
        return self._completion(tick) is not None

    def _completion(self, tick: int) -> dict[str, Any] | None:
        with self._talking():
            found = self._client.xrevrange(self._key, max=tick, min=tick, count=1)
        return completion(found[0][1].get(FIELD)) if found else None

    def publish(self, release: Release) -> None:
        """Add a tick's entries; of one that is there in part, those that are missing."""
        there = self._completion(release.tick)
        if there is not None:
            if (there["stream"], there.get("digest")) != (self._stream, release_digest(release)):
                raise other_content(self.where, release.tick)
            return
        with self._talking():
            self._add(release)

    def _add(self, release: Release) -> None:
        messages, done = tick_messages(release, self._stream), self._begun(release)
        index = done
        for batch in batches(islice(messages, done, None), AT_ONCE):
            with self._client.pipeline() as pipe:
                pipe.watch(self._key)
                self._check_place(pipe, release.tick, index)
                pipe.multi()
                for message in batch:
                    pipe.xadd(self._key, {FIELD: message}, id=f"{release.tick}-{index}")
                    index += 1
                pipe.execute()

    def _begun(self, release: Release) -> int:
        """Return how many entries of a tick are there; they must be the ones that would be added."""
        messages, number, after = tick_messages(release, self._stream), 0, str(release.tick)
        while entries := self._client.xrange(self._key, min=after, max=release.tick, count=AT_ONCE):
            expected = list(islice(messages, len(entries)))
            if [(_number(name), entry.get(FIELD)) for name, entry in entries] != [
                ((release.tick, number + i), message) for i, message in enumerate(expected)
            ]:
                raise other_content(self.where, release.tick)
            number, after = number + len(entries), "(" + entries[-1][0].decode()
        return number

    def _check_place(self, pipe: Any, tick: int, index: int) -> None:
        """Refuse to go on unless the last entry is the one before; another process may have been quicker."""
        last, at, message = self._last(pipe)
        follows = (last, at) == (tick, index - 1) if index else last < tick and (not last or completion(message))
        if not follows:
            raise SinkError(f"{self.where} has changed meanwhile: it is looked at again.")

    def _last(self, client: Any) -> tuple[int, int, bytes | None]:
        """Return the last entry: its tick, its index, its message; zeros for none."""
        found = client.xrevrange(self._key, count=1)
        return (*_number(found[0][0]), found[0][1].get(FIELD)) if found else (0, 0, None)

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Turn whatever Redis answers or does not into a SinkError."""
        try:
            yield
        except (self._redis.RedisError, OSError) as error:
            if isinstance(error, SinkError):
                raise
            raise SinkError(f"{self.where} cannot be written ({type(error).__name__}: {error}).") from None

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


def _number(name: bytes) -> tuple[int, int]:
    tick, _, index = name.decode().partition("-")
    return int(tick), int(index)
