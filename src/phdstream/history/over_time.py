"""Counts of some areas at some ticks, what changed from tick to tick, and how fast. Public.

**Intervals of changes.** The errors of two ticks have much in common, and how much depends on the method and on the
place. So nothing is assumed of it: if two intervals each hold their true count with probability ``1 - a/2``, then both
do with at least ``1 - a`` (the union bound), and then the true change lies between the differences of their opposite
ends. Such an interval is as a rule too wide, never too narrow for that reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from phdstream.arrays import Floats
from phdstream.release import Counts
from phdstream.release.counts import COLUMNS

__all__ = ["OverTime", "changes_between", "each_side"]


@dataclass(frozen=True)
class OverTime:
    """Answers for ticks (rows) and areas (columns), by the names of their columns in tables."""

    columns: dict[str, Floats]

    @classmethod
    def of(cls, counts: list[Counts]) -> OverTime:
        """Return the answers to the same questions at some ticks."""
        return cls({name: np.stack([getattr(one, name) for one in counts]) for name in COLUMNS})

    def per(self, times: Floats) -> OverTime:
        """Return the answers divided by a length of time for each tick."""
        return OverTime({name: values / times[:, None] for name, values in self.columns.items()})

    def flat(self) -> dict[str, Any]:
        """Return the columns of a table: all areas of the first tick, then of the next."""
        return {name: values.ravel() for name, values in self.columns.items()}


def each_side(confidence: float) -> float:
    """Return the confidence that two intervals must have each, for their difference to have one.

    >>> each_side(0.95)
    0.975
    """
    return (1 + confidence) / 2


def changes_between(counts: OverTime) -> OverTime:
    """Return what changed since the tick before, for all ticks but the first, given counts at `each_side`.

    >>> rows = np.array([[10.0], [15.0]])
    >>> found = changes_between(OverTime({"value": rows, "low": rows - 2, "high": rows + 3}))
    >>> {name: values.item() for name, values in found.columns.items()}
    {'value': 5.0, 'low': 0.0, 'high': 10.0}
    """
    value, low, high = (counts.columns[name] for name in ("value", "low", "high"))
    return OverTime({"value": value[1:] - value[:-1], "low": low[1:] - high[:-1], "high": high[1:] - low[:-1]})
