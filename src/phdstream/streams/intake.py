"""The private side's front door: events are checked, placed on the tree, and bounded per user.

Nothing here is published.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Ints
from phdstream.domains import Domain
from phdstream.errors import InputError
from phdstream.privacy import Budget, ContributionBound, Unit, User, UserIds, user_ids
from phdstream.streams.engine import HeldEvents
from phdstream.streams.private_codes import PrivateCodes, TickEvents

__all__ = ["EncodedEvents", "Intake", "PrivateTally"]

_LIVE_BITS = 16
_LOOKED_AT = 1000
"""How many points outside are tried with their coordinates swapped, each tick: enough to tell."""


@dataclass(frozen=True)
class EncodedEvents:
    """Events that are inside the domain and already placed on its tree: one code each, and one user if users matter.

    `Stream.update` takes them in place of points. Private.
    """

    codes: Ints = field(repr=False)
    users: UserIds = field(repr=False)

    def __len__(self) -> int:
        return int(self.codes.size)


@dataclass
class PrivateTally:
    """How many events were not used as they came, for the operator's eyes only. **Private: do not publish.**

    - ``outside``: not in the domain, NaN or infinite; counted nowhere;
    - ``swapped``: of those, how many would be inside with their two coordinates swapped (longitude and latitude?),
      in ticks where most would;
    - ``over_bound``: beyond what the unit of privacy lets one user contribute; counted nowhere;
    - ``unmatched_deletes``: deletes where nothing was left to delete (at least so many); counted like any
      other. They are not dropped: that would make one insert decide the fate of two events, which the promise
      to an event does not cover.
    """

    outside: int = 0
    swapped: int = 0
    over_bound: int = 0
    unmatched_deletes: int = 0

    def to_dict(self) -> dict[str, int]:
        """The tally as plain data, for private state."""
        return asdict(self)


class Intake:
    """Turns a tick's points into private codes, dropping what may not be counted.

    From here on an event may spend what ``budget`` gives an insert or a delete, and no more.
    """

    def __init__(self, domain: Domain, unit: Unit, deletes: bool, budget: Budget) -> None:
        self.domain, self.unit, self.deletes, self.budget = domain, unit, deletes, budget
        self.tally = PrivateTally()
        limits = (unit.inserts, unit.deletes) if isinstance(unit, User) else (0, 0)
        self._bounds = [ContributionBound(limit) for limit in limits]
        self._elsewhere: bool | None = None  # whether an engine bounds users, once a tick has come
        self._live = np.zeros(1 << min(_LIVE_BITS, domain.total_bits), dtype=np.int64)

    def admit(self, inserts: Any, deletes: Any, users: Any, delete_users: Any) -> TickEvents:
        """Return the inserts and deletes to count. Bad input is refused before anything changes."""
        bits, budget = self.domain.total_bits, self.budget
        if isinstance(inserts, HeldEvents):
            held = inserts, self._held_deletes(deletes)
            self._check_held(held)
            self._check_where(elsewhere=True)
            self._elsewhere = True
            return TickEvents(
                PrivateCodes(bits, budget.of_insert, held=held[:1]), PrivateCodes(bits, budget.of_delete, held=held[1:])
            )
        self._check_where(elsewhere=False)
        come, gone = self.codes(inserts, deletes, users, delete_users)
        self._elsewhere = False
        return TickEvents(PrivateCodes(bits, budget.of_insert, come), PrivateCodes(bits, budget.of_delete, gone))

    def _held_deletes(self, deletes: Any) -> HeldEvents:
        if deletes is not None and not isinstance(deletes, HeldEvents):
            raise InputError("inserts are held by an engine, and deletes are not: hand over both alike.")
        return (
            HeldEvents("", (), self.unit.deletes if isinstance(self.unit, User) else None)
            if deletes is None
            else deletes
        )

    def _check_held(self, held: tuple[HeldEvents, HeldEvents]) -> None:
        """Refuse deletes where there are none, and events that were not bounded as the unit of privacy asks."""
        if len(held[1]) and not self.deletes:
            raise InputError("this stream was declared without deletes (insert_only or window), but deletes came.")
        if isinstance(self.unit, User) and [events.bound for events in held] != [self.unit.inserts, self.unit.deletes]:
            raise InputError(
                "these events were not bounded per user as the unit of privacy asks: let the engine do it."
            )

    def _check_where(self, elsewhere: bool) -> None:
        """Refuse a change of who keeps the table of users: the other would give them their bound anew."""
        if isinstance(self.unit, User) and self._elsewhere not in (None, elsewhere):
            raise InputError(
                "users were bounded by another engine before, which knows what they used: go on with that."
            )
        self._elsewhere = elsewhere

    def codes(self, inserts: Any, deletes: Any, users: Any = None, delete_users: Any = None) -> tuple[Ints, Ints]:
        """Return the bare codes of what `admit` would return. **Private.**"""
        come, gone = (
            points if isinstance(points, EncodedEvents) else self.domain.points(points) for points in (inserts, deletes)
        )
        if len(gone) and not self.deletes:
            raise InputError("this stream was declared without deletes (insert_only or window), but deletes came.")
        users, delete_users = (
            points.users if isinstance(points, EncodedEvents) else named
            for points, named in ((come, users), (gone, delete_users))
        )
        whose = self._whose(users, len(come), "inserts"), self._whose(delete_users, len(gone), "deletes")
        if whose[0] and whose[1] and whose[0].kind != whose[1].kind:
            raise InputError(f"users of inserts are {whose[0].kind} and of deletes {whose[1].kind}: pass one form.")
        codes = self._codes(come, 0, whose[0]), self._codes(gone, 1, whose[1])
        if self.deletes:
            self._match(*codes)
        return codes

    def _whose(self, users: Any, events: int, what: str) -> UserIds | None:
        if not isinstance(self.unit, User):
            return None
        names = user_ids(users, events, what)
        for bound in self._bounds:
            bound.check(names)
        return names

    def _codes(self, points: NDArray[Any] | EncodedEvents, kind: int, users: UserIds | None) -> Ints:
        if isinstance(points, EncodedEvents):
            return self._bounded(points.codes, kind, users)
        codes, inside = self.domain.encode(points)
        if not inside.all():
            outside = np.flatnonzero(~inside)
            self.tally.outside += outside.size
            self.tally.swapped += self._swapped(points[outside[:_LOOKED_AT]])
            codes, users = codes[np.flatnonzero(inside)], None if users is None else users.filter(inside)
        return self._bounded(codes, kind, users)

    def _bounded(self, codes: Ints, kind: int, users: UserIds | None) -> Ints:
        """Return the codes of the events within their users' bounds."""
        if users is not None:
            keep = self._bounds[kind].admit(users)
            self.tally.over_bound += int((~keep).sum())
            codes = codes[keep]
        return codes

    def _swapped(self, outside: NDArray[Any]) -> int:
        place = self.domain.location
        if place.dimension != 2 or not len(outside):
            return 0
        swapped = place.encode(np.asarray(outside[:, 1::-1]))[1]
        return int(swapped.sum()) if swapped.mean() > 0.5 else 0  # a few would be chance

    def _match(self, inserts: Ints, deletes: Ints) -> None:
        """Count deletes where nothing is left, in coarse cells: memory stays small, and the count is a lower bound."""
        shift = max(0, self.domain.total_bits - _LIVE_BITS)
        if inserts.size + deletes.size < self._live.size:
            np.add.at(self._live, inserts >> shift, 1)
            np.subtract.at(self._live, deletes >> shift, 1)
            touched = deletes >> shift
        else:  # many: counting all cells at once is quicker than one event at a time
            for codes, sign in ((inserts, 1), (deletes, -1)):
                self._live += sign * np.bincount(codes >> shift, minlength=self._live.size)
            touched = np.arange(self._live.size)
        lacking = np.unique(touched[self._live[touched] < 0])
        self.tally.unmatched_deletes -= int(self._live[lacking].sum())
        self._live[lacking] = 0

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the private tables: users and what they have used, and the coarse live counts."""
        elsewhere = {} if self._elsewhere is None else {"elsewhere": np.array(self._elsewhere)}
        arrays = {"live": self._live} | elsewhere
        for name, bound in zip(("insert", "delete"), self._bounds, strict=True):
            arrays |= {f"{name}_{key}": value for key, value in bound.to_arrays().items()}
        return arrays

    def restore(self, arrays: dict[str, NDArray[Any]], tally: dict[str, int]) -> None:
        """Take the private tables back from `to_arrays`."""
        self._live, self.tally = np.array(arrays["live"]), PrivateTally(**tally)
        self._elsewhere = bool(arrays["elsewhere"]) if "elsewhere" in arrays else None
        for name, bound in zip(("insert", "delete"), self._bounds, strict=True):
            bound.restore({key: arrays[f"{name}_{key}"] for key in bound.to_arrays()})
