"""Waiting for what another process or thread does: until it is done, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["wait_for_ticks", "wait_until"]


def wait_until(done: Callable[[], bool], seconds: float = 120.0) -> None:
    """Return when it is done; fail if it is not in time."""
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "it was not done in time"
        time.sleep(0.05)


def wait_for_ticks(releases: Path, files: int) -> None:
    """Return when a folder of releases has so many files of ticks."""
    wait_until(lambda: sum(1 for path in releases.rglob("tick-*") if path.is_file()) >= files)
