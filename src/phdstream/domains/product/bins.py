"""`Bins`: a number in one of some public ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from phdstream.arrays import Floats
from phdstream.domains.columns import floats
from phdstream.domains.product.attribute import UNKNOWN, Attribute
from phdstream.domains.product.numbers import read_numbers, read_pairs
from phdstream.errors import InputError, shown

__all__ = ["Bins"]

_MOST_BINS = 1 << 16


class Bins(Attribute):
    """A number in one of some ranges: an age, an amount. ``edges`` are public; what lies outside them counts nowhere.

    A number on an edge belongs to the range above it, the last edge to the last range. Synthetic rows hold numbers
    spread evenly within their range (round them down for whole years).

    >>> age = Bins("age", [0, 18, 65, 120])
    >>> age.read(pa.array([18, 17.9, 121, None])).round(2).tolist()
    [1.0, 0.99, -1.0, nan]
    """

    json_kind = float

    def __init__(self, name: str, edges: Sequence[float], *, column: str | None = None) -> None:
        try:
            array = floats(edges)
        except InputError:
            array = np.empty(0)
        if array.ndim != 1 or not 3 <= array.size <= _MOST_BINS or not np.isfinite(array).all():
            raise InputError(f"the edges of {shown(name)} must be at least three finite numbers, such as [0, 18, 65].")
        if (np.diff(array) <= 0).any():
            raise InputError(f"the edges of {shown(name)} must grow: each must be above the one before it.")
        self.edges = array
        super().__init__(name, [(str(i),) for i in range(array.size - 1)], column)

    def read(self, column: pa.Array) -> Floats:
        """Return the positions of numbers; text is read as a number if it is one. See `Attribute.read`."""
        return self._positions(read_numbers(column, self.name))

    def _positions(self, numbers: Floats) -> Floats:
        last = self.edges.size - 2
        at = np.clip(np.searchsorted(self.edges, numbers, side="right") - 1, 0, last)
        low, high = self.edges[at], self.edges[at + 1]
        within = np.minimum((numbers - low) / (high - low), np.nextafter(1, 0))
        with np.errstate(invalid="ignore"):
            outside = (numbers < self.edges[0]) | (numbers > self.edges[-1])
        return np.where(outside, UNKNOWN, np.minimum(at + within, np.nextafter(at + 1, 0)))

    def values(self, positions: Floats) -> NDArray[Any]:
        """Return the numbers."""
        at = positions.astype(np.int64)
        low, high = self.edges[at], self.edges[at + 1]
        return np.clip(low + (positions - at) * (high - low), low, np.nextafter(high, low))

    def label(self, first: int, past: int) -> str:
        """Return a range of numbers."""
        return f"{self.edges[first]:g} to {self.edges[past]:g}"

    def intervals(self, wanted: Any) -> list[tuple[float, float]]:
        """Return the positions of ranges of numbers, one pair (low, high) or a list of them."""
        return [self._range(low, high) for low, high in read_pairs(wanted, self.name)]

    def _range(self, low: float, high: float) -> tuple[float, float]:
        ends = np.clip([low, high], self.edges[0], self.edges[-1])
        first, past = np.interp(ends, self.edges, np.arange(self.edges.size))
        return float(first), float(past)

    def to_dict(self) -> dict[str, Any]:
        """Return the attribute as plain data."""
        return {"type": "bins"} | self._told() | {"edges": self.edges.tolist()}

    def __repr__(self) -> str:
        return f"Bins({self.name!r}, {self.edges.tolist()})"
