"""Which part of a product each level of its tree divides. Public, and fixed before any data is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from phdstream.errors import InputError, shown

__all__ = ["PLACE", "default_schedule", "read_schedule"]

PLACE = "place"
"""What schedules call the location."""


def default_schedule(depths: dict[str, int]) -> tuple[str, ...]:
    """Return the schedule unless another is given: parts in turn, two levels of the place to one of each attribute.

    So a node that is large in space is large in everything. It was chosen by measurement (docs/attributes.md).

    >>> default_schedule({"place": 5, "age": 2, "day": 1})
    ('place', 'place', 'age', 'day', 'place', 'place', 'age', 'place')
    """
    left, schedule = dict(depths), list[str]()
    while any(left.values()):
        for name in left:
            some = min(left[name], 2 if name == PLACE else 1)
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
