"""How a fine count divides nodes, and which parts of divisible noise each piece has. Public: no counts, no noise.

The mechanism counts the pieces; the model's rule says which of them to divide next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from phdstream.arrays import Bools, Ints
from phdstream.domains.prefixes import are_disjoint, code_range, prefix_length
from phdstream.errors import StateError

__all__ = ["Pieces", "RefinedCounts", "RefinementRule"]


@dataclass(frozen=True)
class Pieces:
    """Disjoint nodes, where the noise of each begins, and how often each may still be halved (``levels``).

    One that may be halved k times has 2^k parts of noise; its first half takes the first half of them.
    """

    total_bits: int
    node: Ints
    first: Ints
    levels: Ints

    def __post_init__(self) -> None:
        if not are_disjoint(self.node, self.total_bits) or (self.levels < 0).any():
            raise StateError("a fine count would count an event twice: a bug, please report it.")

    @property
    def parts(self) -> Ints:
        """How many parts of noise each node has."""
        return np.int64(1) << self.levels

    @classmethod
    def whole(cls, total_bits: int, nodes: Ints, levels: int) -> Pieces:
        """Return nodes not divided yet, each of which may be halved so often, as far as the tree goes."""
        may = np.minimum(levels, total_bits - prefix_length(nodes))
        parts = np.int64(1) << may
        return cls(total_bits, nodes, np.cumsum(parts) - parts, may)

    def divided(self, nodes: Ints, levels: int) -> Pieces:
        """Return the nodes that the pieces are divided into, with their share of the noise; the rest is dropped.

        Every node must lie in a piece that may be halved so often; each may then be halved ``levels`` times more, if
        its noise allows.
        """
        of = self._piece_of(nodes)
        halvings = prefix_length(nodes) - prefix_length(self.node[of])
        left = self.levels[of] - halvings
        inside = nodes >> np.maximum(halvings, 0) == self.node[of]
        if not inside.all() or (left < 0).any() or (halvings < 0).any():
            raise StateError("a fine count would divide noise that is not there: a bug, please report it.")
        first = self.first[of] + ((nodes - (self.node[of] << halvings)) << left)
        return Pieces(self.total_bits, nodes, first, np.minimum(left, levels))

    def may_halve(self, nodes: Ints, bits: int) -> Bools:
        """Return which of these nodes of one length, pieces or parts of pieces, may be halved again."""
        of = self._piece_of(nodes, bits)
        may: Bools = bits - prefix_length(self.node[of]) < self.levels[of]
        return may

    def _piece_of(self, nodes: Ints, bits: int | None = None) -> Ints:
        """Return the piece in which each node begins."""
        starts, order = self._by_start
        at: Ints = np.searchsorted(starts, code_range(nodes, self.total_bits, bits)[0], side="right") - 1
        return order[np.maximum(at, 0)]

    @cached_property
    def _by_start(self) -> tuple[Ints, Ints]:
        starts = code_range(self.node, self.total_bits)[0]
        order = np.argsort(starts, kind="stable")
        return starts[order], order


class RefinementRule(Protocol):
    """The public plan of a fine count: what to count first, and what to divide in view of the noisy counts."""

    def first(self) -> tuple[Ints, int]:
        """Return disjoint nodes to count, and how often each may be halved afterwards."""
        ...

    def refine(self, pieces: Pieces, noisy: Ints) -> tuple[Ints, int] | None:
        """Return what the pieces are to be divided into, and how often that may be halved; None if no more.

        ``noisy`` are the pieces' counts; each piece has as many parts of noise as it says.
        """
        ...


@dataclass(frozen=True)
class RefinedCounts:
    """The outcome of a fine count: nodes that tile the first ones, each with one part of noise."""

    node: Ints
    value: Ints
