"""Online selective counting: count privately, but only where a private selector says to look.

The paper's Algorithm "Online Selective Counting" and its theorem: with a selector that is ε_M-differentially
private and counters that are ε_C-differentially private, the whole output stream (what was selected, and the
counts) is (ε_M + ε_C)-differentially private, however many counters there are and however they overlap.

**Why.** Let two input streams differ in one item, at step τ. Before τ everything has the same distribution. At τ the
selector sees the item: factor e^ε_M at most. What it selects are scalar counters whose values together change by
at most 1 in l1: the item enters their noisy sums, now and for as long as those sums are open, at a total of at
most ε_C (see `phdstream.streams.paper.counters`, which also says why adaptive selection does no harm). After τ the
inputs are the same, and the selector depends on data only through the current input and past *outputs*.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from phdstream.arrays import Ints
from phdstream.errors import InputError
from phdstream.privacy import Noise, scale_for
from phdstream.streams.paper.counters.bank import CounterBank
from phdstream.streams.paper.counters.choice import checked_counter
from phdstream.streams.paper.counters.counter import Counter

__all__ = ["NoisyMax", "Selection", "SelectiveCounting", "Selector"]

Input = TypeVar("Input")
InputContra = TypeVar("InputContra", contravariant=True)


@dataclass(frozen=True)
class Selection:
    """One step's public output: the counters that were activated, and their running totals."""

    labels: tuple[Hashable, ...]
    totals: tuple[int, ...]


class Selector(Protocol[InputContra]):
    """A private choice of counters."""

    @property
    def epsilon(self) -> float:
        """The privacy loss of one step's choice, for one item of that step's input."""
        ...

    def __call__(self, value: InputContra, history: Sequence[Selection], noise: Noise) -> Sequence[Hashable]:
        """Return the labels to activate, from this step's private input and all public output so far."""
        ...


class SelectiveCounting(Generic[Input]):
    """Runs one counter per label and activates, at each step, those a private selector picks.

    ``counters`` is one kind for all labels, or a set of counters of several kinds, as in the paper: a counter for each
    label (a list: for the labels 0, 1, 2, ...). The theorem asks of each only that it is ε_C-differentially private, so
    with several budgets ε_C is the largest. Which counter a label has is fixed, so it depends on no data.

    ``measure(value, labels)`` gives the integers to feed to the activated counters; for inputs that differ in one
    item they may differ by at most 1 in total (disjoint regions, for instance). That is the caller's to ensure.

    A worked example that is not a tree: five bus lines, and every hour only the two that look busiest are counted.

    >>> from phdstream import Simulation
    >>> from phdstream.counters import Simple
    >>> busiest = NoisyMax(epsilon=0.5, labels=range(5), measure=lambda hour, lines: hour[list(lines)], pick=2)
    >>> counting = SelectiveCounting(Simple(epsilon=0.5), busiest, lambda hour, lines: hour[list(lines)],
    ...                              noise=Simulation(seed=3))
    >>> for hour in np.array([[90, 10, 0, 2, 40], [95, 12, 1, 0, 60], [70, 99, 0, 1, 3]]):
    ...     selected = counting.step(hour)
    ...     print(selected.labels, [round(total, -1) for total in selected.totals])
    (0, 4) [90, 40]
    (0, 4) [190, 100]
    (1, 0) [100, 260]
    >>> counting.epsilon
    1.0
    """

    def __init__(
        self,
        counters: Counter | Sequence[Counter] | Mapping[Hashable, Counter],
        selector: Selector[Input],
        measure: Callable[[Input, Sequence[Hashable]], Ints],
        *,
        noise: Noise,
    ) -> None:
        self.selector, self.measure, self.noise = selector, measure, noise
        self._of_all = counters if isinstance(counters, Counter) else None
        self._of_label: dict[Hashable, Counter] = {}
        if not isinstance(counters, Counter):
            self._of_label.update(counters if isinstance(counters, Mapping) else enumerate(counters))
        kinds = [self._of_all] if self._of_all else list(dict.fromkeys(self._of_label.values()))
        if not kinds or not all(isinstance(kind, Counter) for kind in kinds):
            raise InputError("counters must be a counter, or a counter for each label.")
        self.banks = {checked_counter(kind): CounterBank(kind) for kind in kinds}
        self.history: list[Selection] = []
        self._row: dict[Hashable, int] = {}

    @property
    def epsilon(self) -> float:
        """What the whole output stream, for ever, costs one item: the selector's budget plus the counters'."""
        return self.selector.epsilon + max(counter.epsilon for counter in self.banks)

    def step(self, value: Input) -> Selection:
        """Select, count what was selected, and return both."""
        labels = tuple(self.selector(value, self.history, self.noise))
        if len(set(labels)) != len(labels):
            raise InputError("a selector must not activate one counter twice in one step.")
        counts = _whole_counts(self.measure(value, labels), len(labels))
        kinds, totals = [self._kind(label) for label in labels], np.zeros(len(labels), dtype=np.int64)
        for counter in dict.fromkeys(kinds):
            of_kind = np.array([kind == counter for kind in kinds])
            rows = self._rows([label for label, kind in zip(labels, kinds, strict=True) if kind == counter], counter)
            totals[of_kind] = self.banks[counter].step(rows, counts[of_kind], self.noise, rows)
        self.history.append(Selection(labels, tuple(totals.tolist())))
        return self.history[-1]

    def _kind(self, label: Hashable) -> Counter:
        if self._of_all is None and label not in self._of_label:
            raise InputError("a selector activated a label that has no counter.")
        return self._of_all or self._of_label[label]

    def _rows(self, labels: Sequence[Hashable], counter: Counter) -> Ints:
        """Return the labels' counters in the bank of their kind; a label has the same one for ever."""
        bank = self.banks[counter]
        for label in labels:
            if label not in self._row:
                self._row[label] = bank.state.shape[0]
                bank.extend(1)
        return np.array([self._row[label] for label in labels], dtype=np.int64)


def _whole_counts(counts: Any, number: int) -> Ints:
    array = np.asarray(counts)
    if array.shape != (number,) or (number and array.dtype.kind not in "iub"):
        raise InputError("measure must give one whole number for each label, in their order.")
    return array.astype(np.int64)


@dataclass(frozen=True)
class NoisyMax(Generic[Input]):
    """Picks the labels with the largest noisy counts.

    The counts are released to nobody, but could be: noise of scale 1/ε on counts that change by at most 1 in total
    makes the whole noisy vector ε-differentially private, and the choice is post-processing of it.
    """

    epsilon: float
    labels: Sequence[Hashable]
    measure: Callable[[Input, Sequence[Hashable]], Ints]
    pick: int = 1

    def __call__(self, value: Input, history: Sequence[Selection], noise: Noise) -> Sequence[Hashable]:
        """Return the ``pick`` labels whose noisy counts are largest, the largest first."""
        counts = _whole_counts(self.measure(value, self.labels), len(self.labels))
        noisy = noise.add(counts, scale_for(self.epsilon), np.arange(counts.size))
        return [self.labels[i] for i in np.argsort(-noisy, kind="stable")[: self.pick]]
