"""Messages to events: each is judged for itself, whatever comes with it. **Private.**

A message is one JSON object, as a line of NDJSON is, and is read as one (`phdstream.service.bodies`), many together in
a process of its own. If some of a lot cannot be read, halves of it are read until those are found that cannot: each
of them is a dead letter, with its reason; the others are events as if it had not been there.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from phdstream.errors import InputError
from phdstream.io.sources.features import LONGEST_LINE
from phdstream.service.bodies import NDJSON, OUTSIDE, Body
from phdstream.service.feeds.protocol import FeedError, Message
from phdstream.service.journal import Part

__all__ = ["Sifted", "sift"]

_TOGETHER = 16 << 20
"""Bytes of messages that are read together at most."""
_BLANK = b"\x1e \t\r\n"
Read = Callable[[str, bytes], Body]


@dataclass
class Sifted:
    """What some messages hold: events by tick and sign, letters with the reason they are dead, rows left out."""

    parts: list[Part] = field(default_factory=list)
    letters: list[tuple[Message, str]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


def sift(read: Read, messages: list[Message]) -> Sifted:
    """Return what messages hold. ``read`` reads a body, as `phdstream.service.reader.Readers` does."""
    found, some, size = Sifted(), [], 0
    for message in messages:
        if why := _no_line(message):
            found.letters.append((message, why))
            continue
        assert message.content is not None
        some.append(message)
        size += len(message.content)
        if size > _TOGETHER:
            _read(read, some, found)
            some, size = [], 0
    if some:
        _read(read, some, found)
    return found


def _no_line(message: Message) -> str:
    """Return why a message cannot be a line of NDJSON, as far as that can be seen without reading it."""
    if message.content is None or not (text := message.content.strip(_BLANK)):
        return "it is empty"
    if message.arrived is None:
        return "the broker does not say when it arrived"
    if len(message.content) >= LONGEST_LINE:
        return "it is too large"
    if b"\n" in text or b"\r" in text:
        return "it is more than one line"
    return "it begins with a byte order mark" if text.startswith(BOM_UTF8) else ""


def _read(read: Read, some: list[Message], found: Sifted) -> None:
    try:
        body = read(NDJSON, b"\n".join((message.content or b"").strip(_BLANK) for message in some))
    except InputError as error:
        if len(some) == 1:
            _check_reading(read)
        _part(read, some, found, str(error))
        return
    broken = {why: number for why, number in body.rejected.items() if why != OUTSIDE}
    if not broken and body.rows == len(some):
        found.parts += body.parts
        found.refused.update(body.rejected)
    elif len(broken) == 1 and sum(broken.values()) == body.rows == len(some):
        found.letters += [(message, next(iter(broken))) for message in some]
    else:
        _part(read, some, found, next(iter(broken), "it is no event"))


def _part(read: Read, some: list[Message], found: Sifted, why: str) -> None:
    """Read both halves; a message that is alone is a dead letter."""
    if len(some) == 1:
        found.letters.append((some[0], why))
        return
    _read(read, some[: len(some) // 2], found)
    _read(read, some[len(some) // 2 :], found)


def _check_reading(read: Read) -> None:
    """Make sure that it is the message which cannot be read, and not the machine that cannot read."""
    try:
        read(NDJSON, b"")
    except InputError:
        raise FeedError("messages cannot be read at the moment: no process that reads them can be started.") from None
