"""Which cells lie beside the nodes of a walk from the root: by pointers, from level to level. Public.

A node's neighbours along a coordinate are those of its length on either side of it. Those of a half follow from its
node's: along the coordinate that was halved one is the other half, and the other one a half of the node's neighbour;
along any other coordinate both are halves of the node's neighbours. So nothing has to be searched for. Where a
neighbour was not opened there is no node of that length: the cell that ended there stands for it.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains.binary_tree import BinaryTree

__all__ = ["Neighbours"]


class Neighbours:
    """Follows a walk from the root. All its cells have numbers, as they are met: the root's is 1; 0 is nowhere."""

    def __init__(self, tree: BinaryTree) -> None:
        self._axes, self._bits = tree.axes, -1
        self._beside = {axis: [np.zeros(1, np.int64)] * 2 for axis in set(tree.axes) - {-1}}
        self._first_half, self._size, self._opened = np.zeros(1, np.int64), 1, 0

    def go_on(self, cells: int, opened: Ints) -> int:
        """Go on to the next level, all halves of the nodes opened last, and open some; return its first cell's number.

        ``cells`` is how many halves there are, and ``opened`` which of them are opened.
        """
        if self._bits >= 0:
            self._beside = {axis: self._of_halves(axis, opened) for axis in self._beside}
        first, self._size = self._size, self._size + cells
        if self._first_half.size < self._size:
            self._first_half = np.append(self._first_half, np.empty(self._size, np.int64))
        self._first_half[first : self._size] = np.arange(first, self._size)  # of a cell that ends: itself
        self._first_half[first + opened] = np.arange(self._size, self._size + 2 * opened.size, 2)
        self._bits, self._opened = self._bits + 1, opened.size
        return first

    def _of_halves(self, axis: int, chosen: Ints) -> list[Ints]:
        """Return the cells before and after some halves of the opened nodes along a coordinate."""
        own = np.arange(self._size, self._size + 2 * self._opened)  # the halves themselves
        beside = []
        for side, cells in enumerate(self._beside[axis]):
            first = self._first_half[cells]
            halves = np.empty(own.size, np.int64)
            halves[::2], halves[1::2] = first, first + (first >= self._size)
            if axis == self._axes[self._bits]:
                if side == 0:  # before: the second half of the node's neighbour, and the first half
                    halves[::2], halves[1::2] = halves[1::2], own[::2]
                else:  # after: the second half, and the first half of the node's neighbour
                    halves[1::2], halves[::2] = first, own[1::2]
            beside.append(halves[chosen])
        return beside

    def cells(self, axis: int) -> list[Ints]:
        """Return the numbers of the cells before and after each opened node along a coordinate (-1: there are none)."""
        return self._beside[axis] if axis in self._beside else [np.zeros(self._opened, np.int64)] * 2

    def among_opened(self, axis: int) -> list[Ints]:
        """Return where the neighbours of each opened node are among the opened nodes; -1 if they are not."""
        return [np.maximum((self._first_half[cells] - self._size) >> 1, -1) for cells in self.cells(axis)]
