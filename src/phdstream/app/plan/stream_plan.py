"""A stream that might be, and what it could be traded for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from phdstream.errors import InputError, check_whole
from phdstream.privacy import Budget, Unit, User, unit_from_dict

__all__ = ["StreamPlan", "alternatives", "ladder", "parse_unit"]

_STEPS = (0.1, 0.5, 1.0, 2.0, 10.0)
"""How many times the planned ε is tried, too."""


@dataclass(frozen=True)
class StreamPlan:
    """How much privacy, for whom, how many events a tick, and how many ticks.

    ``target`` is the relative error that is good enough, ``area`` the share of the domain of which counts should be
    that good.
    """

    epsilon: float
    unit: Unit
    events_per_tick: int
    ticks: int
    deletes: bool = False
    window: int | None = None
    fanout: int = 2
    depth: int = 20
    target: float = 0.1
    area: float = 0.001

    def __post_init__(self) -> None:
        check_whole("events_per_tick", self.events_per_tick)
        check_whole("ticks", self.ticks)
        if self.window is not None:
            check_whole("window", self.window)
        if not 0 < self.target < 1:
            raise InputError(f"target is a relative error strictly between 0 and 1, not {self.target!r}.")
        if not 0 < self.area <= 1:
            raise InputError(f"area is a share of the domain, above 0 and at most 1, not {self.area!r}.")
        _ = self.for_one_event  # an ε that cannot be is refused here, as it was given

    @property
    def present(self) -> int:
        """How many points there are at the end; of a stream with deletes half of those that came."""
        stay = self.events_per_tick * min(self.ticks, self.window or self.ticks)
        return max(1, stay // 2) if self.deletes and self.window is None else stay

    @property
    def budget(self) -> Budget:
        """What an insert and a delete may cost by the paper's method."""
        return Budget.solve(self.epsilon, self.unit, deletes=self.deletes and self.window is None)

    @property
    def for_one_event(self) -> float:
        """What an event may cost by tracking."""
        return Budget.per_event(self.epsilon, self.unit, deletes=self.deletes and self.window is None).count


def alternatives(plan: StreamPlan) -> dict[str, StreamPlan]:
    """Return the plan and what it could be traded for: ε, the length of ticks, a window."""
    longer = replace(plan, events_per_tick=plan.events_per_tick * 4, ticks=max(1, plan.ticks // 4))
    if plan.window is not None:
        longer = replace(longer, window=max(1, plan.window // 4))
    others = {
        "as planned": plan,
        "half of ε": replace(plan, epsilon=plan.epsilon / 2),
        "twice ε": replace(plan, epsilon=plan.epsilon * 2),
        "ticks four times as long": longer,
        "four times the events": replace(plan, events_per_tick=plan.events_per_tick * 4),
    }
    if plan.window is None and plan.ticks > 7:
        others["records that expire after 7 ticks"] = replace(plan, window=7)
    return others


def ladder(plan: StreamPlan) -> list[StreamPlan]:
    """Return the plan with a tenth of its ε up to ten times as much.

    >>> from phdstream.privacy import Event
    >>> [rung.epsilon for rung in ladder(StreamPlan(1.0, Event(), 1000, 10))]
    [0.1, 0.5, 1.0, 2.0, 10.0]
    """
    return [replace(plan, epsilon=plan.epsilon * step) for step in _STEPS]


def parse_unit(text: str) -> Unit:
    """Return the unit that a word names.

    >>> parse_unit("user:4,2")
    User(inserts=4, deletes=2)
    """
    kind, _, numbers = text.partition(":")
    if kind != "user":
        return unit_from_dict({"type": text})
    try:
        inserts, deletes = (int(number) for number in numbers.split(","))
    except ValueError:
        raise InputError(f"write a user unit as user:INSERTS,DELETES, such as user:4,4, not {text!r}.") from None
    return User(inserts, deletes)
