"""What a configuration says about its service: the section ``[service]``. All of it is public but the paths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from phdstream.errors import ConfigError
from phdstream.io.sources.clock import parse_duration

__all__ = ["KNOWN", "ServiceSettings", "read_service"]

_SIZES = {"kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
KNOWN = {
    "name", "host", "port", "public", "late", "ahead", "catch_up", "remember", "body", "memory", "rate", "key_file",
    "backup", "readers", "layer", "tiles",
}  # fmt: skip
"""The keys of the section."""


@dataclass(frozen=True)
class ServiceSettings:
    """How a stream is served.

    - ``name``: of the stream, in addresses where one service has several;
    - ``host``, ``port``: where the service listens, this machine only unless told;
    - ``public``: whether anybody may read releases without a token;
    - ``late``: what becomes of an event whose tick is closed: ``"refuse"``, or ``"next"`` for the earliest open tick;
    - ``ahead``: how far in the future an event's time may lie;
    - ``catch_up``: how long ticks that came due while the service was down stay open once it is up;
    - ``remember``: how long idempotency keys are kept;
    - ``body``, ``memory``: bytes of one request, and of all that are being taken in at a time;
    - ``rate``: requests a second for each token or address;
    - ``key_file``: keys that events are encrypted with while they wait; None for none;
    - ``backup``: a folder to which every committed state is copied before its release is shown; None for none;
    - ``readers``: how many processes read request bodies;
    - ``layer``: a GeoJSON file of areas to pick on the page; None for none;
    - ``tiles``: where the page gets map tiles from, such as ``"https://tiles.example.org/{z}/{x}/{y}.png"``; it sees
      what readers look at. Empty for none.
    """

    name: str = "stream"
    host: str = "127.0.0.1"
    port: int = 8731
    public: bool = False
    late: str = "refuse"
    ahead: timedelta = timedelta(hours=1)
    catch_up: timedelta | None = None
    remember: timedelta = timedelta(days=30)
    body: int = 64 << 20
    memory: int = 512 << 20
    rate: int = 200
    key_file: Path | None = None
    backup: Path | None = None
    readers: int = 2
    layer: Path | None = None
    tiles: str = ""


def read_service(given: dict[str, Any], base: Path) -> ServiceSettings:
    """Return the section, checked; paths are relative to ``base``.

    >>> read_service({"late": "next", "body": "1MB"}, Path()).body
    1048576
    """
    values: dict[str, Any] = {}
    for key, value in given.items():
        values[key] = _CHECKS[key](key, value)
    for key in ("key_file", "backup", "layer"):
        if key in values:
            values[key] = base / values[key]
    settings = ServiceSettings(**values)
    if settings.memory < settings.body:
        raise ConfigError("[service] memory must be at least as large as body: one request has to fit.")
    return settings


def _name(key: str, value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value) or value in ("v1", "page", "ogc"):
        raise ConfigError(f"[service] {key} must be a short name of lower-case letters, digits and hyphens.")
    return value


def _host(key: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9A-Za-z.:-]{1,253}", value):
        raise ConfigError(f'[service] {key} must be an address such as "127.0.0.1" or "0.0.0.0".')
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"[service] {key} must be true or false.")
    return value


def _late(key: str, value: Any) -> str:
    if value not in ("refuse", "next"):
        raise ConfigError(f'[service] {key} must be "refuse" or "next" (the earliest tick that is open).')
    return str(value)


def _length(key: str, value: Any) -> timedelta:
    try:
        return parse_duration(value, 0)
    except ConfigError as error:
        raise ConfigError(f"[service] {key}: {error}") from None


def _size(key: str, value: Any) -> int:
    match = re.fullmatch(r"(\d{1,6})\s*(kB|MB|GB)", value) if isinstance(value, str) else None
    if not match or not int(match[1]):
        raise ConfigError(f'[service] {key} must be a size such as "64MB".')
    return int(match[1]) * _SIZES[match[2]]


def _whole(least: int, most: int) -> Any:
    def check(key: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ConfigError(f"[service] {key} must be a whole number from {least} to {most}.")
        return value

    return check


def _path(key: str, value: Any) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(f"[service] {key} must be a path.")
    return Path(value).expanduser()


def _tiles(key: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"(https?://[A-Za-z0-9.:{}-]+/[^\s\"'<>;,]+)?", value):
        raise ConfigError(
            f'[service] {key} must be an address such as "https://tiles.example.org/{{z}}/{{x}}/{{y}}.png".'
        )
    return value


_CHECKS: dict[str, Any] = {
    "name": _name, "host": _host, "port": _whole(0, 65535), "public": _flag, "late": _late, "ahead": _length,
    "catch_up": _length, "remember": _length, "body": _size, "memory": _size, "rate": _whole(1, 1_000_000),
    "key_file": _path, "backup": _path, "readers": _whole(1, 64), "layer": _path,
    "tiles": _tiles,
}  # fmt: skip
