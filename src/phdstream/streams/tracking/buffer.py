"""The events that wait to be counted. **Private**, and forgotten once counted.

A few are kept as their codes. Many, on a tree whose finest cells can be listed, as the number in each finest cell: so a
block of a hundred million events takes no more room than the cells, in memory and in the saved state.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Ints
from phdstream.streams.code_counts import CodeCounts, Tree
from phdstream.streams.state import Arrays

__all__ = ["Buffer"]

_MANY = 1 << 17
_MOST_BITS = 22


class Buffer:
    """A multiset of codes that can be counted by node.

    >>> import phdstream as phd
    >>> buffer = Buffer(phd.Box([(0, 8)], depth=3))
    >>> buffer.add(np.array([0, 1])), buffer.add(np.array([5]))
    (None, None)
    >>> buffer.within(np.array([1, 2, 3]))
    array([3, 2, 1])
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._codes: list[Ints] = []
        self._waiting = 0
        self._cells: Ints | None = None
        self._sorted: CodeCounts | None = None

    def add(self, codes: Ints) -> None:
        """Put events in."""
        self._codes.append(codes)
        self._waiting += codes.size
        self._sorted = None
        if self._waiting > _MANY and self._tree.total_bits <= _MOST_BITS:
            self._gather()

    def _gather(self) -> None:
        cells = np.bincount(np.concatenate(self._codes), minlength=1 << self._tree.total_bits)
        self._cells = cells if self._cells is None else self._cells + cells
        self._codes, self._waiting, self._sorted = [], 0, None

    def emptied(self) -> Buffer:
        """Return a new buffer for the same tree."""
        return Buffer(self._tree)

    def within(self, nodes: Ints) -> Ints:
        """Return how many events lie in each of the nodes."""
        if self._sorted is None:  # kept while nothing is put in: a block is looked at several times
            self._sorted = CodeCounts(self._tree, self._waiting_codes())
        counts = self._sorted.within(nodes)
        if self._cells is None:
            return counts
        upto = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._cells)])
        first, past = self._tree.code_range(nodes)
        more: Ints = upto[past] - upto[first]
        return counts + more

    def _waiting_codes(self) -> Ints:
        return np.concatenate(self._codes) if self._codes else np.zeros(0, np.int64)

    def to_arrays(self) -> Arrays:
        """Return the buffer as plain arrays. **Private.**"""
        cells = np.zeros(0, np.int64) if self._cells is None else np.flatnonzero(self._cells)
        numbers = cells if self._cells is None else self._cells[cells]
        return {"codes": self._waiting_codes(), "cells": cells, "numbers": numbers}

    @classmethod
    def from_arrays(cls, tree: Tree, arrays: Arrays) -> Buffer:
        """Return the buffer that `to_arrays` described."""
        buffer = cls(tree)
        if arrays["cells"].size:
            buffer._cells = np.zeros(1 << tree.total_bits, np.int64)
            buffer._cells[arrays["cells"]] = arrays["numbers"]
        buffer.add(arrays["codes"])
        return buffer
