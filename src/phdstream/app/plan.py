"""What to expect before any data is touched: noise per cell, the smallest area worth asking about, and how
settings trade off.

Everything here is arithmetic on public numbers, for points spread evenly over the domain and streams of
Simple counters. Real data is uneven: where it is dense expect finer cells, and where it is thin coarser ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from phdstream.errors import InputError, check_whole
from phdstream.privacy import Budget, Unit, User, calibrate_split, noise_variance, scale_for, unit_from_dict

__all__ = ["Expectation", "Plan", "alternatives", "expect", "explain", "parse_unit"]


@dataclass(frozen=True)
class Plan:
    """A stream that might be: how much privacy, for whom, how many events a tick, and how many ticks."""

    epsilon: float
    unit: Unit
    events_per_tick: int
    ticks: int
    deletes: bool = False
    window: int | None = None
    fanout: int = 2
    depth: int = 20
    target: float = 0.1

    def __post_init__(self) -> None:
        check_whole("events_per_tick", self.events_per_tick)
        check_whole("ticks", self.ticks)
        if not 0 < self.target < 1:
            raise InputError(f"target is a relative error strictly between 0 and 1, not {self.target!r}.")

    @property
    def present(self) -> int:
        """How many points there are at the end."""
        return self.events_per_tick * min(self.ticks, self.window or self.ticks)

    @property
    def budget(self) -> Budget:
        """What an insert and a delete may cost."""
        return Budget.solve(self.epsilon, self.unit, deletes=self.deletes and self.window is None)


@dataclass(frozen=True)
class Expectation:
    """What a plan leads to.

    - ``first_noise``: the standard deviation of a cell's count after one tick;
    - ``last_noise``: the same at the end, when the cell was counted in every tick (that of a window's length,
      with one);
    - ``cells``: about how many cells the partition has at the end;
    - ``smallest_share``: the smallest share of the domain's area whose count is good to the target (standard error over
      count), or 1 if there is none.
    """

    first_noise: float
    last_noise: float
    cells: int
    smallest_share: float


def expect(plan: Plan) -> Expectation:
    """Return what to expect of a plan.

    A cell at level ℓ is split while its count is above ``ℓ·δ``, so with N points spread evenly the tree stops
    at the first level where ``N/β^ℓ`` is not. A rectangle with share A of the area holds ``A·cells`` cells,
    each with its own noise of variance ``v·ticks``; its count ``N·A`` is good to r when
    ``sqrt(A·cells·v·ticks) <= r·N·A``.

    >>> from phdstream.privacy import Event
    >>> better = expect(Plan(epsilon=2.0, unit=Event(), events_per_tick=1000, ticks=30))
    >>> worse = expect(Plan(epsilon=0.5, unit=Event(), events_per_tick=1000, ticks=30))
    >>> better.smallest_share < worse.smallest_share
    True
    """
    variance = float(noise_variance(scale_for(plan.budget.count)))
    counted = min(plan.ticks, plan.window or plan.ticks)
    cells = _cells(plan)
    enough = cells * variance * counted / (plan.target * plan.present) ** 2
    share = min(1.0, max(enough, 1 / cells))
    return Expectation(math.sqrt(variance), math.sqrt(variance * counted), cells, share)


def _cells(plan: Plan) -> int:
    rule = calibrate_split(plan.budget.tree, plan.fanout)
    levels = np.arange(plan.depth + 1)
    stops = plan.present / float(plan.fanout) ** levels <= levels * rule.bias
    return int(plan.fanout ** int(np.argmax(stops) if stops.any() else plan.depth))


def alternatives(plan: Plan) -> dict[str, Plan]:
    """Return the plan and what it could be traded for: ε, the length of ticks, a window."""
    longer = replace(plan, events_per_tick=plan.events_per_tick * 4, ticks=max(1, plan.ticks // 4))
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


def explain(plan: Plan) -> str:
    """Return a plan and its alternatives in words and a table."""
    rows = [(name, expect(other)) for name, other in alternatives(plan).items()]
    width = max(len(name) for name, _ in rows)
    lines = [
        f"{plan.epsilon:g}-differential privacy for {plan.unit.guarantee}, by the paper's method (PHDStream).",
        f"{plan.events_per_tick:,} events a tick for {plan.ticks:,} ticks: {plan.present:,} points at the end.",
        "",
        f"{'':{width}}  noise of a cell (standard deviation)   about how    smallest area good to {plan.target:.0%}",
        f"{'':{width}}   after 1 tick       at the end         many cells   (share of the domain)",
    ]
    for name, e in rows:
        share = "none" if e.smallest_share >= 1 else f"{e.smallest_share:.3%}"
        lines.append(f"{name:{width}}   {e.first_noise:10.1f}   {e.last_noise:14.1f}   {e.cells:16,}   {share:>12}")
    lines += [
        "",
        "For points spread evenly; crowded places do better and empty ones worse. No data was looked at.",
    ]
    return "\n".join(lines)
