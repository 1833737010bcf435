"""The first stage of DAWA: divide a sequence of counts into intervals within which they are nearly equal, privately."""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Floats, Ints

__all__ = ["best_ends", "deviations", "noisy_costs", "private_ends"]


def private_ends(counts: Ints, first: float, second: float, rng: np.random.Generator) -> Ints:
    """Return where intervals end, at ε ``first``, if their counts will be published at ε ``second``."""
    return best_ends(noisy_costs(counts, first, second, rng))


def noisy_costs(counts: Ints, first: float, second: float, rng: np.random.Generator) -> list[Floats]:
    """Return the cost of every interval of 1, 2, 4, ... counts: its deviation with noise, and 1/ε for its own count.

    Noise is as in the authors' program: of scale (2 - 1/length - 1/n)/ε, none where the length is 1, as nothing
    deviates there; and no cost is below that of the count.
    """
    costs = []
    for level, found in enumerate(deviations(counts)):
        scale = (2 - 0.5**level - 1 / counts.size) / first if level else 0.0
        costs.append(np.maximum(found + rng.laplace(0, scale, found.size) if scale else found, 0) + 1 / second)
    return costs


def deviations(counts: Ints) -> list[Floats]:
    """Return Σ |count - mean| of every interval of 1, 2, 4, ... counts, wherever it starts.

    It is twice what the counts below the mean lack; those are found bit by bit (a wavelet matrix with sums).

    >>> [found.tolist() for found in deviations(np.array([4, 4, 0]))]
    [[0.0, 0.0, 0.0], [0.0, 4.0]]
    """
    below, sums = _Below(counts), np.concatenate([[0], np.cumsum(counts)])
    found = [np.zeros(counts.size)]
    while (length := 1 << len(found)) <= counts.size:
        start = np.arange(counts.size - length + 1)
        mean = (sums[start + length] - sums[start]) / length
        number, total = below.find(start, start + length, np.ceil(mean).astype(np.int64))
        found.append(2 * (number * mean - total))
    return found


class _Below:
    """How many numbers of a part of a sequence are below a threshold, and their sum: many parts at once."""

    def __init__(self, values: Ints) -> None:
        self._bits = int(values.max(initial=1)).bit_length()
        self._levels = []
        for bit in reversed(range(self._bits)):
            zero = (values >> bit & 1) == 0
            zeros, sums = (np.concatenate([[0], np.cumsum(each)]) for each in (zero, values * zero))
            self._levels.append((zeros, sums))
            values = np.concatenate([values[zero], values[~zero]])

    def find(self, begin: Ints, end: Ints, threshold: Ints) -> tuple[Ints, Ints]:
        """Return both, for each part and its own threshold, at most the largest value."""
        number, total = np.zeros_like(begin), np.zeros_like(begin)
        for level, (zeros, sums) in enumerate(self._levels):
            one = (threshold >> (self._bits - 1 - level) & 1) == 1
            number += np.where(one, zeros[end] - zeros[begin], 0)
            total += np.where(one, sums[end] - sums[begin], 0)
            begin, end = (np.where(one, zeros[-1] + at - zeros[at], zeros[at]) for at in (begin, end))
        return number, total


def best_ends(costs: list[Floats]) -> Ints:
    """Return where the intervals end of the cheapest division into intervals whose costs are given, by their start.

    >>> best_ends([np.array([1.0, 1, 1]), np.array([1.5, 9])]).tolist()
    [2, 3]
    """
    tables = [each.tolist() for each in costs]
    least, length = [0.0], [0]
    for end in range(1, len(tables[0]) + 1):
        cheapest, of = least[end - 1] + tables[0][end - 1], 1
        for level in range(1, end.bit_length()):
            start = end - (1 << level)
            if start < 0:
                break
            cost = least[start] + tables[level][start]
            if cost <= cheapest:
                cheapest, of = cost, 1 << level
        least.append(cheapest)
        length.append(of)
    ends = [len(length) - 1]
    while ends[-1] > length[ends[-1]]:
        ends.append(ends[-1] - length[ends[-1]])
    return np.array(ends[::-1])
