"""Accounts for the tests: settings, draws, and what an account's folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phdstream.account.book import Book
from phdstream.account.folder import AccountFolder
from phdstream.account.settings import AccountSettings

EVENT = {"type": "event"}


def settings(folder: Path, budget: str = "1", population: str = "residents") -> AccountSettings:
    return AccountSettings(folder, population, budget)


def stream_id(number: int) -> str:
    return f"{number:032x}"


def draw(folder: Path, number: int, epsilon: str, unit: dict[str, Any] = EVENT, **others: Any) -> Book:
    return AccountFolder(folder).draw(settings(folder, **others), stream_id(number), epsilon, unit)[0]


def book(folder: Path) -> Book:
    found = AccountFolder(folder).read().book
    assert found is not None
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
