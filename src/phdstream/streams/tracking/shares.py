"""What has been learnt of how each node's points divide between its two halves. All public.

The **lean** of a node is the first half's points minus the second's, over their sum: 1 if all are in the first. Its
**doubt** is the variance of the lean. A node never measured leans as the domain's measure does, with doubt
`UNKNOWN`. With a total, the leans give a density on the whole tree: ``mass(half) = mass(node) · (1 ± lean)/2``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.streams.tracking.halves import Halves

__all__ = ["UNKNOWN", "Shape", "Shares", "descend", "masses"]

UNKNOWN = 20.0
"""The doubt of a node about which nothing is known: far more than any lean can differ from another."""


class Shape(Protocol):
    """What says how nodes divide between their halves."""

    def of(self, halves: Halves, nodes: Ints, bits: int) -> tuple[Floats, Floats]:
        """Return the leans and doubts of nodes of one length, in order and all different."""


@dataclass(frozen=True)
class Shares:
    """Leans and doubts of the measured nodes, in order of the nodes; a value that is never changed in place."""

    node: Ints
    lean: Floats
    doubt: Floats

    @classmethod
    def none(cls) -> Shares:
        """Return the shares before anything was measured."""
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))

    def knows(self, nodes: Ints) -> Bools:
        """Return which nodes were measured."""
        return self.find(nodes)[1]

    def of(self, halves: Halves, nodes: Ints, bits: int) -> tuple[Floats, Floats]:
        """Return the leans and doubts of nodes of one length, in order and all different."""
        if not self.node.size and halves.even:
            return np.zeros(nodes.size), np.full(nodes.size, UNKNOWN)
        at, known = self.find(nodes)
        lean, doubt = np.empty(nodes.size), np.full(nodes.size, UNKNOWN)
        lean[known], doubt[known] = self.lean[at[known]], self.doubt[at[known]]
        if not known.all():
            lean[~known] = 2 * halves.first_share(nodes[~known], bits) - 1
        return lean, doubt

    def learn(self, node: Ints, lean: Floats, doubt: Floats) -> Shares:
        """Return shares that know these nodes, all different, as given, and the others as before."""
        rest = ~np.isin(self.node, node, assume_unique=True)
        nodes = np.concatenate([self.node[rest], node])
        order = np.argsort(nodes, kind="stable")  # two runs in order: quickly merged
        lean, doubt = np.concatenate([self.lean[rest], lean]), np.concatenate([self.doubt[rest], doubt])
        return Shares(nodes[order], lean[order], doubt[order])

    def only(self, kept: NDArray[np.bool_]) -> Shares:
        """Return some of the shares."""
        return Shares(self.node[kept], self.lean[kept], self.doubt[kept])

    def sound(self) -> bool:
        """Whether every lean lies between -1 and 1 and every doubt is a number that is not negative."""
        return bool((np.abs(self.lean) <= 1).all() and (self.doubt >= 0).all() and np.isfinite(self.doubt).all())

    def mended(self, halves: Halves) -> Shares:
        """Return sound shares of the same nodes: leans within their limits, and nothing in halves without measure.

        Where a lean or a doubt is no number, the node leans as the measure does.
        """
        lean, doubt = np.clip(self.lean, -1, 1), np.clip(self.doubt, 0, UNKNOWN)
        lost = ~(np.isfinite(self.lean) & np.isfinite(self.doubt))
        lengths = halves.bits(self.node)
        for bits in np.unique(lengths).tolist():
            at = np.flatnonzero(lengths == bits)
            measure, unknown = Shares.none().of(halves, self.node[at], bits)
            lean[at] = np.where(lost[at] | (np.abs(measure) == 1), measure, lean[at])
            doubt[at] = np.where(lost[at], unknown, doubt[at])
        return Shares(self.node, lean, doubt)

    def find(self, nodes: Ints) -> tuple[Ints, Bools]:
        """Return where each node is among the measured ones, and whether it is."""
        if not self.node.size:
            return np.zeros(nodes.size, np.int64), np.zeros(nodes.size, dtype=bool)
        at = np.minimum(np.searchsorted(self.node, nodes), self.node.size - 1)
        return at, self.node[at] == nodes


def descend(
    halves: Halves,
    shapes: tuple[Shape, ...],
    nodes: Ints,
    amounts: Floats,
    opens: Callable[[Ints, Floats, int], Bools],
    limit: int | None = None,
) -> tuple[Ints, Floats]:
    """Open nodes from the top down while ``opens(nodes, amounts, bits)`` says so; return the unopened ones.

    ``amounts`` has a row for each of the ``shapes``, by which that amount divides between halves; the nodes to begin
    with may be of any lengths, none inside another. No more are opened once that would make more than ``limit``. The
    result is in order of length, then of node.
    """
    order = np.argsort(nodes, kind="stable")
    waiting, brought = nodes[order], amounts[:, order]
    lengths = halves.bits(waiting)
    here, held = waiting[:0], brought[:, :0]
    leaves, left, number = [], [], 0
    for bits in range(int(lengths[0]), halves.total_bits + 1):
        here, held = _merge(here, held, waiting[lengths == bits], brought[:, lengths == bits])
        opened = opens(here, held, bits) & (bits < halves.total_bits)
        in_all = number + here.size + int(opened.sum()) + int((lengths > bits).sum())
        if limit is not None and in_all > limit:
            opened = np.zeros(here.size, dtype=bool)
        number += int((~opened).sum())
        leaves.append(here[~opened])
        left.append(held[:, ~opened])
        here, held = here[opened], held[:, opened]
        if here.size:
            here, held = _halve(halves, shapes, here, held, bits)
        elif bits >= lengths[-1]:
            break
    return np.concatenate(leaves), np.concatenate(left, axis=1)


def _merge(nodes: Ints, amounts: Floats, more: Ints, brought: Floats) -> tuple[Ints, Floats]:
    if not more.size:
        return nodes, amounts
    every = np.concatenate([nodes, more])
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate([amounts, brought], axis=1)[:, order]


def _halve(halves: Halves, shapes: tuple[Shape, ...], nodes: Ints, amounts: Floats, bits: int) -> tuple[Ints, Floats]:
    lean = np.stack([shape.of(halves, nodes, bits)[0] for shape in shapes])
    parts = np.stack([amounts * (1 + lean) / 2, amounts * (1 - lean) / 2], axis=2)
    return np.stack([2 * nodes, 2 * nodes + 1], axis=1).ravel(), parts.reshape(len(shapes), -1)


def masses(halves: Halves, shares: Shares, total: float) -> Floats:
    """Return how many points each known node holds; one below a forgotten node is reached by measure.

    A half never holds more than the whole, so forgetting the lightest nodes forgets whole subtrees.
    """
    mass = np.zeros(shares.node.size)

    def note(nodes: Ints, amounts: Floats, bits: int) -> Bools:
        at, known = shares.find(nodes)
        mass[at[known]] = amounts[0, known]
        return known

    descend(halves, (shares,), np.array([1]), np.array([[total]]), note)
    return mass
