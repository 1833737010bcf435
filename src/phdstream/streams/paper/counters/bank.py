"""A bank of counters that are activated a few at a time."""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Ints
from phdstream.privacy import Noise
from phdstream.streams.paper.counters.counter import Counter

__all__ = ["CounterBank"]


class CounterBank:
    """Any number of counters of one kind, each with its own noise; only the rows asked for move.

    >>> from phdstream.privacy import Simulation
    >>> from phdstream.streams.paper.counters import Simple
    >>> bank = CounterBank(Simple(epsilon=1.0))
    >>> bank.extend(3)
    >>> _ = bank.step(np.array([2]), np.array([100]), Simulation(seed=1), at=np.array([2]))
    >>> bank.counter.steps(bank.state).tolist()
    [0, 0, 1]
    """

    def __init__(self, counter: Counter, state: Ints | None = None) -> None:
        self.counter = counter
        self._rows = counter.start(0) if state is None else state
        self._used = self._rows.shape[0]

    @property
    def state(self) -> Ints:
        """The states of all counters, one row each."""
        return self._rows[: self._used]

    def extend(self, counters: int) -> None:
        """Add fresh counters at the end; the room for them doubles when it runs out."""
        needed = self._used + counters
        if needed > self._rows.shape[0]:
            spare = self.counter.start(max(needed, 2 * self._rows.shape[0]) - self._rows.shape[0])
            self._rows = np.concatenate([self._rows, _widen(spare, self._rows.shape[1])])
        self._used = needed

    def step(self, rows: Ints, values: Ints, noise: Noise, at: Ints) -> Ints:
        """Give one value to each of the (different) rows and return their running totals."""
        state, output = self.counter.step(self._rows[rows], values, noise, at)
        self._rows = _widen(self._rows, state.shape[1])
        self._rows[rows] = _widen(state, self._rows.shape[1])
        return output

    def keep(self, rows: Ints) -> None:
        """Forget all counters but these, which are renumbered in this order."""
        self._rows = self._rows[rows]
        self._used = rows.size


def _widen(state: Ints, width: int) -> Ints:
    return state if state.shape[1] >= width else np.pad(state, ((0, 0), (0, width - state.shape[1])))
