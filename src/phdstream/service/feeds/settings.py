"""What a configuration says about its source: the section ``[source]``. Secrets are in files of their own.

>>> from pathlib import Path
>>> given = {"type": "kafka", "servers": "localhost:9092", "topic": "rides"}
>>> read_source(given, Path()).to_dict()
{'type': 'kafka', 'topic': 'rides', 'group': 'phdstream'}
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from phdstream.errors import ConfigError, did_you_mean
from phdstream.io.sources.clock import parse_duration

__all__ = [
    "KNOWN",
    "KafkaSettings",
    "PostgresSettings",
    "RedisSettings",
    "SourceSettings",
    "private_text",
    "read_source",
]

_SIZES = {"kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, kw_only=True)
class SourceSettings:
    """What every source has: ``settle``, how long clocks may be apart and messages on their way; ``dead_letters``,
    how many bytes of messages that hold no event are kept with their content.
    """

    settle: timedelta = timedelta(seconds=1)
    dead_letters: int = 64 << 20
    PINNED: ClassVar[tuple[str, ...]] = ()
    TYPE: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Return what decides which messages there are: kept with the state, since it must not change on the way."""
        values = {name: getattr(self, name) for name in self.PINNED}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return {"type": self.TYPE} | plain


@dataclass(frozen=True, kw_only=True)
class KafkaSettings(SourceSettings):
    """A topic. ``properties_file``: more settings of librdkafka, one ``name=value`` a line, secrets among them.
    ``gone``: "stop" if messages are gone from the broker before they were read, or "skip" to go on without them.
    """

    servers: tuple[str, ...]
    topic: str
    group: str = "phdstream"
    properties_file: Path | None = None
    gone: str = "stop"
    PINNED = ("topic", "group")
    TYPE = "kafka"

    def properties(self) -> dict[str, str]:
        """Return what the file of properties says, as it is now."""
        if self.properties_file is None:
            return {}
        lines = private_text(self.properties_file).splitlines()
        pairs = [line.partition("=") for line in map(str.strip, lines) if line and not line.startswith("#")]
        return {name.strip(): value.strip() for name, _, value in pairs}


@dataclass(frozen=True, kw_only=True)
class RedisSettings(SourceSettings):
    """Streams, and the field of an entry that holds the event. ``password_file`` holds the password."""

    url: str
    streams: tuple[str, ...]
    field: str = "event"
    group: str = "phdstream"
    password_file: Path | None = None
    PINNED = ("streams", "field", "group")
    TYPE = "redis"

    def password(self) -> str | None:
        """Return the password, as its file has it now."""
        return None if self.password_file is None else private_text(self.password_file).strip()


@dataclass(frozen=True, kw_only=True)
class PostgresSettings(SourceSettings):
    """A table, and its columns: ``transaction`` (xid8) and ``number`` order its rows, ``arrived`` stamps them;
    ``event`` holds the event as JSON; without it the row itself, as JSON, is the event.
    """

    url: str
    table: str
    number: str = "id"
    transaction: str = "xid"
    arrived: str = "arrived"
    event: str | None = None
    password_file: Path | None = None
    PINNED = ("table", "number", "transaction", "arrived", "event")
    TYPE = "postgresql"

    def password(self) -> str | None:
        """Return the password, as its file has it now."""
        return None if self.password_file is None else private_text(self.password_file).strip()


_TYPES: dict[str, type[SourceSettings]] = {one.TYPE: one for one in (KafkaSettings, RedisSettings, PostgresSettings)}
_NEEDED = {"kafka": ("servers", "topic"), "redis": ("url", "streams"), "postgresql": ("url", "table")}
KNOWN = {"type"} | {field.name for one in _TYPES.values() for field in fields(one)}
"""The keys of the section, of whichever type."""


def read_source(given: dict[str, Any], base: Path) -> SourceSettings:
    """Return the section, checked; paths are relative to ``base``."""
    kind = given.get("type")
    if kind not in _TYPES:
        raise ConfigError(f"[source] has an unknown type {kind!r}: {did_you_mean(str(kind), _TYPES)}")
    known = {field.name for field in fields(_TYPES[kind])}
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key == "type":
            continue
        if key not in known:
            raise ConfigError(f"[source] of type {kind} has no key '{key}': {did_you_mean(key, known)}")
        values[key] = _CHECKS[key](key, value)
    for key in _NEEDED[kind]:
        if key not in values:
            raise ConfigError(f"[source] of type {kind} needs '{key}'.")
    for key in ("properties_file", "password_file"):
        if key in values:
            values[key] = base / values[key]
    _check_url(kind, values.get("url", ""))
    return _TYPES[kind](**values)


def _check_url(kind: str, url: str) -> None:
    schemes = {"redis": ("redis", "rediss"), "postgresql": ("postgresql", "postgres"), "kafka": ("",)}[kind]
    try:
        parts = urlsplit(url)
        password = parts.password is not None or "password" in parts.query
    except ValueError:
        raise ConfigError("[source] url is no address.") from None
    if parts.scheme not in schemes:
        raise ConfigError(f'[source] url must be an address that begins with "{schemes[0]}://".')
    if password:
        raise ConfigError("[source] url holds a password: write it to a file of your own, and name that password_file.")


def private_text(path: Path) -> str:
    """Return the text of a file that its owner alone may read."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"[source]: {path} cannot be read.") from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"[source]: others can read {path}, which holds secrets. Run: chmod 600 '{os.fspath(path)}'")
    return text


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(f"[source] {key} must be a non-empty text.")
    return value


def _name(key: str, value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ConfigError(f"[source] {key} must be a name of letters, digits, dots, hyphens and underscores.")
    return value


def _texts(key: str, value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or len(set(map(str, names))) < len(names):
        raise ConfigError(f"[source] {key} must be a text or a list of different ones.")
    return tuple(_text(key, name) for name in names)


def _table(key: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"\w{1,63}(\.\w{1,63})?", value):
        raise ConfigError(f'[source] {key} must be the name of a table, such as "events" or "public.events".')
    return value


def _path(key: str, value: Any) -> Path:
    return Path(_text(key, value)).expanduser()


def _gone(key: str, value: Any) -> str:
    if value not in ("stop", "skip"):
        raise ConfigError(f'[source] {key} must be "stop" or "skip".')
    return str(value)


def _length(key: str, value: Any) -> timedelta:
    try:
        length = parse_duration(value, 0)
    except ConfigError as error:
        raise ConfigError(f"[source] {key}: {error}") from None
    if length > timedelta(minutes=10):
        raise ConfigError(f"[source] {key} can be ten minutes at most.")
    return length


def _size(key: str, value: Any) -> int:
    match = re.fullmatch(r"(\d{1,6})\s*(kB|MB|GB)", value) if isinstance(value, str) else None
    if not match:
        raise ConfigError(f'[source] {key} must be a size such as "64MB".')
    return int(match[1]) * _SIZES[match[2]]


_CHECKS: dict[str, Any] = {
    "settle": _length, "dead_letters": _size, "servers": _texts, "topic": _name, "group": _name, "gone": _gone,
    "properties_file": _path, "password_file": _path, "url": _text, "streams": _texts, "field": _text, "table": _table,
    "number": _text, "transaction": _text, "arrived": _text, "event": _text,
}  # fmt: skip
