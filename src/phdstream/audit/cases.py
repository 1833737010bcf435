"""Random neighbours: a stream's setting, the ticks of one, and the unit that the other has more. Invented data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Ints
from phdstream.domains import ROOT, Box, Cube, Domain, Hierarchy
from phdstream.domains.product import Category, Product
from phdstream.priors import Prior
from phdstream.privacy import Event, Record, Unit, User
from phdstream.streams.paper.counters import BinaryTree, Block, by_level
from phdstream.streams.paper.stream import PHDStream
from phdstream.streams.stream import Stream
from phdstream.streams.tracking import TrackingParameters, TrackingStream

__all__ = ["Case", "Tick", "configured_case", "random_case", "unrelated_ticks"]

Make = Callable[[], Stream]
_LONGEST_WAIT = 30
_ALL, _BESIDE = "u{}", ("u1\0", "U1", "u1 ", "u01")
"""Users; the one more has a name that a careless comparison would take for another's."""


@dataclass
class Tick:
    """A tick's events: points and whose they are, of those that appear and of those that disappear."""

    points: list[NDArray[Any]]
    users: list[list[str]]

    def update(self, stream: Any) -> Any:
        """Let a stream take the tick."""
        gone = self.points[1] if stream.deletes else None
        return stream.update(self.points[0], gone, self.users[0], self.users[1] if stream.deletes else None)

    def with_one_more(self, kind: int, point: NDArray[Any], at: int, who: str) -> Tick:
        """Return the tick with an event more, of the unit that is one more."""
        points, users = list(self.points), [list(names) for names in self.users]
        joined = np.concatenate([points[kind][:at], point, points[kind][at:]])
        points[kind] = joined.view(type(point))  # a product knows its own rows by their type
        users[kind].insert(at, who)
        return Tick(points, users)


@dataclass
class Case:
    """Two neighbours: ``ticks``, and ``more``, which has a unit in addition; ``limit`` is what that may cost.

    ``resume_at`` are ticks after which the stream is saved and loaded again.
    """

    name: str
    make: Make
    ticks: list[Tick]
    more: list[Tick]
    limit: float
    only_deletes: bool
    resume_at: set[int] = field(default_factory=set)
    wild: bool = False


def random_case(seed: int) -> Case:
    """Return a case of a stream that is drawn too: method, unit, domain, options, counters."""
    rng = np.random.default_rng((seed, 1))
    domain = _DOMAINS[rng.choice(list(_DOMAINS))]()
    unit = _pick(rng, [Event(), Event(), Record(), User(2, 1), User(3, 2)])
    options: dict[str, Any] = dict(_pick(rng, _OPTIONS))
    method: Any = _pick(rng, [TrackingStream, PHDStream])
    epsilon = float(_pick(rng, [0.3, 1.0, 3.0]))
    of_paper = {"counter": _pick(rng, _COUNTERS), "tree_share": _pick(rng, [0.5, 0.3])}
    more = {"parameters": _pick(rng, _PARAMETERS)} if method is TrackingStream else of_paper
    if method is TrackingStream and rng.random() < 0.4:
        options["prior"] = _prior(domain, rng)
    make = partial(method, domain, epsilon, unit, **options, **more)
    named = ", ".join(f"{key}={value!r}" for key, value in options.items())
    return _case(f"{method.__name__}({unit}, {type(domain).__name__}{', ' if named else ''}{named})", make, rng)


def configured_case(make: Make, seed: int) -> Case:
    """Return a case of a given stream."""
    return _case("the configured stream", make, np.random.default_rng((seed, 2)))


