"""`phdstream run`: from files to a folder of releases, resumable at any instant.

First all input is read and gathered by tick (`phdstream.app.prepare`): nothing is spent yet. Then, per tick: the stream
commits its new state, and the release is published. A crash before the commit loses nothing and shows nothing; a crash
after it is mended at the next start, which publishes the committed release again, bit for bit. Rows of ticks already
committed are left out, so no event is counted twice.

With a ``[source]``, all that it holds is read into the journal first, as a service reads it, by position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from phdstream.account import charge
from phdstream.app.config import Config
from phdstream.app.findings import operator_notes, unusable
from phdstream.app.prepare import Prepared, prepare, said, ticks_of
from phdstream.app.waiting import Waiting, read_source_to_its_end, source_notes, waiting_events
from phdstream.errors import InputError, UnusableError
from phdstream.io.archive import Archive
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.io.sinks.follower import Follower
from phdstream.streams.durable.stream import DurableStream, durable

__all__ = ["RunReport", "bring_sinks_up", "publish", "report_of", "run"]

NOTHING_YET = "Nothing to do yet: the first tick is not over. Nothing was written."


@dataclass
class RunReport:
    """How a run ended. ``private_notes`` are for the operator and **must not be published**.

    ``first_tick`` to ``last_tick`` were taken by this run (none if the last is before the first). Of them those from
    ``first_release`` on are released in ``releases``. ``missing`` ticks of earlier runs are not in that folder. The
    next tick ends at ``next_end`` (None if there is none, or ticks go by rows). ``warning`` says if the last release is
    expected, by its own noise, to be of little use. ``behind`` says which sinks lack ticks, and why.
    """

    first_tick: int
    last_tick: int
    first_release: int
    releases: Path
    description: str
    next_end: datetime | None = None
    warning: str = ""
    missing: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    private_notes: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)

    def summary(self) -> list[str]:
        """Return what was done and where to look, in words. Public."""
        lines = [self._taken()]
        if self.last_tick >= self.first_release and not self.missing:
            lines.append(
                f"Look at {self.releases.resolve()}: ticks {self.first_release} to {self.last_tick} are there."
            )
        if self.missing:
            lines.append(
                f"{self.releases.resolve()} lacks files of tick(s) {_ranges(self.missing)}. They were released once "
                "and cannot be made again: put them back from a copy."
            )
        if self.warning:
            lines.append(f"Warning: {self.warning}")
        if self.next_end is not None:
            lines.append(f"Tick {self.last_tick + 1} ends at {self.next_end.isoformat(' ')}; run again after that.")
        return lines

    def _taken(self) -> str:
        if self.last_tick < self.first_tick:
            return "Nothing to do: no tick is over that was not released before." if self.last_tick else NOTHING_YET
        if self.last_tick < self.first_release:
            return (
                f"Took ticks {self.first_tick} to {self.last_tick}. Nothing is released before tick "
                f"{self.first_release} (start_after): their events are kept, privately, until then."
            )
        return f"Released ticks {max(self.first_tick, self.first_release)} to {self.last_tick}."


def _ranges(ticks: list[int]) -> str:
    """Return numbers in order, runs of them in short.

    >>> _ranges([1, 2, 3, 7])
    '1-3, 7'
    """
    runs: list[list[int]] = []
    for tick in ticks:
        if runs and runs[-1][1] == tick - 1:
            runs[-1][1] = tick
        else:
            runs.append([tick, tick])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def run(
    config: Config,
    progress: Callable[[int, int | None], None] = lambda tick, total: None,
    *,
    now: datetime | None = None,
    until: datetime | None = None,
    anyway: bool = False,
    new_folder: bool = False,
    reading: Callable[[int, int | None], None] = lambda done, total: None,
) -> RunReport:
    """Run the configured stream up to the last tick that is over, going on where an earlier run stopped.

    ``now`` is the present time (by default the machine's); with ``until``, the ticks that end by then are released
    instead, over or not. A first run of which most rows cannot be used stops before anything is spent, unless it is to
    go on ``anyway``. With ``new_folder``, a stream whose earlier releases are elsewhere goes on in an empty folder.
    ``progress`` is told each tick's number and the last one's, ``reading`` how many files are read: all public.
    """
    now = now or datetime.now().astimezone()
    asked = config.stream()
    with durable(config.state, asked) as stream:
        prepared = prepare(config, stream, now, until, reading)
        try:
            if not stream.tick and prepared.last < prepared.first:
                return _not_begun(config, stream, prepared, asked.start_after)
            files = config.source is None or config.input.patterns
            if not stream.tick and not anyway and files and (why := unusable(prepared, config)):
                raise UnusableError(f"{why} Nothing was spent. `phdstream check` shows more; --anyway goes on.")
            about = {"ticks": ticks_of(config)}
            releases = ReleaseFolder(config.releases, stream.id, about, config.format, asked.start_after)
            with releases.open(stream.tick, new_folder) as folder, waiting_events(config) as journal:
                if journal and config.engine:
                    raise InputError("events that a service accepted wait here, and Spark cannot count them: serve.")
                return _take_all(config, stream, prepared, folder, progress, journal, now)
        finally:
            prepared.gathered.close()


def _not_begun(config: Config, stream: DurableStream, prepared: Prepared, first_release: int) -> RunReport:
    """Report that no tick is over yet. Nothing is kept: the promise may still change."""
    report = RunReport(1, 0, first_release, config.releases, stream.describe(), notes=prepared.notes)
    report.next_end = config.clock.end_of(1) if config.clock else None
    report.private_notes = operator_notes(prepared, stream, config)
    return report


def _take_all(
    config: Config,
    stream: DurableStream,
    prepared: Prepared,
    folder: ReleaseFolder,
    progress: Callable[[int, int | None], None],
    journal: Waiting | None,
    now: datetime,
) -> RunReport:
    """Take tick after tick, and report. Events that a service accepted for them are counted with those of files."""
    charge(config.account, stream)
    stream.notes["said"] = said(config)
    prepared.keep(stream)
    stream.begin()
    folder.bind()
    publish(stream, folder)  # once more, should an earlier run have stopped between commit and publication
    if journal:
        journal.bind(stream.id, stream.tick)
        read_source_to_its_end(config, journal, now)
        prepared.gathered.further = journal.batches
    for number in range(prepared.first, prepared.last + 1):
        stream.update(*prepared.gathered.tick(number))
        prepared.gathered.counted(stream)
        if journal:
            journal.bind(stream.id, stream.tick)
        publish(stream, folder)
        progress(number, prepared.last)
    report = report_of(config, stream, folder, prepared.first)
    report.notes, report.private_notes = prepared.notes, operator_notes(prepared, stream, config)
    report.private_notes += source_notes(config, journal) if journal else []
    return report


def report_of(config: Config, stream: DurableStream, folder: ReleaseFolder, first: int) -> RunReport:
    """Report on ticks from ``first`` on, which were all published, after bringing every sink up to them."""
    report = RunReport(first, stream.tick, folder.first_tick, folder.folder, stream.describe())
    report.missing = folder.missing(stream.tick, folder.first_tick)
    if config.clock and (config.clock.count is None or stream.tick < config.clock.count):
        report.next_end = config.clock.end_of(stream.tick + 1)
    if stream.release is not None and stream.tick >= first:
        report.warning = stream.release.usefulness.warning
    report.behind = bring_sinks_up(config)
    return report


def bring_sinks_up(config: Config) -> list[str]:
    """Bring every sink up to the folder; return what to say of those that fail. No release is harmed by that."""
    behind = []
    for settings in config.sinks:
        follower = Follower(settings.name, settings.open, Archive(config.releases, config.domain, kept=1))
        follower.catch_up()
        behind += [follower.behind] if follower.behind else []
        follower.close()
    return behind


def publish(stream: DurableStream, folder: ReleaseFolder) -> None:
    """Publish the last committed release, unless it is there already, whole."""
    if stream.release is not None and folder.lacks(stream.release):
        folder.publish(stream.release)
