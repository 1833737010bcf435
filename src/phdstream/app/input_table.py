"""What a configuration file says about its input: files, columns, how they are written, and the clock."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from phdstream.errors import ConfigError
from phdstream.io.sources.addresses import local_path
from phdstream.io.sources.clock import Clock
from phdstream.io.sources.columns import Columns
from phdstream.io.sources.inventory import Found, find_files
from phdstream.io.sources.reading import Reading
from phdstream.privacy import Unit, User

__all__ = ["Input", "a_path", "a_text", "read_input", "read_ticks"]

_SIZES = {"MB": 1 << 20, "GB": 1 << 30}
_MEMORY = "64MB"
_STATEFUL = ("utf-16", "utf-32", "hz", "idna", "iso2022", "punycode", "raw", "unicode", "utf-7")
"""Encodings in which what a line says depends on the lines before it: one damaged row would change the others."""


@dataclass(frozen=True)
class Input:
    """Where events come from, and how rows are read. ``memory``: bytes of gathered events before they are spilled."""

    patterns: tuple[str, ...]
    base: Path
    columns: Columns
    reading: Reading
    memory: int

    def files(self) -> list[Found]:
        """Return the files and objects that there are now."""
        if not self.patterns:
            raise ConfigError(
                "[input] needs 'files' to read events from; without, `phdstream serve` takes them in, or `run` reads a "
                "[source]."
            )
        return find_files(self.patterns, self.base)

    def to_dict(self) -> dict[str, Any]:
        """Return what decides which event a row is: kept with the state, since it must not change on the way."""
        columns = self.columns
        named = {"coordinates": list(columns.coordinates), "time": columns.time}
        text = {"encoding": self.reading.encoding} if columns.user or columns.names or columns.attributes else {}
        return named | {"sign": columns.sign, "user": columns.user} | self.reading.to_dict() | text


def read_input(given: dict[str, Any], base: Path, unit: Unit, zone: bool) -> Input:
    """Return the [input] section, checked; the names of places and the coordinate system follow from the domain."""
    columns = _columns(given, unit)
    reading = Reading(
        zone=zone,
        drop_bad=_choice(given, "bad_rows", ("stop", "drop"), "stop") == "drop",
        delimiter=_delimiter(given.get("delimiter")),
        decimal=_choice(given, "decimal", (".", ","), "."),
        encoding=_encoding(given.get("encoding")),
        time_format=_time_format(given.get("time_format"), zone),
    )
    if reading.decimal == reading.delimiter:
        raise ConfigError("[input] delimiter and decimal cannot both be a comma.")
    return Input(
        _patterns(given["files"]) if "files" in given else (),
        base,
        columns,
        reading,
        _memory(given.get("memory", _MEMORY)),
    )


def _patterns(files: Any) -> tuple[str, ...]:
    names = [files] if isinstance(files, str) else files
    if not isinstance(names, list) or not names:
        raise ConfigError(
            '[input] files must be a file name, a pattern such as "events/*.csv", an address such as '
            '"s3://bucket/events/*.csv", or a list of them.'
        )
    for name in names:
        path = local_path(a_text(name, "[input] files"))
        if path is not None:
            a_path(path, "[input] files")
    return tuple(names)


def _columns(given: dict[str, Any], unit: Unit) -> Columns:
    names = given["coordinates"]
    if not isinstance(names, list) or not names:
        raise ConfigError('[input] coordinates must be a list of column names, such as ["lon", "lat"].')
    for key in ("time", "sign", "user"):
        a_text(given.get(key, "-"), f"[input] {key}")
    if isinstance(unit, User) and "user" not in given:
        raise ConfigError("[privacy] unit is a user, so [input] needs 'user', the column that names them.")
    if "user" in given and not isinstance(unit, User):
        raise ConfigError(
            "[input] names a 'user' column, but [privacy] unit is not a user: users would be protected no better than "
            'single events. Set unit = { type = "user", inserts = ..., deletes = ... }, or leave out user.'
        )
    coordinates = tuple(a_text(name, "[input] coordinates") for name in names)
    if len(set(coordinates)) < len(coordinates):
        raise ConfigError("[input] coordinates names a column twice.")
    return Columns(coordinates, given.get("time"), given.get("sign"), given.get("user"))


def _choice(given: dict[str, Any], key: str, choices: tuple[str, ...], default: str) -> str:
    choice = given.get(key, default)
    if choice not in choices:
        raise ConfigError(f"[input] {key} must be {' or '.join(map(repr, choices))}, not {choice!r}.".replace("'", '"'))
    return str(choice)


def _delimiter(given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or len(given) != 1 or not given.isascii() or given in '"\r\n\0':
        raise ConfigError('[input] delimiter must be one character, such as ";" or "\\t".')
    return given


def _encoding(given: Any) -> str | None:
    if given is None:
        return None
    try:
        name = codecs.lookup(given).name
        "a".encode(name).decode(name)  # a text encoding, not a compression
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ConfigError(f'[input] encoding {given!r} is not known: use one such as "utf-8" or "latin-1".') from None
    if name.startswith(_STATEFUL):
        raise ConfigError(f"[input] encoding {name} cannot be read line by line: convert the files to UTF-8.")
    return name


def _time_format(given: Any, zone: bool) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or "\0" in given or not _can_be_read(given):
        raise ConfigError(
            '[input] time_format is written as for strptime, such as "%m/%d/%Y %H:%M", with at least a year, a month '
            "and a day, each once."
        )
    if ("%z" in given) != zone:
        has = "has none: add %z" if zone else "has one (%z): leave it out"
        start = "has a time zone" if zone else "has no time zone"
        raise ConfigError(f"[ticks] start {start}, but [input] time_format {has}, or write start in the same way.")
    return given


def _can_be_read(form: str) -> bool:
    """Whether a time written in a form can be read again as the same day."""
    moment = datetime(2024, 5, 31, 18, 30, tzinfo=UTC)
    try:
        return datetime.strptime(moment.strftime(form), form).date() == moment.date()
    except (ValueError, re.error, UnicodeError):
        return False


def _memory(given: Any) -> int:
    match = re.fullmatch(r"(\d{1,6})\s*(MB|GB)", given) if isinstance(given, str) else None
    if not match or not int(match[1]):
        raise ConfigError(f'[input] memory must be a size such as "500MB" or "4GB", not {given!r}.')
    return int(match[1]) * _SIZES[match[2]]


def read_ticks(ticks: dict[str, Any], seed: int | None) -> tuple[Clock | None, int | None]:
    """Return the clock of the [ticks] section, or None and a number of rows for experiments."""
    if "rows" in ticks:
        if seed is None or len(ticks) > 1:
            raise ConfigError(
                "[ticks] rows cuts ticks by number of rows, which is not private (one row more moves all later ones). "
                "It is for experiments: add [simulation] with a seed and leave out every, start and end; or use "
                "those instead."
            )
        if not isinstance(ticks["rows"], int) or isinstance(ticks["rows"], bool) or not 1 <= ticks["rows"] < 1 << 62:
            raise ConfigError("[ticks] rows must be a whole number of at least 1.")
        return None, ticks["rows"]
    missing = sorted({"every", "start"} - set(ticks))
    if missing:
        raise ConfigError(
            f"[ticks] needs {', '.join(missing)}: when ticks begin and end is public, and never taken from the data."
        )
    return Clock.between(ticks["start"], ticks.get("end"), ticks["every"], ticks.get("grace", "0s")), None


def a_text(value: Any, what: str) -> str:
    """Return a text that is not empty, or say what should be one."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{what} must be a non-empty text, not {value!r}.")
    return value


def a_path(value: Any, what: str) -> Path:
    """Return a path, ``~`` for the home folder, or say what should be one."""
    text = a_text(value, what)
    if "\0" in text:
        raise ConfigError(f"{what} must be a path; it holds a null character.")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ConfigError(f"{what}: there is no home folder for {text}.") from None
