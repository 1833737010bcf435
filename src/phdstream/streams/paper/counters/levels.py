"""`ByLevel`: counters of several kinds in one tree, which node has which being public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.domains import ROOT
from phdstream.errors import BudgetError, InputError, StateError
from phdstream.privacy import Noise, noise_variance
from phdstream.streams.paper.counters.binary import BinaryTree
from phdstream.streams.paper.counters.counter import Counter

__all__ = ["ByLevel"]


@dataclass(frozen=True)
class ByLevel(Counter):
    """Different counters for different nodes: kind i counts the nodes from ``first_nodes[i]`` to the next kind's first.

    A node's number grows with its level (`phdstream.domains.codes`), so such ranges are ranges of levels. They are
    fixed before any data is seen.

    **Privacy.** Which kind counts a node depends on the node's number alone, and a counter keeps its kind: that is
    noted in its state at the first step, and a step as another kind is refused (one kind's exact sums must not enter
    another kind's noisy sums). So every counter is one of ``kinds`` for ever, and each of those promises: over the
    noisy sums that contain an item, 1/scale adds up to at most its budget, which is at most ε. An item enters one
    counter, once, and no other counter's noisy sums. So the same holds for all of them together, also when activated
    adaptively.

    Columns: the kind, counted from 1 (0 before the first step), then the columns of that kind.

    >>> from phdstream.streams.paper.counters import Block, Simple
    >>> mixed = ByLevel(0.5, kinds=(Block(0.5), Simple(0.5)), first_nodes=(1, 16))
    >>> mixed.kind_of(np.array([1, 15, 16, 1000])).tolist()
    [0, 0, 1, 1]
    """

    kinds: tuple[Counter, ...]
    first_nodes: tuple[int, ...]
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.kinds or any(not isinstance(kind, Counter) or isinstance(kind, ByLevel) for kind in self.kinds):
            raise InputError("counters by level are counters of a single kind each, at least one.")
        if any(kind.epsilon > self.epsilon for kind in self.kinds):
            raise BudgetError("one of the counters by level was built with more budget than they were given.")
        rising = all(low < high for low, high in zip(self.first_nodes, self.first_nodes[1:], strict=False))
        if len(self.first_nodes) != len(self.kinds) or self.first_nodes[0] != ROOT or not rising:
            raise InputError("counters by level need the first node of each kind, in order, the root's first.")

    @property
    def private_columns(self) -> tuple[int, ...]:  # type: ignore[override]  # of all kinds, behind the first column
        """The columns that hold exact sums in some kind."""
        return tuple(sorted({1 + column for kind in self.kinds for column in kind.private_columns}))

    def kind_of(self, nodes: Ints) -> Ints:
        """Return which of the kinds counts each node."""
        return np.maximum(np.searchsorted(self.first_nodes, nodes, side="right") - 1, 0)

    def start(self, counters: int) -> Ints:
        """Return the state of that many counters that have seen nothing."""
        return np.zeros((counters, 1 + max(kind.start(0).shape[1] for kind in self.kinds)), dtype=np.int64)

    def step(self, state: Ints, values: Ints, noise: Noise, at: Ints) -> tuple[Ints, Ints]:
        """See `Counter.step`; ``at`` are the counters' nodes."""
        kind, output = self.kind_of(at), np.zeros_like(values)
        if ((state[:, 0] != 0) & (state[:, 0] != kind + 1)).any():
            raise StateError("a counter would change its kind, which is not private: a bug, please report it.")
        after = np.column_stack([kind + 1, state[:, 1:]])
        for i in np.unique(kind).tolist():
            rows = np.flatnonzero(kind == i)
            own, output[rows] = self.kinds[i].step(self._own(i, state[rows]), values[rows], noise, at[rows])
            after = np.pad(after, ((0, 0), (0, max(0, 1 + own.shape[1] - after.shape[1]))))
            after[rows, 1 : 1 + own.shape[1]] = own
        return after, output

    def _own(self, kind: int, state: Ints) -> Ints:
        """Return the columns that belong to a kind; a tree has three, and pairs of two as far as there is room."""
        counter, room = self.kinds[kind], state.shape[1] - 1
        width = room - (room - counter.width) % 2 if isinstance(counter, BinaryTree) else counter.width
        return state[:, 1 : 1 + width]

    def output(self, state: Ints) -> Ints:
        """See `Counter.output`."""
        output = np.zeros(state.shape[0], dtype=np.int64)
        for i, counter in enumerate(self.kinds):
            of_kind = state[:, 0] == i + 1
            output[of_kind] = counter.output(self._own(i, state[of_kind]))
        return output

    def steps(self, state: Ints) -> Ints:
        """See `Counter.steps`: the first column of every kind."""
        return state[:, 1]

    def scales(self, steps: int) -> Floats:
        """See `Counter.scales`: those of the kind with the most noise."""
        return max((kind.scales(steps) for kind in self.kinds), key=lambda each: float(noise_variance(each).sum()))

    def variance(self, first: Ints, last: Ints) -> Floats:
        """See `Counter.variance`: of the kind with the most noise. `variance_at` knows the kind."""
        most: Floats = np.max([kind.variance(first, last) for kind in self.kinds], axis=0)
        return most

    def variance_at(self, nodes: Ints, first: Ints, last: Ints) -> Floats:
        """See `Counter.variance_at`."""
        each = np.array([kind.variance(first, last) for kind in self.kinds])
        return each[self.kind_of(nodes), np.arange(nodes.size)]

    def privacy_loss(self, steps: int) -> float:
        """See `Counter.privacy_loss`: of the kind that loses most."""
        return max(kind.privacy_loss(steps) for kind in self.kinds)

    def to_dict(self) -> dict[str, Any]:
        """Return the counter as plain data."""
        kinds = [kind.to_dict() for kind in self.kinds]
        return {"type": "ByLevel", "epsilon": self.epsilon, "kinds": kinds, "first_nodes": list(self.first_nodes)}

    def __str__(self) -> str:
        return " and ".join(map(str, self.kinds)) + " (by level)"
