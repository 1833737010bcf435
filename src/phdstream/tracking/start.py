"""The start: everything up to t0, counted as one tick on finer and finer trees.

Each stage's tree is chosen from the noisy counts of the stages before it, so choosing costs nothing. An event enters
the total and one leaf of each stage, each by 1, and costs the sum of their budgets: all of ``budget.count``.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains import ROOT
from phdstream.privacy import Budget, Noise, scale_for
from phdstream.tracking.choosing import Cut, cut
from phdstream.tracking.emptiness import Emptiness
from phdstream.tracking.filtering import Tuning, follow
from phdstream.tracking.halves import Halves
from phdstream.tracking.measuring import Layer, Measured, best_estimates, count_variance
from phdstream.tracking.shares import Shares
from phdstream.tree import CodeCounts

__all__ = ["count_start", "measured"]

_TOTAL = 0.03
"""The part of the budget for the total; the stages share the rest."""
_STAGES = ((0.1, 8.0), (0.2, 6.0), (0.3, 4.0), (0.4, 3.0))
"""Each stage's share, and how many times the scale of its noise a node must hold to be opened."""
_DRIFT, _EMPTINESS = 1.0, 0.3


def count_start(
    halves: Halves, inserts: CodeCounts, deletes: CodeCounts, budget: Budget, noise: Noise, most_nodes: int
) -> tuple[Shares, Layer]:
    """Return the shares, and the best estimate of the total as the layer of the root."""

    def count(where: Cut, epsilon: float) -> Measured:
        live = inserts.within(where[0]) - deletes.within(where[0])
        return measured(where, noise.add(live, scale_for(epsilon), at=where[0]), epsilon)

    for_total, *for_stages = budget.divide_count([_TOTAL, *((1 - _TOTAL) * share for share, _ in _STAGES)])
    counts = count((np.array([ROOT]), np.zeros(0, np.int64)), for_total)
    shares, total = Shares.none(), max(float(counts.value[0]), 0.0)
    for epsilon, (_, fill) in zip(for_stages, _STAGES, strict=True):
        leaves = cut(halves, shares, total, fill / epsilon, at_most=most_nodes)
        counts = Measured.both(counts, count(leaves, epsilon))
        layers = best_estimates(halves, counts)
        total = max(float(layers[0].value[0]), 0.0)
        shares = follow(halves, Shares.none(), layers, total, total, Tuning(_DRIFT))
    tuning = Tuning(_DRIFT, emptiness=Emptiness.seen_in(halves, shares, total, _EMPTINESS))
    return follow(halves, Shares.none(), layers, total, total, tuning), layers[0]


def measured(where: Cut, noisy: Ints, epsilon: float) -> Measured:
    """Return noisy counts with their variance, together with what is known without counting."""
    variance = np.full(noisy.size, count_variance(epsilon))
    return Measured.both(Measured(where[0], noisy.astype(np.float64), variance), Measured.empty(where[1]))
