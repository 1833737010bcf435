"""An account in words: who drew what, and what is left. Public."""

from __future__ import annotations

from phdstream.account.book import Book, decimal
from phdstream.account.recovery import Found

__all__ = ["account_lines"]


def account_lines(found: Found) -> list[str]:
    """Return what `phdstream account` prints of an account whose every line was checked.

    >>> account_lines(Found(None))
    ['No stream has drawn on this account yet.']
    """
    if found.book is None:
        return ["No stream has drawn on this account yet."]
    lines = [*_summary(found.book), *_charges(found.book)]
    if found.torn:
        lines.append("A crash left part of a line, which was never acknowledged. The next start takes it off.")
    elif found.behind:
        lines.append("A crash came before the last line was acknowledged. Its charge stands.")
    return [*lines, f"Checked: every line follows from the one before; the last has the digest {found.book.digest}"]


def _summary(book: Book) -> list[str]:
    return [
        f"Account {book.opening.account} of {book.opening.population!r}, opened {book.opening.time}",
        f"Promise: {book.opening.epsilon}-differentially private for each {book.opening.unit}, over all its streams.",
        f"Drawn: {decimal(book.drawn)} by {len(book.charges)} stream{'s' * (len(book.charges) != 1)}. "
        f"Left: {decimal(book.left)}.",
    ]


def _charges(book: Book) -> list[str]:
    rows = [("", "time", "stream", "ε", "unit")]
    for one in book.charges:
        bounds = ", ".join(f"{name} {value}" for name, value in one.unit.items() if name != "type")
        kind = f"{one.unit['type']} ({bounds})" if bounds else str(one.unit["type"])
        rows.append((str(one.sequence), one.time, one.stream, one.epsilon, kind))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[4]]).rstrip()
        for row in rows
    ]
