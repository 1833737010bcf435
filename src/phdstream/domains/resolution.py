"""How fine a domain is: from the size of its finest cells to the number of halvings, and back.

A domain in degrees or metres has cells of about 10 m unless told otherwise; one in units of its own has ten halvings a
coordinate. Degrees are turned into metres at the domain's middle latitude, on a sphere: right within a percent for the
height of a cell, and as right for its width as the domain is low.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np

from phdstream.arrays import Floats
from phdstream.domains.arguments import check_depth
from phdstream.domains.codes import MAX_BITS
from phdstream.errors import InputError, shown

__all__ = ["METRES_PER_DEGREE", "Resolution", "ground_units", "levels_for", "metres_wide", "read_resolution"]

Resolution: TypeAlias = str | float | None
"""The width of the finest cells: "10 m", "0.5 km", or a number of the domain's units."""

DEFAULT_METRES = 10.0
METRES_PER_DEGREE = 111_195.0
"""Along a meridian of the sphere with as much surface as the Earth."""
_HALVINGS_BY_DEFAULT = 10
"""Halvings per coordinate where units are not known: a 1024 x 1024 grid in the plane."""
_LENGTH = re.compile(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*(m|km)\s*", re.IGNORECASE)
_LONGITUDE, _LATITUDE = {"lon", "lng", "long", "longitude"}, {"lat", "latitude"}
_IN_DEGREES = {"EPSG:4326", "EPSG:4269", "EPSG:4258", "OGC:CRS84"}
"""Systems known without pyproj."""


def read_resolution(resolution: Any) -> tuple[float, bool]:
    """Return a width, and whether it is in metres (else in units of the domain).

    >>> read_resolution("0.5 km"), read_resolution(0.25)
    ((500.0, True), (0.25, False))
    """
    if isinstance(resolution, str) and (found := _LENGTH.fullmatch(resolution)):
        try:
            width, metres = float(found[1]) * (1000 if found[2].lower() == "km" else 1), True
        except ValueError:
            width, metres = math.nan, True
    else:
        number = isinstance(resolution, int | float | np.integer | np.floating) and not isinstance(resolution, bool)
        width, metres = (float(min(resolution, 1e300)) if number else math.nan), False
    if not 0 < width < math.inf:
        raise InputError(
            f"resolution must be a length such as '10 m' or '0.5 km', or a positive number of the domain's units, "
            f"not {shown(resolution)}."
        )
    return width, metres


def ground_units(crs: str | None, names: Sequence[str], low: Floats, high: Floats) -> Floats | None:
    """Return how many metres a unit of each of two coordinates is on the ground, or None if that is not known.

    The coordinate system says it; without one, coordinates called longitude and latitude (or lon and lat) that can be
    such are taken to be degrees.
    """
    if low.size != 2:
        return None
    latitude = next((axis for axis, name in enumerate(names) if name.lower() in _LATITUDE), None)
    if crs is None:
        named = latitude is not None and names[1 - latitude].lower() in _LONGITUDE
        if not named or (np.abs([low, high]) > 360).any() or (np.abs([low, high])[:, latitude] > 90).any():
            return None
    elif crs not in _IN_DEGREES:
        per_unit = _metres_per_unit(crs)
        if per_unit is None or per_unit > 0:
            return None if per_unit is None else np.full(2, per_unit)
    axis = 1 if latitude is None else latitude
    middle = min(abs(float(low[axis] + high[axis])) / 2, 89.0)
    metres = np.full(2, METRES_PER_DEGREE)
    metres[1 - axis] *= math.cos(math.radians(middle))
    return metres


def _metres_per_unit(crs: str) -> float | None:
    """Return the metres in a unit of a planar system, 0 for one in degrees, None without the library that knows."""
    if find_spec("pyproj") is None:
        return None
    import pyproj

    system = pyproj.CRS(crs)
    if system.is_geographic:
        return 0.0
    return float(system.axis_info[0].unit_conversion_factor) if system.axis_info else 1.0


def levels_for(
    depth: int | None, resolution: Resolution, extent: Floats, metres: Floats | None, bits: int, limit: int
) -> int:
    """Return how many levels a box has, each of so many halvings: the depth given, or for cells of some width.

    A cell is as wide as a square of its area. The default is 10 m where ``metres`` are known, but no deeper than
    ``limit``; a resolution that is asked for and cannot be had is refused.
    """
    if depth is not None and resolution is not None:
        raise InputError("give depth or resolution, not both: each says how fine the finest cells are.")
    if depth is not None or (resolution is None and metres is None):
        return check_depth(depth, min(limit, max(1, _HALVINGS_BY_DEFAULT * extent.size // bits)), limit)
    width, in_metres = (DEFAULT_METRES, True) if resolution is None else read_resolution(resolution)
    if in_metres and metres is None:
        raise InputError(
            "a resolution in metres needs a domain in degrees or metres: say crs='EPSG:4326' for degrees, or give "
            "the resolution as a number of the domain's units."
        )
    sides = extent * metres if in_metres and metres is not None else extent
    levels = max(1, round(float(np.log2(sides / width).sum()) / bits))
    if levels > limit and resolution is not None:
        finest = float(np.exp2((np.log2(sides).sum() - limit * bits) / sides.size))
        raise InputError(
            f"a resolution of {shown(resolution)} cannot be had here: codes have at most {MAX_BITS} bits, and numbers "
            f"53. The finest possible is about {finest:.2g}{' m' if in_metres else ''}."
        )
    return min(levels, limit)


def metres_wide(metres: float) -> str:
    """Return a width in metres as people say it.

    >>> metres_wide(9.237), metres_wide(562), metres_wide(39_100)
    ('9.2 m', '560 m', '39 km')
    """
    size, unit = (metres, "m") if metres < 995 else (metres / 1000, "km")
    return f"{float(f'{size:.2g}'):g} {unit}"
