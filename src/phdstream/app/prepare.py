"""Before a tick is spent: the input is found, compared with what was said before, read and gathered. Private.

Used by `phdstream run` and `phdstream check`; nothing here draws noise or releases anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from phdstream.app.config import Config
from phdstream.errors import InputError, StateError
from phdstream.io.sources.clock import Clock, RowClock
from phdstream.io.sources.counted_inputs import CountedInputs, FileRecord
from phdstream.io.sources.events import read_events
from phdstream.io.sources.fetching import at_hand
from phdstream.io.sources.gathering import Gathered
from phdstream.io.sources.inventory import Found, Print, check_unchanged, fingerprints, refuse_twice
from phdstream.io.sources.tally import Tally
from phdstream.streams.durable.stream import DurableStream

__all__ = ["GatheredTicks", "Prepared", "check_said", "keep_ledger", "ledger_of", "prepare", "said", "ticks_of"]

_LEDGER = "inputs"
_NO_END = 1 << 62
_MOST_TICKS = 1_000_000
"""More ticks at once are a mistake in the schedule."""
Progress = Callable[[int, int | None], None]


class GatheredTicks(Protocol):
    """Events gathered by tick: here (`Gathered`), or on a cluster (`phdstream.engines.spark.gathering`). Private."""

    tally: Tally
    per_tick: Counter[int]
    sample: dict[bool, list[Any]]
    further: Callable[[int, int], list[Any]]

    def tick(self, number: int, keep: bool = False) -> tuple[Any, Any]:
        """Return the inserts and the deletes of a tick, as `Stream.update` takes them."""

    def counted(self, stream: DurableStream) -> None:
        """Forget what a stream no longer needs, now that its last tick is committed."""

    def close(self) -> None:
        """Let go of everything."""


@dataclass
class Prepared:
    """All that a run needs to know: the gathered events, the ticks to take, the ledger to keep, what was guessed."""

    gathered: GatheredTicks
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
    places = {"source": config.source, "engine": config.engine}
    more = {name: settings.to_dict() for name, settings in places.items() if settings is not None}
    return {"ticks": ticks} | {"input": config.input.to_dict()} | more


def prepare(
    config: Config,
    stream: DurableStream,
    now: datetime,
    until: datetime | None = None,
    progress: Progress = lambda done, total: None,
    here: bool = False,
) -> Prepared:
    """Find, compare and read the input for the ticks that are over, or that end by ``until``.

    It is read by the engine that was configured; with ``here``, in this process whatever that is.
    """
    check_said(stream, config)
    ledger = ledger_of(stream)
    found = [] if config.source is not None and not config.input.patterns else config.input.files()
    prints = fingerprints(found, ledger.prints)
    refuse_twice(prints)
    fresh = [pair for pair in zip(found, prints, strict=True) if not ledger.done(pair[1], stream.tick)]
    clock: Clock | RowClock = config.clock or RowClock(config.rows_per_tick or 1)
    last = _last(clock, stream.tick, now, until)
    if config.engine is not None and not here:
        return _on_spark(config, stream, ledger, prints, [one for _, one in fresh], last)
    gathered = Gathered(config.domain, clock, stream.tick + 1, last, config.input.memory, stream.temporary_file)
    notes: list[str] = []
    try:
        records = _read(config, fresh, stream, ledger, gathered, notes, progress)
        if config.engine is None:  # what a cluster noted of a file cannot be compared with what is found here
            ledger = ledger.merge(records, stream.tick, {one.name for one in prints})
    except BaseException:
        gathered.close()
        raise
    last = clock.last if isinstance(clock, RowClock) else last
    return Prepared(gathered, stream.tick + 1, last, ledger, len(prints) - len(records), notes)


def _on_spark(
    config: Config, stream: DurableStream, ledger: CountedInputs, prints: list[Print], fresh: list[Print], last: int
) -> Prepared:
    """Gather the input on a cluster."""
    from phdstream.engines.spark.encoding import RowCoder
    from phdstream.engines.spark.gathering import SparkGathered, open_spark

    assert config.engine is not None
    assert config.clock is not None
    coder = RowCoder(config.domain, config.clock, config.input.columns, config.input.reading)
    gathered = SparkGathered(open_spark(config.engine), stream, coder, fresh, stream.tick + 1, last)
    try:
        for one in fresh:
            check_unchanged(one)
        merged = ledger.merge(gathered.records, stream.tick)
    except BaseException:
        gathered.close()
        raise
    return Prepared(gathered, stream.tick + 1, last, merged, len(prints) - len(fresh), [])


def check_said(stream: DurableStream, config: Config) -> None:
    """Refuse to read the input otherwise than before: an event could count twice, or a user's bound begin anew."""
    before, now = stream.notes.get("said"), said(config)
    if before is None or before == now:
        return
    for section in dict.fromkeys([*now, *before]):
        values, olds = now.get(section, {}), before.get(section, {})
        for key in dict.fromkeys([*values, *olds]):
            was, value = olds.get(key), values.get(key)
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
    config: Config, fresh: list[tuple[Found, Print]], stream: DurableStream, ledger: CountedInputs,
    gathered: Gathered, notes: list[str], progress: Progress,
) -> list[FileRecord]:  # fmt: skip
    records = []
    for done, (found, one) in enumerate(fresh):
        progress(done, len(fresh))
        before = ledger.named(one.name)
        with at_hand(found, one, before.print if before else None, stream.passing_file, notes) as (path, whole):
            if ledger.done(whole, stream.tick):  # an object that was read before under another name
                continue
            record = FileRecord(whole)
            for events in read_events([path], config.input.columns, config.input.reading, notes):
                gathered.take(events, record)
        records.append(record)
    progress(len(fresh), len(fresh))
    return records
