"""Counting for tracking: private events in, noisy counts of a public plan out.

**Why it is private.** Events are used in these ways only, each an exact count plus discrete Laplace noise:

- *at the start*, of everything up to t0: the total, and round by round a fine count (`count_start_total`,
  `count_start`). An event costs the sum of their budgets.
- *after the start*, inserts and deletes apart: the tick's total (`take_tick`), the zones' counts of a batch of ticks
  (`count_zones`), a fine count of a block of batches (`count_block`). An event belongs to one tick, one batch and
  one block: it costs the sum of the three budgets.

In each, an event enters one of the counted nodes, by 1, for they are disjoint (checked here). Which nodes, which
budgets and when a batch or a block ends come with the plan: functions of noisy counts released before. Counts of
different ticks, batches, blocks and kinds see different events, so they compose in parallel; the rest composes
adaptively (each count's question may depend on earlier answers). A fine count with budget e may count nodes before it
divides them, and costs an event e in all (`phdstream.privacy.divisible_noise`).

Whatever the plan says, the ledger that every event carries (`phdstream.streams.private_codes`) refuses to spend more
than ``budget.count`` of it over the whole stream; a unit's events add up to at most ε (`phdstream.privacy.budget`).

**Private** are the events of the open block, and nothing else; they are forgotten when they have been counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains import ROOT
from phdstream.domains.prefixes import are_disjoint
from phdstream.errors import StateError
from phdstream.privacy import Budget, Noise, scale_for
from phdstream.streams.private_codes import ExactCounts, PrivateCodes, TickEvents
from phdstream.streams.state import Arrays, nest, unnest
from phdstream.streams.tracking.pieces import Pieces, RefinedCounts, RefinementRule

__all__ = ["Mechanism"]

_KINDS = TickEvents._fields


class Mechanism:
    """Holds the events that wait to be counted, and counts them. ``kind`` is 0 for inserts and 1 for deletes."""

    def __init__(self, budget: Budget, total_bits: int, noise: Noise) -> None:
        self.budget, self.noise, self._bits = budget, noise, total_bits
        self._start: TickEvents | None = None
        self._batch, self._block = self._nothing(), self._nothing()

    def _nothing(self) -> list[PrivateCodes]:
        limits = (self.budget.of_insert, self.budget.of_delete)
        return [PrivateCodes(self._bits, limit) for limit in limits]

    def take_start(self, waiting: list[TickEvents]) -> None:
        """Take the events of the start; they wait for `count_start_total`, `count_start`, and `end_start`."""
        self._start = TickEvents(*self._nothing())
        for tick in waiting:
            for events, new in zip(self._start, tick, strict=True):
                events.absorb(new)

    def count_start_total(self, epsilon: float) -> int:
        """Return the noisy number of points at the start; costs ``epsilon``."""
        return int(self._count(self._live(), np.array([ROOT]), epsilon)[0])

    def count_start(self, rule: RefinementRule, epsilon: float) -> RefinedCounts:
        """Return a fine count of the points at the start; costs ``epsilon``."""
        return self._count_finely(self._live(), rule, epsilon)

    def end_start(self) -> None:
        """Forget the events of the start: they have been counted."""
        self._start = None

    def _live(self) -> TickEvents:
        if self._start is None:
            raise StateError("the start was counted already: a bug, please report it.")
        return self._start

    def take_tick(self, kind: int, events: PrivateCodes, epsilon: float) -> int:
        """Take a tick's events of one kind into the open batch; return their noisy number. Costs ``epsilon``."""
        noisy = self._count([events], np.array([ROOT]), epsilon)
        self._batch[kind].absorb(events)
        return int(noisy[0])

    def count_zones(self, kind: int, zones: Ints, epsilon: float) -> Ints:
        """Return noisy counts of disjoint zones in the open batch, and begin a new one. Costs ``epsilon``."""
        noisy = self._count([self._batch[kind]], zones, epsilon)
        self._block[kind].absorb(self._batch[kind])
        self._batch[kind] = self._nothing()[kind]
        return noisy

    def count_block(self, kind: int, rule: RefinementRule, epsilon: float) -> RefinedCounts:
        """Return a fine count of the block, whose events are then forgotten. Costs ``epsilon``."""
        block, self._block[kind] = self._block[kind], self._nothing()[kind]
        return self._count_finely([block], rule, epsilon)

    def _count(self, events: Sequence[PrivateCodes], nodes: Ints, epsilon: float) -> Ints:
        """Return noisy counts of disjoint nodes; an event enters one of them, by 1.

        ``events`` are of one kind, or what appeared and what disappeared: then the latter is taken off.
        """
        if not are_disjoint(nodes, self._bits):
            raise StateError("nodes to be counted overlap: a bug, please report it.")
        exact = _Net([kind.spend(epsilon) for kind in events])
        return self.noise.add(exact.within(nodes), scale_for(epsilon), at=nodes)

    def _count_finely(self, events: Sequence[PrivateCodes], rule: RefinementRule, epsilon: float) -> RefinedCounts:
        """Count nodes, divide them as the rule says, and count again, all with one budget: see `DivisibleNoise`.

        Places that the rule leaves out, for nothing can be there, hold no events. If one did hold an event, that would
        cost no more: the place's own parts of noise are dropped, and hide it.
        """
        nodes, levels = rule.first()
        pieces = Pieces.whole(self._bits, nodes, levels)
        exact = _Net([kind.spend(epsilon) for kind in events])
        noise = self.noise.divisible(scale_for(epsilon), pieces.parts, at=pieces.node)
        noisy = noise.add(exact.within(pieces.node), pieces.first, pieces.parts, at=pieces.node)
        while (division := rule.refine(pieces, noisy)) is not None:
            pieces = pieces.divided(*division)
            noisy = noise.add(exact.within(pieces.node), pieces.first, pieces.parts, at=pieces.node)
        if (pieces.levels > 0).any():
            raise StateError("a fine count ended with noise undivided: a bug, please report it.")
        return RefinedCounts(pieces.node, noisy)

    def to_arrays(self) -> Arrays:
        """Return the events of the open block, and what each has spent, as plain arrays. **Private.**"""
        arrays: Arrays = {}
        for name, group in (("batch", self._batch), ("block", self._block)):
            for kind, events in zip(_KINDS, group, strict=True):
                arrays |= nest(f"{name}.{kind}", events.to_arrays())
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Take back what `to_arrays` described."""
        self._batch, self._block = (
            [PrivateCodes.from_arrays(self._bits, unnest(f"{name}.{kind}", arrays)) for kind in _KINDS]
            for name in ("batch", "block")
        )


class _Net:
    """Exact counts of what appeared, less those of what disappeared if there are any. Private."""

    def __init__(self, kinds: list[ExactCounts]) -> None:
        self._come, *self._gone = kinds

    def within(self, nodes: Ints) -> Ints:
        net = self._come.within(nodes)
        for gone in self._gone:
            net = net - gone.within(nodes)
        return net
