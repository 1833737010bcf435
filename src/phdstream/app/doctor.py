"""`phdstream doctor`: is everything there that a service needs, and in order? It changes nothing."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from phdstream.app.config import Config, load_config
from phdstream.errors import PhdstreamError
from phdstream.io.archive import Archive
from phdstream.streams.durable.commits import Marker

__all__ = ["Finding", "examine"]

_NEEDED = ("apsw", "cryptography", "fastapi", "msgspec", "prometheus_client", "uvicorn")
_ROOM = 1 << 30


@dataclass(frozen=True)
class Finding:
    """What was looked at, whether it is in order ("ok", "warn", "FAIL"), and what to do if not."""

    mark: str
    what: str
    why: str = ""


def examine(path: Path) -> list[Finding]:
    """Return all findings; those after a configuration that cannot be read are left out."""
    try:
        config = load_config(path)
    except PhdstreamError as error:
        return [Finding("FAIL", "configuration", str(error))]
    found = [Finding("ok", "configuration")]
    checks: list[Callable[[Config], Iterator[Finding]]] = [
        _extras, _folder, _state, _journal, _releases, _access, _address, _clock,
    ]  # fmt: skip
    for check in checks:
        try:
            found += list(check(config))
        except PhdstreamError as error:
            found.append(Finding("FAIL", check.__name__.strip("_"), str(error)))
        except OSError as error:
            found.append(Finding("FAIL", check.__name__.strip("_"), error.strerror or type(error).__name__))
    return found


def _extras(config: Config) -> Iterator[Finding]:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        yield Finding("FAIL", "libraries", f"{', '.join(missing)} missing: pip install 'phdstream[service]'")
        return
    import apsw

    fits = tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)
    yield Finding("ok" if fits else "FAIL", f"SQLite {apsw.sqlite_lib_version()}", "" if fits else "update apsw")


def _folder(config: Config) -> Iterator[Finding]:
    for what, folder in (("state folder", config.state), ("release folder", config.releases)):
        there = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
        if not os.access(there, os.W_OK):
            yield Finding("FAIL", what, f"{there} cannot be written by this user")
        elif shutil.disk_usage(there).free < _ROOM:
            yield Finding("warn", what, "less than 1 GB is free on its disk")
        else:
            yield Finding("ok", what)
    if config.state.exists() and stat.S_IMODE(config.state.stat().st_mode) & 0o077:
        yield Finding("FAIL", "state folder", f"others can look into it. Run: chmod 700 '{config.state}'")


def _state(config: Config) -> Iterator[Finding]:
    marker = config.state / "committed"
    if not marker.exists():
        yield Finding("ok", "state", "no stream has begun yet")
        return
    committed = Marker.decode(marker.read_bytes(), marker)
    whole = (config.state / "state.npz").exists() or not committed.tick
    yield Finding("ok" if whole else "FAIL", f"state at tick {committed.tick}", "" if whole else "state.npz is gone")


def _journal(config: Config) -> Iterator[Finding]:
    path = config.state / "intake.db"
    if not path.exists() or find_spec("apsw") is None:
        return
    import apsw

    try:
        database = apsw.Connection(os.fspath(path), flags=apsw.SQLITE_OPEN_READONLY)
        answer = str(database.execute("PRAGMA quick_check").get)
        database.close()
    except apsw.Error as error:
        answer = type(error).__name__
    yield Finding("ok" if answer == "ok" else "FAIL", "journal", "" if answer == "ok" else "it is damaged: restore it")


def _releases(config: Config) -> Iterator[Finding]:
    archive = Archive(config.releases, config.domain)
    manifest = archive.manifest()
    if manifest is None:
        yield Finding("ok", "releases", "none yet")
        return
    gone = [t for t in range(int(manifest.get("first_tick", 1)), archive.last_tick + 1) if not archive.has(t)]
    if gone:
        yield Finding("warn", "releases", f"{len(gone)} tick(s) have no file of estimates, the first is tick {gone[0]}")
    else:
        yield Finding("ok", f"releases up to tick {archive.last_tick}")


def _access(config: Config) -> Iterator[Finding]:
    from phdstream.service.encryption import sealing
    from phdstream.service.tokens import Tokens

    roles = {role for token in Tokens(config.state).all() for role in token.roles}
    missing = "" if "ingest" in roles else "none may send events: phdstream token CONFIG NAME --role ingest"
    yield Finding("warn" if missing else "ok", "tokens", missing)
    sealing(config.service.key_file)
    if config.service.key_file:
        yield Finding("ok", "key file")
    if config.service.host not in ("127.0.0.1", "::1", "localhost"):
        yield Finding("warn", f"listens at {config.service.host}", "others can reach it: put a TLS proxy before it")


def _address(config: Config) -> Iterator[Finding]:
    with socket.socket(socket.AF_INET6 if ":" in config.service.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((config.service.host, config.service.port))
            yield Finding("ok", f"port {config.service.port} is free")
        except OSError:
            yield Finding("warn", f"port {config.service.port}", "something listens there: the service, or another?")


def _clock(config: Config) -> Iterator[Finding]:
    if config.clock is None:
        yield Finding("FAIL", "ticks", "a service needs [ticks] every and start")
        return
    now = datetime.now().astimezone()
    due = config.clock.over(now)
    yield Finding("ok", f"tick {due} is the last that is due")
    if not config.clock.zone:
        yield Finding("warn", "ticks", "start has no time zone: ticks follow this machine's local time")
