"""Damage to the files of a durable stream and of a folder of releases: refused, or all is as it was."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import phdstream as phd
from fuzz.damage import damaged
from phdstream.errors import StateError
from phdstream.io.sinks.folder import ReleaseFolder

__all__ = ["prepare", "run"]

_TICKS = 3


def _stream() -> phd.PHDStream:
    box = phd.Box([(0, 1), (0, 1)], depth=4)
    return phd.PHDStream(box, 1.0, phd.User(2, 2), noise=phd.Simulation(1), max_nodes=100)


def prepare(folder: Path) -> None:
    """Write a durable stream of three ticks, its releases, and a saved state."""
    with phd.durable(folder / "state", _stream()) as stream, _folder(folder, stream).open() as releases:
        for _ in range(_TICKS):
            stream.update(np.full((20, 2), 0.4), users=[f"user {i}" for i in range(20)])
            assert stream.release is not None
            releases.publish(stream.release)
        stream.write_extra("inputs", {"a": 1}, {"b": np.arange(5)})
    saved = _stream()
    saved.update(np.full((20, 2), 0.4), users=list(range(20)))
    saved.save(folder / "saved.npz")


def _folder(folder: Path, stream: phd.DurableStream) -> ReleaseFolder:
    return ReleaseFolder(folder / "releases", stream.id, {})


def run(rng: Random, folder: Path) -> None:
    """Damage, remove or exchange one file, and open everything."""
    before = _seen(folder.parent / "shared")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    way = rng.random()
    if way < 0.8:
        path.write_bytes(damaged(rng, path.read_bytes()))
    else:
        path.unlink()
        if way < 0.85:
            path.mkdir()
        elif way < 0.9:
            path.symlink_to(rng.choice(files))
        elif way < 0.95:
            path.write_bytes(b"")
    published = _published(folder)
    after = _seen(folder)
    assert after == before or path.parent.name in ("points", "cells"), "another state was loaded"
    kept = {name: content for name, content in _published(folder).items() if name in published}
    assert kept == published, "a published file was changed"


_known: dict[Path, Any] = {}


def _seen(folder: Path) -> Any:
    """Return all that the folders of a stream show; those that are shared are looked at once."""
    if folder.name == "shared" and folder in _known:
        return _known[folder]
    with phd.durable(folder / "state", _stream()) as stream:
        release = stream.release
        assert release is not None
        extra = stream.read_extra("inputs")
        if extra is None:
            raise StateError("gone, which `phdstream.app.prepare` refuses")
        inside = (extra[0], extra[1]["b"].tolist())
        with _folder(folder, stream).open(stream.tick) as releases:
            releases.publish(release)
            missing = releases.missing(stream.tick)
        seen = (stream.id, stream.tick, release.total, release.cells().to_pydict(), inside, missing, str(stream.notes))
    loaded = phd.PHDStream.load(folder / "saved.npz")
    shown = (*seen, loaded.tick, loaded.release and loaded.release.total)
    if folder.name == "shared":
        _known[folder] = shown
    return shown


def _published(folder: Path) -> dict[str, bytes]:
    """Return the contents of all published files."""
    files = [path for part in ("points", "cells") for path in (folder / "releases" / part).glob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in files}
