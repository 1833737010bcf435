"""Which nodes a fine count is to count, and which of them to divide in view of their noisy counts. Public.

Where events come was only *expected*, so nodes are counted in stages: first somewhat coarsely, then again where more
was found than expected, divided further. The mechanism counts, with noise that can be divided; which nodes are divided
is decided here, from the noisy counts of the stages before.

**Looking deeper.** If all points may be in one building of a whole world, nodes that may be divided a few times find
hardly more than its country. So at the start n nodes are first counted more roughly, each with up to n parts of noise:
the sum of n parts hides √n, and one place that holds everything holds some times n. What then seems to hold very much
is divided at once, and counted again less roughly, and so on. What is not divided is expected to hold what it was
expected to before: its next count contains the noise of this one, and says more.

**Dropped noise is given back.** A node that seems light is not divided, and drops most of its noise; one that seems
heavy is divided, and keeps it. It seems heavy, too, if its noise happens to be large: so what is kept is too large
on average. What was dropped is known, though: the first stage's counts minus the last one's. It is given back,
the same to every node, and the sum of all counts is that of the first stage, which nothing was chosen by (except in
looking deeper, where noise alone is hardly ever chosen). So all counts share an error: of P parts of noise in all,
those that n nodes did not keep, of variance (P - n)·v, each node has 1/n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from phdstream.arrays import Bools, Floats, Ints, positions
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.least_squares import NoisyCounts, count_variance
from phdstream.streams.tracking.model.split_tree import Density, by_contrast
from phdstream.streams.tracking.model.walk import Opens, leaves_of
from phdstream.streams.tracking.parameters import FineCounts, Stages
from phdstream.streams.tracking.pieces import Pieces, RefinedCounts

__all__ = ["Deeper", "ExpectedCounts", "Refinement"]

_DEEP_STEP = 3
"""In looking deeper, each count may be divided so many times less than the one before."""


class Deeper(NamedTuple):
    """How to look deeper: what seems to hold more noise scales is divided; so many parts of noise are drawn at most."""

    fill: float
    parts: float


@dataclass(frozen=True)
class ExpectedCounts:
    """How many events are expected in some disjoint nodes: rows of amounts, each divided by its density.

    The last row is the nodes' measure; a node of measure zero cannot hold events. The others add up.
    """

    tree: BinaryTree
    node: Ints
    amounts: Floats
    densities: tuple[Density, ...]

    @property
    def number(self) -> Floats:
        """The expected number of events."""
        number: Floats = self.amounts[:-1].sum(axis=0)
        return number

    def opened(self, opens: Opens, limit: int | None) -> ExpectedCounts:
        """Return what is expected in the nodes' pieces, in order of length, then of node."""
        halve = by_contrast(self.tree, self.densities)
        node, amounts = leaves_of(self.tree.total_bits, self.node, self.amounts, opens, halve, limit)
        return ExpectedCounts(self.tree, node, amounts, self.densities)

    def only(self, kept: Bools) -> ExpectedCounts:
        """Return some of the nodes."""
        return ExpectedCounts(self.tree, self.node[kept], self.amounts[:, kept], self.densities)

    def corrected(self, seen: Ints, variance: Floats, latitude: float) -> ExpectedCounts:
        """Return what to expect after a noisy count: between what was expected and what was seen."""
        number = self.number
        spread = number + (latitude * number) ** 2
        likely = np.maximum(number + spread / (spread + variance) * (seen - number), 0)
        factor = np.divide(likely, number, out=np.ones(number.size), where=number > 0)
        amounts = np.concatenate([self.amounts[:-1] * factor, self.amounts[-1:]])
        return ExpectedCounts(self.tree, self.node, amounts, self.densities)

    def unless_whole(self, before: ExpectedCounts) -> ExpectedCounts:
        """Return what is expected, but of nodes that were there ``before`` what was expected of them then."""
        order = np.argsort(before.node, kind="stable")
        at = order[np.minimum(np.searchsorted(before.node, self.node, sorter=order), order.size - 1)]
        whole = before.node[at] == self.node
        amounts = np.where(whole, before.amounts[:, at], self.amounts)
        return ExpectedCounts(self.tree, self.node, amounts, self.densities)


def _powers(number: int) -> int:
    """Return the largest k with 2^k at most ``number``, or 0."""
    return max(number, 1).bit_length() - 1


