"""Before a tick is spent: the input is found, compared with what was said before, read and gathered. Private.

Used by `phdstream run` and `phdstream check`; nothing here draws noise or releases anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from phdstream.app.config import Config
from phdstream.errors import InputError, StateError
from phdstream.io.sources.clock import Clock, RowClock
from phdstream.io.sources.counted_inputs import CountedInputs, FileRecord
from phdstream.io.sources.events import read_events
from phdstream.io.sources.gathering import Gathered
from phdstream.io.sources.inventory import Print, check_unchanged, fingerprint, refuse_twice
from phdstream.io.sources.tally import Tally
from phdstream.streams.durable.stream import DurableStream

__all__ = ["Prepared", "check_said", "keep_ledger", "ledger_of", "prepare", "said", "ticks_of"]

_LEDGER = "inputs"
_NO_END = 1 << 62
_MOST_TICKS = 1_000_000
"""More ticks at once are a mistake in the schedule."""
Progress = Callable[[int, int | None], None]


@dataclass
class Prepared:
    """All that a run needs to know: the gathered events, the ticks to take, the ledger to keep, what was guessed."""

    gathered: Gathered
    first: int
    last: int
    ledger: CountedInputs
    skipped: int
    notes: list[str]

    @property
    def tally(self) -> Tally:
        """What became of the rows. **Private.**"""
        return self.gathered.tally

    def keep(self, stream: DurableStream) -> None:
        """Write down which files are being counted, before the first of their ticks is."""
        keep_ledger(stream, self.ledger)


def keep_ledger(stream: DurableStream, ledger: CountedInputs) -> None:
    """Write a ledger beside the state."""
    stream.write_extra(_LEDGER, *ledger.to_state())


def ticks_of(config: Config) -> dict[str, Any]:
    """Return the schedule as plain data, for the manifest."""
    if config.clock:
        return config.clock.to_dict()
    return {"rows": config.rows_per_tick, "note": "ticks by rows: not private"}


def said(config: Config) -> dict[str, Any]:
    """Return what was said once and stays said: which event a row is, and in which tick. The end may move."""
    ticks = {key: value for key, value in ticks_of(config).items() if key not in ("end", "grace_seconds")}
    source = {} if config.source is None else {"source": config.source.to_dict()}
    return {"ticks": ticks} | {"input": config.input.to_dict()} | source


def prepare(
    config: Config,
    stream: DurableStream,
    now: datetime,
    until: datetime | None = None,
    progress: Progress = lambda done, total: None,
) -> Prepared:
    """Find, compare and read the input for the ticks that are over, or that end by ``until``."""
    check_said(stream, config)
    ledger = ledger_of(stream)
    paths = [] if config.source is not None and not config.input.patterns else config.input.files()
    prints = [fingerprint(path, ledger.prints) for path in paths]
    refuse_twice(prints)
    fresh = [one for one in prints if not ledger.done(one, stream.tick)]
    clock: Clock | RowClock = config.clock or RowClock(config.rows_per_tick or 1)
    last = _last(clock, stream.tick, now, until)
    gathered = Gathered(config.domain, clock, stream.tick + 1, last, config.input.memory, stream.temporary_file)
    notes: list[str] = []
    try:
        records = _read(config, fresh, gathered, notes, progress)
        ledger = ledger.merge(records, stream.tick)
    except BaseException:
        gathered.close()
        raise
    last = clock.last if isinstance(clock, RowClock) else last
    return Prepared(gathered, stream.tick + 1, last, ledger, len(prints) - len(fresh), notes)


def check_said(stream: DurableStream, config: Config) -> None:
    """Refuse to read the input otherwise than before: an event could count twice, or a user's bound begin anew."""
    before, now = stream.notes.get("said"), said(config)
    if before is None or before == now:
        return
    for section, values in ({"source": dict.fromkeys(before.get("source", ()))} | now).items():
        for key, value in values.items():
            was = before.get(section, {}).get(key)
            if was != value:
                raise StateError(
                    f"[{section}] {key} was {was!r} when this stream began, and is {value!r} now. Events could "
                    "be counted twice, or users be given their bound anew. Set it back, or start a new stream in new "
                    "folders (its ε comes on top)."
                )


def ledger_of(stream: DurableStream) -> CountedInputs:
    """Return what was counted of which file."""
    saved = stream.read_extra(_LEDGER)
    if saved is None:
        if stream.tick:
            raise StateError(
                f"{stream.directory} has released ticks, but its ledger of input files is gone. Restore it."
            )
        return CountedInputs()
    return CountedInputs.from_state(*saved)


def _last(clock: Clock | RowClock, tick: int, now: datetime, until: datetime | None) -> int:
    if isinstance(clock, RowClock):
        return _NO_END
    last = clock.over(now) if until is None else clock.until(until)
    if last - tick > _MOST_TICKS:
        raise InputError(f"more than {_MOST_TICKS:,} ticks are due at once: is [ticks] start, or every, what you mean?")
    return max(last, tick)


def _read(
    config: Config, prints: list[Print], gathered: Gathered, notes: list[str], progress: Progress
) -> list[FileRecord]:
    records = []
    for done, one in enumerate(prints):
        progress(done, len(prints))
        record = FileRecord(one)
        for events in read_events([one.path], config.input.columns, config.input.reading, notes):
            gathered.take(events, record)
        check_unchanged(one)
        records.append(record)
    progress(len(prints), len(prints))
    return records
