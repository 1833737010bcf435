"""The mechanism of the paper's method: the only part of it that sees events and draws noise.

**Why it is private.** Per tick the data is used twice.

- `select`: the tick's *inserts* decide where a tree is split, by PrivTree's test on the score ``P(v) + A(v)``. P comes
  with the plan and is public; A counts the tick's inserts in v, and is the only private part. One insert moves the
  score by exactly 1 on one root-to-leaf path and nowhere else, a delete nowhere; only children of nodes that split are
  tested; and the score does not grow from parent to child, for A does not and P is checked here not to. That is all
  the proof in `phdstream.privacy.calibration` asks for: an insert costs ``rule.loss``, at most ``budget.tree``.
- `count`: the leaves, checked here to be disjoint, are counted by counters that go on from tick to tick
  (`phdstream.streams.paper.counters`). An event enters exactly one of them, once, by 1: it costs the counter's ε, at
  most ``budget.count``, for all outputs of that counter ever.

Selection and counting compose adaptively (`phdstream.streams.paper.selective_counting`), and an event belongs to one
tick: an insert costs ``tree + count`` and a delete ``count``, over the whole stream. The ledger of every tick's events
asserts just that. A unit's events add up to at most ε (`phdstream.privacy.budget`).

**Private** here are the counters' exact partial sums, if the kind of counter keeps any.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from phdstream.arrays import Bools, Ints
from phdstream.domains import ROOT
from phdstream.domains.prefixes import are_disjoint
from phdstream.errors import StateError
from phdstream.privacy import Budget, Noise, SplitRule
from phdstream.streams.paper.counters import Counter, CounterBank
from phdstream.streams.private_codes import PrivateCodes, TickEvents

__all__ = ["Mechanism", "SelectionPlan", "one_tick"]

_LARGEST = 1 << 53
"""Points; a score stays far from the end of 64 bits."""


class SelectionPlan(Protocol):
    """A tree in the making: which nodes to test next, and the public part of their score. Public.

    ``nodes`` are of one level, in order; empty if there is nothing more to test. ``past`` is P, rounded down;
    ``bits`` is the length of their prefixes.
    """

    nodes: Ints
    past: Ints
    bits: int

    def split(self, splits: Bools) -> None:
        """Take the outcome of the tests, and go to the children of the nodes that split."""
        ...


class Mechanism:
    """Tests which nodes split, and counts leaves, for one private tick at a time."""

    def __init__(self, budget: Budget, rule: SplitRule, counter: Counter, total_bits: int, noise: Noise) -> None:
        self.budget, self.rule, self.counter, self.noise = budget, rule, counter, noise
        self._bits, self._bank = total_bits, CounterBank(counter)

    def select(self, inserts: PrivateCodes, plan: SelectionPlan) -> None:
        """Test the plan's nodes, level by level, until it has no more; costs an insert ``budget.tree``."""
        _check(self.rule.loss <= self.budget.tree, "the split test costs more than its budget")
        counts, rule, depth = inserts.spend(self.budget.tree), self.rule, 0
        above: tuple[Ints, Ints, int] | None = None
        while plan.nodes.size:
            nodes, past, bits = plan.nodes, plan.past, plan.bits
            _check(bool((np.diff(nodes) > 0).all()), "nodes of a level are not in order, each once")
            _check(
                past.dtype == np.int64 and bool(((past >= -_LARGEST) & (past <= _LARGEST)).all()),
                "a score is out of range",
            )
            first = above is None and bits == 0 and nodes.tolist() == [ROOT]
            monotone = above is not None and _monotone(*above, nodes, past, bits)
            _check(first or monotone, "a child's score is above its parent's, or its parent did not split")
            score = past + counts.within(nodes, bits)
            biased = np.maximum(score - depth * rule.bias, rule.floor)
            splits = self.noise.add(biased, rule.scale, at=nodes) > rule.threshold
            above, depth = (nodes[splits], past[splits], bits), depth + 1
            plan.split(splits)

    def count(self, events: TickEvents, rows: Ints, leaves: Ints) -> tuple[Ints, Ints]:
        """Count the leaves by the counters of these rows; return their running totals and how many values each has had.

        Costs an event ``counter.epsilon``.
        """
        _check(are_disjoint(leaves, self._bits), "leaves overlap")
        _check(_are_rows(rows), "two leaves have one counter")
        come, gone = (kind.spend(self.counter.epsilon) for kind in events)
        self._bank.extend(max(0, int(rows.max()) + 1 - self._bank.state.shape[0]))
        totals = self._bank.step(rows, come.within(leaves) - gone.within(leaves), self.noise, at=leaves)
        return totals, self.counter.steps(self._bank.state[rows])

    def keep(self, rows: Ints) -> None:
        """Forget all counters but these, which are renumbered in this order."""
        _check(_are_rows(rows), "one counter would become two")
        self._bank.extend(max(0, int(rows.max()) + 1 - self._bank.state.shape[0]))
        self._bank.keep(rows)

    def to_array(self) -> Ints:
        """Return the counters' states. **Private** if the kind of counter keeps exact sums."""
        return self._bank.state

    def restore(self, state: Ints) -> None:
        """Take the counters' states back."""
        self._bank = CounterBank(self.counter, np.array(state))


def one_tick(waiting: list[TickEvents]) -> TickEvents:
    """Return several ticks' events as those of one."""
    first, *others = waiting
    for tick in others:
        first.inserts.absorb(tick.inserts)
        first.deletes.absorb(tick.deletes)
    return first


def _are_rows(rows: Ints) -> bool:
    """Whether these are different counters."""
    return bool(rows.min(initial=0) >= 0) and np.unique(rows).size == rows.size


def _monotone(parents: Ints, parent_past: Ints, parent_bits: int, nodes: Ints, past: Ints, bits: int) -> bool:
    """Whether every node is a child of one that split, and its public score no higher."""
    if bits <= parent_bits or not parents.size:
        return False
    above = nodes >> (bits - parent_bits)
    at = np.minimum(np.searchsorted(parents, above), parents.size - 1)
    return bool((parents[at] == above).all() and (past <= parent_past[at]).all())


def _check(holds: bool, what: str) -> None:
    """Refuse a plan for which the proof would not hold. Plans are public, so this tells nothing of the events."""
    if not holds:
        raise StateError(f"{what}, so this tick cannot be counted privately: a bug, please report it.")
