"""The attacked data: an invented city, where people are recorded each day and stay. One of them is the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import phdstream as phd

__all__ = ["ARRIVES", "CELLS", "DAYS", "DOMAIN", "SQUARES", "City", "square_centres", "square_of"]

DAYS, ARRIVES = 30, 2
"""How many days are published, and on which (from 0) the target is recorded. Then it stays."""
DOMAIN = phd.Box([(0, 1), (0, 1)], depth=8)
CELLS, SQUARES = 16, 8
"""Everything is published in up to 16 times 16 cells. A place is to be told to within one of 8 times 8 squares."""
_FIRST, _DAILY = 600, 60
_TOWNS = np.array([[0.3, 0.35, 0.06], [0.7, 0.6, 0.1], [0.45, 0.8, 0.04]])


@dataclass(frozen=True)
class City:
    """Everybody but the target, by day of arrival (all of which the attacker knows), and where the target is."""

    days: list[NDArray[np.float64]]
    target: NDArray[np.float64]

    @classmethod
    def invented(cls, rng: np.random.Generator, anywhere: bool) -> City:
        """Return a city of three towns and open country. The target is one of its people, or ``anywhere`` alike."""
        days = [_people(rng, _FIRST if day == 0 else _DAILY) for day in range(DAYS)]
        return cls(days, rng.random(2) if anywhere else _people(rng, 1)[0])

    def arrivals(self, day: int, with_target: bool) -> NDArray[np.float64]:
        """Return who is recorded on a day."""
        return np.vstack([self.days[day], self.target]) if with_target and day == ARRIVES else self.days[day]

    def known(self, day: int, side: int) -> NDArray[np.int64]:
        """Return how many of the others live in each of ``side`` times ``side`` squares by the end of a day."""
        squares = square_of(np.vstack(self.days[: day + 1]), side)
        return np.bincount(squares, minlength=side * side)


def _people(rng: np.random.Generator, number: int) -> NDArray[np.float64]:
    town = _TOWNS[rng.integers(len(_TOWNS), size=number)]
    places = rng.normal(town[:, :2], town[:, 2:])
    open_country = rng.random(number) < 0.15
    return np.where(open_country[:, None], rng.random((number, 2)), places).clip(0, 1 - 1e-9)


def square_of(points: NDArray[np.float64], side: int) -> NDArray[np.int64]:
    """Return in which of ``side`` times ``side`` squares each point lies."""
    column = np.floor(np.atleast_2d(points) * side).astype(np.int64)
    return column[:, 0] * side + column[:, 1]


def square_centres(side: int) -> NDArray[np.float64]:
    """Return the middles of all squares, in the order of `square_of`."""
    middle = (np.arange(side) + 0.5) / side
    return np.stack(np.meshgrid(middle, middle, indexing="ij"), axis=-1).reshape(-1, 2)
