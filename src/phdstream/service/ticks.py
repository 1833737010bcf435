"""Every scheduled tick and what became of it: open, held, released, late or missing; and errata. Public.

- ``open``: it is not due yet;
- ``held``: taken, but nothing is released before the stream's start (``start_after``);
- ``released``: it can be read;
- ``late``: due for less than the length of a tick, and not released;
- ``missing``: due for longer, or its files are gone. While there is one, the service is not ready.
"""

from __future__ import annotations

import json
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

from phdstream.errors import InputError, StateError
from phdstream.io.archive import Archive
from phdstream.service.publisher import Publisher
from phdstream.service.schedule import Schedule, SteadyClock
from phdstream.streams.durable.folders import replace_file

__all__ = ["TickBoard"]

ERRATA = "errata.json"
_LONGEST = 2000
_LOOKED_AT = 1000
"""How many ticks back the board looks for missing ones: a gap before that was seen while it was within."""


class TickBoard:
    """Says of ticks what became of them."""

    def __init__(self, archive: Archive, publisher: Publisher, schedule: Schedule, clock: SteadyClock) -> None:
        self._archive, self._publisher, self._schedule, self._clock = archive, publisher, schedule, clock
        self._lock = threading.Lock()

    @property
    def current(self) -> int:
        """The tick that the present moment belongs to; 0 before the first, the last one after it."""
        clock = self._schedule.clock
        begun = clock.until(self._clock.now() + clock.every)
        return begun if clock.count is None else min(begun, clock.count)

    def rows(self, first: int, last: int) -> list[dict[str, Any]]:
        """Return the ticks from one to another, as plain data."""
        errata, now, last = self.errata(), self._clock.now(), min(last, self.current)
        there = self._archive.ticks(first, last)
        return [
            {
                "tick": tick,
                "start": _text(self._schedule.clock.end_of(tick - 1)),
                "end": _text(self._schedule.clock.end_of(tick)),
                "due": _text(self._schedule.due(tick)),
                "status": "released" if tick in there else self._not_released(tick, now),
                "errata": errata.get(str(tick), []),
            }
            for tick in range(max(1, first), last + 1)
        ]

    def status(self, tick: int, now: datetime) -> str:
        """Return what became of a tick."""
        return "released" if self._archive.has(tick) else self._not_released(tick, now)

    def _not_released(self, tick: int, now: datetime) -> str:
        clock = self._schedule.clock
        if tick <= self._publisher.tick and tick < self._publisher.first_release:
            return "held"
        if clock.over(now) < tick:
            return "open"
        return "missing" if clock.over(now - clock.every) >= tick else "late"

    def missing(self) -> list[int]:
        """Return the latest ticks that are missing."""
        now, last = self._clock.now(), self.current
        ticks = range(max(1, last - _LOOKED_AT), last + 1)
        there = self._archive.ticks(ticks.start, last)
        return [tick for tick in ticks if tick not in there and self._not_released(tick, now) == "missing"]

    def errata(self) -> dict[str, list[dict[str, str]]]:
        """Return what was said of ticks afterwards, by tick."""
        path = self._archive.folder / ERRATA
        try:
            return dict(json.loads(path.read_bytes())) if path.exists() else {}
        except (OSError, ValueError, TypeError):
            raise StateError(f"{path} cannot be read. Put back what was published.") from None

    def add_erratum(self, tick: int, text: str) -> None:
        """Say something of a tick for ever: what was wrong with it, in public."""
        if not 1 <= tick <= self.current:
            raise InputError(f"there is no tick {tick} yet.")
        if not text.strip() or len(text) > _LONGEST:
            raise InputError(f"an erratum is a text of at most {_LONGEST} characters.")
        with self._lock:
            errata = self.errata()
            said = {"time": self._clock.now().isoformat(timespec="seconds"), "text": text.strip()}
            errata.setdefault(str(tick), []).append(said)
            content = json.dumps(errata, indent=2, ensure_ascii=False).encode()
            replace_file(Path(self._archive.folder) / ERRATA, lambda file: file.write(content), 0o644)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