class Refinement:
    """A `RefinementRule`: nodes expected to hold more than some times the noise are divided, stage by stage."""

    def __init__(
        self,
        rule: FineCounts,
        expected: ExpectedCounts,
        stages: Stages,
        epsilon: float,
        limit: int | None,
        drift: Floats | None = None,
        deeper: Deeper | None = None,
    ) -> None:
        self._rule, self.expected, self._epsilon, self._limit = rule, expected, epsilon, limit
        self._drift, self._deeper = drift, deeper
        self._first, *self._later = stages
        self._levels: list[int] = []
        self._empty: list[Ints] = []
        self._parts, self._sum = 0, 0

    def first(self) -> tuple[Ints, int]:
        """Return the first stage's nodes, and how often each may be halved; fewer times if there are very many."""
        fill, levels = self._first
        self._open(lambda _, amounts, bits: self._heavy(amounts, bits, fill))
        nodes, deepest = self.expected.node, 0
        number = max(nodes.size, 1)
        if self._limit is not None:  # parts of noise must not crowd the memory
            levels = min(levels, _powers(int(self._rule.parts_per_node) * self._limit // number))
        if self._deeper is not None:
            deepest = min(_powers(number), _powers(int(self._deeper.parts) // number))
        first, *self._levels = [*range(deepest, levels, -_DEEP_STEP), levels]
        return nodes, first

    def refine(self, pieces: Pieces, noisy: Ints) -> tuple[Ints, int] | None:
        """Return what the pieces are to be divided into, and how often that may be halved; None if no more."""
        before, variance = self.expected, count_variance(self._epsilon) * pieces.parts.astype(np.float64)
        if self._levels and self._deeper is not None:
            self.expected = before.corrected(noisy, variance, self._rule.latitude)
            self._open_pieces(pieces, self._deeper.fill)
            self.expected = self.expected.unless_whole(before)
            return self.expected.node, self._levels.pop(0)
        if not self._parts:
            self._parts, self._sum = int(pieces.parts.sum()), int(noisy.sum())
        if not self._later:
            return None
        fill, levels = self._later.pop(0)
        self.expected = before.corrected(noisy, variance, self._rule.latitude)
        self._open_pieces(pieces, fill)
        return self.expected.node, levels

    def _open_pieces(self, pieces: Pieces, fill: float) -> None:
        """Open what is heavy, as far as the pieces' noise may be divided."""

        def heavy(nodes: Ints, amounts: Floats, bits: int) -> Bools:
            opened = self._heavy(amounts, bits, fill)
            some = positions(opened)
            opened[some] = pieces.may_halve(nodes[some], bits)
            return opened

        self._open(heavy)

    def _heavy(self, amounts: Floats, bits: int, fill: float) -> Bools:
        """Return which nodes are expected to hold so much that how they divide is worth counting.

        Of n events the difference of the halves has the variance n + κ²n² around what is expected. With κ = 1 a node is
        worth counting if n is above ``fill`` noise scales; with a smaller ``drift`` κ², if that variance is as large.
        """
        number, most = amounts[:-1].sum(axis=0), fill / self._epsilon
        heavy: Bools = number > most
        if self._drift is not None and bits < self._drift.size:
            drift = self._drift[bits]
            heavy &= drift * number**2 + (1 - drift) * number > most**2
        return heavy

    def _open(self, opens: Opens) -> None:
        """Open nodes, and put those of measure zero aside: nothing can be there."""
        expected = self.expected.opened(opens, self._limit)
        possible = expected.amounts[-1] > 0
        self.expected = expected if possible.all() else expected.only(possible)
        self._empty.append(expected.node[~possible])

    def outcome(self, counted: RefinedCounts) -> NoisyCounts:
        """Return the final counts, with dropped noise given back, and what is known of zero-measure nodes."""
        value, size = counted.value.astype(np.float64), counted.value.size
        variance = count_variance(self._epsilon)
        dropped, shared = 0.0, np.zeros((0, size))
        if self._rule.return_dropped_noise and size:
            dropped = (self._sum - value.sum()) / size
            shared = np.full((1, size), math.sqrt(max(self._parts - size, 0) * variance) / size)
        counts = NoisyCounts(counted.node, value + dropped, np.full(size, variance), shared)
        return NoisyCounts.concat(counts, NoisyCounts.known_empty(np.concatenate(self._empty)))
