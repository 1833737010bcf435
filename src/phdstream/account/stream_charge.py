"""A stream's charge: once for its whole life, before its first commit, and never lost.

The order is what makes it safe. First the stream's id is kept in its private folder (`DurableStream.claim`), then the
account is charged under that id, then the stream begins. After a crash anywhere in between, the next start finds the
same id, and with it the charge: nothing is charged twice, however often a service starts and dies.

What the stream keeps of its charge goes into its notes, and so into every commit. An account that does not know that
charge any more was lost, or an older copy of it was put back: then the stream does not go on.
"""

from __future__ import annotations

from typing import Any

from phdstream.account.book import Book
from phdstream.account.entries import Charge, digest
from phdstream.account.folder import AccountFolder
from phdstream.account.settings import AccountSettings
from phdstream.errors import StateError
from phdstream.streams.durable.stream import DurableStream
from phdstream.streams.guarantee import exactly

__all__ = ["charge"]

_NOTE = "account"


def charge(settings: AccountSettings | None, stream: DurableStream) -> Charge | None:
    """Charge a stream to its account, if it has one and was not charged before. Call it right before `begin`.

    It is also for a stream that has begun: then it checks that the charge is still there, and charges a stream that
    began before it had an account. Refused, with nothing drawn, are a stream that asks for more than is left
    (BudgetError), another population or budget than the account's (ConfigError), and an account that was changed
    (StateError). A stream with seeded noise promises nothing and draws nothing: None.

    >>> import tempfile, phdstream as phd
    >>> from pathlib import Path
    >>> box = phd.Box([(0, 1), (0, 1)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     settings = AccountSettings(Path(folder) / "account", "residents", "1")
    ...     for name in ("a", "b"):
    ...         with phd.durable(Path(folder) / name, phd.TrackingStream(box, epsilon=0.6, unit=phd.Event())) as stream:
    ...             print(charge(settings, stream).sequence)
    ...             stream.begin()
    Traceback (most recent call last):
    phdstream.errors.BudgetError: this stream's ε is 0.6, but the account of 'residents' has 0.4 left of 1. ...
    """
    parameters = stream.parameters
    if settings is None or not parameters["private_noise"]:
        return None
    kept = stream.notes.get(_NOTE)

    def decided(book: Book, before: Charge | None) -> None:
        _check_kept(kept, book, before, settings)
        stream.claim()

    book, made = AccountFolder(settings.folder).draw(
        settings, stream.id, exactly(parameters["epsilon"]), dict(parameters["unit"]), decided
    )
    stream.notes[_NOTE] = _note(book, made)
    return made


def _note(book: Book, made: Charge) -> dict[str, Any]:
    return {"id": book.opening.account, "sequence": made.sequence, "digest": digest(made.encode())}


def _check_kept(kept: dict[str, Any] | None, book: Book, before: Charge | None, settings: AccountSettings) -> None:
    """Refuse an account that does not know the charge that the stream has kept."""
    if kept is not None and (before is None or kept != _note(book, before)):
        raise StateError(
            f"this stream was charged before, but the account in {settings.folder} does not know of it: the account is "
            "another one, was lost, or an older copy was put back. Others' charges may be missing too. Restore it."
        )
