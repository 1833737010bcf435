"""State files: plain arrays and JSON in one zip (NumPy's npz), with a checksum, written whole or not at all. No pickle.

The first line is ``phdstream-state 4 <sha256 of all that follows>``, so a file in which any byte was changed, lost or
added is refused: a table of users that lost its end would let those users contribute anew.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.errors import StateError
from phdstream.streams.durable.folders import replace_file

__all__ = [
    "FORMAT",
    "Arrays",
    "decode_state",
    "differing",
    "digest",
    "encode_state",
    "nest",
    "read_state",
    "replace_file",
    "state_pieces",
    "unnest",
    "write_state",
]

FORMAT = 4
"""The version of the layout; a file with another one is refused."""
Arrays = dict[str, NDArray[Any]]
_META = "meta"
_HEADER = re.compile(rb"phdstream-state ([0-9]{1,9}) ([0-9a-f]{64})\n")


def write_state(path: Path, meta: dict[str, Any], arrays: Arrays) -> None:
    """Write a state so that after a crash at any instant the file is the old one or the new one, whole."""
    pieces = state_pieces(meta, arrays)
    replace_file(path, lambda file: file.writelines(pieces))


def read_state(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return what `write_state` wrote, or say what is wrong with the file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise StateError(f"there is no saved state at {path}.") from None
    except OSError as error:
        raise StateError(f"the state {path} cannot be read: {error.strerror}.") from None
    return decode_state(content, path)


def encode_state(meta: dict[str, Any], arrays: Arrays) -> bytes:
    """Return a state as a file's content."""
    return b"".join(state_pieces(meta, arrays))


def state_pieces(meta: dict[str, Any], arrays: Arrays) -> list[bytes]:
    """Return a state as the pieces of a file, which together take the room of the arrays once."""
    body = _Pieces()
    header = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    np.savez(body, allow_pickle=False, **({_META: header} | arrays))
    return [f"phdstream-state {FORMAT} {digest(body.pieces)}\n".encode(), *body.pieces]


class _Pieces(io.RawIOBase):
    """Keeps what is written to it, piece by piece: a buffer that grows would be copied again and again."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self.pieces.append(bytes(piece))
        return len(piece)


def decode_state(content: bytes, path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return what `encode_state` was given, or say what is wrong with the file at ``path``."""
    header = _HEADER.match(content)
    if header is None:
        raise _damaged(path, "its first line is not one of a state")
    if int(header[1]) != FORMAT:
        raise StateError(
            f"{path} has format {int(header[1])}, this version reads {FORMAT}: use the phdstream that wrote it."
        )
    body = memoryview(content)[header.end() :]
    if digest([body]).encode() != header[2]:
        raise _damaged(path, "its checksum does not fit")
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as saved:
            arrays = {name: saved[name] for name in saved.files}
        meta: dict[str, Any] = dict(json.loads(arrays.pop(_META).tobytes()))
    except Exception as error:  # the bytes are as they were written, so whatever it is, no state was written
        raise _damaged(path, type(error).__name__) from None
    return meta, arrays


def digest(pieces: Iterable[bytes | memoryview]) -> str:
    """Return the digest of the content that pieces make up."""
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(piece)
    return whole.hexdigest()


def _damaged(path: Path, why: str) -> StateError:
    return StateError(f"{path} is not a whole phdstream state ({why}). Restore it from a backup of that tick.")


def nest(prefix: str, arrays: Arrays) -> Arrays:
    """Put a prefix before every name.

    >>> list(nest("node", {"share": np.zeros(1)}))
    ['node.share']
    """
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def unnest(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays under a prefix, without it."""
    return {name[len(prefix) + 1 :]: array for name, array in arrays.items() if name.startswith(prefix + ".")}


def differing(was: Any, wanted: Any) -> tuple[Any, Any]:
    """Return two pieces of plain data, or the parts in which two dictionaries differ.

    >>> differing({"type": "cube", "depth": 3}, {"type": "cube", "depth": 4})
    ({'depth': 3}, {'depth': 4})
    """
    if not isinstance(was, dict) or not isinstance(wanted, dict):
        return was, wanted
    differ = [key for key in was | wanted if was.get(key) != wanted.get(key)]
    return {key: was.get(key) for key in differ}, {key: wanted.get(key) for key in differ}
