"""A copy of the private folder, from which a stream can go on: whole, private, and never behind what readers saw.

`phdstream backup` copies when it is told to. With ``[service] backup`` the service copies after every commit *before*
the release is shown, so that copy is never older than what anybody saw.

**A restored copy cannot release again what readers may have seen.** A restored stream opens only beside its folder of
releases, whose claim names it; if that folder has a later tick than the state, the stream is refused, because some
noise was drawn after the copy was made. So a copy that is behind is a record of what was, and cannot go on. If the
folder of releases is lost too, `restore` has to be told the last tick that readers may have seen, and refuses a copy
that is older.
"""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from phdstream.errors import StateError
from phdstream.service.feeds.dead_letters import NAME as LETTERS
from phdstream.service.journal import NAME, Journal, copy_database
from phdstream.streams.durable.commits import Marker
from phdstream.streams.durable.folders import make_folder, sync_folder

__all__ = ["copy_state", "restore_state"]

_FILES = ("committed", "state.npz", "inputs.npz", "tokens.json")
"""What is copied, in this order: the marker first, since a state ahead of its marker can go on, and not the reverse."""
_ABOUT, _LATEST, _NEW, _OLD = "backup.json", "latest", ".new", ".old"


def copy_state(state: Path, target: Path, journal: Journal | None = None) -> Path:
    """Copy a private folder to ``target/latest``, in place of the copy that was there, whole or not at all.

    With ``journal``, that is the one in use; without, the database is read as it lies there, in use or not.
    """
    try:
        make_folder(target, 0o700)
        new, old, latest = target / _NEW, target / _OLD, target / _LATEST
        for left in (new, old if latest.exists() else new):
            shutil.rmtree(left, ignore_errors=True)
        new.mkdir(mode=0o700)
        for name in _FILES:
            if (state / name).exists():
                _copy_file(state / name, new / name)
        if journal is not None:
            journal.copy_to(new / NAME)
        elif (state / NAME).exists():
            copy_database(state / NAME, new / NAME)
        if (state / LETTERS).exists():  # after the journal: what is longer than the journal says is cut off later
            _copy_file(state / LETTERS, new / LETTERS)
        _write(new / _ABOUT, json.dumps(_about(new)).encode())
        sync_folder(new)
        if latest.exists():
            latest.rename(old)
        new.rename(latest)
        sync_folder(target)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise StateError(f"the backup in {target} could not be written ({error.strerror or error}).") from None
    return latest


def _about(copy: Path) -> dict[str, Any]:
    marker = copy / "committed"
    if not marker.exists():
        raise StateError("no stream has begun in the state folder: there is nothing to copy.")
    found = Marker.decode(marker.read_bytes(), marker)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    return {"product": "phdstream", "stream": found.stream, "tick": found.tick, "made": made}


def _copy_file(source: Path, target: Path) -> None:
    _write(target, source.read_bytes())


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def restore_state(source: Path, state: Path, seen: int) -> int:
    """Copy a backup to a private folder that is not there yet, and return its tick.

    ``seen`` is the last tick that readers may have seen; a copy that is older is refused.
    """
    latest = next((path for name in (_LATEST, _OLD) if (path := source / name / _ABOUT).exists()), source / _ABOUT)
    try:
        about = json.loads(latest.read_bytes())
        tick = int(about["tick"])
    except (OSError, ValueError, KeyError, TypeError):
        raise StateError(f"{source} holds no backup of phdstream.") from None
    if tick < seen:
        raise StateError(
            f"the backup is of tick {tick}, but readers may have seen tick {seen}. Going on from it would release "
            "ticks twice with different noise. Find a later copy, or start a new stream in new folders (its ε on top)."
        )
    if state.exists() and any(state.iterdir()):
        raise StateError(f"{state} is there and not empty: move it away first; nothing is overwritten.")
    try:
        make_folder(state, 0o700)
        for path in sorted(latest.parent.iterdir()):
            if path.name != _ABOUT:
                _copy_file(path, state / path.name)
        sync_folder(state)
    except OSError as error:
        raise StateError(f"{state} could not be written ({error.strerror or error}).") from None
    return tick
