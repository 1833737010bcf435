"""Redis Streams. Needs the extra ``redis``.

**In order, and a position is enough.** Redis gives an entry an id larger than all before it in its stream, so an entry
never appears before one that was read. Entries are therefore read by id after our own position (``XREAD``), and not
handed out by the group (``XREADGROUP``): what a group hands out can be acknowledged out of order, or be taken by
another consumer of the same name, and then one position would not say what is on our disk. After the commit, the group
is moved to our position (``XGROUP SETID``): that acknowledges everything up to it at once. Nothing is ever pending, so
nothing has to be claimed from a consumer that died; ``XINFO GROUPS`` shows the lag; and entries up to the group's last
delivered id may be trimmed.

**Arrival** is the time in the entry's id, in milliseconds, by the clock of Redis (senders leave the id to Redis:
``XADD key *``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from phdstream.errors import InputError
from phdstream.service.feeds.protocol import FeedError, Message, Position, moment
from phdstream.service.feeds.settings import RedisSettings

__all__ = ["RedisFeed"]

_TIMEOUT = 10.0


class RedisFeed:
    """One or several streams, each a partition, as `Feed`."""

    def __init__(self, settings: RedisSettings) -> None:
        try:
            import redis
        except ImportError:
            raise InputError("a Redis source needs more: pip install 'phdstream[redis]'") from None
        self._redis, self._settings = redis, settings
        self._field = settings.field.encode()
        self._client: Any = None
        self._at: dict[str, Position] = {}

    def open(self, positions: Mapping[str, Position]) -> None:
        """Connect; make the group where it is missing."""
        self._at = {key: positions.get(key, (0, 0)) for key in self._settings.streams}
        self._client = self._redis.Redis.from_url(
            self._settings.url, password=self._settings.password(), socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT, protocol=2,
        )  # fmt: skip
        for key in self._settings.streams:
            self._asked(self._make_group, key)

    def _make_group(self, key: str) -> None:
        try:
            self._client.xgroup_create(key, self._settings.group, id="0", mkstream=True)
        except self._redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    def _asked(self, ask: Callable[..., Any], *about: Any, **more: Any) -> Any:
        try:
            return ask(*about, **more)
        except (self._redis.RedisError, OSError) as error:
            raise FeedError(f"Redis cannot be asked: {type(error).__name__}.") from None

    def read(self, most: int, seconds: float) -> list[Message]:
        """Return some of the next entries."""
        after = {key: _written(position) for key, position in self._at.items()}
        each = max(1, most // len(after))
        found = self._asked(self._client.xread, after, count=each, block=max(1, int(1000 * seconds)))
        messages = []
        for name, entries in found:
            key = name.decode("utf-8", "surrogateescape")
            for written, fields in entries:
                position = _position(written)
                self._at[key] = position
                content = None if fields is None else fields.get(self._field)
                messages.append(Message(key, position, moment(1000 * position[0]), content))
        return messages

    def now(self) -> datetime | None:
        """Return the time by Redis, of which ids are made."""
        seconds, microseconds = self._asked(self._client.time)
        return moment(1_000_000 * int(seconds) + int(microseconds))

    def mark(self) -> dict[str, Position]:
        """Return the id of each stream's last entry."""
        last = {key: self._asked(self._client.xrevrange, key, count=1) for key in self._at}
        return {key: _position(entries[0][0]) for key, entries in last.items() if entries}

    def reached(self, mark: dict[str, Position]) -> bool:
        """Whether each stream was read up to there."""
        return all(self._at[key] >= position for key, position in mark.items())

    def acknowledge(self, positions: Mapping[str, Position]) -> None:
        """Move the group to what is on our disk."""
        for key, position in positions.items():
            self._asked(self._client.xgroup_setid, key, self._settings.group, _written(position))

    def close(self) -> None:
        """Let go of the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _position(written: bytes) -> Position:
    """Return an entry's id as numbers.

    >>> _position(b"1717113600000-2")
    (1717113600000, 2)
    """
    first, _, second = written.partition(b"-")
    return int(first), int(second)


def _written(position: Position) -> str:
    return f"{position[0]}-{position[1]}"
