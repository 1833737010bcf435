"""Points uniform by area in S2 cells."""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Floats
from phdstream.domains.globe.s2 import Cells, spherical_area, to_lon_lat

__all__ = ["grid_in", "points_in"]

_NEWTON_STEPS = 3
_GRID = 8
"""Points in a row of an even grid of a cell: 64 in all, as many as `Domain.spread` has."""


def points_in(cells: Cells, first: Floats, second: Floats, margin: float) -> Floats:
    """Return a point of each cell, (n, 2) in degrees, from two numbers uniform in [0, 1).

    Uniform by area, but for a strip along the edges that is left out: the share ``margin`` of each side.
    """
    across = margin + (1 - 2 * margin) * _fraction_across(cells, first)
    u = cells.u + across * cells.du
    up = margin + (1 - 2 * margin) * _fraction_up(cells, u, second)
    return np.stack(to_lon_lat(cells.face, u, cells.v + up * cells.dv), axis=1)


def grid_in(cells: Cells) -> Floats:
    """Return an even grid of each cell, (n, points, 2) in degrees: even by area too where cells are small."""
    across, up = (np.indices((_GRID, _GRID)).reshape(2, -1) + 0.5) / _GRID
    u = cells.u[:, None] + across * cells.du[:, None]
    v = cells.v[:, None] + up * cells.dv[:, None]
    face = np.repeat(cells.face, across.size)
    return np.stack(to_lon_lat(face, u.ravel(), v.ravel()), axis=1).reshape(cells.face.size, across.size, 2)


def _fraction_across(cells: Cells, share: Floats) -> Floats:
    """Return how far across u a cell has this share of its area behind: by Newton's method, as many steps for all."""
    _, u, v, du, dv = cells
    wanted, fraction = share * spherical_area(u, v, du, dv), share
    for _ in range(_NEWTON_STEPS):
        x = u + fraction * du
        steps = (_strip(x, v + dv) - _strip(x, v)) * du
        fraction = np.clip(fraction - (spherical_area(u, v, fraction * du, dv) - wanted) / steps, 0, 1)
    return fraction


def _strip(u: Floats, v: Floats) -> Floats:
    """Return the area per width of the strip at u from 0 to v."""
    return v / ((1 + u * u) * np.sqrt(1 + u * u + v * v))


def _fraction_up(cells: Cells, u: Floats, share: Floats) -> Floats:
    """Return how far up v the line at u has this share of its strip below."""
    square = 1 + u * u
    low, high = (v / np.sqrt(square + v * v) for v in (cells.v, cells.v + cells.dv))
    sine = low + share * (high - low)
    fraction: Floats = (sine * np.sqrt(square / (1 - sine * sine)) - cells.v) / cells.dv
    return np.clip(fraction, 0, 1)
