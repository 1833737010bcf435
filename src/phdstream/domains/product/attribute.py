"""What an event has besides its place: one of a public list of values, fixed before any data is seen."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.codes import ROOT, child_nodes, hash_uniform
from phdstream.domains.domain import Domain
from phdstream.domains.product.value_tree import Path, value_tree
from phdstream.errors import InputError, shown

__all__ = ["MISSING", "UNKNOWN", "Attribute"]

MISSING, UNKNOWN = np.nan, -1.0
"""The positions of what is not there or cannot be read (the row is bad), and of what is not in the list (outside)."""


class Attribute(Domain):
    """A part of a `Product`: values in a public order, and a binary tree over them (`value_tree`).

    Inside phdstream a value is its **position**: value i of n has the positions from i up to i + 1. Where values are
    ranges of numbers (ages), a position also says where in the range; counts are spread evenly over positions. All
    values have the same measure, 1.
    """

    dimension = 1
    fanout = 2
    json_kind: type = str
    """How a row of JSON usually holds the value."""
    of_moments = False
    """Whether a value is told from a moment, which may be written as text."""

    def __init__(self, name: str, paths: list[Path], column: str | None = None) -> None:
        for what, text in (("name", name), ("column", name if column is None else column)):
            if not isinstance(text, str) or not text or "\0" in text:
                raise InputError(f"the {what} of an attribute must be a non-empty text, not {shown(text)}.")
        self.name, self.names, self.column = name, (name,), name if column is None else column
        self._codes, bits, self._groups = value_tree(paths)
        self.level_bits = (1,) * bits

    def __len__(self) -> int:
        return int(self._codes.size)

    @abstractmethod
    def read(self, column: pa.Array) -> Floats:
        """Return the positions of an Arrow column's values, each by itself: `MISSING`, or `UNKNOWN`, where it has none.

        A column of a kind that cannot hold such values at all is refused.
        """

    @abstractmethod
    def values(self, positions: Floats) -> NDArray[Any]:
        """Return the values at some positions, as they stand in rows."""

    @abstractmethod
    def label(self, first: int, past: int) -> str:
        """Return how tables call the values from the one at ``first`` up to the one before ``past``."""

    @abstractmethod
    def intervals(self, wanted: Any) -> list[tuple[float, float]]:
        """Return the positions, from and up to, of what is asked for: values, groups or ranges."""

    def encode(self, points: Any) -> tuple[Ints, Bools]:
        """Return the code of each position, and which there are."""
        positions = np.asarray(points, dtype=np.float64).ravel()
        with np.errstate(invalid="ignore"):
            inside = (positions >= 0) & (positions < len(self))
        return self._codes[np.where(inside, positions, 0).astype(np.int64)], inside

    def extent(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the first value of each node, and the first one past it."""
        first, past = self.code_range(nodes)
        return np.searchsorted(self._codes, first), np.searchsorted(self._codes, past)

    def bounds(self, nodes: Ints) -> Floats:
        """Return the positions of nodes, from and up to."""
        return np.column_stack(self.extent(nodes)).astype(np.float64)

    def measure(self, nodes: Ints) -> Floats:
        """Return how many values each node has."""
        first, past = self.extent(nodes)
        return (past - first).astype(np.float64)

    def children(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the halves of nodes that have values; shares are by their number. See `Domain.children`."""
        family = child_nodes(nodes, bits=1)
        number = self.measure(family.ravel()).reshape(family.shape)
        parent, child = np.nonzero(number)
        return family[parent, child], parent, number[parent, child] / number.sum(axis=1)[parent]

    def overlap(self, nodes: Ints, rectangles: Floats) -> Floats:
        """Return the share of each node's values (columns) inside each interval of positions (rows)."""
        return self.overlap_of(nodes, rectangles[:, None, 0], rectangles[:, None, 1])

    def covered(self, nodes: Ints, rectangles: Floats, exact: Bools) -> Floats:
        """Return the share of each node's values inside the interval of positions beside it."""
        return self.overlap_of(nodes, rectangles[:, 0], rectangles[:, 1])

    def overlap_of(self, nodes: Ints, low: Floats, high: Floats) -> Floats:
        """Return the share of nodes' values from one position up to another, for arrays that broadcast together."""
        first, past = self.extent(nodes)
        inside = np.minimum(past, high) - np.maximum(first, low)
        share: Floats = np.clip(inside, 0, None) / np.maximum(past - first, 1)
        return share

    def share_of(self, wanted: list[tuple[float, float]]) -> Floats:
        """Return how much of the first 0, 1, 2, ... values lies within intervals; where these overlap, once."""
        each, values = np.zeros(len(self)), np.arange(len(self))
        reached = 0.0
        for low, high in sorted(wanted):
            low, reached = max(low, reached), max(high, reached)
            each += np.clip(np.minimum(values + 1, reached) - np.maximum(values, low), 0, None)
        return np.concatenate([[0.0], np.cumsum(each)])

    def place(self, codes: Ints, index: Ints, key: int) -> Floats:
        """Return a position in the value of each code."""
        within = hash_uniform(key, codes, index + ROOT)
        return (np.searchsorted(self._codes, codes) + within).reshape(-1, 1)

    def cell_columns(self, nodes: Ints) -> dict[str, NDArray[Any]]:
        """Return how tables call what nodes have; where nothing was divided, the empty text."""
        return {self.name: self.labels(*self.extent(nodes))}

    def labels(self, first: Ints, past: Ints) -> NDArray[Any]:
        """Return how tables call runs of values; each different one is worked out once."""
        runs, which = np.unique(np.column_stack([first, past]), axis=0, return_inverse=True)
        texts = ["" if a == 0 and b == len(self) else self.label(a, b) for a, b in runs.tolist()]
        return np.array(texts or [""], dtype=np.str_)[which.ravel()]

    def _told(self) -> dict[str, Any]:
        """Return the name, and the column if it is called otherwise, for `to_dict`."""
        return {"name": self.name} | ({} if self.column == self.name else {"column": self.column})
