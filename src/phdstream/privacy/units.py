"""The unit of privacy: to whom ε is promised.

Differential privacy compares two worlds that differ in one *unit*. What a unit is, is for the
custodian to say; the same ε means very different things for one check-in and for one person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from phdstream.errors import BudgetError, did_you_mean, shown

__all__ = ["Event", "Record", "Unit", "User", "unit_from_dict"]


_MOST = 10**9
"""No user's bound is higher: what is left of any ε for one event would be nothing."""


@runtime_checkable
class Unit(Protocol):
    """At most how many inserts and deletes one unit has over the whole stream."""

    @property
    def guarantee(self) -> str:
        """The guarantee in plain English."""
        ...

    def worst_cases(self) -> tuple[tuple[int, int], ...]:
        """Every maximal pair (inserts, deletes) that one unit can have."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The unit as plain data, for state and manifest."""
        ...


@dataclass(frozen=True)
class Event:
    """One event: a single appearance or a single disappearance.

    An observer of everything ever published can hardly tell whether any one event happened.
    A person behind k events is protected k times more weakly.
    """

    @property
    def guarantee(self) -> str:
        """The guarantee in plain English."""
        return "each single event (one appearance or one disappearance)"

    def worst_cases(self) -> tuple[tuple[int, int], ...]:
        """An event is one insert or one delete, never both."""
        return ((1, 0), (0, 1))

    def to_dict(self) -> dict[str, Any]:
        """The unit as plain data."""
        return {"type": "event"}


@dataclass(frozen=True)
class Record:
    """One record: an appearance and, if there is one, its later disappearance.

    An observer of everything ever published can hardly tell whether the record was ever there.
    """

    @property
    def guarantee(self) -> str:
        """The guarantee in plain English."""
        return "each record (one appearance together with its later disappearance)"

    def worst_cases(self) -> tuple[tuple[int, int], ...]:
        """A record is one insert and one delete."""
        return ((1, 1),)

    def to_dict(self) -> dict[str, Any]:
        """The unit as plain data."""
        return {"type": "record"}


@dataclass(frozen=True)
class User:
    """One user: all events of a person, of which at most ``inserts`` and ``deletes`` are ever used.

    The bound is enforced, not assumed: what a user has beyond it is dropped before anything else
    sees it, over the whole life of the stream.

    >>> User(inserts=4, deletes=4).guarantee
    'each user, through all their events (at most 4 appearances and 4 disappearances are used, ever)'
    """

    inserts: int
    deletes: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (("inserts", self.inserts, 1), ("deletes", self.deletes, 0)):
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
                raise BudgetError(
                    f"User({name}=...) must be a whole number of at least {least}, and at most {_MOST}, "
                    f"not {shown(value)}."
                )

    @property
    def guarantee(self) -> str:
        """The guarantee in plain English."""
        come, gone = _number(self.inserts, "appearance"), _number(self.deletes, "disappearance")
        return f"each user, through all their events (at most {come} and {gone} are used, ever)"

    def worst_cases(self) -> tuple[tuple[int, int], ...]:
        """A user can have all the inserts and all the deletes of the bound."""
        return ((self.inserts, self.deletes),)

    def to_dict(self) -> dict[str, Any]:
        """The unit as plain data."""
        return {"type": "user", "inserts": self.inserts, "deletes": self.deletes}


def _number(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def unit_from_dict(spec: dict[str, Any]) -> Unit:
    """Return the unit that ``spec`` names.

    >>> unit_from_dict({"type": "user", "inserts": 2, "deletes": 1})
    User(inserts=2, deletes=1)
    """
    kinds: dict[str, type[Event] | type[Record] | type[User]] = {
        "event": Event,
        "record": Record,
        "user": User,
    }
    fields = dict(spec)
    name = fields.pop("type", None)
    if not isinstance(name, str) or name not in kinds:
        raise BudgetError(
            f"unknown unit of privacy {shown(name)}: {did_you_mean(name if isinstance(name, str) else '', kinds)}"
        )
    try:
        return kinds[name](**fields)
    except TypeError:
        raise BudgetError(
            f"unit '{name}' came with {sorted(fields) or 'nothing'}; a user unit takes inserts and deletes, "
            "the others nothing."
        ) from None
