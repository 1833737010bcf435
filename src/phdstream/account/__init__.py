"""An account of ε for one population: streams about the same people draw on one budget. Nothing here sees data."""

from __future__ import annotations

from phdstream.account.book import Book
from phdstream.account.folder import AccountFolder
from phdstream.account.settings import AccountSettings, read_account
from phdstream.account.stream_charge import charge

__all__ = ["AccountFolder", "AccountSettings", "Book", "charge", "read_account"]
