"""`phdstream run`: from files to a folder of releases, resumable at any instant.

Per tick: the stream commits its new state, then the release is published. A crash before the commit loses nothing and
shows nothing; a crash after it is mended at the next start, which publishes the committed release again, bit for bit.
Rows of ticks already committed are skipped, so no event is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from phdstream.config import Config
from phdstream.durability import DurableStream, durable
from phdstream.errors import StateError
from phdstream.sinks.folder import ReleaseFolder
from phdstream.sources.ahead import ahead
from phdstream.sources.files import Events, read_events, read_times
from phdstream.sources.ticks import Tick, check_order, ticks_by_rows, ticks_by_time

__all__ = ["RunReport", "run"]


@dataclass
class RunReport:
    """How a run ended. ``private_notes`` are for the operator and **must not be published**."""

    first_tick: int
    last_tick: int
    description: str
    private_notes: list[str] = field(default_factory=list)


def run(config: Config, progress: Callable[[int, int | None], None] = lambda tick, total: None) -> RunReport:
    """Run the configured stream to its last tick, going on where an earlier run stopped.

    ``progress`` is told each tick's number and how many there are (None if ticks go by rows): both public.
    """
    asked = config.stream()
    with durable(config.state, asked) as stream, _folder(config, stream, asked.start_after) as folder:
        _check_same_ticks(stream, config)
        if config.clock and not config.drop_bad_rows:
            assert config.columns.time is not None
            times = read_times(config.files, config.columns.time, config.clock.zone, config.clock.one_tick)
            check_order(times, config.clock)
        _publish(stream, folder)  # once more, should an earlier run have stopped between commit and publication
        report = RunReport(stream.tick + 1, stream.tick, stream.describe())
        already = _Skipped()
        for tick in _ticks(config):
            if tick.number <= stream.tick:
                already.add(tick)
                continue
            already.compare(stream.notes, report)
            _take(stream, tick, config.columns.user is not None)
            _publish(stream, folder)
            report.last_tick = tick.number
            progress(tick.number, config.clock.count if config.clock else None)
        report.private_notes += _private_notes(stream)
        return report


def _folder(config: Config, stream: DurableStream, first_tick: int) -> ReleaseFolder:
    stream.begin()  # so that the folder is claimed for a stream that keeps its name
    folder = ReleaseFolder(config.releases, stream.id, _extra_facts(config), config.format, first_tick)
    return folder.open(stream.tick)


def _check_same_ticks(stream: DurableStream, config: Config) -> None:
    """Refuse to cut the input otherwise than before: events counted in one tick would be counted again in another.

    The end may move, since that only adds ticks.
    """
    now = _extra_facts(config)["ticks"]
    now.pop("end", None)
    before = stream.notes.setdefault("ticks", now)
    if before != now:
        raise StateError(
            f"the ticks were cut as {before} so far, but {now} was asked for: events would be counted twice. Set "
            "[ticks] back (only the end may move), or start a new stream in new folders (its ε comes on top)."
        )


def _extra_facts(config: Config) -> dict[str, Any]:
    ticks = (
        config.clock.to_dict() if config.clock else {"rows": config.rows_per_tick, "note": "ticks by rows: not private"}
    )
    return {"ticks": ticks}


def _ticks(config: Config) -> Iterator[Tick]:
    zone = config.clock.zone if config.clock else False
    events = ahead(read_events(config.files, config.columns, zone, config.drop_bad_rows))
    if config.clock:
        return ticks_by_time(events, config.clock)
    assert config.rows_per_tick is not None
    return ticks_by_rows(events, config.rows_per_tick)


def _take(stream: DurableStream, tick: Tick, with_users: bool) -> None:
    """Give a tick's events to the stream, and commit with it how much input was used and left out (private)."""
    rows, notes = len(tick), stream.notes
    come, gone = tick.split()
    for name, more in (("rows", rows), ("late", tick.late), ("off_clock", tick.outside), ("bad", tick.bad)):
        notes[name] = notes.get(name, 0) + more
    users = (come.users, gone.users) if with_users else (None, None)
    stream.update(_points(come), _points(gone), *users)


def _points(events: Events) -> Any:
    return events.points if len(events) else None


def _publish(stream: DurableStream, folder: ReleaseFolder) -> None:
    release = stream.release
    if release is not None and not release.held and folder.last_tick < release.tick:
        folder.publish(release)


@dataclass
class _Skipped:
    """Rows of ticks already committed; if they are not those of last time, the operator is told."""

    rows: int = 0
    compared: bool = False

    def add(self, tick: Tick) -> None:
        self.rows += len(tick)

    def compare(self, notes: dict[str, Any], report: RunReport) -> None:
        if not self.compared and self.rows != notes.get("rows", 0):
            report.private_notes.append(
                "the input has other rows for ticks already released than when they were released; those ticks stand "
                "as they are, and rows that came since are not counted"
            )
        self.compared = True


def _outside(stream: DurableStream) -> str:
    """Return what else, besides another place, makes an event fall outside."""
    snap = stream.domain.summary().get("snap")
    return "or NaN" if snap is None else f"or NaN, or farther than {snap:g} from any line"


def _private_notes(stream: DurableStream) -> list[str]:
    tally, notes = stream.private_tally, stream.notes
    counts = {
        "rows could not be read": notes.get("bad", 0),
        "rows came late, after their tick was released": notes.get("late", 0),
        "rows were before the first tick or after the last": notes.get("off_clock", 0),
        f"events were outside the domain ({_outside(stream)})": tally.outside,
        "events were beyond their user's bound": tally.over_bound,
    }
    lines = [f"{number} {what}: not counted" for what, number in counts.items() if number]
    if tally.swapped:
        lines.append(
            f"{tally.swapped} or more of those outside would be inside with their two coordinates swapped: are "
            "longitude and latitude in the right order?"
        )
    if tally.unmatched_deletes:
        lines.append(
            f"at least {tally.unmatched_deletes} deletes where nothing was left to delete: counted as they came. Are "
            "inserts missing, or do coordinates of inserts and deletes differ?"
        )
    if not notes.get("rows"):
        lines.append("the input held no event for any tick")
    return lines
