"""What was counted of which file: so that nothing is counted twice because a file came back changed. Private.

For every file is kept, tick by tick, how many events were counted and a sum of their hashes, which does not
depend on their order. If a file of the same name comes again, each tick that was released must find the same events,
unless the file has only grown at its end. Otherwise events may have been taken away or altered, perhaps to another
time, where they would count once more; such a file is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Ints
from phdstream.errors import InputError, StateError
from phdstream.io.sources.inventory import Print, grown_from
from phdstream.streams.state import Arrays

__all__ = ["CountedInputs", "FileRecord"]

_NO_CHANCE = 50
"""So many events are not the same in two files by chance."""


@dataclass
class FileRecord:
    """What a file holds, by tick: how many events, and the sum of their hashes.

    ``dropped`` says how many rows counted nowhere, and why: "unreadable", "outside", "before" the first, too "late".
    """

    print: Print
    ticks: dict[int, tuple[int, int]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)

    def add(self, ticks: Ints, parts: Sequence[NDArray[Any]]) -> None:
        """Note some events of the file; ``parts`` are columns of 64 bits each that tell an event from another."""
        if not ticks.size:
            return
        order = np.argsort(ticks, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(ticks[order]) != 0])
        sums = np.add.reduceat(_hash(parts)[order], starts)
        counts = np.diff(np.r_[starts, ticks.size])
        for tick, count, total in zip(ticks[order][starts].tolist(), counts.tolist(), sums.tolist(), strict=True):
            before = self.ticks.get(tick, (0, 0))
            self.ticks[tick] = before[0] + count, (before[1] + total) % (1 << 64)

    @property
    def last(self) -> int:
        """The last tick it has an event of; 0 if it has none."""
        return max(self.ticks, default=0)


def _hash(parts: Sequence[NDArray[Any]]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each event (splitmix64, Steele et al. 2014, over its parts in turn)."""
    x: NDArray[np.uint64] = np.zeros(len(parts[0]), np.uint64)
    for part in parts:
        x += np.ascontiguousarray(part).view(np.uint64)
        x += np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            x ^= x >> np.uint64(shift)
            x *= np.uint64(factor)
    return x


class CountedInputs:
    """The records of all files that were read for a stream."""

    def __init__(self, records: Iterable[FileRecord] = ()) -> None:
        self.records = list(records)

    @property
    def prints(self) -> list[Print]:
        """The files as they were."""
        return [record.print for record in self.records]

    def done(self, one: Print, tick: int) -> bool:
        """Whether a file was read before as it is now, and all its events are of ticks up to this one."""
        return any(record.print.digest == one.digest and record.last <= tick for record in self.records)

    def merge(self, found: list[FileRecord], tick: int, named: Collection[str] = ()) -> CountedInputs:
        """Return the ledger with the files as they are now; refuse one that lost or altered events counted before.

        ``tick`` is the last one that was released: of it and those before, what was counted stays as it was.
        ``named`` are the files and objects there are for this run.
        """
        there = [old for old in self.records if old.print.name in named or _is_there(old.print)]
        _refuse_copies(there, found)  # one that is gone was moved, not copied
        merged = []
        for record in found:
            before = self._same_file(record.print)
            counted = {} if before is None else {t: was for t, was in before.ticks.items() if t <= tick}
            for number, was in counted.items():
                now = record.ticks.get(number, (0, 0))
                more = before is not None and now[0] > was[0] and grown_from(record.print, before.print)
                if now != was and not more:
                    raise _altered(record.print.name)
            later = {t: now for t, now in record.ticks.items() if t > tick}
            dropped = record.dropped + _not_counted(record, counted, tick)
            merged.append(FileRecord(record.print, counted | later, dropped))
        replaced = [before for record in found if (before := self._same_file(record.print)) is not None]
        return CountedInputs([record for record in self.records if record not in replaced] + merged)

    def _same_file(self, one: Print) -> FileRecord | None:
        by_digest = [record for record in self.records if record.print.digest == one.digest]
        return by_digest[0] if by_digest else self.named(one.name)

    def named(self, name: str) -> FileRecord | None:
        """Return the record of the file or object of a name, if there is one."""
        return next((record for record in self.records if record.print.name == name), None)

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return the ledger as plain data and arrays."""
        files = [
            [p.name, p.size, p.changed, p.digest, len(r.ticks)] + ([p.version] if p.is_object else [])
            for r in self.records
            for p in [r.print]
        ]
        entries = [(tick, *of) for record in self.records for tick, of in record.ticks.items()]
        columns = list(zip(*entries, strict=True)) or [(), (), ()]
        kinds = (("tick", np.int64), ("count", np.int64), ("sum", np.uint64))
        meta = {"files": files, "dropped": [dict(record.dropped) for record in self.records]}
        return meta, {n: np.array(c, dtype=k) for (n, k), c in zip(kinds, columns, strict=True)}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: Arrays) -> CountedInputs:
        """Return the ledger that `to_state` described."""
        entries = zip(*(arrays[name].tolist() for name in ("tick", "count", "sum")), strict=True)
        try:
            files = meta["files"]
            dropped = meta.get("dropped", [{}] * len(files))  # a state of 0.1.0 does not say
            return cls(
                FileRecord(
                    Print(name, size, changed, digest, *version),
                    {tick: (count, total) for tick, count, total in (next(entries) for _ in range(number))},
                    Counter(rows),
                )
                for (name, size, changed, digest, number, *version), rows in zip(files, dropped, strict=True)
            )
        except (KeyError, TypeError, ValueError, RuntimeError):
            raise StateError("the ledger of input files in the state folder is damaged. Restore it.") from None


def _not_counted(record: FileRecord, counted: dict[int, tuple[int, int]], tick: int) -> Counter[str]:
    """Return how many events of a file come too late to be counted, or are of before the first tick."""
    past = {t: number - counted.get(t, (0, 0))[0] for t, (number, _) in record.ticks.items() if t <= tick}
    before = sum(number for t, number in past.items() if t < 1)
    return Counter(before=before, late=sum(past.values()) - before)


def _altered(name: str) -> StateError:
    return StateError(
        f"{name} has changed, and not only at its end: events of released ticks are gone from it, altered or more. "
        "Those that now have the time of a later tick would count twice. Put the file back as it was, with new events "
        "at its end or in a file of their own. (If no event has another time than before, save it under a new name: "
        "released ticks stand as they are.)"
    )


def _is_there(one: Print) -> bool:
    """Whether a file is there. An object that is not named any more is not read again, wherever it is."""
    return not one.is_object and one.path.exists()


def _refuse_copies(there: list[FileRecord], found: list[FileRecord]) -> None:
    """Refuse two files with the same content, unless they hold no event (days without any look alike).

    A file of another format, or compressed, that holds the very same events is a copy too; with few events it may be
    chance.
    """
    seen: dict[Any, str] = {key: record.print.name for record in there for key in _identities(record)}
    for record in found:
        for key in _identities(record):
            before = seen.setdefault(key, record.print.name)
            if before != record.print.name:
                raise InputError(
                    f"{record.print.name} holds the same as {before}, and its events would count twice: name one of "
                    "them."
                )


def _identities(record: FileRecord) -> list[Any]:
    """Return what a copy of a file shares with it: the bytes, or at least the events."""
    events = sum(count for count, _ in record.ticks.values())
    bytes_alike = [record.print.digest] if events else []
    return bytes_alike + ([frozenset(record.ticks.items())] if events >= _NO_CHANCE else [])
