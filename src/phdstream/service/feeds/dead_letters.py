"""Messages that hold no event, in a private file: nothing is lost, and the stream goes on. **Private.**

``dead-letters.ndjson`` in the private folder, for its owner's eyes only. A line for each: partition, position, the
broker's stamp, the reason, and the content (as text; ``content_base64`` if it is none; ``sealed_base64``, encrypted as
waiting events are, if ``[service] key_file`` is set).

**None lost, none twice.** Letters are on the disk before the positions behind them are committed, and that commit says
how long the file is with them. What a crash left beyond that length is cut off at the next start: its messages are
read again. The file may be moved away while nothing runs; a new one begins.

**Bounded.** Beyond ``most`` bytes the content is left out: about a hundred bytes a message that say where it is.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from phdstream.errors import StateError
from phdstream.service.encryption import Plain
from phdstream.service.feeds.protocol import Message

__all__ = ["NAME", "DeadLetters", "read_letters"]

NAME = "dead-letters.ndjson"


class DeadLetters:
    """The file, opened by the one process that reads the source. ``committed``: how long it is known to be."""

    def __init__(self, folder: Path, committed: int, most: int) -> None:
        self.path, self._most = folder / NAME, most
        with self._named_errors():
            self._handle = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            if os.fstat(self._handle).st_size > committed:
                os.ftruncate(self._handle, committed)
        self.length = os.fstat(self._handle).st_size

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StateError(f"{self.path} cannot be written ({error.strerror}). Nothing was lost.") from None

    def append(self, letters: Iterable[tuple[Message, str]], sealed: Plain) -> int:
        """Write messages and why they hold no event; on return they are on the disk. Return how long the file is.

        What was written before and not committed is written over: call `keep` once it is.
        """
        lines = [_line(message, why, sealed, self.length < self._most) for message, why in letters]
        if not lines:
            return self.length
        content = b"".join(lines)
        with self._named_errors():
            os.ftruncate(self._handle, self.length)
            view = memoryview(content)
            while view:
                view = view[os.write(self._handle, view) :]
            os.fsync(self._handle)
        return self.length + len(content)

    def keep(self, length: int) -> None:
        """Note that the file was committed at a length."""
        self.length = length

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._handle)


def read_letters(path: Path, sealed: Plain) -> Iterator[dict[str, Any]]:
    """Yield the letters of a file, decrypted: with ``content`` as bytes where it was kept."""
    with path.open("rb") as file:
        for line in file:
            letter = json.loads(line)
            if "content_base64" in letter:
                letter["content"] = base64.b64decode(letter.pop("content_base64"))
            elif "sealed_base64" in letter:
                letter["content"] = sealed.open(base64.b64decode(letter.pop("sealed_base64")), _about(letter))
            elif "content" in letter:
                letter["content"] = letter["content"].encode()
            yield letter


def _line(message: Message, why: str, sealed: Plain, whole: bool) -> bytes:
    letter: dict[str, Any] = {"partition": message.partition, "position": list(message.position), "reason": why}
    letter["arrived"] = None if message.arrived is None else message.arrived.isoformat()
    if message.content is not None and whole:
        stored = sealed.seal(message.content, _about(letter))
        if type(sealed) is not Plain:
            letter["sealed_base64"] = base64.b64encode(stored).decode()
        else:
            try:
                letter["content"] = stored.decode()
            except UnicodeDecodeError:
                letter["content_base64"] = base64.b64encode(stored).decode()
    return json.dumps(letter).encode() + b"\n"


def _about(letter: dict[str, Any]) -> bytes:
    return f"phdstream dead letter {letter['partition']} {letter['position']}".encode()
