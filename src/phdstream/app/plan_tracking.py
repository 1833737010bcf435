"""What to expect of tracking, the default method, before any data is touched: by trying it out on an invented city.

Its points crowd around some forty places of very different size, with a tenth of them anywhere. They are tracked with
seeded noise, and how far the counts of squares around points are off says which area is large enough. Arithmetic, as
for the paper's method (`phdstream.app.plan`), does not do: what tracking counts depends on what it has learnt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.app.plan import Plan, alternatives
from phdstream.arrays import Floats
from phdstream.domains.box import Box
from phdstream.privacy import Budget, Event, Simulation
from phdstream.release import Release
from phdstream.streams.tracking import TrackingStream

__all__ = ["Rehearsal", "explain_rehearsal", "rehearse"]

_GRID = 1024
_SIDES = (512, 362, 256, 181, 128, 91, 64, 45, 32, 23, 16, 11, 8, 6, 4)
"""The sides of the squares asked for, in cells of a grid by which they can be counted quickly."""
_SQUARES, _MOST_TICKS, _MOST_POINTS = 300, 30, 1_000_000
"""Squares of each size; ticks and points tried at the most: of longer streams fewer and longer ticks are tried."""
_PLACES, _ANYWHERE = 40, 0.1


@dataclass(frozen=True)
class Rehearsal:
    """How a plan went: the relative error of the total, cells at the end, and the smallest share of the area for which
    half of all counts were off by no more than the target (1 if there is none). ``warning`` is what the last release
    said of its own use.
    """

    total_error: float
    cells: int
    smallest_share: float
    warning: str = ""


def rehearse(plan: Plan) -> Rehearsal:
    """Try a plan on an invented city.

    >>> better, worse = (rehearse(Plan(e, Event(), events_per_tick=500, ticks=5)) for e in (4.0, 0.1))
    >>> better.smallest_share < worse.smallest_share
    True
    """
    ticks = min(plan.ticks, _MOST_TICKS)
    per_tick = max(1, min(plan.events_per_tick * plan.ticks, _MOST_POINTS) // ticks)
    window = None if plan.window is None else max(1, plan.window * ticks // plan.ticks)
    deletes = plan.deletes and window is None
    one_event = Budget.per_event(plan.epsilon, plan.unit, deletes=deletes).count
    stream = TrackingStream(
        Box([(0, 1), (0, 1)]), one_event, Event(), window=window, insert_only=not deletes, noise=Simulation(seed=1)
    )
    rng, live = np.random.default_rng(1), np.zeros((0, 2))
    for _ in range(ticks):
        come = _city(rng, per_tick)
        gone, live = (live[: per_tick // 2], live[per_tick // 2 :]) if deletes else (None, live)
        release = stream.update(come, gone)
        live = np.concatenate([live, come])[-per_tick * (window or ticks) :]
    total_error = abs(release.total - len(live)) / len(live)
    smallest = _smallest(release, live, plan, rng)
    return Rehearsal(total_error, release.leaves.size, smallest, release.usefulness.warning)


def _city(rng: np.random.Generator, number: int) -> Floats:
    """Return points around fixed places, the k-th of which has a share of 1/k, and some anywhere."""
    places = np.random.default_rng(7)
    centre, width = places.random((_PLACES, 2)), 0.004 * np.exp(places.normal(0.5, 1.0, _PLACES))
    share = 1 / np.arange(1, _PLACES + 1)
    which = rng.choice(_PLACES, number, p=share / share.sum())
    points = np.clip(rng.normal(centre[which], width[which, None]), 0, 1)
    anywhere = rng.random(number) < _ANYWHERE
    points[anywhere] = rng.random((int(anywhere.sum()), 2))
    return points


def _smallest(release: Release, live: Floats, plan: Plan, rng: np.random.Generator) -> float:
    """Return the share of the smallest squares of which half are counted well enough; they lie around points."""
    counts = np.histogram2d(live[:, 0], live[:, 1], bins=_GRID, range=((0, 1), (0, 1)))[0]
    table = np.pad(counts.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    smallest = 1.0
    for side in _SIDES:
        around = live[rng.integers(0, len(live), _SQUARES)]
        low = np.clip((around * _GRID).astype(int) - rng.integers(0, side, (_SQUARES, 2)), 0, _GRID - side)
        high = low + side
        true = table[high[:, 0], high[:, 1]] - table[low[:, 0], high[:, 1]] - table[high[:, 0], low[:, 1]]
        true += table[low[:, 0], low[:, 1]]
        counted = release.count(np.concatenate([low, high], axis=1) / _GRID).value
        if np.median(np.abs(counted - true) / np.maximum(true, 1)) > plan.target:
            break
        smallest = (side / _GRID) ** 2
    return smallest


def explain_rehearsal(plan: Plan) -> str:
    """Return a plan and its alternatives, tried out, in words and a table."""
    rows = [(name, rehearse(other)) for name, other in alternatives(plan).items()]
    width = max(len(name) for name, _ in rows)
    lines = [
        f"{plan.epsilon:g}-differential privacy for {plan.unit.guarantee}, by tracking (the default method).",
        f"{plan.events_per_tick:,} events a tick for {plan.ticks:,} ticks: {plan.present:,} points at the end.",
        "",
        f"{'':{width}}   error of    cells at    smallest area good to {plan.target:.0%}",
        f"{'':{width}}   the total   the end     (share of the domain)",
    ]
    for name, rehearsal in rows:
        share = "none" if rehearsal.smallest_share >= 1 else f"{rehearsal.smallest_share:.3%}"
        lines.append(f"{name:{width}}   {rehearsal.total_error:8.2%}   {rehearsal.cells:8,}   {share:>12}")
    if warning := rows[0][1].warning:
        lines += ["", f"Warning: {warning}"]
    lines += [
        "",
        "Tried out on an invented city, at squares around its points, half of which are that good. No data was looked",
        "at. Yours will differ: more even places do better. (--method phdstream: the paper's method, by arithmetic.)",
    ]
    return "\n".join(lines)
