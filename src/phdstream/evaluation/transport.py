"""How far apart two sets of points lie: the sliced Wasserstein distance (Rabin, Peyré, Delon and Bernot 2012)."""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Floats

__all__ = ["sliced_distance"]

_DIRECTIONS, _BINS = 8, 4096


def sliced_distance(true: Floats, synthetic: Floats, bounds: Floats) -> float:
    """Return how far, on average, the mass of one set of points must be moved along a line to give the other.

    Both sets are distributions here: how many points there are does not count, only where. They are projected on
    fixed directions, and the Wasserstein-1 distances along these are averaged, as a share of the diagonal of the
    domain's ``bounds`` (d, 2). Projections are binned, so that each is exact to 1/4096 of the diagonal. If there are
    no points on one side, the distance is 1, more than any two distributions have: so publishing nothing cannot win.

    >>> square, at = np.array([[0, 1], [0, 1]]), np.array([[0.2, 0.2]])
    >>> sliced_distance(at, at, square), sliced_distance(at, at[:0], square)
    (0.0, 1.0)
    >>> round(sliced_distance(at, at + [0.5, 0], square), 2)  # 0.5 of 1.41, seen from all sides: times 2/π
    0.23
    """
    if not len(true) or not len(synthetic):
        return float(len(true) != len(synthetic))
    low, high = np.asarray(bounds, dtype=np.float64).T
    middle, diagonal = (low + high) / 2, float(np.linalg.norm(high - low))
    distances = []
    for direction in _directions(low.size):
        ours, theirs = (_cumulative((points - middle) @ direction / diagonal) for points in (true, synthetic))
        distances.append(np.abs(ours - theirs).mean())
    return float(np.mean(distances))


def _cumulative(along: Floats) -> Floats:
    """Return the cumulative distribution at the ends of equal bins, of places from -1/2 to 1/2."""
    bins = np.clip(((along + 0.5) * _BINS).astype(np.int64), 0, _BINS - 1)
    return np.asarray(np.cumsum(np.bincount(bins, minlength=_BINS)) / along.size)


def _directions(dimension: int) -> Floats:
    """Return unit vectors: evenly spread in the plane, and else the same pseudo-random ones each time."""
    if dimension == 2:
        angles = (np.arange(_DIRECTIONS) + 0.5) * np.pi / _DIRECTIONS
        return np.column_stack([np.cos(angles), np.sin(angles)])
    drawn = np.random.default_rng(0).standard_normal((_DIRECTIONS, dimension))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))
