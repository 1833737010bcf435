"""`Cube`: the corners {0,1}^d, one coordinate fixed per level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.arguments import check_depth, check_names
from phdstream.domains.codes import MAX_BITS, ROOT, hash_uniform
from phdstream.domains.domain import Domain
from phdstream.errors import InputError, shown

__all__ = ["Cube"]

_MOST_ATTRIBUTES = 1000
"""More than anyone can name, and so few that 2 to their number is still a floating-point number."""


class Cube(Domain):
    """Records of d yes-or-no attributes. Level ℓ of the tree fixes the first ℓ of them.

    >>> survey = Cube(3)
    >>> survey.encode(np.array([[1, 0, 1], [0, 2, 0]]))[0].tolist()[0]     # 0b101
    5
    >>> survey.measure(np.array([1, 2]))                                  # atoms: all, and those that start with 0
    array([8., 4.])
    """

    fanout = 2

    def __init__(self, dimension: int, *, depth: int | None = None, names: Sequence[str] | None = None) -> None:
        if not isinstance(dimension, int | np.integer) or isinstance(dimension, bool) or dimension < 1:
            raise InputError(f"a cube needs a whole number of attributes of at least 1, not {shown(dimension)}.")
        if dimension > _MOST_ATTRIBUTES:
            raise InputError(f"a cube can have at most {_MOST_ATTRIBUTES} attributes.")
        self.dimension = int(dimension)
        self.names = check_names(names, self.dimension)
        limit = min(self.dimension, MAX_BITS)
        self.level_bits = (1,) * check_depth(depth, limit, limit)

    def encode(self, points: Floats) -> tuple[Ints, Bools]:
        """Return each record's code; a record with any value but 0 and 1 is outside."""
        inside = ((points == 0) | (points == 1)).all(axis=1)
        weights = np.int64(1) << np.arange(self.depth - 1, -1, -1)
        codes = (points[:, : self.depth] == 1).astype(np.int64) @ weights
        return codes, inside

    def bounds(self, nodes: Ints) -> Floats:
        """Return the least and largest value of each attribute within nodes, (n, 2d)."""
        fixed, values = self._fixed(nodes)
        return np.concatenate([np.where(fixed, values, 0.0), np.where(fixed, values, 1.0)], axis=1)

    def _fixed(self, nodes: Ints) -> tuple[Bools, Floats]:
        axes = np.arange(self.dimension)
        fixed = axes < self.levels(nodes)[:, None]
        shift = np.clip(self.depth - 1 - axes, 0, None)
        values = (self.code_range(nodes)[0][:, None] >> shift) & 1
        return fixed, values.astype(np.float64)

    def measure(self, nodes: Ints) -> Floats:
        """Return the number of atoms in each node."""
        return np.exp2(self.dimension - self.levels(nodes)).astype(np.float64)

    def overlap(self, nodes: Ints, rectangles: Floats) -> Floats:
        """Return the share of each node's atoms (columns) inside each rectangle (rows), its bounds included."""
        d = self.dimension
        has_zero = (rectangles[:, :d] <= 0) & (rectangles[:, d:] >= 0)
        has_one = (rectangles[:, :d] <= 1) & (rectangles[:, d:] >= 1)
        fixed, values = self._fixed(nodes)
        share = np.ones((rectangles.shape[0], nodes.size))
        for axis in range(d):
            zero, one = has_zero[:, axis, None], has_one[:, axis, None]
            free = (zero * 1.0 + one) / 2
            share *= np.where(fixed[:, axis], np.where(values[:, axis] == 1, one, zero), free)
        return share

    def place(self, codes: Ints, index: Ints, key: int) -> Floats:
        """Return one record for each code; attributes below the tree's depth are fair coins."""
        shift = np.arange(self.depth - 1, -1, -1)
        points = np.empty((codes.size, self.dimension))
        points[:, : self.depth] = (codes[:, None] >> shift) & 1
        for axis in range(self.depth, self.dimension):
            points[:, axis] = hash_uniform(key, codes, (index + ROOT) * self.dimension + axis) < 0.5
        return points

    def to_dict(self) -> dict[str, Any]:
        """Return the cube as plain data."""
        return {"type": "cube", "dimension": self.dimension, "depth": self.depth, "names": list(self.names)}

    def __repr__(self) -> str:
        return f"Cube({self.dimension}, depth={self.depth})"
