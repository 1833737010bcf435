"""Noisy counts of nested nodes, made into one best estimate for every node: weighted least squares on a tree. Public.

Counts of the same thing with independent noise are combined by inverse variance; the count of a node is combined with
the sum of its halves'. Done from the bottom up here, and finished from the top down by the filter
(`phdstream.streams.tracking.model.kalman`), that is least squares (as Hay et al. 2010 for one fixed tree).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Bools, Floats, Ints, distinct
from phdstream.domains.prefixes import prefix_length
from phdstream.privacy.scales import noise_variance, scale_for

__all__ = ["KNOWN_EMPTY", "Layer", "NoisyCounts", "count_variance", "weighted_least_squares"]

_CERTAIN = 1e-9
"""The variance of what is known without counting: next to none."""
KNOWN_EMPTY = 1e-4
"""No estimate from counts has a variance below this (see `count_variance`), and no sum of uncounted nodes one above."""
_LEAST_COUNTED = 1e-3


def count_variance(epsilon: float) -> float:
    """Return the variance of a noisy count, but at least a thousandth.

    With ε far above 10 noise vanishes; the least value keeps counts apart from what is known without counting, also
    where several counts of one node are combined.
    """
    return max(float(noise_variance(scale_for(epsilon))), _LEAST_COUNTED)


@dataclass(frozen=True)
class NoisyCounts:
    """Noisy counts of nodes, and the variance of their noise."""

    node: Ints
    value: Floats
    variance: Floats

    @classmethod
    def known_empty(cls, nodes: Ints) -> NoisyCounts:
        """Return what is known of zero-measure nodes, without counting: nothing is there."""
        return cls(nodes, np.zeros(nodes.size), np.full(nodes.size, _CERTAIN))

    @classmethod
    def concat(cls, *parts: NoisyCounts) -> NoisyCounts:
        """Return several sets of counts as one."""
        columns = zip(*((part.node, part.value, part.variance) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True)
class Layer:
    """All nodes of one length in a tree of counts: the best estimate from below, and which have halves in the tree."""

    node: Ints
    value: Floats
    variance: Floats
    inner: Bools


def weighted_least_squares(counts: NoisyCounts) -> list[Layer]:
    """Return the tree of counts from the root down; both halves of a node are in it, or none.

    >>> counts = NoisyCounts(np.array([1, 2, 3]), np.array([12.0, 4.0, 4.0]), np.array([2.0, 1.0, 1.0]))
    >>> weighted_least_squares(counts)[0].value  # 12 and 4 + 4, of equal variance
    array([10.])
    """
    lengths = prefix_length(counts.node)
    layers: list[Layer] = []
    above = NoisyCounts(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    for bits in range(int(lengths.max()), -1, -1):
        own = lengths == bits
        here = NoisyCounts(counts.node[own], counts.value[own], counts.variance[own])
        layers.append(_combine(above, here))
        above = _parents(layers[-1])
    return layers[::-1]


def _combine(summed: NoisyCounts, counted: NoisyCounts) -> Layer:
    every = NoisyCounts.concat(summed, counted)
    node, which = distinct(every.node)
    precision = np.bincount(which, 1 / every.variance, node.size)
    value = np.bincount(which, every.value / every.variance, node.size) / precision
    inner = np.zeros(node.size, dtype=bool)
    inner[which[: summed.node.size]] = True
    return Layer(node, value, 1 / precision, inner)


def _parents(layer: Layer) -> NoisyCounts:
    first, second = slice(0, None, 2), slice(1, None, 2)
    value, variance = (column[first] + column[second] for column in (layer.value, layer.variance))
    return NoisyCounts(layer.node[first] >> 1, value, variance)
