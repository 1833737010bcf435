"""A domain's tree, one bit at a time: every node is halved, whatever the domain's fanout.

A node here is any prefix of a code (see `phdstream.domains.prefixes`). Where a level of the domain takes several bits
(fanout 4, or the children of a hospital), the prefixes in between stand for groups of its children. The measure of a
group is the sum of its members', so everything stays measure-weighted.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains.domain import Domain
from phdstream.domains.prefixes import code_range, prefix_length

__all__ = ["BinaryTree"]


class BinaryTree:
    """The binary view of a domain's tree.

    >>> import phdstream as phd
    >>> tree = BinaryTree(phd.Box([(0, 1), (0, 1)], fanout=4, depth=3))
    >>> tree.total_bits, tree.bits(np.array([1, 2, 3, 4])).tolist()
    (6, [0, 1, 1, 2])
    >>> tree.first_share(np.array([2, 3]), 1)
    array([0.5, 0.5])
    """

    def __init__(self, domain: Domain) -> None:
        self.domain, self.axes, self.even = domain, domain.bit_axes, domain.even
        self._level = np.searchsorted(domain.bits_through, np.arange(self.total_bits + 1), side="right") - 1

    @property
    def total_bits(self) -> int:
        """The length of a code."""
        return self.domain.total_bits

    def bits(self, nodes: Ints) -> Ints:
        """Return the length of each node's prefix; the root has length 0."""
        return prefix_length(nodes)

    def code_range(self, nodes: Ints, bits: int | None = None) -> tuple[Ints, Ints]:
        """Return the first code of each node and the first one past it."""
        return code_range(nodes, self.total_bits, bits)

    def is_level(self, bits: int) -> bool:
        """Whether prefixes of this length are nodes of the domain."""
        return int(self.domain.bits_through[self._level[bits]]) == bits

    def first_share(self, nodes: Ints, bits: int) -> Floats:
        """Return the first half's share of each node's measure.

        The nodes are of one length, above the last, in order and all different. One of measure zero is halved evenly.
        """
        if self.even:
            return np.full(nodes.size, 0.5)
        level = int(self._level[bits])
        above, below = (int(self.domain.bits_through[level + i]) for i in (0, 1))
        upper = nodes >> (bits - above)
        children, _, share = self.domain.children(upper[np.diff(upper, prepend=0) > 0])
        at = np.searchsorted(nodes, children >> (below - bits))
        mine = nodes[np.minimum(at, nodes.size - 1)] == children >> (below - bits)
        first = mine & ((children >> (below - bits - 1)) & 1 == 0)
        whole, part = (np.bincount(at[chosen], share[chosen], nodes.size) for chosen in (mine, first))
        return np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0.5)

    def neighbours(self, nodes: Ints, bits: int) -> list[tuple[Ints, Bools]]:
        """Return each node's neighbours before and after it along the coordinate halved next, and which there are.

        The nodes are of one length, in a domain that says which coordinate each bit halves (Morton codes, and products
        of them). With the bits between a coordinate's filled, a carry runs through. Where a bit halves none, and before
        a coordinate's first halving, there are no neighbours.

        >>> import phdstream as phd
        >>> tree = BinaryTree(phd.Box([(0, 1), (0, 1)]))
        >>> [(node.tolist(), there.tolist()) for node, there in tree.neighbours(np.array([4, 5, 6, 7]), 2)]
        [([6, 7, 4, 5], [False, False, True, True]), ([6, 7, 4, 5], [True, True, False, False])]
        """
        axis = self.axes[bits]
        own = sum(np.int64(1) << (bits - 1 - i) for i in range(bits) if axis >= 0 and self.axes[i] == axis)
        step = own & -own
        mine, others = nodes & own, nodes & ~own
        before, after = (mine - step) & own, ((mine | ~own) + step) & own
        return [(others | before, mine > 0), (others | after, mine < own)]
