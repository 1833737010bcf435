"""A file or an object as a file at hand, while it is read. An object's copy is private, and gone afterwards."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO

from phdstream.errors import InputError, StateError
from phdstream.io.sources.inventory import BESIDE, Found, Print, check_unchanged
from phdstream.io.sources.objects import StoredObject
from phdstream.io.sources.signatures import endings_of

__all__ = ["NewFile", "at_hand"]

NewFile = Callable[[str], AbstractContextManager[tuple[IO[bytes], Path]]]
"""Gives a new private file whose name ends so, open for writing, and where it is; it is gone when it is left."""


@contextmanager
def at_hand(
    found: Found, one: Print, before: Print | None, new_file: NewFile, notes: list[str]
) -> Iterator[tuple[Path, Print]]:
    """Give the path to read a file or an object at, and what it is; refuse one that changed meanwhile.

    ``before`` is what was known by its name. Messages and ``notes`` call an object by its name, not by its copy's.
    """
    if isinstance(found, Path):
        yield one.path, one
        check_unchanged(one)
        return
    told = len(notes)
    with ExitStack() as copies:
        path, one = _fetched(found, one, before, new_file, copies)
        try:
            yield path, one
        except InputError as error:
            raise InputError(str(error).replace(str(path), found.name)) from None
        notes[told:] = [note.replace(str(path), found.name) for note in notes[told:]]


def _fetched(
    found: StoredObject, one: Print, before: Print | None, new_file: NewFile, copies: ExitStack
) -> tuple[Path, Print]:
    """Copy an object to a private file, and return where that is and what it is."""
    digest, continues, name = hashlib.sha256(), "", secrets.token_hex(8)
    file, path = copies.enter_context(new_file(name + endings_of(found.path)))
    size = 0
    for piece in found.pieces():
        if before is not None and size < before.size <= size + len(piece):
            beginning = digest.copy()
            beginning.update(head := piece[: before.size - size])
            continues = before.digest if head.endswith(b"\n") and beginning.hexdigest() == before.digest else ""
        _write(file, piece, found.name)
        digest.update(piece)
        size += len(piece)
    for ending, part in found.beside():
        file, _ = copies.enter_context(new_file(name + ending))
        for piece in part.pieces():
            _write(file, piece, found.name)
            digest.update(piece if ending in BESIDE else b"")
    if size != one.size or found.look() != (one.size, one.changed, one.version):
        raise InputError(
            f"{found.name} changed while it was read: let whoever writes it finish, and run again. Nothing was spent."
        )
    return path, Print(one.name, one.size, one.changed, digest.hexdigest(), one.version, continues)


def _write(file: IO[bytes], piece: bytes, name: str) -> None:
    try:
        file.write(piece)
        file.flush()
    except OSError as error:
        raise StateError(
            f"there is no room in the state folder for a copy of {name} ({error.strerror}). Nothing was spent. Make "
            "room, and run again."
        ) from None
