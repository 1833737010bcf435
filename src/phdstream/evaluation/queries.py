"""Random rectangles, and two errors of the counts in them: the paper's relative error, and the weighted error."""

from __future__ import annotations

import numpy as np
import shapely

from phdstream.arrays import Floats, Ints
from phdstream.domains import ROOT, Domain
from phdstream.domains.network import Network
from phdstream.domains.region import Region
from phdstream.errors import InputError

__all__ = ["QUERY_AREAS", "QUERY_NUMBERS", "domain_queries", "random_rectangles", "relative_error", "weighted_error"]

QUERY_AREAS = {"small": (0.0001, 0.001), "medium": (0.001, 0.01), "large": (0.01, 0.1)}
"""The range of a query's area, as a share of the domain's."""
QUERY_NUMBERS = {"small": 10_000, "medium": 5_000, "large": 1_000}
"""How many queries of each size the paper asks."""
_FLOOR = 0.001
_ROUNDS, _AT_ONCE, _HOPELESS = 500, 1000, 20
"""How often rectangles that miss the domain are drawn anew, how many, and after how many rounds without any to stop."""


def random_rectangles(bounds: Floats, number: int, size: str, seed: int) -> Floats:
    """Return random rectangles inside a box, (n, 2d), whose share of its volume is uniform in the range of ``size``.

    >>> random_rectangles(np.array([[0, 1], [0, 1]]), 3, "small", seed=1).shape
    (3, 4)
    """
    if size not in QUERY_AREAS:
        raise InputError(f"query sizes are {', '.join(QUERY_AREAS)}, not {size!r}.")
    rng = np.random.default_rng(seed)
    low, high = np.asarray(bounds, dtype=np.float64).T
    log_volume = np.log(rng.uniform(*QUERY_AREAS[size], number))
    parts = rng.dirichlet(np.full(low.size, 4.0), number)  # how the volume is shared among the sides: not too thin
    sides = np.exp(log_volume[:, None] * parts) * (high - low)
    corners = low + rng.uniform(size=(number, low.size)) * (high - low - sides)
    return np.concatenate([corners, corners + sides], axis=1)


def domain_queries(domain: Domain, numbers: dict[str, int], seed: int) -> dict[str, Floats]:
    """Return random rectangles by size; on regions and networks only such as intersect them."""
    low, high = np.split(domain.bounds(np.array([ROOT]))[0], 2)
    bounds = np.column_stack([low, high])
    return {size: _intersecting(domain, bounds, n, size, seed + i) for i, (size, n) in enumerate(numbers.items())}


def _intersecting(domain: Domain, bounds: Floats, number: int, size: str, seed: int) -> Floats:
    if not isinstance(domain, Region | Network):
        return random_rectangles(bounds, number, size, seed)
    shape = domain.outline() if isinstance(domain, Region) else domain.boundary()
    shapely.prepare(shape)
    found = np.zeros((0, 4))
    for attempt in range(_ROUNDS):
        drawn = random_rectangles(bounds, max(number, _AT_ONCE), size, seed + 100 * attempt)
        found = np.concatenate([found, drawn[shapely.intersects(shape, shapely.box(*drawn.T))]])
        if len(found) >= number:
            return found[:number]
        if not len(found) and attempt >= _HOPELESS:
            break
    raise InputError(
        f"{'hardly any' if len(found) else 'no'} {size} rectangle intersects the domain: it is too thin in its "
        "bounding box for the paper's queries."
    )


def relative_error(true: Floats | Ints, estimated: Floats | Ints, total: int) -> float:
    """Return the average of |estimated - true| / max(true, 0.001 · total), the paper's metric.

    Most rectangles hold next to nothing. An invented point in one of them costs as much as a thousandth of all points,
    a missing one nothing, so that with few points *no* points score better than noisy ones: see `weighted_error`.

    >>> relative_error(np.array([10, 0]), np.array([11, 1]), total=1000)
    0.55
    """
    floor = np.maximum(true, _FLOOR * total)
    return float(np.mean(np.abs(estimated - true) / np.where(floor > 0, floor, 1)))


def weighted_error(true: Floats | Ints, estimated: Floats | Ints) -> float:
    """Return the sum of |estimated - true| over the sum of true: in forecasting the weighted absolute percentage error.

    A missing point and an invented one cost the same, wherever they are. Publishing nothing misses every point, so it
    scores exactly 1, on any data; a release scores less if it puts more points where they belong than elsewhere.
    Where no query holds a point, one is taken to be missed, so that publishing nothing scores 1 there too.

    >>> weighted_error(np.array([10, 0]), np.array([11, 1])), weighted_error(np.array([10, 3]), np.zeros(2))
    (0.2, 1.0)
    """
    held, off = float(true.sum()), float(np.abs(estimated - true).sum())
    return off / held if held > 0 else 1 + off