def unrelated_ticks(make: Make, ticks: int, seed: int, number: int) -> list[Tick]:
    """Return ticks of so many events each, that have nothing to do with any others."""
    stream, rng = make(), np.random.default_rng((seed, 3))
    return [_tick(stream, rng, (number, number // 3)) for _ in range(ticks)]


_DOMAINS: dict[str, Callable[[], Domain]] = {
    "plane": lambda: Box([(0, 1), (0, 1)], depth=8),
    "quadtree": lambda: Box([(0, 1), (0, 1)], fanout=4, depth=4),
    "line": lambda: Box([(0, 1)], depth=6),
    "cube": lambda: Cube(5),
    "hierarchy": lambda: Hierarchy({"a": ["a1", "a2", "a3"], "b": ["b1", "b2"]}),
    "rows": lambda: Product(Box([(0, 1)], depth=4), Category("kind", ["a", "b", "c"])),
}
_OPTIONS: list[dict[str, Any]] = [
    {}, {}, {"window": 3}, {"start_after": 3}, {"max_nodes": 25}, {"insert_only": True},
    {"window": 2, "start_after": 3}, {"max_nodes": 25, "start_after": 2},
]  # fmt: skip
_COUNTERS: list[Any] = [
    "simple", partial(Block, size=3), partial(BinaryTree, horizon=4), "hybrid", by_level({0: "hybrid", 2: "simple"}),
]  # fmt: skip


_PARAMETERS = [
    TrackingParameters(),
    TrackingParameters().changed(
        {"fine_counts.stages": ((3.0, 2), (3.0, 1), (2.0, 0))}
    ),  # counts that are refined twice
]


def _prior(domain: Domain, rng: np.random.Generator) -> Prior:
    """Return a prior that crowds where the events do; or, weighed at random, in other places too."""
    weights = rng.choice([1.0, 30.0], 80, p=[0.9, 0.1]) if rng.random() < 0.5 else None
    return Prior.from_points(_points(domain, rng, 80), weights, about="invented")


def _pick(rng: np.random.Generator, from_these: Sequence[Any]) -> Any:
    return from_these[int(rng.integers(len(from_these)))]


def _case(name: str, make: Make, rng: np.random.Generator) -> Case:
    stream = make()
    before, window = stream.start_after - 1, stream.setting.window
    wait = min(window or _LONGEST_WAIT, _LONGEST_WAIT)
    number = before + int(rng.integers(4, 10)) + (wait if window and rng.random() < 0.3 else 0)  # then records expire
    quiet = max(0, before - wait)  # of a long wait for the start the end will do
    sizes = [(int(rng.choice([0, 3, 60])), int(rng.choice([0, 2, 20]))) for _ in range(quiet, number)]
    ticks = [_tick(stream, rng, size) for size in [(0, 0)] * quiet + sizes]
    kinds = _unit_events(stream.unit, stream.deletes, rng)
    more, place, who = list(ticks), _points(stream.domain, rng, 1), str(_pick(rng, _BESIDE))
    nowhere = place.dtype.kind == "f" and bool(rng.random() < 0.15)  # it is no event then, and costs nothing
    when = sorted(int(rng.integers(quiet, number)) if rng.random() < 0.7 else 0 for _ in kinds)
    for kind, tick in zip(kinds, when, strict=True):
        point = place if rng.random() < 0.7 else _points(stream.domain, rng, 1)
        point = point + np.nan if nowhere else point
        at = int(rng.integers(len(more[tick].points[kind]) + 1))
        more[tick] = more[tick].with_one_more(kind, point, at, who)
    counted = [min(kinds.count(kind), most) for kind, most in zip((0, 1), _at_most(stream.unit), strict=True)]
    limit = 0.0 if nowhere else min(float(stream.budget.spent_by(*counted)), stream.budget.epsilon)
    resume = {int(rng.integers(1, number)) for _ in range(int(rng.integers(3)))}
    return Case(name, make, ticks, more, limit, 0 not in kinds, resume, bool(rng.random() < 0.5))


def _at_most(unit: Unit) -> tuple[int, int]:
    return (unit.inserts, unit.deletes) if isinstance(unit, User) else (1, 1)


def _unit_events(unit: Unit, deletes: bool, rng: np.random.Generator) -> list[int]:
    """Return the kinds of a unit's events, 0 for an insert; of a user more than are to be counted."""
    if isinstance(unit, User):
        return [0] * (unit.inserts + 2) + ([1] * (unit.deletes + 2) if deletes else [])
    if isinstance(unit, Record):
        return [0, 1] if deletes else [0]
    return [int(rng.integers(2))] if deletes else [0]


def _tick(stream: Stream, rng: np.random.Generator, sizes: tuple[int, int]) -> Tick:
    points = [_points(stream.domain, rng, size) for size in sizes]
    return Tick(points, [[_ALL.format(rng.integers(12)) for _ in some] for some in points])


def _points(domain: Domain, rng: np.random.Generator, number: int) -> NDArray[Any]:
    """Return points, some of which crowd in one place."""
    crowd: Ints = np.array([number // 2, number - number // 2])
    corner = ROOT
    for _ in range(min(domain.depth, 2)):
        corner = int(domain.children(np.array([corner]))[0][0])
    return domain.sample(np.array([ROOT, corner]), crowd, int(rng.integers(1 << 60)))
