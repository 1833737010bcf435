"""Counting in stages: look where events are, count finely there, and pay once.

Where events come was only *expected*, so nodes are counted in stages: first somewhat coarsely, with noise that can
still be divided (`privacy.divisible_noise`), then again where more was found than expected, divided further. In
the end every node's count has noise of scale 1/ε, and an event, which is in one of them, has cost ε. Which nodes are
divided is a function of the counts of the stages before. (Places without measure hold no events and are left out. If
one did hold an event, that would cost no more: the place's own parts of noise are dropped, and hide it.)

**Dropped noise is given back.** A node that seems light is not divided, and drops most of its noise; one that seems
heavy is divided, and keeps it. It seems heavy, too, if its noise happens to be large: so what is kept is too large
on average. What was dropped is known, though: the first stage's counts minus the last one's. It is given back,
the same to every node, and the sum of all counts is that of the first stage, which nothing was chosen by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.privacy import Noise, SharedNoise, scale_for
from phdstream.streams.tracking.halves import Halves
from phdstream.streams.tracking.measuring import Measured, count_variance
from phdstream.streams.tracking.shares import Shape, descend

__all__ = ["Expected", "Plan", "count_in_stages"]

Plan = tuple[tuple[float, int], ...]
"""For each stage: how many times the noise's scale a node must be expected to hold to be divided, and how often it may
still be halved afterwards; not at all after the last."""
_LATITUDE = 1.0
"""By how much, relative to what is expected, the number of events in a node may well differ from it."""
_PARTS = 4
"""No more parts of noise are drawn than this many times the nodes allowed."""


@dataclass(frozen=True)
class Expected:
    """How many events are expected in some disjoint nodes: rows of amounts, each divided by its shape.

    The last row is the nodes' measure; a node without any cannot hold events. The others add up.
    """

    node: Ints
    amounts: Floats
    shapes: tuple[Shape, ...]

    @property
    def number(self) -> Floats:
        """The expected number of events."""
        number: Floats = self.amounts[:-1].sum(axis=0)
        return number

    def opened(self, halves: Halves, opens: Callable[[Ints, Floats, int], Bools], at_most: int | None) -> Expected:
        """Return what is expected in the nodes' pieces, in order of length, then of node."""
        return Expected(*descend(halves, self.shapes, self.node, self.amounts, opens, at_most), self.shapes)

    def only(self, kept: Bools) -> Expected:
        """Return some of the nodes."""
        return Expected(self.node[kept], self.amounts[:, kept], self.shapes)

    def corrected(self, seen: Ints, variance: Floats) -> Expected:
        """Return what to expect after a noisy count: between what was expected and what was seen."""
        number = self.number
        spread = number + (_LATITUDE * number) ** 2
        likely = np.maximum(number + spread / (spread + variance) * (seen - number), 0)
        factor = np.divide(likely, number, out=np.ones(number.size), where=number > 0)
        return Expected(self.node, np.concatenate([self.amounts[:-1] * factor, self.amounts[-1:]]), self.shapes)


@dataclass(frozen=True)
class _Pieces:
    """Disjoint nodes, where the noise of each begins, and how often each may still be halved.

    One that may be halved k times holds 2^k parts of noise; its first half takes the first half of them.
    """

    halves: Halves
    node: Ints
    first: Ints
    levels: Ints

    @property
    def held(self) -> Ints:
        return np.int64(1) << self.levels

    @classmethod
    def whole(cls, halves: Halves, nodes: Ints, levels: int, at_most: int | None) -> _Pieces:
        """Return nodes not divided yet; with so many that parts of noise would crowd the memory, fewer levels."""
        if at_most is not None:
            levels = min(levels, max(_PARTS * at_most // max(nodes.size, 1), 1).bit_length() - 1)
        may = np.minimum(levels, halves.total_bits - halves.bits(nodes))
        held = np.int64(1) << may
        return cls(halves, nodes, np.cumsum(held) - held, may)

    def may_open(self, nodes: Ints, bits: int) -> Bools:
        """Return which of these nodes, pieces or parts of them, may be halved again."""
        of = self._holding(nodes, bits)
        may: Bools = bits - self.halves.bits(self.node[of]) < self.levels[of]
        return may

    def divided(self, nodes: Ints, levels: int) -> _Pieces:
        """Return the nodes that the pieces were divided into, with their share of the noise; the rest is dropped."""
        of = self._holding(nodes)
        halvings = self.halves.bits(nodes) - self.halves.bits(self.node[of])
        left = self.levels[of] - halvings
        first = self.first[of] + ((nodes - (self.node[of] << halvings)) << left)
        return _Pieces(self.halves, nodes, first, np.minimum(left, levels))

    def _holding(self, nodes: Ints, bits: int | None = None) -> Ints:
        """Return in which piece each node lies."""
        starts, order = self._by_start
        at: Ints = order[np.searchsorted(starts, self.halves.code_range(nodes, bits)[0], side="right") - 1]
        return at

    @cached_property
    def _by_start(self) -> tuple[Ints, Ints]:
        starts = self.halves.code_range(self.node)[0]
        order = np.argsort(starts, kind="stable")
        return starts[order], order


def count_in_stages(
    halves: Halves,
    count: Callable[[Ints], Ints],
    noise: Noise,
    epsilon: float,
    expected: Expected,
    plan: Plan,
    at_most: int | None = None,
) -> Measured:
    """Return noisy counts of nodes that tile the expected ones, and what is known of places without measure.

    ``count`` returns how many events are in each of some disjoint nodes (private). An event costs ε, once.
    """
    (fill, levels), *later = plan
    expected = expected.opened(halves, lambda _, amounts, __: amounts[:-1].sum(axis=0) > fill / epsilon, at_most)
    expected, without = _possible(expected)
    pieces, variance = _Pieces.whole(halves, expected.node, levels, at_most), count_variance(epsilon)
    shared = SharedNoise(noise, scale_for(epsilon), pieces.held, at=pieces.node)
    noisy = shared.add(count(pieces.node), pieces.first, pieces.held, at=pieces.node)
    in_all = noisy.sum()
    for fill, levels in later:
        expected = expected.corrected(noisy, variance * pieces.held.astype(np.float64))
        expected = expected.opened(halves, _heavy(pieces, fill / epsilon), at_most)
        expected, more_without = _possible(expected)
        without = np.concatenate([without, more_without])
        pieces = pieces.divided(expected.node, levels)
        noisy = shared.add(count(pieces.node), pieces.first, pieces.held, at=pieces.node)
    values = noisy + (in_all - noisy.sum()) / max(noisy.size, 1)
    counted = Measured(pieces.node, values, np.full(noisy.size, variance))
    return Measured.both(counted, Measured.empty(without))


def _possible(expected: Expected) -> tuple[Expected, Ints]:
    """Return the nodes that can hold events, and those without measure."""
    possible = expected.amounts[-1] > 0
    return expected.only(possible), expected.node[~possible]


def _heavy(pieces: _Pieces, most: float) -> Callable[[Ints, Floats, int], Bools]:
    def opens(nodes: Ints, amounts: Floats, bits: int) -> Bools:
        heavy: Bools = (amounts[:-1].sum(axis=0) > most) & pieces.may_open(nodes, bits)
        return heavy

    return opens
