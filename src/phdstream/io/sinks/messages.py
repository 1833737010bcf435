"""Synthetic changes as messages: a run of them for each tick, ended by one that says that the tick is complete. Public.

A message is one JSON object. A change: ``{"tick": 5, "index": 0, "sign": 1, "point": [0.25, 0.5]}``; sign -1 means that
the point disappears. The last one of a tick has ``"complete": true``, how many changes there were, the tick they are
since (0: since nothing, so forget all points before), the stream's id, the release's digest and its promise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from phdstream.io.sinks.protocol import release_digest
from phdstream.release import Release

__all__ = ["batches", "completion", "tick_messages"]


def tick_messages(release: Release, stream_id: str) -> Iterator[bytes]:
    """Yield a tick's messages, in order: what disappears, what appears, and that the tick is complete."""
    changes = release.changes()
    points = np.concatenate([changes.deletes, changes.inserts]).tolist()
    for index, point in enumerate(points):
        sign = -1 if index < len(changes.deletes) else 1
        yield _text({"tick": release.tick, "index": index, "sign": sign, "point": point})
    yield _text(_completion(release, stream_id, len(points)))


def _completion(release: Release, stream_id: str, count: int) -> dict[str, Any]:
    since = release.tick - 1 if release.previous_nodes.size else 0  # no nodes: the tick before is not in the folder
    told = {name: release.metadata[name] for name in ("epsilon", "unit", "privacy") if name in release.metadata}
    about = {"stream": stream_id, "digest": release_digest(release), "names": list(release.domain.names)}
    return {"tick": release.tick, "complete": True, "count": count, "since": since} | about | told


def completion(message: bytes | None) -> dict[str, Any] | None:
    """Return what a message says if it completes a tick; None if it is a change, or not of ours.

    >>> completion(b'{"tick": 1, "index": 0, "sign": 1, "point": [0.5]}') is None
    True
    """
    try:
        said = json.loads(message or b"")
    except ValueError:
        return None
    known = isinstance(said, dict) and said.get("complete") is True and type(said.get("tick")) is int
    return said if known and isinstance(said.get("stream"), str) else None


def batches(messages: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield messages in runs of a size; the last may be shorter."""
    while batch := list(islice(messages, size)):
        yield batch


def _text(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
