"""`Changes`: the synthetic points that appear and disappear between two releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.domains import Domain
from phdstream.release.columns import names_beside_shapes, point_columns
from phdstream.release.maps import point_shapes
from phdstream.release.shown import card_html
from phdstream.release.tables import check_kind, table_as

__all__ = ["Changes", "difference"]


@dataclass(frozen=True, repr=False)
class Changes:
    """Synthetic points that appear and disappear between two releases: arrays, as `Release.sample` gives them."""

    inserts: NDArray[Any]
    deletes: NDArray[Any]
    domain: Domain
    tick: int
    metadata: dict[str, Any]

    @property
    def privacy(self) -> str:
        """What the changes may claim, in words: what their release may."""
        return str(self.metadata.get("privacy", ""))

    def to_table(self, to: str = "arrow") -> Any:
        """Return the changes as a table: as of `Release.sample`, and ``sign`` (+1 appears, -1 disappears)."""
        check_kind(to)
        points, domain = np.concatenate([self.deletes, self.inserts]), self.domain
        sign = np.repeat(np.array([-1, 1], dtype=np.int8), [len(self.deletes), len(self.inserts)])
        columns = point_columns(points, names_beside_shapes(domain) if to == "geopandas" else domain.names)
        return table_as(to, columns | {"sign": sign}, self.metadata, lambda: (point_shapes(domain, points), domain.crs))

    def _repr_html_(self) -> str:
        rows = [
            ("Appeared", f"{len(self.inserts):,} synthetic points: .inserts"),
            ("Disappeared", f"{len(self.deletes):,}: .deletes"),
            ("Promise", self.privacy),
        ]
        return card_html(f"Changes of tick {self.tick}", rows, ".to_table() has all of them, with a sign")

    def __repr__(self) -> str:
        numbers = f"{len(self.inserts):,} points appeared, {len(self.deletes):,} disappeared"
        return f"<Changes of tick {self.tick}: {numbers}; {self.privacy}>"


def difference(come: NDArray[Any], gone: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows of ``come`` not in ``gone``, and the reverse, counting repeated rows; both in order."""
    rows = np.concatenate([come, gone])
    order = np.lexsort(rows.T[::-1])
    rows, sign = rows[order], np.where(order < len(come), 1, -1)
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)][: len(rows)])
    net = np.add.reduceat(sign, starts) if starts.size else sign
    return np.repeat(rows[starts], np.maximum(net, 0), axis=0), np.repeat(rows[starts], np.maximum(-net, 0), axis=0)
