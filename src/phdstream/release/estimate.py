"""What a tick releases about the nodes of its tree. Public."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Bools, Floats, Ints

__all__ = ["Estimate"]


@dataclass
class Estimate:
    """What a tick releases about its visited nodes, level by level in code order.

    - ``unbiased``: the paper's G, the sum of everything released; may be negative;
    - ``count``: its non-negative, consistent projection;
    - ``points``: whole numbers, unbiased for ``count``, that add up;
    - ``variance``: of the noise in ``unbiased``;
    - ``own_variance``: the part of it that belongs to this node (for a leaf: with all below it). The rest came
      from above and is shared with other leaves;
    - ``share_variance``: for methods that divide each node's count among its children by estimated shares: the variance
      of this node's part, before that of its siblings is known (for the root: of the total). Zero otherwise;
    - ``uncounted``: how many points came or went in the node since places were last counted. How they divide among its
      children is guessed. Zero for methods that count places at every tick;
    - ``own``: the part of ``unbiased`` that was counted in this node as a whole (for a leaf: with all below it). Where
      inside the node it lies was not counted. Unless given: all of a leaf's count.
    """

    node: Ints
    leaf: Bools
    count: Floats
    unbiased: Floats
    variance: Floats
    own_variance: Floats
    points: Ints
    share_variance: Floats = None  # type: ignore[assignment]  # set below
    uncounted: Floats = None  # type: ignore[assignment]  # set below
    own: Floats = None  # type: ignore[assignment]  # set below

    def __post_init__(self) -> None:
        if self.share_variance is None:
            self.share_variance = np.zeros(self.node.size)
        if self.uncounted is None:
            self.uncounted = np.zeros(self.node.size)
        if self.own is None:
            leaf, self.own = np.flatnonzero(self.leaf), np.zeros(self.node.size)
            self.own[leaf] = self.count[leaf]

    @classmethod
    def nothing(cls) -> Estimate:
        """Return what is known before the first release."""
        none, empty = np.zeros(0), np.zeros(0, np.int64)
        return cls(empty, empty.astype(bool), none, none, none, none, empty)
