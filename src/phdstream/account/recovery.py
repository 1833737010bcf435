"""What lies in an account's folder after a crash at any instant, told apart from what no crash leaves behind. Pure.

- A last line without its end was never acknowledged: nobody began on it. It does not count, and is to be taken off.
- A whole line that the ledger does not know yet is a charge. It stands, and the ledger is to be written anew.
- Anything else is refused: a line that does not follow from those before it, fewer lines than the ledger knows, more
  than one line that it does not know, a ledger that is not what a replay of the log comes to.
"""

from __future__ import annotations

from dataclasses import dataclass

from phdstream.account.book import Book
from phdstream.account.entries import LedgerLine
from phdstream.errors import StateError

__all__ = ["Found", "recover"]


@dataclass(frozen=True)
class Found:
    """The account, if one was opened; how many bytes of its log count; and what there is to mend.

    ``torn``: the log ends with part of a line. ``behind``: the ledger is one line behind.
    """

    book: Book | None
    size: int = 0
    torn: bool = False
    behind: bool = False


def recover(log: bytes | None, known: bytes | None) -> Found:
    """Return what the two files tell; None is a file that is not there. The message of a refusal is half a sentence.

    >>> recover(None, None), recover(b'{"account":', None).torn
    (Found(book=None, size=0, torn=False, behind=False), True)
    """
    whole, end, tail = (log or b"").rpartition(b"\n")
    try:
        ledger = None if known is None else LedgerLine.decode(known)
    except StateError as error:
        raise StateError(f"of the ledger, {error}") from None
    if not end:
        if ledger is not None:
            raise StateError("the log is gone")
        return Found(None, torn=bool(tail))
    book = Book.replay(whole.split(b"\n"))
    _compare(book, ledger, bool(tail))
    return Found(book, len(whole) + 1, bool(tail), ledger != book.ledger)


def _compare(book: Book, ledger: LedgerLine | None, torn: bool) -> None:
    """Refuse a log that is neither what the ledger acknowledged nor one whole line more."""
    last = len(book.charges)
    known = -1 if ledger is None else ledger.sequence
    if known > last:
        raise StateError(f"the ledger knows of {known} charges, and the log has {last}")
    if known < last - (not torn):  # a line is only begun once the one before it is acknowledged
        raise StateError(f"the log has {last} charges, and the ledger knows of {max(known, 0)}")
    if ledger is not None and ledger != book.up_to(known).ledger:
        raise StateError("the ledger and a replay of the log differ")
