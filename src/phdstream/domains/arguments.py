"""Checks of the arguments with which domains are made: depth, fanout, bounds, names of coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from phdstream.arrays import Floats
from phdstream.domains.codes import MAX_BITS
from phdstream.domains.columns import floats
from phdstream.errors import InputError, shown

__all__ = ["check_bounds", "check_depth", "check_fanout", "check_names", "most_halvings"]

_MOST_COORDINATES = 1000


def check_depth(depth: int | None, default: int, limit: int) -> int:
    """Return the depth to use, or say why the one given cannot be."""
    if depth is None:
        return default
    if not isinstance(depth, int | np.integer) or isinstance(depth, bool) or not 1 <= depth <= limit:
        raise InputError(
            f"depth must be a whole number from 1 to {limit} here (codes have at most {MAX_BITS} bits), "
            f"not {shown(depth)}."
        )
    return int(depth)


def check_names(names: Sequence[str] | None, dimension: int) -> tuple[str, ...]:
    """Return the names of the coordinates: those given, or x, y, z, or x0, x1, ..."""
    if names is None:
        return tuple("xyz"[:dimension]) if dimension <= 3 else tuple(f"x{i}" for i in range(dimension))
    listed = list(names) if isinstance(names, list | tuple) else []
    known = all(isinstance(name, str) and name for name in listed)
    if not known or len(listed) != dimension or len(set(listed)) != dimension:
        raise InputError(f"names must be {dimension} different, non-empty words, one for each coordinate.")
    return tuple(listed)


def check_fanout(fanout: int) -> int:
    """Return how many bits name a child, if the fanout is a power of two."""
    if not isinstance(fanout, int | np.integer) or not 2 <= fanout <= 1 << 16 or fanout & (fanout - 1):
        raise InputError(f"fanout must be a power of two from 2 to 65536, not {shown(fanout)}.")
    return int(math.log2(fanout))


def check_bounds(bounds: Sequence[Sequence[float]]) -> tuple[Floats, Floats]:
    """Return the low and the high ends of a box's bounds, one for each coordinate."""
    try:
        array = floats(bounds)
    except InputError:
        array = np.empty(0)
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] != 2:
        raise InputError("bounds must be a (low, high) pair of numbers for each coordinate, such as [(0, 1), (0, 1)].")
    if len(array) > _MOST_COORDINATES:
        raise InputError(f"a box can have at most {_MOST_COORDINATES} coordinates.")
    low, high = array[:, 0], array[:, 1]
    with np.errstate(over="ignore", invalid="ignore"):
        extent = high - low
    if not (np.isfinite(array).all() and (low < high).all() and np.isfinite(extent).all()):
        raise InputError("each (low, high) in bounds must be finite, with low below high.")
    return low, high


def most_halvings(low: Floats, high: Floats) -> int:
    """Return how many halvings, in turn, leave parts with edges that floating point can still tell apart."""
    largest = np.maximum(np.abs(low), np.abs(high))
    numbers = (high - low) / (2 * (largest - np.nextafter(largest, 0)))
    per_axis = np.maximum(np.floor(np.log2(numbers)) - 1, 0).astype(int)
    return int((per_axis * low.size + np.arange(low.size)).min())
