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
    """Noisy counts of nodes: the variance of each one's own noise, and its loadings on noise that several share.

    Counts of one fine count share an error: the noise that it dropped and gave back (`refinement`). A row of
    ``loading`` is such an error, with standard deviation 1: each count has so many times that error besides its own
    noise (a factor model).
    """

    node: Ints
    value: Floats
    variance: Floats
    loading: Floats = None  # type: ignore[assignment]  # set below

    def __post_init__(self) -> None:
        if self.loading is None:
            object.__setattr__(self, "loading", np.zeros((0, self.node.size)))

    @classmethod
    def known_empty(cls, nodes: Ints) -> NoisyCounts:
        """Return what is known of zero-measure nodes, without counting: nothing is there."""
        return cls(nodes, np.zeros(nodes.size), np.full(nodes.size, _CERTAIN))

    @classmethod
    def concat(cls, *parts: NoisyCounts) -> NoisyCounts:
        """Return several sets of counts as one; what each shares, it shares with no other."""
        node, value, variance = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("node", "value", "variance")
        )
        loading = np.zeros((sum(len(part.loading) for part in parts), sum(part.node.size for part in parts)))
        row = column = 0
        for part in parts:
            below, right = row + len(part.loading), column + part.node.size
            loading[row:below, column:right] = part.loading
            row, column = below, right
        return cls(node, value, variance, loading)


@dataclass(frozen=True)
class Layer:
    """All nodes of one length in a tree of counts: the best estimate from below, and which have halves in the tree.

    ``variance`` and ``loading`` are those of the estimate, as for `NoisyCounts`. What halves share hardly changes how
    a node divides, so the filter goes by ``variance``; the error of a sum has both (`total_variance`).
    """

    node: Ints
    value: Floats
    variance: Floats
    loading: Floats
    inner: Bools

    @property
    def total_variance(self) -> Floats:
        """The variance of each estimate, with what it shares with others."""
        variance: Floats = self.variance + (self.loading**2).sum(axis=0)
        return variance


def weighted_least_squares(counts: NoisyCounts) -> list[Layer]:
    """Return the tree of counts from the root down; both halves of a node are in it, or none.

    >>> counts = NoisyCounts(np.array([1, 2, 3]), np.array([12.0, 4.0, 4.0]), np.array([2.0, 1.0, 1.0]))
    >>> weighted_least_squares(counts)[0].value  # 12 and 4 + 4, of equal variance
    array([10.])
    """
    order = np.argsort(counts.node, kind="stable")  # a few runs in order: quickly merged
    node, value, variance = counts.node[order], counts.value[order], counts.variance[order]
    loading, most = counts.loading.take(order, axis=1), int(prefix_length(node[-1:])[0])
    begins = np.append(np.searchsorted(node, np.int64(1) << np.arange(most + 1)), node.size)
    layers: list[Layer] = []
    above = NoisyCounts(node[:0], value[:0], variance[:0], loading[:, :0])
    for bits in range(most, -1, -1):
        own = slice(*begins[bits : bits + 2])
        here = NoisyCounts(node[own], value[own], variance[own], loading[:, own])
        layers.append(_combine(above, here))
        above = _parents(layers[-1])
    return layers[::-1]


def _combine(summed: NoisyCounts, counted: NoisyCounts) -> Layer:
    """Return the mean of all counts of each node, by inverse variance; counts of one node share no error."""
    value, variance = np.append(summed.value, counted.value), np.append(summed.variance, counted.variance)
    loading = np.concatenate([summed.loading, counted.loading], axis=1)
    node, which = distinct(np.append(summed.node, counted.node))
    precision = 1 / (variance + (loading**2).sum(axis=0))
    weight: Floats = precision / np.bincount(which, precision, node.size)[which]
    inner = np.zeros(node.size, dtype=bool)
    inner[which[: summed.node.size]] = True

    def summed_up(parts: Floats) -> Floats:
        return np.bincount(which, parts, node.size).astype(np.float64)

    shared = np.array([summed_up(weight * row) for row in loading]).reshape(len(loading), node.size)
    return Layer(node, summed_up(weight * value), summed_up(weight**2 * variance), shared, inner)


def _parents(layer: Layer) -> NoisyCounts:
    first, second = slice(0, None, 2), slice(1, None, 2)
    value, variance, loading = (
        column[..., first] + column[..., second] for column in (layer.value, layer.variance, layer.loading)
    )
    return NoisyCounts(layer.node[first] >> 1, value, variance, loading)
