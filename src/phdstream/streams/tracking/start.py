"""The start: everything up to t0, counted as one tick on finer and finer trees.

Each round's tree is chosen from the noisy counts of the rounds before it and of its own first stages, so choosing
costs nothing. An event enters the total, and one final node of each round (`tracking.staging`): it costs
the sum of their budgets, which is ``budget.count``.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains import ROOT
from phdstream.privacy import Budget, Noise, scale_for
from phdstream.release.soundness import Fallback
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.tracking.emptiness import Emptiness
from phdstream.streams.tracking.filtering import Tuning, follow
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.measuring import Layer, Measured, best_estimates, count_variance
from phdstream.streams.tracking.model import learnt
from phdstream.streams.tracking.shares import Shares
from phdstream.streams.tracking.staging import Expected, Plan, count_in_stages

__all__ = ["count_start"]

_TOTAL = 0.03
"""The part of the budget for the total; the rounds share the rest."""
_ROUNDS: tuple[tuple[float, Plan], ...] = (
    (0.1, ((8.0, 3), (8.0, 0))),
    (0.3, ((6.0, 3), (6.0, 0))),
    (0.6, ((6.0, 4), (8.0, 2), (4.5, 0))),
)
"""Each round's share, and its stages."""
_DRIFT, _EMPTINESS = 1.0, 0.3


def count_start(
    halves: Halves,
    inserts: CodeCounts,
    deletes: CodeCounts,
    budget: Budget,
    noise: Noise,
    most_nodes: int,
    fallback: Fallback,
) -> tuple[Shares, Layer]:
    """Return the shares, and the best estimate of the total as the layer of the root.

    Where learning from a round fails, what was known before it stays (see `phdstream.streams.tracking.model`).
    """

    def live(nodes: Ints) -> Ints:
        return inserts.within(nodes) - deletes.within(nodes)

    root = np.array([ROOT])
    for_total, *for_rounds = budget.divide_count([_TOTAL, *((1 - _TOTAL) * share for share, _ in _ROUNDS)])
    number = noise.add(live(root), scale_for(for_total), at=root).astype(np.float64)
    counts = Measured(root, number, np.array([count_variance(for_total)]))
    shares, total = Shares.none(), max(float(number[0]), 0.0)
    for epsilon, (_, plan) in zip(for_rounds, _ROUNDS, strict=True):
        expected = Expected(root, np.array([[total], [1.0]]), (shares, Shares.none()))
        counted = count_in_stages(halves, live, noise, epsilon, expected, plan, most_nodes)
        counts = Measured.both(counts, counted)
        layers = best_estimates(halves, counts)
        total = max(float(layers[0].value[0]), 0.0)
        shares = learnt(halves, fallback, partial(_learn, halves, layers, total, Tuning(_DRIFT)), shares)

    def finally_learnt() -> Shares:
        emptiness = Emptiness.seen_in(halves, shares, total, _EMPTINESS)
        return _learn(halves, layers, total, Tuning(_DRIFT, emptiness=emptiness))

    return learnt(halves, fallback, finally_learnt, shares), layers[0]


def _learn(halves: Halves, layers: list[Layer], total: float, tuning: Tuning) -> Shares:
    return follow(halves, Shares.none(), layers, total, total, tuning)
