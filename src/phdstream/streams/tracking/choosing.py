"""Where to count, and when: chosen from what was released before, so at no privacy cost. All public."""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.shares import Shares, descend
from phdstream.streams.tracking.staging import Expected

__all__ = ["Cut", "cut", "expect", "patience", "spending", "surprise"]

Cut = tuple[Ints, Ints]
"""Nodes that tile the domain: those to count, and those without measure, where nothing can be."""


def cut(halves: Halves, shares: Shares, total: float, most: float, bits: int) -> Cut:
    """Open every node that holds more than ``most`` points, down to prefixes of a length; return what is left."""

    def opens(nodes: Ints, amounts: Floats, length: int) -> Bools:
        large: Bools = amounts[0] > most
        return large if length < bits else np.zeros(nodes.size, dtype=bool)

    start = np.array([[total], [1.0]])
    nodes, amounts = descend(halves, (shares, Shares.none()), np.array([ROOT]), start, opens)
    return nodes[amounts[1] > 0], nodes[amounts[1] <= 0]


def parts_of(halves: Halves, shares: Shares, nodes: Ints) -> Floats:
    """Return which part of all points each of some disjoint nodes holds, and which part of the measure: two rows."""
    ends, ancestors = np.sort(nodes), np.unique(np.concatenate([nodes >> i for i in range(halves.total_bits + 1)]))

    def opens(here: Ints, _: Floats, __: int) -> Bools:
        return np.isin(here, ancestors) & ~np.isin(here, ends)

    found, amounts = descend(halves, (shares, Shares.none()), np.array([ROOT]), np.ones((2, 1)), opens)
    order = np.argsort(found, kind="stable")
    parts: Floats = amounts[:, order[np.searchsorted(found[order], nodes)]]
    return parts


def expect(halves: Halves, shares: Shares, zones: Ints, seen: Floats, number: float, elsewhere: float) -> Expected:
    """Return where a block's events are expected: in each zone where points already are, a part ``elsewhere`` anywhere.

    A zone is expected to have its share of the block's ``number``, if it was not ``seen`` to have more.
    """
    points, measure = parts_of(halves, shares, zones)
    amount = np.maximum(seen, number * points)
    amounts = np.stack([(1 - elsewhere) * amount, elsewhere * amount, measure])
    return Expected(zones, amounts, (shares, Shares.none(), Shares.none()))


def patience(total: float, epsilon: float) -> float:
    """Return how much must happen, relative to all points, before a block is counted finely with budget ``epsilon``.

    The longer a block, the older what is known of it; the shorter, the more often the noise of a count is added and
    the larger its cells. With many points or a large budget noise matters less: the balance moves as
    ``(total · epsilon²)^(-1/4)``. The factor was chosen by trial.
    """
    return float(np.clip(3.5 * (max(total, 1.0) * epsilon**2) ** -0.25, 0.04, 0.6))


def spending(total: float, epsilon: float) -> tuple[float, float, float]:
    """Return the parts of an event's budget for its tick's total, for its zone and for the fine count of its block.

    The noise of totals and zones does not grow with the points. With many points it is small beside them, and little
    budget is enough; with few it decides how many there seem to be between fine counts.

    >>> [tuple(round(part, 3) for part in spending(total, epsilon=1.0)) for total in (100, 1_000, 100_000)]
    [(0.09, 0.18, 0.73), (0.054, 0.109, 0.837), (0.02, 0.04, 0.94)]
    """
    part = 0.02 * float(np.clip((max(total, 1.0) * epsilon / 20_000) ** (-1 / 3), 1.0, 4.5))
    return part, 2 * part, 1 - 3 * part


def surprise(seen: Floats, variance: Floats, expected: Floats) -> float:
    """Return by how much zones' changes differ from those expected, relative to them, beyond what noise explains.

    Near 0 if points come where points are; about 1 if they come elsewhere.

    >>> even = np.array([0.5, 0.5])
    >>> surprise(np.array([50.0, 50.0]), np.ones(2), even), round(surprise(np.array([100.0, 0.0]), np.ones(2), even), 1)
    (0.0, 1.0)
    """
    total = max(float(seen.sum()), 1.0)
    beyond = (seen - total * expected) ** 2 - 2 * variance
    return float(np.sqrt(max(beyond.sum() / (total**2 * max((expected**2).sum(), 1e-12)), 0.0)))
