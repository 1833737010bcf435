"""Records that live a fixed number of ticks: what was released for them is taken back, at no privacy cost.

When a record's delete follows from its insert (it lives W ticks), only the insert is private. Subtracting, W
ticks later, what was *released* for it is post-processing: it costs no budget, and with Simple counters the
noise of an expired tick goes with it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints
from phdstream.streams.paper.model.nodes import NodeStore

__all__ = ["Window"]

_FINE = 2.0**20
"""Parts of an amount are multiples of 1/_FINE, so that they add up exactly in floating point."""
_PARTS = ("row", "amount", "steps", "variance")


class Window:
    """The amounts released in each of the last W ticks, by row of the node store.

    ``steps`` is 1 where a counter's step expires with the amount, 0 where the amount was folded into another node;
    ``variance`` is what a folded amount's noise adds to that node until it expires.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._ticks: deque[dict[str, NDArray[Any]]] = deque(_empty() for _ in range(length))

    def expire(self, store: NodeStore) -> None:
        """Take back what was released ``length`` ticks ago, and open a new tick."""
        old = self._ticks.popleft()
        self._ticks.append(_empty())
        if old["row"].size:
            store.expire(old["row"], old["amount"], old["steps"], old["variance"])

    def record(self, rows: Ints, amounts: Floats, spread_over: int = 1) -> None:
        """Remember what the latest tick released.

        The start releases several ticks' records at once; its amounts expire in equal parts over the
        ticks they came from (``spread_over``), the last part together with the counter's step.
        """
        for part in range(spread_over):
            upper, lower = (np.floor(amounts * (part + k) * _FINE / spread_over) for k in (1, 0))
            steps = np.full(rows.size, int(part == 0))
            self._add(-1 - part, rows, (upper - lower) / _FINE, steps, np.zeros(rows.size))

    def _add(self, tick: int, rows: Ints, amounts: Floats, steps: Ints, variances: Floats) -> None:
        new = dict(zip(_PARTS, (rows, amounts, steps, variances), strict=True))
        self._ticks[tick] = {part: np.concatenate([self._ticks[tick][part], new[part]]) for part in _PARTS}

    def fold(self, new_row: Ints, kept: NDArray[np.bool_], roots: Ints, variances: Floats) -> None:
        """Follow a fold of the store: amounts of folded nodes now belong to the node that took them over."""
        for entries in self._ticks:
            stayed = kept[entries["row"]]
            entries["steps"] = np.where(stayed, entries["steps"], 0)
            entries["variance"] = np.where(stayed, entries["variance"], 0)  # taken over, and noted anew below
            entries["row"] = new_row[entries["row"]]
        nothing = np.zeros(roots.size)
        self._add(-1, roots, nothing, nothing.astype(np.int64), variances)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the window as plain arrays."""
        arrays = {part: np.concatenate([tick[part] for tick in self._ticks]) for part in _PARTS}
        return arrays | {"lengths": np.array([tick["row"].size for tick in self._ticks])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Window:
        """Return the window that `to_arrays` described."""
        window = cls(arrays["lengths"].size)
        ends = np.cumsum(arrays["lengths"])[:-1]
        parts = [np.split(np.array(arrays[part]), ends) for part in _PARTS]
        window._ticks = deque(dict(zip(_PARTS, tick, strict=True)) for tick in zip(*parts, strict=True))
        return window


def _empty() -> dict[str, NDArray[Any]]:
    return {
        "row": np.zeros(0, np.int64),
        "amount": np.zeros(0),
        "steps": np.zeros(0, np.int64),
        "variance": np.zeros(0),
    }
