"""When ticks begin and end, as a folder's manifest says it. Public."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from phdstream.errors import InputError
from phdstream.page.facts import tick_label

__all__ = ["Schedule"]


class Schedule:
    """The ticks of a manifest: by time, or by rows and so without any.

    >>> schedule = Schedule({"ticks": {"start": "2024-04-01T00:00:00+02:00", "every_seconds": 86400.0}})
    >>> schedule.span(2), schedule.label(2)
    ((datetime.datetime(2024, 4, 2, 0, 0), datetime.datetime(2024, 4, 3, 0, 0)), '2024-04-02')
    """

    def __init__(self, manifest: dict[str, Any]) -> None:
        self._ticks = dict(manifest.get("ticks") or {})
        self.timed = "start" in self._ticks and "every_seconds" in self._ticks

    @property
    def every(self) -> float:
        """The length of a tick in seconds."""
        if not self.timed:
            raise InputError("these ticks have no length in time, so there are no rates: use changes(...).")
        return float(self._ticks["every_seconds"])

    def span(self, tick: int) -> tuple[datetime, datetime]:
        """Return when a tick begins and ends, in the time zone in which the schedule was stated."""
        start, every = datetime.fromisoformat(str(self._ticks["start"])), timedelta(seconds=self.every)
        start = start.replace(tzinfo=None)
        return start + every * (tick - 1), start + every * tick

    def label(self, tick: int) -> str:
        """Return what to call a tick: its day, the time when it ends, or its number."""
        return tick_label(self._ticks, tick) or f"tick {tick}"

    def axis(self, ticks: Sequence[int]) -> tuple[list[Any], str]:
        """Return where ticks stand on an axis, and what to call it: whole days at their dates, others at their ends.

        >>> Schedule({"ticks": {"start": "2024-04-01T00:00:00+02:00", "every_seconds": 86400.0}}).axis([2])
        ([datetime.datetime(2024, 4, 2, 0, 0)], 'day')
        """
        if not self.timed:
            return list(ticks), "tick"
        days = len(self.label(1)) == len("2024-04-02")
        return [self.span(tick)[1] - timedelta(days=days) for tick in ticks], "day" if days else "end of the tick"
