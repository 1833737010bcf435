"""Streams on which a default could lose, from a seed: what `benchmarks/everywhere.py` measures. No file is needed.

A stream is a list of batches, each of points that come at one tick and go at another, or never. Ticks are 1, 2, ...
Points that go are deleted one by one: no method is told how long they live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import phdstream as phd
from benchmarks.invented import places
from phdstream.arrays import Floats
from phdstream.evaluation.queries import domain_queries, random_rectangles

__all__ = ["EPSILONS", "NEVER", "STREAMS", "Batch", "HardStream"]

EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
NEVER = 1 << 30
"""When points go that stay."""
Queries = dict[str, Floats]
_TURN, _SEED = 2 * np.pi, 5


@dataclass(frozen=True)
class Batch:
    """Points (or names of places) that appear at a tick, and disappear at another."""

    points: NDArray[Any]
    came: int
    goes: int = NEVER


def square(dimension: int = 2) -> phd.Domain:
    """Return the unit square or cube, as fine as a box is by default."""
    return phd.Box([(0, 1)] * dimension)


def anywhere(domain: phd.Domain, numbers: dict[str, int]) -> Queries:
    """Return the paper's queries."""
    return domain_queries(domain, numbers, _SEED)


@dataclass(frozen=True)
class HardStream:
    """A stream: its batches from a seed, its domain, what to ask, and when.

    Measured is one tick in each of ``moments`` equal spans, or the ticks ``at``. ``seeds`` and ``epsilons`` are those
    of the published table: fewer where a run takes long.
    """

    what: str
    batches: Callable[[int], Iterator[Batch]]
    ticks: int
    deletes: bool = False
    domain: Callable[[], phd.Domain] = square
    queries: Callable[[phd.Domain, dict[str, int]], Queries] = anywhere
    at: tuple[int, ...] = ()
    moments: int = 12
    seeds: int = 5
    epsilons: tuple[float, ...] = EPSILONS


