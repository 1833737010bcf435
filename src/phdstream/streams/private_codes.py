"""Private events of one kind, as codes: a type of its own, which only a mechanism can count, and only by paying.

Whoever holds `PrivateCodes` learns nothing of them but by `spend`, which charges every event before it hands out exact
counts: so what is spent on what stands in the mechanism's code, and nowhere else. The public model of a method takes
arrays and noisy counts; it can neither be given this type (the type checker refuses) nor import it (an import contract
does).

A few events are kept as their codes. Many, if all finest nodes can be listed, as the number in each finest node: a
block of a hundred million events then takes no more room than the nodes do, in memory and in the saved state. Events
that an engine elsewhere holds (`phdstream.streams.engine`) are kept as the names of their parts; it counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains.prefixes import code_range
from phdstream.errors import StateError
from phdstream.privacy import Ledger
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.engine import ExactCounts, HeldEvents, engine_named
from phdstream.streams.state import Arrays

__all__ = ["ExactCounts", "PrivateCodes", "TickEvents", "held_parts"]

_MANY = 1 << 17
_MOST_BITS = 22
_BETWEEN = "\n"
"""Between an engine's name and a part's, in the saved state."""
_COLUMNS = ("codes", "finest", "numbers", "account", "held")


class PrivateCodes:
    """Events of one kind, and what each of them has spent of at most ``limit``. **Private.**

    >>> events = PrivateCodes(total_bits=3, limit=Fraction(1), codes=np.array([0, 1, 5]))
    >>> events.spend(0.5).within(np.array([1, 2, 3]))
    array([3, 2, 1])
    >>> events
    PrivateCodes(...)
    """

    def __init__(
        self, total_bits: int, limit: Fraction, codes: Ints | None = None, held: Sequence[HeldEvents] = ()
    ) -> None:
        self._bits, self._ledger = total_bits, Ledger(limit)
        self._codes: list[Ints] = []
        self._held: list[HeldEvents] = [events for events in held if len(events)]
        self._waiting = 0
        self._finest: Ints | None = None
        self._exact: ExactCounts | None = None
        if codes is not None:
            self._put(codes)

    def __repr__(self) -> str:
        return "PrivateCodes(...)"

    def _put(self, codes: Ints) -> None:
        self._exact = None
        self._codes.append(codes)
        self._waiting += codes.size
        if self._waiting > _MANY and self._bits <= _MOST_BITS:
            self._put_finest(np.bincount(np.concatenate(self._codes), minlength=1 << self._bits))
            self._codes, self._waiting = [], 0

    def _put_finest(self, numbers: Ints) -> None:
        self._exact = None
        self._finest = numbers if self._finest is None else self._finest + numbers

    def absorb(self, other: PrivateCodes) -> None:
        """Take over all events of another set, which is empty afterwards: an event is always in one set only."""
        if other is self or other._bits != self._bits:
            raise StateError("these events cannot be put together: a bug, please report it.")
        self._ledger.join(other._ledger)
        for codes in other._codes:
            self._put(codes)
        if other._finest is not None:
            self._put_finest(other._finest)
        if other._held:
            self._exact, self._held = None, self._held + other._held
        other._codes, other._held, other._waiting, other._finest, other._exact = [], [], 0, None, None

    def spend(self, epsilon: float) -> ExactCounts:
        """Charge every event ``epsilon``, and return the exact counts, to be released with noise that is worth it."""
        self._ledger.charge(epsilon)
        if self._exact is None:  # kept while no events come: they may be counted several times
            counts: ExactCounts = CodeCounts(self._all_codes(), self._bits)
            if self._finest is not None:
                counts = _Sum([counts, _FinestCounts(self._finest, self._bits)])
            self._exact = counts if not self._held else _Sum([counts, *self._counts_elsewhere()])
        return self._exact

    def _counts_elsewhere(self) -> list[ExactCounts]:
        """Return exact counts of the events that engines hold: each is asked once for all its parts."""
        names = dict.fromkeys(held.engine for held in self._held)
        parts = {name: [part for held in self._held if held.engine == name for part in held.parts] for name in names}
        return [engine_named(name).counts(parts[name], self._bits) for name in names]

    def _all_codes(self) -> Ints:
        return np.concatenate(self._codes) if self._codes else np.zeros(0, np.int64)

    def to_arrays(self) -> Arrays:
        """Return the events, and what they have spent, as plain arrays. **Private.**"""
        nodes = np.zeros(0, np.int64) if self._finest is None else np.flatnonzero(self._finest)
        numbers = nodes if self._finest is None else self._finest[nodes]
        account = np.array([str(self._ledger.limit), str(self._ledger.spent)])
        held = np.array([f"{part.engine}{_BETWEEN}{name}" for part in self._held for name in part.parts], dtype=np.str_)
        return {"codes": self._all_codes(), "finest": nodes, "numbers": numbers, "account": account, "held": held}

    @classmethod
    def from_arrays(cls, total_bits: int, arrays: Arrays) -> PrivateCodes:
        """Return the events that `to_arrays` described."""
        limit, spent = (Fraction(str(amount)) for amount in arrays["account"])
        events = cls(total_bits, limit)
        events._ledger.spent = spent
        if arrays["finest"].size:
            numbers = np.zeros(1 << total_bits, np.int64)
            numbers[arrays["finest"]] = arrays["numbers"]
            events._put_finest(numbers)
        events._put(arrays["codes"])
        named = [str(name).split(_BETWEEN) for name in arrays["held"]] if "held" in arrays else []
        events._held = [HeldEvents(engine, (part,)) for engine, part in named]
        return events


class _FinestCounts:
    """Exact counts of events that are known by their finest nodes."""

    def __init__(self, finest: Ints, total_bits: int) -> None:
        self._bits, self._upto = total_bits, np.concatenate([np.zeros(1, np.int64), np.cumsum(finest)])

    def within(self, nodes: Ints, bits: int | None = None) -> Ints:
        first, past = code_range(nodes, self._bits, bits)
        counts: Ints = self._upto[past] - self._upto[first]
        return counts


class _Sum:
    """Exact counts of several sets of events together."""

    def __init__(self, sets: list[ExactCounts]) -> None:
        self._sets = sets

    def within(self, nodes: Ints, bits: int | None = None) -> Ints:
        first, *others = (counts.within(nodes, bits) for counts in self._sets)
        for more in others:
            first = first + more
        return first


class TickEvents(NamedTuple):
    """What a tick brings: the events that appear, and those that disappear. Private."""

    inserts: PrivateCodes
    deletes: PrivateCodes

    @classmethod
    def many_to_arrays(cls, ticks: list[TickEvents]) -> Arrays:
        """Return ticks of events as a few plain arrays, however many ticks there are. **Private.**"""
        arrays: Arrays = {}
        for kind in cls._fields:
            parts = [getattr(tick, kind).to_arrays() for tick in ticks]
            for name in _COLUMNS:
                columns = [part[name] for part in parts]
                arrays[f"{kind}.{name}"] = np.concatenate(columns) if columns else np.zeros(0, np.int64)
                arrays[f"{kind}.{name}_sizes"] = np.array([column.size for column in columns], dtype=np.int64)
        return arrays

    @classmethod
    def many_from_arrays(cls, total_bits: int, arrays: Arrays) -> list[TickEvents]:
        """Return the ticks of events that `many_to_arrays` described."""
        kinds = []
        for kind in cls._fields:
            parts = {
                name: np.split(arrays[f"{kind}.{name}"], np.cumsum(arrays[f"{kind}.{name}_sizes"])[:-1])
                for name in _COLUMNS
                if f"{kind}.{name}" in arrays
            }
            ticks = range(arrays[f"{kind}.codes_sizes"].size)
            kinds.append(
                [PrivateCodes.from_arrays(total_bits, {name: parts[name][i] for name in parts}) for i in ticks]
            )
        return [cls(*tick) for tick in zip(*kinds, strict=True)]


def held_parts(arrays: Arrays, engine: str) -> set[str]:
    """Return the parts of an engine that a saved state still needs."""
    names = [str(name).split(_BETWEEN) for key in arrays if key.endswith("held") for name in arrays[key]]
    return {part for holder, part in names if holder == engine}
