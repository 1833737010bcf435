"""The private choice of a tick's tree: PrivTree on a score that is monotone, so that its proof holds.

**The score.** ``F(v) = P(v) + A(v)``. P is public: what was released so far, projected to be non-negative and
consistent (a parent is the sum of its children). A counts this tick's *inserts* in v, and is the only private
part. Both fall from parent to child, so F does; one insert moves F by exactly 1 on one root-to-leaf path and
nowhere else; a delete does not move it at all. That is all the proof in `phdstream.privacy.calibration` asks
for. (The paper's score ``G + ∇F`` is not monotone, because noise makes G negative and deletions make ∇F
negative, and leaks several times its budget.)

The projection is computed in floating point, on public numbers only. A child's part is ``P(v) · (w/Σw)`` with
``w <= Σw`` also after rounding, so it never exceeds ``P(v)``, and ``floor`` keeps that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.privacy import Noise, SplitRule
from phdstream.streams.code_counts import CodeCounts
from phdstream.streams.paper.nodes import NodeStore

__all__ = ["CodeCounts", "Level", "project", "score", "select_tree"]


@dataclass
class Level:
    """The visited nodes of one level: rows of the store, each one's parent in the level above, and which are leaves."""

    rows: Ints
    parent: Ints
    leaf: Bools

    def families(self) -> tuple[Ints, Ints]:
        """Return the parents, each once, and the position of each node's parent among them."""
        first = np.ones(self.parent.size, dtype=bool)
        np.not_equal(self.parent[1:], self.parent[:-1], out=first[1:])  # siblings stand together, in order
        return self.parent[first], np.cumsum(first) - 1


def select_tree(store: NodeStore, inserts: CodeCounts, rule: SplitRule, noise: Noise, max_nodes: int) -> list[Level]:
    """Return this tick's tree, level by level from the root.

    Costs the budget ``rule.loss`` for each insert. If the next level would take the tree past ``max_nodes``, it is
    left out, whatever the tests said: a function of the (private, noisy) decisions alone.
    """
    rows, parent, visited = np.zeros(1, np.int64), np.zeros(1, np.int64), 1
    above, own = np.zeros(1), store["own"][rows]
    mass = np.maximum(above + own + store["below"][rows], 0)
    levels: list[Level] = []
    for depth in range(store.domain.depth):
        splits = _splits(store, rows, mass, depth, inserts, rule, noise)
        levels.append(Level(rows, parent, ~splits))
        split = np.flatnonzero(splits)
        if visited + store.domain.fanout * split.size > max_nodes:
            levels[-1].leaf[:] = True
            return levels
        if not split.size:
            return levels
        above, mass = (above + own)[split], mass[split]
        rows, parent = store.children_of(rows[split])
        own, share = store["own"][rows], store["share"][rows]
        above = share * above[parent]
        mass = project(mass, above + own + store["below"][rows], parent, share)
        parent = split[parent]
        visited += rows.size
    levels.append(Level(rows, parent, np.ones(rows.size, dtype=bool)))
    return levels


def _splits(
    store: NodeStore, rows: Ints, mass: Floats, depth: int, inserts: CodeCounts, rule: SplitRule, noise: Noise
) -> Bools:
    nodes = store["node"][rows]
    biased = np.maximum(score(mass, inserts.within(nodes, depth)) - depth * rule.bias, rule.floor)
    return noise.add(biased, rule.scale, at=nodes) > rule.threshold


def score(mass: Floats, inserted: Ints) -> Ints:
    """Return ``floor(P(v)) + A(v)``: the public past, rounded down, plus this tick's inserts."""
    return np.floor(mass).astype(np.int64) + inserted


def project(mass: Floats, released: Floats, parent: Ints, share: Floats) -> Floats:
    """Divide each parent's non-negative mass among its children, in proportion to what was released and is positive.

    Where nothing positive was released, by measure.

    >>> both = np.array([0, 0])
    >>> project(np.array([7.0]), np.array([-3.0, 10.0]), both, np.array([0.5, 0.5]))
    array([0., 7.])
    """
    weight = np.maximum(released, 0)
    total = np.bincount(parent, weights=weight, minlength=mass.size)[parent]
    fraction = np.divide(weight, total, out=share.copy(), where=total > 0)
    return mass[parent] * fraction
