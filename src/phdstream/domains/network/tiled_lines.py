"""How much of many lines lies inside rectangles and polygons."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints, ragged
from phdstream.domains.network.segments import NUMBERS_AT_ONCE

__all__ = ["TiledLines"]


class TiledLines:
    """Straight pieces of line that belong to tiles, for asking how much of each tile lies in something.

    ``owner`` is each piece's tile, in order, and each tile has some; ``ends`` is an array (n, 2, 2).
    """

    def __init__(self, owner: Ints, grains: Ints, ends: Floats) -> None:
        self._owner, self._grains, self._ends = owner, grains, ends
        self._number = np.bincount(owner)
        self._first = np.cumsum(self._number) - self._number
        self._total = np.add.reduceat(grains, self._first)
        self._low = np.minimum.reduceat(ends.min(axis=1), self._first)
        self._high = np.maximum.reduceat(ends.max(axis=1), self._first)

    def inside(self, rectangles: Floats) -> Floats:
        """Return how many grains of each tile (columns) lie in each rectangle (rows); only cut tiles are clipped."""
        whole = np.ones((len(rectangles), self._number.size), dtype=bool)
        apart = ~whole
        for axis in (0, 1):
            low, high = rectangles[:, axis, None], rectangles[:, 2 + axis, None]
            whole &= (low <= self._low[:, axis]) & (self._high[:, axis] < high)
            apart |= (self._high[:, axis] < low) | (self._low[:, axis] >= high)
        inside: Floats = np.where(whole, self._total, 0.0)
        rows, tiles = np.nonzero(~(whole | apart))
        batch = np.cumsum(self._number[tiles]) // NUMBERS_AT_ONCE
        for some in np.split(np.arange(rows.size), np.flatnonzero(np.diff(batch)) + 1):
            inside[rows[some], tiles[some]] = self._clip(rectangles[rows[some]], tiles[some])
        return inside

    def _clip(self, rectangles: Floats, tiles: Ints) -> Floats:
        """Clip each tile's pieces to the rectangle of its row (Liang and Barsky 1984) and add up what is left."""
        owner, within = ragged(self._number[tiles])
        piece = self._first[tiles[owner]] + within
        enters, leaves = np.zeros(piece.size), np.ones(piece.size)
        for axis in (0, 1):
            start, step = self._ends[piece, 0, axis], np.diff(self._ends[piece, :, axis])[:, 0]
            low, high = rectangles[owner, axis], rectangles[owner, 2 + axis]
            slope = np.where(step == 0, 1, step)
            with np.errstate(over="ignore"):
                one, other = (low - start) / slope, (high - start) / slope
            level = np.where((low <= start) & (start < high), np.inf, -np.inf)
            enters = np.maximum(enters, np.where(step == 0, -level, np.minimum(one, other)))
            leaves = np.minimum(leaves, np.where(step == 0, level, np.maximum(one, other)))
        kept = np.clip(leaves - enters, 0, 1) * self._grains[piece]
        return np.asarray(np.bincount(owner, weights=kept, minlength=tiles.size), dtype=np.float64)

    def inside_shapes(self, shapes: NDArray[Any]) -> Floats:
        """Return how many grains of each tile (columns) lie in each polygon (rows); only cut pieces are clipped."""
        lines = shapely.linestrings(self._ends)
        tree = shapely.STRtree(lines)
        met, whole = (tree.query(shapes, predicate=how) for how in ("intersects", "covers"))
        cut = np.setdiff1d(met[0] * lines.size + met[1], whole[0] * lines.size + whole[1], assume_unique=True)
        row, piece = np.divmod(cut, lines.size)
        length = shapely.length(lines[piece])
        kept = shapely.length(shapely.intersection(shapes[row], lines[piece])) / np.where(length > 0, length, 1)
        inside = np.zeros((len(shapes), self._number.size))
        np.add.at(inside, (row, self._owner[piece]), kept * self._grains[piece])
        np.add.at(inside, (whole[0], self._owner[whole[1]]), self._grains[whole[1]])
        return inside
