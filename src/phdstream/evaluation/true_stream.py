"""The true data of an experiment, tick by tick: what appears, what vanishes, what is there. Private."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.baselines.releaser import encoded
from phdstream.streams.intake import EncodedEvents

__all__ = ["LivePoints", "Moment", "TrueStream"]


@dataclass(frozen=True)
class Moment:
    """One tick of a trial: the events to hand to a method and, when it is to be measured, the true points.

    Events are points, or placed on the domain's tree already.
    """

    tick: int
    inserts: Floats | EncodedEvents
    deletes: Floats | EncodedEvents
    live: Floats | None


class LivePoints:
    """The multiset of points that are there. A delete of a point that is not there deletes nothing.

    >>> live = LivePoints(np.array([[0.1, 0.1], [0.2, 0.2]]))
    >>> live.update(np.array([0, 0, 1]), np.array([0]))
    >>> live.points().tolist()
    [[0.1, 0.1], [0.2, 0.2]]
    """

    def __init__(self, places: Floats) -> None:
        self._places, self._counts = places, np.zeros(len(places), dtype=np.int64)

    def update(self, come: Ints, gone: Ints) -> None:
        """Add and remove points, named by their place."""
        np.add.at(self._counts, come, 1)
        np.subtract.at(self._counts, gone, 1)
        self._counts[gone] = np.maximum(self._counts[gone], 0)

    @property
    def total(self) -> int:
        """How many points are there."""
        return int(self._counts.sum())

    def points(self) -> Floats:
        """Return the points, those that are there more than once repeated."""
        return self._places[self.ids()]

    def ids(self) -> Ints:
        """Return the same by the numbers of their places."""
        return np.repeat(np.arange(self._counts.size), self._counts)


@dataclass(frozen=True)
class TrueStream:
    """Events in order of their tick: which of the distinct ``places``, and whether it appears (+1) or vanishes (-1).

    ``ends[t]`` is the number of events up to tick t; ticks are 1, 2, ..., ``ticks``.
    """

    places: Floats
    place: Ints
    sign: Ints
    ends: Ints

    @classmethod
    def from_events(cls, tick: Ints, points: Floats, sign: Ints, ticks: int) -> TrueStream:
        """Return the events of ticks 1 to ``ticks`` in order, keeping the order within a tick."""
        order = np.argsort(tick, kind="stable")
        order = order[(tick[order] >= 1) & (tick[order] <= ticks)]
        places, place = np.unique(points[order], axis=0, return_inverse=True)
        ends = np.searchsorted(tick[order], np.arange(ticks + 1), side="right")
        return cls(places, place.reshape(-1).astype(np.int64), sign[order], ends)

    @property
    def ticks(self) -> int:
        """The number of ticks."""
        return self.ends.size - 1

    def changes(self, tick: int) -> tuple[Ints, Ints]:
        """Return the places of a tick's inserts, and of its deletes."""
        events = slice(self.ends[tick - 1], self.ends[tick])
        place, sign = self.place[events], self.sign[events]
        return place[sign > 0], place[sign < 0]

    def totals(self) -> tuple[Ints, Ints, Ints]:
        """Return for ticks 0, 1, ...: how many points came so far, how many went, how many are there."""
        signs = np.concatenate([[0], self.sign])
        come, gone = (np.cumsum(signs == way)[self.ends] for way in (1, -1))
        live, there = LivePoints(self.places), [0]
        for tick in range(1, self.ticks + 1):
            live.update(*self.changes(tick))
            there.append(live.total)
        return come, gone, np.array(there)

    def moments(self, start: int, every: int, merge: bool = False, codes: Ints | None = None) -> Iterator[Moment]:
        """Yield the paper's modified stream: the points live at ``start`` as one tick, then tick after tick.

        Measured are the start, every so many ticks after it, and the last; with ``merge`` the ticks up to each
        measured one are handed over together. With ``codes``, one for each place and -1 for one outside the domain,
        events come as codes, so that not every trial has to find them anew.
        """
        live, none = LivePoints(self.places), np.zeros(0, np.int64)
        for tick in range(1, start + 1):
            live.update(*self.changes(tick))
        yield Moment(start, self._events(live.ids(), codes), self._events(none, codes), live.points())
        waiting: list[tuple[Ints, Ints]] = []
        for tick in range(start + 1, self.ticks + 1):
            waiting.append(self.changes(tick))
            live.update(*waiting[-1])
            measured = (tick - start) % every == 0 or tick == self.ticks
            if measured or not merge:
                come, gone = (self._events(np.concatenate(ids), codes) for ids in zip(*waiting, strict=True))
                yield Moment(tick, come, gone, live.points() if measured else None)
                waiting = []

    def _events(self, ids: Ints, codes: Ints | None) -> Floats | EncodedEvents:
        if codes is None:
            return self.places[ids]
        found = codes[ids]
        return encoded(found[found >= 0])
