"""How much of a node lies in a polygon, pair by pair: whole and not at all from bounds alone, parts where asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints

__all__ = ["covered_by_shapes"]

_WHOLE = 1 - 1e-9


def covered_by_shapes(bounds: Floats, shapes: NDArray[Any], exact: Bools, part: Callable[[Ints], Floats]) -> Floats:
    """Return the share of each node inside the polygon at the same position; see `Domain.covered`.

    ``bounds`` hold the nodes. A node is wholly inside if its bounds are, and outside if they are; of the rest
    ``part`` tells the shares at given positions, and is asked only where they must be ``exact``.
    """
    limits = shapely.bounds(shapes)
    low, high = bounds[:, :2], bounds[:, 2:]
    meets = (low <= limits[:, 2:]).all(axis=1) & (high >= limits[:, :2]).all(axis=1)
    share, near = np.zeros(meets.size), np.flatnonzero(meets)
    boxes, queried = np.atleast_1d(shapely.box(*bounds[near].T)), shapes[near]
    share[near] = np.where(shapely.covers(queried, boxes), 1.0, np.where(shapely.intersects(queried, boxes), 0.5, 0.0))
    cut = np.flatnonzero(exact & (share == 0.5))
    inside = part(cut)
    share[cut] = np.where(inside > _WHOLE, 1.0, inside)
    return share
