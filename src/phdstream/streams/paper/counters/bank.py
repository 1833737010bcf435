"""A bank of counters that are activated a few at a time, and the counters by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from phdstream.arrays import Ints
from phdstream.errors import InputError
from phdstream.privacy import Noise
from phdstream.privacy.budget import check_enough
from phdstream.streams.paper.counters.binary import BinaryTree, Hybrid
from phdstream.streams.paper.counters.counter import Block, Counter, Simple, counter_kinds

__all__ = ["CounterBank", "CounterChoice", "counter_from_dict", "make_counter"]

CounterChoice: TypeAlias = str | Callable[[float], Counter]
_BY_NAME: dict[str, type[Counter]] = {
    "simple": Simple,
    "block": Block,
    "binary": BinaryTree,
    "hybrid": Hybrid,
}
_BY_CLASS = {kind.__name__: kind for kind in _BY_NAME.values()}


class CounterBank:
    """Any number of counters of one kind, each with its own noise; only the rows asked for move.

    >>> from phdstream.privacy import Simulation
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


def make_counter(choice: CounterChoice | dict[str, Any], epsilon: float) -> Counter:
    """Return the counter that was asked for, with its budget; or the one that `Counter.to_dict` described.

    >>> make_counter("block", 0.5)
    Block(epsilon=0.5, size=8)
    """
    check_enough(epsilon)
    if isinstance(choice, dict):
        return counter_from_dict(choice)
    if isinstance(choice, str):
        return counter_kinds(choice, _BY_NAME)(epsilon)
    error = InputError(f"counter must be one of {', '.join(_BY_NAME)}, or a function from a budget to a counter.")
    try:
        counter = choice(epsilon) if callable(choice) else None
    except TypeError as wrong:  # something else that can be called, such as a class
        raise error from wrong
    if not isinstance(counter, Counter):
        raise error
    return counter


def counter_from_dict(spec: dict[str, Any]) -> Counter:
    """Return the counter that `Counter.to_dict` described."""
    fields = dict(spec)
    return counter_kinds(fields.pop("type"), _BY_CLASS)(**fields)
