"""Sinks of a running service: each in a thread of its own, so that a slow one holds up no tick and no other sink."""

from __future__ import annotations

import logging
import threading

from phdstream.io.sinks.follower import Follower

__all__ = ["SinkThread"]

_LOG = logging.getLogger("phdstream.service")
_RETRY, _LONGEST_RETRY, _LAST_WORD = 2.0, 300.0, 10.0
"""Seconds before a sink that failed is tried again, at first and at most; and how long one may take to end."""


class SinkThread:
    """Brings a sink up at the start and at every tick; after a failure again and again, ever more seldom."""

    def __init__(self, follower: Follower) -> None:
        self._follower, self.name = follower, follower.name
        self._woken, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sink {self.name}", daemon=True)

    @property
    def behind(self) -> str:
        """Why the sink lacks ticks, for the operator; nothing if all is well."""
        return self._follower.behind

    @property
    def tick(self) -> int:
        """The last tick that the sink was seen to have."""
        return self._follower.tick

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def wake(self) -> None:
        """Tell that there is a new tick; returns at once."""
        self._woken.set()

    def _run(self) -> None:
        wait: float | None = 0.0
        while not self._stop.is_set():
            self._woken.wait(wait)
            self._woken.clear()
            wait = self._try(wait)
        self._follower.close()

    def _try(self, waited: float | None) -> float | None:
        """Catch up; return how long to wait unless woken before: without end if all is there."""
        failed = bool(self._follower.failure)
        if self._follower.catch_up(self._stop.is_set):
            if failed:
                _LOG.info("a sink goes on", extra={"sink": self.name, "tick": self.tick})
            return None
        if self._follower.failure:
            _LOG.warning("a sink is behind", extra={"sink": self.name, "why": self._follower.failure})
        return min(_LONGEST_RETRY, 2 * (waited or _RETRY / 2))

    def stop(self) -> None:
        """End after the tick that is being published; a sink that hangs is left behind, and caught up next time."""
        self._stop.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_LAST_WORD)
