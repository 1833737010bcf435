"""What a source is to us: messages in partitions, each at a position that only grows, stamped by the broker.

**Once, by position.** A source may hand over the same message as often as it likes: positions are committed with the
events they brought (`phdstream.service.journal`), and what is not beyond them is left out. So a source has to promise
one thing only: *it hands over a partition's messages in the order of their positions, and none ever appears before one
that was handed over.* Each implementation says why it keeps this.

**All, by a mark.** Before a tick is closed, the source is asked for a mark of all it holds at that moment, and read
until it has been reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from phdstream.errors import PhdstreamError

__all__ = ["Feed", "FeedError", "Message", "Position", "moment"]

Position = tuple[int, ...]
"""Where a message is in its partition; compared number by number."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9000, 1, 1, tzinfo=UTC)


class FeedError(PhdstreamError, RuntimeError):
    """A source cannot be read now. Nothing is lost: it is tried again, and no tick is closed meanwhile."""


@dataclass(frozen=True)
class Message:
    """One message: where it is, when the broker says it arrived (None if it does not say), and what it holds, if it
    holds anything that could be an event.
    """

    partition: str
    position: Position
    arrived: datetime | None
    content: bytes | None


class Feed(Protocol):
    """A source, used by one thread at a time. All but `open` and `close` may be called between these only.

    Whatever fails raises `FeedError`; then it is closed, and opened again later.
    """

    def open(self, positions: Mapping[str, Position]) -> None:
        """Go to what comes after the positions; to the beginning of partitions that are not named."""

    def read(self, most: int, seconds: float) -> list[Message]:
        """Return some of the next messages; none if there were none for so many seconds."""

    def now(self) -> datetime | None:
        """Return the time by the clock that stamps messages, if it can be asked."""

    def mark(self) -> Any:
        """Return a mark behind everything that the broker holds at this moment."""

    def reached(self, mark: Any) -> bool:
        """Whether all before the mark was handed over."""

    def acknowledge(self, positions: Mapping[str, Position]) -> None:
        """Tell the broker what is on our disk: for those who watch it, and for its housekeeping. It may fail."""

    def close(self) -> None:
        """Let go of the connection, also of a broken one."""


def moment(microseconds: int) -> datetime | None:
    """Return a stamp in microseconds since 1970 as a time; None if it is none that a calendar could hold.

    >>> moment(1_000_000)
    datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc)
    >>> moment(-1) is None, moment(1 << 62) is None
    (True, True)
    """
    try:
        found = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return found if _EPOCH <= found < _LAST else None
