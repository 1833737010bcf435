"""Which part of a product each level of its tree divides. Public, and fixed before any data is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from phdstream.errors import InputError, shown

__all__ = ["PLACE", "default_schedule", "read_schedule"]

PLACE = "place"
"""What schedules call the location."""
_TURNS = 12
"""In how many turns the place is divided."""


def default_schedule(depths: dict[str, int]) -> tuple[str, ...]:
    """Return the schedule unless another is given: parts in turn, a twelfth of the place to a level of each attribute.

    What is divided early is told with little noise, what is divided late only where there are points enough. The upper
    levels of a large place hardly divide anything (people live in few of its parts), so the deeper it is, the more of
    its levels make a turn. Chosen by measurement (docs/attributes.md).

    >>> default_schedule({"place": 25, "age": 2, "day": 1})[:8]
    ('place', 'place', 'age', 'day', 'place', 'place', 'age', 'place')
    """
    left, schedule = dict(depths), list[str]()
    turn = max(1, round(depths[PLACE] / _TURNS))
    while any(left.values()):
        for name in left:
            some = min(left[name], turn if name == PLACE else 1)
            schedule += [name] * some
            left[name] -= some
    return tuple(schedule)


def read_schedule(schedule: Any, depths: dict[str, int]) -> tuple[str, ...]:
    """Return a schedule that names each part as often as it has levels, or say what is wrong with it.

    >>> read_schedule(["age", "place"], {"place": 1, "age": 1})
    ('age', 'place')
    """
    listed = list(schedule) if isinstance(schedule, Sequence) and not isinstance(schedule, str) else []
    if not listed or not all(isinstance(name, str) for name in listed) or Counter(listed) != Counter(depths):
        wanted = ", ".join(f"{levels} times '{name}'" for name, levels in depths.items())
        raise InputError(
            f"a schedule says which part each level divides: {wanted}, in any order; not {shown(schedule)}."
        )
    return tuple(listed)
