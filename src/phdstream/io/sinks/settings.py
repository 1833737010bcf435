"""What a configuration says about sinks: the tables ``[[sinks]]``. No secret is in the file, only where to find it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phdstream.domains import Domain
from phdstream.errors import ConfigError, SinkError, did_you_mean
from phdstream.io.sinks.protocol import Sink

__all__ = ["KafkaSettings", "PostgisSettings", "RedisSettings", "Secret", "SinkSettings", "read_sinks"]

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,39}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:{}-]{0,199}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,200}")
_PASSWORD = re.compile(r"password\s*=|://[^/@]*:[^/@]*@", re.IGNORECASE)


@dataclass(frozen=True)
class Secret:
    """Where a password is: in a file, or in an environment variable; nowhere if there is none."""

    file: Path | None = None
    variable: str = ""

    def read(self) -> str | None:
        """Return the password as it is now."""
        if self.variable:
            if self.variable not in os.environ:
                raise SinkError(f"the environment has no variable {self.variable}, which should hold the password.")
            return os.environ[self.variable]
        return None if self.file is None else _content(self.file).strip("\r\n")


@dataclass(frozen=True)
class PostgisSettings:
    """A sink in PostgreSQL: `connection` as libpq takes it, the schema and what tables' names begin with."""

    connection: str
    schema: str
    prefix: str
    secret: Secret

    @property
    def name(self) -> str:
        """What the sink is called."""
        return f"postgis:{self.schema}.{self.prefix}"

    def open(self, stream_id: str, domain: Domain) -> Sink:
        """Connect; see `phdstream.io.sinks.postgis`."""
        from phdstream.io.sinks.postgis import PostgisSink

        return PostgisSink(self.connection, self.secret.read(), self.schema, self.prefix, stream_id, domain)


@dataclass(frozen=True)
class KafkaSettings:
    """A topic at brokers; further properties of librdkafka, secrets among them, are in a file."""

    brokers: str
    topic: str
    properties_file: Path | None

    @property
    def name(self) -> str:
        """What the sink is called."""
        return f"kafka:{self.topic}"

    def properties(self) -> dict[str, str]:
        """Return librdkafka's properties: those in the file, one ``name=value`` a line, and the brokers."""
        lines = [] if self.properties_file is None else _content(self.properties_file).splitlines()
        pairs = [line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not all(middle for _, middle, _ in pairs):
            raise SinkError(f"{self.properties_file} must have one property a line: name=value.")
        return {name.strip(): value.strip() for name, _, value in pairs} | {"bootstrap.servers": self.brokers}

    def open(self, stream_id: str, domain: Domain) -> Sink:
        """Connect; see `phdstream.io.sinks.kafka_topic`."""
        from phdstream.io.sinks.kafka_topic import KafkaSink

        return KafkaSink(self.properties(), self.topic, stream_id)


@dataclass(frozen=True)
class RedisSettings:
    """A Redis stream: the server's address and the stream's key."""

    url: str
    key: str
    secret: Secret

    @property
    def name(self) -> str:
        """What the sink is called."""
        return f"redis:{self.key}"

    def open(self, stream_id: str, domain: Domain) -> Sink:
        """Connect; see `phdstream.io.sinks.redis_stream`."""
        from phdstream.io.sinks.redis_stream import RedisSink

        return RedisSink(self.url, self.secret.read(), self.key, stream_id)


SinkSettings = PostgisSettings | KafkaSettings | RedisSettings


def read_sinks(given: Any, base: Path) -> tuple[SinkSettings, ...]:
    """Return the tables ``[[sinks]]``, checked; paths are relative to ``base``.

    >>> read_sinks([{"type": "redis", "url": "redis://127.0.0.1:6379/0", "key": "taxis"}], Path())[0].name
    'redis:taxis'
    """
    if not isinstance(given, list) or not all(isinstance(table, dict) for table in given):
        raise ConfigError("sinks are tables: write [[sinks]] before the keys of each.")
    sinks = tuple(_read(table, base) for table in given)
    names = [sink.name for sink in sinks]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"[[sinks]] has {name} twice: each sink needs a name of its own.")
    return sinks


def _read(table: dict[str, Any], base: Path) -> SinkSettings:
    kind = table.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ConfigError(f"[[sinks]] type must be one of {', '.join(_KINDS)}: {did_you_mean(str(kind), _KINDS)}")
    required, optional, make = _KINDS[kind]
    known = {"type"} | required | optional
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"[[sinks]] of type {kind} has an unknown key '{key}': {did_you_mean(key, known)}")
        if not isinstance(value, str) or not value or "\0" in value:
            raise ConfigError(f"[[sinks]] {key} must be a text.")
    for key in sorted(required - set(table)):
        raise ConfigError(f"[[sinks]] of type {kind} needs '{key}'.")
    return make(table, base)


def _postgis(table: dict[str, str], base: Path) -> PostgisSettings:
    schema, prefix = (
        _matching(table.get(key, default), key, _IDENTIFIER, "lower-case letters, digits and underscores, at most 40")
        for key, default in (("schema", "public"), ("prefix", "phdstream_"))
    )
    return PostgisSettings(_without_password(table, "connection"), schema, prefix, _secret(table, base))


def _kafka(table: dict[str, str], base: Path) -> KafkaSettings:
    topic = _matching(table["topic"], "topic", _TOPIC, "letters, digits, dots, hyphens and underscores")
    file = base / Path(table["properties_file"]).expanduser() if "properties_file" in table else None
    return KafkaSettings(table["brokers"], topic, file)


def _redis(table: dict[str, str], base: Path) -> RedisSettings:
    if not table["url"].startswith(("redis://", "rediss://", "unix://")):
        raise ConfigError('[[sinks]] url must be an address such as "redis://127.0.0.1:6379/0" (or rediss: for TLS).')
    key = _matching(table["key"], "key", _NAME, "letters, digits and . _ : - { }")
    return RedisSettings(_without_password(table, "url"), key, _secret(table, base))


def _matching(value: str, key: str, pattern: re.Pattern[str], what: str) -> str:
    if not pattern.fullmatch(value):
        raise ConfigError(f"[[sinks]] {key} must be made of {what}.")
    return value


def _without_password(table: dict[str, str], key: str) -> str:
    if _PASSWORD.search(table[key]):
        raise ConfigError(f"[[sinks]] {key} must not hold a password: say password_file or password_variable.")
    return table[key]


def _secret(table: dict[str, str], base: Path) -> Secret:
    if "password_file" in table and "password_variable" in table:
        raise ConfigError("[[sinks]] has both password_file and password_variable: say one.")
    file = base / Path(table["password_file"]).expanduser() if "password_file" in table else None
    return Secret(file, table.get("password_variable", ""))


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise SinkError(f"the file {path} cannot be read.") from None


_SECRETS = {"password_file", "password_variable"}
_KINDS: dict[str, tuple[set[str], set[str], Callable[[dict[str, str], Path], SinkSettings]]] = {
    "postgis": ({"connection"}, {"schema", "prefix", *_SECRETS}, _postgis),
    "kafka": ({"brokers", "topic"}, {"properties_file"}, _kafka),
    "redis": ({"url", "key"}, _SECRETS, _redis),
}
