"""Streams made to be hard, from a seed: no file is needed. Each is a list of ticks, of points in the unit square."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Floats

__all__ = ["INVENTED", "Tick", "TickStream"]


@dataclass(frozen=True)
class Tick:
    """What appears and disappears in a tick."""

    inserts: Floats
    deletes: Floats


TickStream = list[Tick]
_NOTHING = np.zeros((0, 2))


def places(
    rng: np.random.Generator,
    number: int,
    kinds: int,
    width: float,
    anywhere: float = 0.0,
    shares: Floats | None = None,
    dimension: int = 2,
) -> Floats:
    """Return points around fixed places, with these shares or the k-th with one of 1/k, and some anywhere."""
    fixed = np.random.default_rng(7)
    centre, widths = fixed.random((kinds, dimension)), width * np.exp(fixed.normal(0.5, 1.0, kinds))
    share = 1 / np.arange(1, kinds + 1) if shares is None else shares
    which = rng.choice(kinds, number, p=share / share.sum())
    points = np.clip(rng.normal(centre[which], widths[which, None]), 0, 1)
    elsewhere = rng.random(number) < anywhere
    points[elsewhere] = rng.random((int(elsewhere.sum()), dimension))
    return points


def with_life(batches: Iterator[Floats], life: int) -> TickStream:
    """Return a stream in which every batch disappears ``life`` ticks after it came."""
    came = list(batches)
    return [Tick(batch, came[i - life] if i >= life else _NOTHING) for i, batch in enumerate(came)]


def city(seed: int) -> TickStream:
    """A city that grows: forty places, a tenth of the points anywhere."""
    rng = np.random.default_rng(seed)
    return [Tick(places(rng, 1500, 40, 0.004, 0.1), _NOTHING) for _ in range(40)]


def sparse(seed: int) -> TickStream:
    """Check-ins of a wide land: three hundred small places, and nothing between them."""
    rng = np.random.default_rng(seed)
    return [Tick(places(rng, 600, 300, 0.0004), _NOTHING) for _ in range(60)]


def many(seed: int) -> TickStream:
    """Many points in few ticks."""
    rng = np.random.default_rng(seed)
    return [Tick(places(rng, 12_000, 60, 0.004, 0.1), _NOTHING) for _ in range(16)]


def few(seed: int) -> TickStream:
    """Eight hundred points, of which a few come and go every tick."""
    rng = np.random.default_rng(seed)
    return with_life((places(rng, 20, 12, 0.01, 0.1) for _ in range(100)), life=40)


def moving(seed: int) -> TickStream:
    """A crowd that walks across the square; everyone stays five ticks."""
    rng = np.random.default_rng(seed)

    def crowd(tick: int) -> Floats:
        centre = 0.5 + 0.3 * np.array([np.cos(tick / 6), np.sin(tick / 6)])
        return np.clip(rng.normal(centre, 0.03, (800, 2)), 0, 1)

    return with_life((crowd(tick) for tick in range(50)), life=5)


def turnover(seed: int) -> TickStream:
    """A city with new places: every ten ticks one appears that was not there, and all records live twenty ticks."""
    rng, new = np.random.default_rng(seed), np.random.default_rng(5).random((6, 2))

    def batch(tick: int) -> Floats:
        outbreak = np.clip(rng.normal(new[tick // 10 % 6], 0.01, (150, 2)), 0, 1)
        return np.concatenate([places(rng, 500, 40, 0.004, 0.1), outbreak])

    return with_life((batch(tick) for tick in range(60)), life=20)


INVENTED: dict[str, Callable[[int], TickStream]] = {
    "city": city,
    "sparse": sparse,
    "many points": many,
    "few points": few,
    "moving crowd": moving,
    "new places": turnover,
}
