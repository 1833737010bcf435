"""How many events lie in any node: counted where it is asked for, not sorted as a whole. Private.

A node is a range of codes, and its count the difference of two running totals. Few events are sorted, and totals are
positions. Many are first counted by the leading bits of their codes, in one pass; a node that these bits name needs
nothing more. Of events in deeper nodes, only those of leading bits that are asked for are ever sorted.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Bools, Ints
from phdstream.domains.prefixes import code_range

__all__ = ["CodeCounts"]

_FEW = 1 << 11
_LEADING_BITS = (16, 20)
"""About as many totals as events, but at least and at most so many bits: 8 MB fit the cache of a processor."""


class CodeCounts:
    """Exact counts of events in any nodes, from their codes. Private.

    >>> CodeCounts(np.array([0, 1, 5]), total_bits=3).within(np.array([1, 2, 0b1101]))
    array([3, 2, 1])
    """

    def __init__(self, codes: Ints, total_bits: int) -> None:
        self._codes, self._bits = codes, total_bits
        leading = _leading_bits(total_bits, codes.size)
        self._rest = total_bits - leading
        self._sorted_in: Bools = np.zeros(1 << leading, dtype=bool)
        self._sorted = codes[:0]
        if leading:
            totals = np.cumsum(np.bincount(codes >> self._rest if self._rest else codes, minlength=1 << leading))
            self._totals: Ints = np.concatenate([np.zeros(1, np.int64), totals])

    def within(self, nodes: Ints, bits: int | None = None) -> Ints:
        """Return how many events lie in each node; quicker if all nodes are of one given length."""
        first, past = code_range(nodes, self._bits, bits)
        if self._sorted_in.size == 1:
            return self._by_position(first, past)
        deep = ((first | past) & ((1 << self._rest) - 1)) != 0
        counts: Ints = self._totals[past >> self._rest] - self._totals[first >> self._rest]
        if deep.any():
            counts[deep] = self._by_position(first[deep], past[deep])
        return counts

    def _by_position(self, first: Ints, past: Ints) -> Ints:
        """Return counts in ranges, each with one beginning of leading bits, by positions among the events there."""
        self._sort_in(first >> self._rest)
        return self._sorted.searchsorted(past).astype(np.int64) - self._sorted.searchsorted(first)

    def _sort_in(self, beginnings: Ints) -> None:
        """Sort the events of leading bits that were not asked for before, together with those that were."""
        if self._sorted_in[beginnings].all():
            return
        self._sorted_in[beginnings] = True
        whole = self._sorted_in.size == 1
        self._sorted = np.sort(self._codes if whole else self._codes[self._sorted_in[self._codes >> self._rest]])


def _leading_bits(total_bits: int, events: int) -> int:
    least, most = _LEADING_BITS
    return min(max(least, events.bit_length()), most, total_bits) if events > _FEW else 0
