"""The paper's simulated circles (appendix "Datasets and Geometry"), on a clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Floats
from phdstream.errors import InputError, check_whole

__all__ = ["CIRCLES", "CircleTick", "growing_circles", "moving_circles"]

_OUTER, _INNER, _WIDTH = 0.42, 0.28, 0.022
"""Radii, and the spread of points around them, read off the authors' own simulated data."""


@dataclass(frozen=True)
class CircleTick:
    """What happens in one tick: points that appear, and points that vanish."""

    inserts: Floats
    deletes: Floats


def growing_circles(points: int = 50_000, ticks: int = 100, seed: int = 0) -> Iterator[CircleTick]:
    """Yield the paper's circles (a): points appear on both circles, as many each tick, and nothing ever vanishes.

    Each point is on one circle or the other with equal probability.

    >>> [len(tick.inserts) for tick in growing_circles(points=300, ticks=3)]
    [100, 100, 100]
    """
    check_whole("points", points)
    check_whole("ticks", ticks)
    rng = np.random.default_rng(seed)
    both = np.where(rng.random((points, 1)) < 0.5, _circle(rng, points, _OUTER), _circle(rng, points, _INNER))
    appear = np.linspace(0, points, ticks + 1).astype(int)
    for t in range(ticks):
        yield CircleTick(both[appear[t] : appear[t + 1]], np.empty((0, 2)))


def moving_circles(points: int = 25_000, ticks: int = 60, seed: int = 0) -> Iterator[CircleTick]:
    """Yield the paper's circles (b): points appear on the outer circle and then move, a few each tick, to the inner.

    For the first third of the ticks the outer circle fills up to ``points``. After that, every tick, some of its
    points vanish (oldest first) and as many appear on the inner circle.

    >>> ticks = list(moving_circles(points=300, ticks=30))
    >>> sum(len(t.inserts) - len(t.deletes) for t in ticks)
    300
    """
    check_whole("points", points)
    check_whole("ticks", ticks)
    if ticks < 3:
        raise InputError("moving circles need at least 3 ticks: to fill, to move, to arrive.")
    rng = np.random.default_rng(seed)
    outer, inner = _circle(rng, points, _OUTER), _circle(rng, points, _INNER)
    fill = ticks // 3
    appear = np.linspace(0, points, fill + 1).astype(int)
    move = np.linspace(0, points, ticks - fill + 2).astype(int)  # the last share stays where it is
    nothing = np.empty((0, 2))
    for t in range(fill):
        yield CircleTick(outer[appear[t] : appear[t + 1]], nothing)
    for t in range(ticks - fill):
        yield CircleTick(inner[move[t] : move[t + 1]], outer[move[t] : move[t + 1]])


def _circle(rng: np.random.Generator, points: int, radius: float) -> Floats:
    angle = rng.uniform(0, 2 * np.pi, points)
    distance = radius + rng.normal(0, _WIDTH, points)
    around = np.column_stack([np.cos(angle), np.sin(angle)]) * distance[:, None]
    return np.clip(0.5 + around, 0, 1)


CIRCLES = {"growing": growing_circles, "moving": moving_circles}
"""Both kinds by name."""
