"""A tick's tree in the making: the public side of selection, PrivTree (Zhang et al. 2016) on a score that is monotone.

**The score** of a node is ``F(v) = P(v) + A(v)``. P is public: what was released so far, projected to be non-negative
and consistent (a parent is the sum of its children). A counts this tick's inserts, and is left to the mechanism. Both
fall from parent to child, so F does. (The paper's score ``G + ∇F`` is not monotone, because noise makes G negative and
deletions make ∇F negative, and leaks several times its budget.)

The projection is computed in floating point, on public numbers only. A child's part is ``P(v) · (w/Σw)`` with
``w <= Σw`` also after rounding, so it never exceeds ``P(v)``, and ``floor`` keeps that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.streams.paper.model.nodes import NodeStore

__all__ = ["Level", "TreePlan", "project"]


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


class TreePlan:
    """A `SelectionPlan` over the nodes of a store; ``levels`` is the tree when it is done.

    If the next level would take the tree past ``max_nodes``, it is left out, whatever the tests said: a function of the
    outcomes alone.
    """

    def __init__(self, store: NodeStore, max_nodes: int) -> None:
        self._store, self._max_nodes, self._visited = store, max_nodes, 1
        self._rows, self._parent = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._above, self._own = np.zeros(1), store["own"][:1]
        self._mass: Floats = np.maximum(self._above + self._own + store["below"][:1], 0)
        self.levels: list[Level] = []
        self.depth, self.bits = 0, 0
        self._test()

    def _test(self) -> None:
        """Let the nodes of this level be tested, or end the tree if it is the last."""
        if self.depth == self._store.domain.depth:
            self.levels.append(Level(self._rows, self._parent, np.ones(self._rows.size, dtype=bool)))
            self._end()
        else:
            self.nodes: Ints = self._store["node"][self._rows]
            self.past: Ints = np.floor(self._mass).astype(np.int64)

    def _end(self) -> None:
        self.nodes = self.past = np.zeros(0, np.int64)

    def split(self, splits: Bools) -> None:
        """Take the outcome of this level's tests, and go to the children of the nodes that split."""
        self.levels.append(Level(self._rows, self._parent, ~splits))
        split, store = np.flatnonzero(splits), self._store
        if self._visited + store.domain.fanout * split.size > self._max_nodes:
            self.levels[-1].leaf[:] = True
            self._end()
        elif not split.size:
            self._end()
        else:
            above, mass = (self._above + self._own)[split], self._mass[split]
            self._rows, parent = store.children_of(self._rows[split])
            self._own, share = store["own"][self._rows], store["share"][self._rows]
            self._above = share * above[parent]
            self._mass = project(mass, self._above + self._own + store["below"][self._rows], parent, share)
            self._parent = split[parent]
            self._visited += self._rows.size
            self.depth, self.bits = self.depth + 1, self.bits + store.domain.level_bits[self.depth]
            self._test()


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
