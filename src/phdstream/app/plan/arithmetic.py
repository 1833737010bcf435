"""What to expect of the paper's method, by arithmetic on public numbers: noise, cells, the smallest area worth asking.

For points spread evenly over the domain and streams of Simple counters. Real data is uneven: where it is dense expect
finer cells, and where it is thin coarser ones. The default method is tried out instead: `phdstream.app.plan.rehearsal`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from phdstream.app.plan.stream_plan import StreamPlan, alternatives
from phdstream.privacy import calibrate_split, noise_variance, scale_for

__all__ = ["Expectation", "expect", "explain"]


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


def expect(plan: StreamPlan) -> Expectation:
    """Return what to expect of a plan.

    A cell at level ℓ is split while its count is above ``ℓ·δ``, so with N points spread evenly the tree stops
    at the first level where ``N/β^ℓ`` is not. A rectangle with share A of the area holds ``A·cells`` cells,
    each with its own noise of variance ``v·ticks``; its count ``N·A`` is good to r when
    ``sqrt(A·cells·v·ticks) <= r·N·A``.

    >>> from phdstream.privacy import Event
    >>> better = expect(StreamPlan(epsilon=2.0, unit=Event(), events_per_tick=1000, ticks=30))
    >>> worse = expect(StreamPlan(epsilon=0.5, unit=Event(), events_per_tick=1000, ticks=30))
    >>> better.smallest_share < worse.smallest_share
    True
    """
    variance = float(noise_variance(scale_for(plan.budget.count)))
    counted = min(plan.ticks, plan.window or plan.ticks)
    cells = _cells(plan)
    enough = cells * variance * counted / (plan.target * plan.present) ** 2
    share = min(1.0, max(enough, 1 / cells))
    return Expectation(math.sqrt(variance), math.sqrt(variance * counted), cells, share)


def _cells(plan: StreamPlan) -> int:
    rule = calibrate_split(plan.budget.tree, plan.fanout)
    levels = np.arange(plan.depth + 1)
    stops = plan.present / float(plan.fanout) ** levels <= levels * rule.bias
    return int(plan.fanout ** int(np.argmax(stops) if stops.any() else plan.depth))


def explain(plan: StreamPlan) -> str:
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
