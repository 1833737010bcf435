"""What every sink that follows a folder of releases promises. Public: a sink is given releases, and nothing else.

The folder is the one source of truth: a release is there, committed, before a sink sees it. So a sink may fail, lag or
be lost as a whole, and is caught up from the folder (`phdstream.io.sinks.follower`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from phdstream.domains import Domain
from phdstream.errors import SinkError, StateError
from phdstream.release import Release

__all__ = ["OpenSink", "Sink", "driver", "other_content", "other_stream", "release_digest"]


class Sink(Protocol):
    """Where releases of one stream go besides its folder. Used by one thread at a time.

    Whatever cannot be done now is a SinkError: close the sink, and open it again later. What must never be done
    (another content of a tick, another stream's sink) is a StateError.
    """

    def publish(self, release: Release) -> None:
        """Put a tick there, whole or not at all for who reads as the sink's page says.

        A tick that is there with the same content is left as it is; with another content it is refused.
        """

    def last_tick(self) -> int:
        """Return the last tick that is there, whole; 0 for none."""

    def has(self, tick: int) -> bool:
        """Tell whether a tick is there, whole."""

    def close(self) -> None:
        """Let go of the connection; never fails."""


OpenSink = Callable[[str, Domain], Sink]
"""Opens a sink for the stream of an id, on its domain; refuses one that belongs to another stream."""


def release_digest(release: Release) -> str:
    """Return what tells two contents of a tick apart: SHA-256 of everything that a release is made of.

    It is of numbers, not of a file: another version of a library may write another file of the same release.
    """
    head = {"tick": release.tick, "key": str(release.key), "metadata": release.metadata}
    digest = hashlib.sha256(json.dumps(head, sort_keys=True, separators=(",", ":")).encode())
    for field in fields(release.estimate):
        column = np.ascontiguousarray(getattr(release.estimate, field.name))
        portable = column.astype(column.dtype.newbyteorder("<"), copy=False)
        digest.update(f"\n{field.name} {portable.dtype.str} {portable.size}\n".encode() + portable.tobytes())
    return digest.hexdigest()


def other_content(where: str, tick: int) -> StateError:
    """Return what to say of a tick that a sink has with another content."""
    return StateError(
        f"{where} has tick {tick} with another content than the folder of releases, and it is never replaced: was one "
        "of them put back from another copy? Put back what was published, or use a new sink."
    )


def other_stream(where: str, theirs: str, ours: str) -> StateError:
    """Return what to say of a sink that belongs to another stream."""
    return StateError(
        f"{where} belongs to stream {theirs}, not to {ours}: a sink has one stream for ever. Use another name for this "
        "stream's, or remove that one first if nobody needs it."
    )


def driver(module: str, extra: str) -> Any:
    """Return a sink's library, or say how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise SinkError(f"this sink needs {module}: pip install 'phdstream[{extra}]'") from None
