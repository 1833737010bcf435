"""What to expect of tracking, the default method, before any data is touched: by trying it out on an invented city.

Its points crowd around some forty places of very different size, with a tenth of them anywhere. They are tracked with
seeded noise, and how far the counts of squares are off says what a map is worth. Arithmetic, as for the paper's method
(`phdstream.app.plan.arithmetic`), does not do: what tracking counts depends on what it has learnt.

A large stream is tried at a smaller size with as much more ε, because what matters is the noise beside the counts:
N points at ε look like N/k points at k·ε (scale and ε can be exchanged: Hay et al., "Principled evaluation of
differentially private algorithms using DPBench", 2016). A long one is tried with fewer and longer ticks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phdstream.app.plan.stream_plan import StreamPlan
from phdstream.arrays import Floats
from phdstream.domains.box import Box
from phdstream.evaluation.counting import count_points
from phdstream.evaluation.queries import weighted_error
from phdstream.privacy import Event, Simulation
from phdstream.release import Release
from phdstream.streams.tracking import TrackingStream

__all__ = ["Rehearsal", "invented_city", "rehearse", "smallest_good", "square_errors"]

SIDES = tuple(2.0 ** (-i / 2) for i in range(2, 18))
"""The sides of the squares asked for, as shares of the domain's."""
_SQUARES, _MOMENTS, _SEEDS = 200, 3, 2
_MOST_TICKS, _MOST_POINTS, _MOST_EPSILON = 24, 50_000, 1e3
"""What is tried at the most; with such an ε noise is nothing beside the counts."""
_PLACES, _ANYWHERE = 40, 0.1


@dataclass(frozen=True)
class Rehearsal:
    """How a plan went, on average over some moments of its second half and two seeds.

    - ``total_error``: the relative error of the total;
    - ``cells``: how many cells there were at the end;
    - ``map_error``: the `weighted_error` of squares of the plan's area, anywhere; publishing nothing scores 1;
    - ``total_alone``: the same of the exact total, spread evenly;
    - ``area_error``: the median relative error of such squares around points;
    - ``smallest_share``: the smallest area (a share of the domain) that is good to the target: for half of the squares
      around points; 1 if there is none.
    """

    total_error: float
    cells: int
    map_error: float
    total_alone: float
    area_error: float
    smallest_share: float

    @property
    def verdict(self) -> str:
        """What the map is worth, if anything."""
        if self.map_error >= 1:
            return "worse than publishing nothing"
        return "no better than the total alone" if self.map_error >= self.total_alone else ""


def rehearse(plan: StreamPlan) -> Rehearsal:
    """Try a plan on an invented city.

    >>> rehearse(StreamPlan(0.1, Event(), events_per_tick=2, ticks=2)).verdict
    'worse than publishing nothing'
    """
    found = [_measure(plan, *moment) for seed in range(_SEEDS) for moment in _moments(plan, seed)]
    total, cells, map_error, alone, area_error = np.mean([each[0] for each in found], axis=0).tolist()
    by_side = np.mean([each[1] for each in found], axis=0)
    return Rehearsal(total, int(cells), map_error, alone, area_error, smallest_good(by_side, plan.target))


def _moments(plan: StreamPlan, seed: int) -> Iterator[tuple[Release, Floats, np.random.Generator]]:
    """Yield some releases of the second half of a stream, each with the points that are then there."""
    ticks = min(plan.ticks, _MOST_TICKS)
    epsilon, came = plan.for_one_event, plan.events_per_tick * plan.ticks
    shrink = min(max(1.0, came / _MOST_POINTS), max(1.0, _MOST_EPSILON / epsilon))
    per_tick = max(1, round(came / ticks / shrink))
    window = None if plan.window is None else max(1, round(plan.window * ticks / plan.ticks))
    deletes = plan.deletes and window is None
    stream = TrackingStream(
        Box([(0, 1), (0, 1)], depth=20),
        epsilon * shrink,
        Event(),
        window=window,
        insert_only=not deletes and window is None,
        noise=Simulation(seed),
    )
    rng, live = np.random.default_rng(seed), np.zeros((0, 2))
    measured = set(np.linspace(ticks // 2, ticks - 1, _MOMENTS).astype(int).tolist())
    for tick in range(ticks):
        come = invented_city(rng, per_tick)
        gone, live = (live[: per_tick // 2], live[per_tick // 2 :]) if deletes else (None, live)
        release = stream.update(come, gone)
        live = np.concatenate([live, come])[-per_tick * (window or ticks) :]
        if tick in measured:
            yield release, live, rng


def invented_city(rng: np.random.Generator, number: int) -> Floats:
    """Return points around fixed places, the k-th of which has a share of 1/k, and some anywhere."""
    places = np.random.default_rng(7)
    centre, width = places.random((_PLACES, 2)), 0.004 * np.exp(places.normal(0.5, 1.0, _PLACES))
    share = 1 / np.arange(1, _PLACES + 1)
    which = rng.choice(_PLACES, number, p=share / share.sum())
    points = np.clip(rng.normal(centre[which], width[which, None]), 0, 1)
    anywhere = rng.random(number) < _ANYWHERE
    points[anywhere] = rng.random((int(anywhere.sum()), 2))
    return points


def _measure(plan: StreamPlan, release: Release, live: Floats, rng: np.random.Generator) -> tuple[list[float], Floats]:
    """Return a release's errors: total, cells, map, total alone, squares of the area; and those of squares by side."""
    side, total = float(np.sqrt(plan.area)), len(live)
    low = rng.random((_SQUARES, 2)) * (1 - side)
    squares = np.concatenate([low, low + side], axis=1)
    true = count_points(live, squares)
    map_error = weighted_error(true, release.count(squares).value)
    alone = weighted_error(true, np.full(_SQUARES, total * plan.area))
    area_error, *by_side = square_errors(release, live, (side, *SIDES), rng).tolist()
    return [abs(release.total - total) / total, release.leaves.size, map_error, alone, area_error], np.array(by_side)


def square_errors(release: Release, live: Floats, sides: tuple[float, ...], rng: np.random.Generator) -> Floats:
    """Return the median relative error of squares around points of the unit square, for each side."""
    side = np.repeat(sides, _SQUARES)[:, None]
    low = np.clip(live[rng.integers(0, len(live), len(side))] - side * rng.random((len(side), 2)), 0, 1 - side)
    squares = np.concatenate([low, low + side], axis=1)
    true = np.maximum(count_points(live, squares), 1)
    errors: Floats = np.abs(release.count(squares).value - true) / true
    return np.median(errors.reshape(len(sides), _SQUARES), axis=1)


def smallest_good(errors: Floats, target: float) -> float:
    """Return the area of the smallest square up from which all are good to the target; 1 if there is none.

    >>> smallest_good(np.array([0.01] * 4 + [0.5] * 12), 0.1) == SIDES[3] ** 2
    True
    """
    good = np.append(errors <= target, False)
    first_bad = int(np.argmin(good))
    return SIDES[first_bad - 1] ** 2 if first_bad else 1.0
