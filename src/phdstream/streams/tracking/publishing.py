"""From a total and shares to what is published: cells with counts, whole points, and errors. All public."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT, divide_among_children, hash_uniform
from phdstream.release.estimate import Estimate
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.shares import Shares

__all__ = ["publish"]

_THIN = 0.2
"""Cells with fewer points than this are not divided further: it could not be seen."""
_WIDEST = 1.0
"""A lean lies between -1 and 1, so its variance is at most this."""


def publish(halves: Halves, shares: Shares, total: float, total_variance: float, key: int) -> Estimate:
    """Return the estimate: the known nodes that hold points, at the domain's own levels."""
    levels = _levels(halves, shares, max(total, 0.0), total_variance)
    parts = _with_points(levels, key)
    return Estimate(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@dataclass
class _Layer:
    """The nodes of one length, and of which node of the domain's level above each is a part."""

    node: Ints
    mass: Floats
    variance: Floats
    in_family: Floats
    measure: Floats
    above: Ints
    leaf: Bools


def _levels(halves: Halves, shares: Shares, total: float, total_variance: float) -> list[_Layer]:
    """Return the nodes to publish, from the root down; places without measure are left out.

    A count's variance is that of its share of its parent's count, plus that of its parent's; ``in_family`` is the
    former alone, within what the parent in the domain holds.
    """
    mass, variance, measure = (np.full(1, value) for value in (total, total_variance, 1.0))
    layer = _Layer(np.array([ROOT]), mass, variance, variance, measure, np.zeros(1, np.int64), np.zeros(1, dtype=bool))
    levels: list[_Layer] = []
    for bits in range(halves.total_bits + 1):
        at, known = shares.find(layer.node)
        level = halves.is_level(bits)
        if level:
            layer.leaf = ~known | (layer.mass <= _THIN) if bits < halves.total_bits else np.ones_like(known)
            levels.append(layer)
        if layer.leaf.all():
            break
        layer = _below(halves, shares, layer, (at, known), bits, level)
    return levels


def _below(halves: Halves, shares: Shares, layer: _Layer, found: tuple[Ints, Bools], bits: int, level: bool) -> _Layer:
    """Return the halves of a layer's nodes that are not leaves."""
    up = np.flatnonzero(~layer.leaf)
    at, known = (column[up] for column in found)
    prior = np.zeros(up.size) if halves.even else 2 * halves.first_share(layer.node[up], bits) - 1
    lean = np.where(known, shares.lean[at], prior) if shares.node.size else prior
    doubt = np.where(known, np.minimum(shares.doubt[at], _WIDEST), _WIDEST) if shares.node.size else np.ones(up.size)
    share, part = (_pairs((1 + tilt) / 2, (1 - tilt) / 2) for tilt in (lean, prior))
    node = _pairs(2 * layer.node[up], 2 * layer.node[up] + 1)
    split = np.repeat(layer.mass[up] ** 2 * doubt / 4, 2)
    variance = share**2 * np.repeat(layer.variance[up], 2) + split
    in_family = split if level else share**2 * np.repeat(layer.in_family[up], 2) + split
    mass, measure = share * np.repeat(layer.mass[up], 2), part * np.repeat(layer.measure[up], 2)
    above = np.repeat(up if level else layer.above[up], 2)
    leaf = np.zeros(node.size, dtype=bool)
    below = _Layer(node, mass, variance, in_family, measure, above, leaf)
    return below if halves.even else _Layer(*(column[measure > 0] for column in vars(below).values()))


def _pairs(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    both = np.empty(2 * first.size, dtype=first.dtype)
    both[::2], both[1::2] = first, second
    return both


def _with_points(levels: list[_Layer], key: int) -> list[tuple[Ints | Floats | Bools, ...]]:
    """Return the columns of the estimate, level by level of the domain."""
    points = np.floor(levels[0].mass + hash_uniform(key, np.zeros(1, np.int64))).astype(np.int64)
    parts = [_columns(levels[0], points, levels[0].in_family)]
    for up, layer in pairwise(levels):
        parents, family = np.flatnonzero(~up.leaf), (np.cumsum(~up.leaf) - 1)[layer.above]
        mass = up.mass[layer.above]
        siblings = np.bincount(family, minlength=parents.size)[family]
        share = np.where(mass > 0, layer.mass / np.where(mass > 0, mass, 1), 1 / siblings)
        points = divide_among_children(points[parents], family, share, up.node[parents], key)
        parts.append(_columns(layer, points, layer.in_family * siblings / np.maximum(siblings - 1, 1)))
    return parts


def _columns(layer: _Layer, points: Ints, share_variance: Floats) -> tuple[Ints | Floats | Bools, ...]:
    own = np.zeros(layer.node.size)
    return layer.node, layer.leaf, layer.mass, layer.mass, layer.variance, own, points, share_variance
