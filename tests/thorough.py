"""How hard random tests try: a few cases by default, many with ``PHDSTREAM_THOROUGH=1``."""

from __future__ import annotations

import os

__all__ = ["THOROUGH", "cases"]

THOROUGH = bool(os.environ.get("PHDSTREAM_THOROUGH"))


def cases(few: int, many: int) -> int:
    """Return how many cases to try: ``few`` by default, ``many`` when tests are to be thorough."""
    return many if THOROUGH else few
