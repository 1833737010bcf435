"""From a total and shares to what is published: cells with counts, whole points, and errors. All public."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT, divide_among_children, hash_uniform
from phdstream.tracking.halves import Halves
from phdstream.tracking.shares import Shares, descend
from phdstream.tree import Estimate

__all__ = ["publish"]

_THIN = 0.2
"""Cells with fewer points than this are not divided further: it could not be seen."""
_WIDEST = 1.0
"""A lean lies between -1 and 1, so its variance is at most this."""


def publish(halves: Halves, shares: Shares, total: float, total_variance: float, key: int) -> Estimate:
    """Return the estimate: the known nodes that hold points, at the domain's own levels."""
    layers = _layers(halves, shares, max(total, 0.0))
    _downwards(halves, shares, layers, total_variance)
    parts = _with_points(halves, layers, key)
    return Estimate(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@dataclass
class _Layer:
    """The published nodes of one length."""

    node: Ints
    mass: Floats
    leaf: Bools
    variance: Floats
    in_family: Floats


def _layers(halves: Halves, shares: Shares, total: float) -> list[_Layer]:
    """Return the nodes to publish, from the root down; places without measure are left out."""
    layers: list[_Layer] = []

    def opens(nodes: Ints, amounts: Floats, bits: int) -> Bools:
        opened = np.full(nodes.size, bits < halves.total_bits)
        if halves.is_level(bits):
            opened &= shares.knows(nodes) & (amounts[0] > _THIN)
        real = amounts[-1] > 0 if len(amounts) > 1 else np.ones(nodes.size, dtype=bool)
        count = int(real.sum())
        layers.append(_Layer(nodes[real], amounts[0, real], ~opened[real], np.zeros(count), np.zeros(count)))
        return opened

    shapes = (
        (shares,) if halves.even else (shares, Shares.none())
    )  # where every place has measure, it need not be known
    start = np.array([[total], [1.0]])[: len(shapes)]
    descend(halves, shapes, np.array([ROOT]), start, opens)
    return layers


def _downwards(halves: Halves, shares: Shares, layers: list[_Layer], total_variance: float) -> None:
    """Fill in the variances: of each count, and of its part of what its parent in the domain holds."""
    layers[0].variance[:] = layers[0].in_family[:] = total_variance
    for bits, (up, layer) in enumerate(pairwise(layers)):
        doubt = np.minimum(shares.of(halves, up.node, bits)[1], _WIDEST)
        at = np.searchsorted(up.node, layer.node >> 1)
        share = np.where(up.mass[at] > 0, layer.mass / np.where(up.mass[at] > 0, up.mass[at], 1), 0.5)
        split = up.mass[at] ** 2 * doubt[at] / 4
        layer.variance = share**2 * up.variance[at] + split
        layer.in_family = split + (0.0 if halves.is_level(bits) else share**2 * up.in_family[at])


def _with_points(halves: Halves, layers: list[_Layer], key: int) -> list[tuple[Ints | Floats | Bools, ...]]:
    """Return the columns of the estimate, level by level of the domain."""
    levels = [layer for bits, layer in enumerate(layers) if halves.is_level(bits)]
    points = np.floor(levels[0].mass + hash_uniform(key, np.zeros(1, np.int64))).astype(np.int64)
    parts = [_columns(levels[0], points, levels[0].in_family)]
    for level, (up, layer) in enumerate(pairwise(levels)):
        parent = np.searchsorted(up.node, layer.node >> halves.domain.level_bits[level])
        parents = np.flatnonzero(~up.leaf)
        family: Ints = np.cumsum(np.diff(parent, prepend=parent[0]) > 0)
        mass = up.mass[parents][family]
        siblings = np.bincount(family)[family]
        share = np.where(mass > 0, layer.mass / np.where(mass > 0, mass, 1), 1 / siblings)
        points = divide_among_children(points[parents], family, share, up.node[parents], key)
        parts.append(_columns(layer, points, layer.in_family * siblings / np.maximum(siblings - 1, 1)))
    return parts


def _columns(layer: _Layer, points: Ints, share_variance: Floats) -> tuple[Ints | Floats | Bools, ...]:
    own = np.zeros(layer.node.size)
    return layer.node, layer.leaf, layer.mass, layer.mass, layer.variance, own, points, share_variance