def many(seed: int, number: int, ticks: int) -> Iterator[Batch]:
    """Sixty places whose shares drift, each by a factor of seven to and fro within fifty ticks."""
    kinds = np.arange(1, 61)
    phase = np.random.default_rng(11).uniform(0, _TURN, kinds.size)
    for tick in range(1, ticks + 1):
        shares = np.exp(np.sin(_TURN * tick / 50 + phase)) / kinds
        yield Batch(places(_rng(seed, tick), number // ticks, kinds.size, 0.004, 0.1, shares), tick)


def few(seed: int, a_tick: int, ticks: int) -> Iterator[Batch]:
    """A few points a tick."""
    for tick in range(1, ticks + 1):
        yield Batch(places(_rng(seed, tick), a_tick, 12, 0.01, 0.1), tick)


def hourly(seed: int, ticks: int) -> Iterator[Batch]:
    """A city by day and night, of points that live half a day: three to nine hundred at a time."""
    for tick in range(1, ticks + 1):
        rng = _rng(seed, tick)
        number = int(rng.poisson(50 * (1 + 0.8 * np.sin(_TURN * tick / 24))))
        yield Batch(places(rng, number, 40, 0.004, 0.1), tick, tick + 12)


def moving(seed: int, life: int, ticks: int) -> Iterator[Batch]:
    """Three clusters that go round the square, each at its own pace."""
    for tick in range(1, ticks + 1):
        rng = _rng(seed, tick)
        for number, width, pace in ((250, 0.03, 6), (150, 0.02, 10), (100, 0.01, 15)):
            angle = tick / pace + number
            centre = 0.5 + 0.3 * np.array([np.cos(angle), np.sin(angle)])
            yield Batch(np.clip(rng.normal(centre, width, (number, 2)), 0, 1), tick, tick + life)


def alternating(seed: int, every: int, life: int, ticks: int) -> Iterator[Batch]:
    """A city, and the same turned by half, in turn."""
    for tick in range(1, ticks + 1):
        points = places(_rng(seed, tick), 1000, 40, 0.004, 0.1)
        yield Batch(1 - points if tick // every % 2 else points, tick, tick + life)


def jump(seed: int, at: tuple[int, ...], life: int, ticks: int) -> Iterator[Batch]:
    """A city, of which at some ticks every point that is there goes over to the other side."""
    for tick in range(1, ticks + 1):
        points = places(_rng(seed, tick), 500, 40, 0.004, 0.1)
        goes = tick + life
        passed = [each for each in at if tick < each < goes]
        first = sum(each <= tick for each in at)
        for i, (start, end) in enumerate(zip([tick, *passed], [*passed, goes], strict=True)):
            yield Batch(1 - points if (first + i) % 2 else points, start, end)


def bursts(seed: int, every: int, ticks: int) -> Iterator[Batch]:
    """A quiet city, and now and then five thousand points for three ticks, each time at another place."""
    where = np.random.default_rng(13).random((ticks, 2))
    for tick in range(1, ticks + 1):
        rng = _rng(seed, tick)
        yield Batch(places(rng, 150, 40, 0.004, 0.1), tick, tick + 15)
        if tick % every == 0:
            yield Batch(np.clip(rng.normal(where[tick - 1], 0.01, (5000, 2)), 0, 1), tick, tick + 3)


BUILDING = np.array([[-73.9860, -73.9850], [40.7480, 40.7488]])
"""About 85 by 90 m; the finest cells are of 10 m."""


def building(seed: int, ticks: int) -> Iterator[Batch]:
    """Visitors of one building."""
    low, high = BUILDING.T
    for tick in range(1, ticks + 1):
        yield Batch(low + places(_rng(seed, tick), 500, 8, 0.05, 0.1) * (high - low), tick)


def world() -> phd.Domain:
    """Return the whole world."""
    return phd.Box([(-180, 180), (-90, 90)], crs="EPSG:4326")


def around_the_building(domain: phd.Domain, numbers: dict[str, int]) -> Queries:
    """Return queries of the paper's, half of them in a box four times as wide as the building, for what is asked."""
    half = {size: number // 2 for size, number in numbers.items()}
    middle, wide = BUILDING.mean(axis=1, keepdims=True), np.diff(BUILDING, axis=1)
    around = middle + wide * [-2, 2]
    near = {size: random_rectangles(around, n, size, _SEED + 50 + i) for i, (size, n) in enumerate(half.items())}
    return {size: np.concatenate([found, near[size]]) for size, found in anywhere(domain, half).items()}


def uniform(seed: int, ticks: int) -> Iterator[Batch]:
    """Points anywhere."""
    for tick in range(1, ticks + 1):
        yield Batch(_rng(seed, tick).random((500, 2)), tick)


def solid(seed: int, ticks: int) -> Iterator[Batch]:
    """Places in three dimensions."""
    for tick in range(1, ticks + 1):
        yield Batch(places(_rng(seed, tick), 500, 40, 0.01, 0.1, dimension=3), tick)


def hospitals() -> phd.Hierarchy:
    """Return eight countries of two to twelve states of two to twelve hospitals."""
    rng = np.random.default_rng(17)
    family = partial(rng.integers, 2, 13)
    names = [[f"{i}-{j}-{k}" for k in range(family())] for i in range(8) for j in range(family())]
    tree: dict[str, dict[str, list[str]]] = {}
    for group in names:
        country, state, _ = group[0].split("-")
        tree.setdefault(f"country {country}", {})[f"state {state}"] = group
    return phd.Hierarchy(tree)


def patients(seed: int, ticks: int) -> Iterator[Batch]:
    """Patients of hospitals, the k-th of which, in an order of its own, has a share of 1/k."""
    names = np.random.default_rng(19).permutation(hospitals().places)
    share = 1 / np.arange(1, names.size + 1)
    for tick in range(1, ticks + 1):
        yield Batch(_rng(seed, tick).choice(names, 300, p=share / share.sum()), tick)


def groups(domain: phd.Domain, numbers: dict[str, int]) -> Queries:
    """Return all nodes of each level as intervals of places: hospitals, states, countries. There are no others."""
    nodes = np.array([1])
    levels = [nodes := domain.children(nodes)[0] for _ in range(3)]
    return {size: domain.bounds(found) for size, found in zip(numbers, reversed(levels), strict=True)}


def _rng(seed: int, tick: int) -> np.random.Generator:
    return np.random.default_rng([seed, tick])


_JUMPS = (25, 45)
_JUMP = HardStream(
    "500 a tick that live 20 ticks; at two ticks all that are there move over to the other side of the square",
    partial(jump, at=_JUMPS, life=20, ticks=60), 60, deletes=True,
)  # fmt: skip
STREAMS: dict[str, HardStream] = {
    "1 million": HardStream("1 million points in 50 ticks, shares drift", partial(many, number=10**6, ticks=50), 50),
    "5 million": HardStream(
        "5 million points in 50 ticks, shares drift", partial(many, number=5 * 10**6, ticks=50), 50, moments=6
    ),
    "20 million": HardStream(
        "20 million points in 50 ticks, shares drift", partial(many, number=20 * 10**6, ticks=50), 50, moments=3,
        epsilons=(0.1, 1.0, 8.0),
    ),
    "1,000 points": HardStream("10 points a tick, 100 ticks", partial(few, a_tick=10, ticks=100), 100),
    "hourly": HardStream(
        "ten days by the hour, points live half a day: 300 to 900 of them",
        partial(hourly, ticks=240), 240, deletes=True,
    ),
    **{
        f"moving, life {life}": HardStream(
            f"three clusters that move, 500 points a tick that live {life} ticks",
            partial(moving, life=life, ticks=60), 60, deletes=True,
        )
        for life in (2, 5, 30)
    },
    "alternating": HardStream(
        "1,000 a tick, in one city and its mirror image in turn",
        partial(alternating, every=1, life=NEVER, ticks=40), 40,
    ),
    "alternating, life 3": HardStream(
        "1,000 a tick that live 3 ticks, six ticks in one city and six in its mirror image",
        partial(alternating, every=6, life=3, ticks=48), 48, deletes=True,
    ),
    "jump": _JUMP,
    "within 3 ticks of the jump": HardStream(
        "the same stream, measured at the jumps and one, two and three ticks after",
        _JUMP.batches, 60, deletes=True, at=tuple(tick + after for tick in _JUMPS for after in range(4)),
    ),
    "bursts": HardStream(
        "150 a tick that live 15 ticks; every 12 ticks 5,000 at one place, for 3 ticks",
        partial(bursts, every=12, ticks=60), 60, deletes=True,
    ),
    "one building": HardStream(
        "500 a tick, 40 ticks, in one building of 90 m; the domain is the world, half of the queries are near",
        partial(building, ticks=40), 40, domain=world, queries=around_the_building,
    ),
    "uniform": HardStream("500 a tick, 40 ticks, anywhere", partial(uniform, ticks=40), 40),
    "three dimensions": HardStream(
        "500 a tick, 40 ticks, forty places in a cube",
        partial(solid, ticks=40), 40, domain=partial(square, dimension=3),
    ),
    "hierarchy": HardStream(
        "300 patients a tick, 40 ticks; queries are all hospitals (small), states, countries (large)",
        partial(patients, ticks=40), 40, domain=hospitals, queries=groups,
    ),
}  # fmt: skip
