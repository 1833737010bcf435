"""The cylindrical equal-area map of the WGS 84 ellipsoid (ESRI:54034, true to scale at the equator), from degrees.

It is Lambert's, as in Snyder, *Map Projections: A Working Manual* (USGS 1395, 1987), equations 3-12 and 10-15. PROJ has
it, too. It is written out here because a point's code must be the same to the bit on every machine and in SQL (see
`phdstream.domains.sines`), and this takes nothing but the four operations; the way back is PROJ's.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Floats
from phdstream.domains.sines import RADIAN, polynomial, sine_and_cosine

__all__ = ["ACROSS", "ECCENTRICITY", "SERIES", "UP", "to_equal_area"]

_EQUATOR, _FLATTENING = 6_378_137.0, 1 / 298.257223563
ECCENTRICITY = _FLATTENING * (2 - _FLATTENING)
"""The square of it, e²."""
ACROSS = _EQUATOR * RADIAN
"""Metres to a degree of longitude."""
UP = _EQUATOR * (1 - ECCENTRICITY) / 2
SERIES = tuple(1 / (2 * k + 1) for k in range(9))
"""Of artanh(e s) / (e s) in (e s)²: what is left out is less than 1e-19."""


def to_equal_area(points: Floats) -> Floats:
    """Return points (n, 2) given as longitude and latitude in metres; beyond a pole there is nothing: infinity.

    Longitudes do not wrap: 190 degrees lie east of 180.

    >>> to_equal_area(np.array([[-74.0, 40.7], [0.0, 91.0]])).round(3).tolist()
    [[-8237642.319, 4139190.361], [inf, inf]]
    """
    lon, lat = points[:, 0], points[:, 1]
    there = np.abs(lat) <= 90
    sine, _ = sine_and_cosine(np.where(there, lat, 0.0))
    z = ECCENTRICITY * (sine * sine)
    mapped = np.stack([ACROSS * lon, UP * sine * (1.0 / (1.0 - z) + polynomial(SERIES, z))], axis=1)
    mapped[~there] = np.inf
    return mapped
