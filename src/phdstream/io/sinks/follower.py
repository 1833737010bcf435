"""A sink follows the folder of releases: whatever it lacks is published to it, in order. Public.

Nothing here can harm a release: it is in the folder before, and every failure is kept as a text and tried again at the
next occasion.
"""

from __future__ import annotations

from collections.abc import Callable

from phdstream.errors import PhdstreamError, SinkError, StateError
from phdstream.io.archive import Archive
from phdstream.io.sinks.protocol import OpenSink, Sink

__all__ = ["Follower"]


class Follower:
    """Keeps one sink up with a folder. ``failure`` says why it is behind, ``tick`` how far it was seen to be.

    ``refused`` tells that trying again will not help: the sink is another stream's, or has another content.
    """

    def __init__(self, name: str, open_sink: OpenSink, archive: Archive) -> None:
        self.name, self.failure, self.refused, self.tick = name, "", False, 0
        self._open, self._archive = open_sink, archive
        self._sink: Sink | None = None

    def catch_up(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Publish what the sink lacks, and tell whether it lacks nothing any more. Raises nothing."""
        try:
            done = self._follow(stopped)
        except Exception as error:  # a sink's library may raise anything; no release may be harmed by it
            self.refused = isinstance(error, StateError)
            known = isinstance(error, PhdstreamError)
            self.failure = str(error) if known else f"an error that should not happen ({type(error).__name__})"
            self.close()
            return False
        self.failure, self.refused = "", False
        return done

    def _follow(self, stopped: Callable[[], bool]) -> bool:
        manifest = self._archive.manifest()
        if manifest is None:
            return True  # no release yet
        if self._sink is None:
            self._sink = self._open(str(manifest["stream"]), self._archive.domain)
            self._check_last(self._sink)
        while not stopped():
            # Asked anew before each tick: a server that was restarted may have lost what it had accepted.
            self.tick = self._sink.last_tick()
            missing = self._missing()
            if not missing:
                return True
            self._sink.publish(self._archive.release(missing[0]))
        return False

    def _check_last(self, sink: Sink) -> None:
        """Refuse a sink whose last tick is not the folder's: it is of another copy of the stream."""
        last = sink.last_tick()
        if last > self._archive.last_tick:
            raise StateError(
                f"{self.name} has tick {last}, but the folder of releases ends at tick {self._archive.last_tick}: was "
                "the folder put back from an older copy? Restore it, or use a new sink."
            )
        if last and self._archive.has(last):
            sink.publish(self._archive.release(last))  # changes nothing, but refuses another content

    def _missing(self) -> list[int]:
        """Return the ticks after the sink's last one that the folder has, in order."""
        return sorted(self._archive.ticks(self.tick + 1, self._archive.last_tick))

    @property
    def behind(self) -> str:
        """Why the sink lacks ticks, in words for the operator; nothing if all is well."""
        if not self.failure:
            return ""
        again = "It is refused until that is mended" if self.refused else "It is tried again"
        return f"sink {self.name} is at tick {self.tick}, behind the folder: {self.failure} {again}."

    def close(self) -> None:
        """Let go of the sink."""
        sink, self._sink = self._sink, None
        if sink is not None:
            try:
                sink.close()
            except Exception as error:
                self.failure = self.failure or str(SinkError(f"closing failed ({type(error).__name__})."))
