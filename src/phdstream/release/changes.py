"""`Changes`: the synthetic points that appear and disappear between two releases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.release.columns import point_columns
from phdstream.release.tables import table_as

__all__ = ["Changes", "difference"]


@dataclass(frozen=True)
class Changes:
    """Synthetic points that appear and disappear between two releases."""

    inserts: NDArray[Any]
    deletes: NDArray[Any]
    names: tuple[str, ...]
    metadata: dict[str, Any] = field(repr=False, default_factory=dict)

    def to_table(self, to: str = "arrow") -> Any:
        """Return the changes as a table: the coordinates, and ``sign`` (+1 appears, -1 disappears)."""
        points = np.concatenate([self.deletes, self.inserts])
        sign = np.repeat(np.array([-1, 1], dtype=np.int8), [len(self.deletes), len(self.inserts)])
        return table_as(to, point_columns(points, self.names) | {"sign": sign}, self.metadata)


def difference(come: NDArray[Any], gone: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows of ``come`` not in ``gone``, and the reverse, counting repeated rows; both in order."""
    rows = np.concatenate([come, gone])
    order = np.lexsort(rows.T[::-1])
    rows, sign = rows[order], np.where(order < len(come), 1, -1)
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)][: len(rows)])
    net = np.add.reduceat(sign, starts) if starts.size else sign
    return np.repeat(rows[starts], np.maximum(net, 0), axis=0), np.repeat(rows[starts], np.maximum(-net, 0), axis=0)
