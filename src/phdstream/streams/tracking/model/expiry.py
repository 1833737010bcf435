"""What expires, with a window: each closed block's own splits, taken off again when its ticks are gone. Public.

A window needs no count of what expires: it is what came in the tick that expires. So where a block's own split was
measured (its noise was less than what it could differ by), its difference is taken off the node's: what is left is how
the newer points divide. Elsewhere what expires divides as all points do, and the splits stay as they are: the noise of
a thin node's block would only be added once more.

Without this a release forgets slowly where the expired points were, which is right only if points come where they
always came. An attribute that goes with time shows it most: of daily ticks with a window of two, half of a release's
weekdays would be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.split_tree import UNKNOWN, SplitTree
from phdstream.streams.tracking.model.walk import walk

__all__ = ["Expiring", "without"]

_MOST_NODES = 1 << 15
"""Nodes remembered of all blocks of a window together, at most: their heaviest."""
_FEWEST = 64


@dataclass
class Expiring:
    """The measured splits of a window's closed blocks, the oldest first, and how many ticks of each are left."""

    ticks: list[int]
    blocks: list[SplitTree]

    @classmethod
    def nothing(cls) -> Expiring:
        """Return what is remembered before anything came."""
        return cls([], [])

    def add(self, ticks: int, splits: SplitTree, window: int) -> None:
        """Remember a block that was counted; ``splits`` are in order of the nodes, the upper ones first."""
        most = max(_MOST_NODES // window, _FEWEST)
        self.ticks.append(ticks)
        self.blocks.append(splits.only(np.arange(splits.node.size) < most))

    def pass_tick(self, held: int) -> SplitTree:
        """Let a tick pass; return the splits of the block of the tick that is gone, if ``held`` ticks may stay."""
        if sum(self.ticks) <= held:
            return SplitTree.empty()
        gone = self.blocks[0]
        self.ticks[0] -= 1
        if not self.ticks[0]:
            del self.ticks[0], self.blocks[0]
        return gone


def without(tree: BinaryTree, splits: SplitTree, gone: SplitTree, mass: float, amount: float) -> SplitTree:
    """Return the splits of what is left when ``amount`` points that divided as ``gone`` are taken off ``mass``."""
    taken = _Taken(tree, splits, gone)
    if amount > 0 and gone.node.size:
        walk(tree.total_bits, np.array([ROOT]), np.array([[mass], [amount]]), taken.opens, taken.halve)
    if not taken.learnt:
        return splits
    return splits.updated(*(np.concatenate(column) for column in zip(*taken.learnt, strict=True)))


class _Taken:
    """Walks down the nodes that a block measured; the rows of amounts are their masses, and what goes of them."""

    def __init__(self, tree: BinaryTree, splits: SplitTree, gone: SplitTree) -> None:
        self._tree, self._splits, self._gone = tree, splits, gone
        self.learnt: list[tuple[Ints, Floats, Floats]] = []

    def opens(self, nodes: Ints, amounts: Floats, bits: int) -> Bools:
        """Open the nodes that the block measured, and that are still known."""
        return self._gone.find(nodes)[1] & self._splits.find(nodes)[1] & (amounts[1] > 0)

    def halve(self, nodes: Ints, amounts: Floats, bits: int) -> Floats:
        """Take the block's differences off, and return the halves' masses and what goes of them."""
        mass, amount = amounts
        contrast, variance = self._splits.of(self._tree, nodes, bits)
        theirs, noise = self._gone.of(self._tree, nodes, bits)
        halves = np.stack([mass * (1 + contrast) / 2, mass * (1 - contrast) / 2], axis=1)
        going = np.minimum(np.stack([amount * (1 + theirs) / 2, amount * (1 - theirs) / 2], axis=1), halves)
        left = halves - going
        total = left.sum(axis=1)
        there = total > 0
        rest = np.where(there, total, 1.0)
        old = variance * mass**2
        kept = np.maximum(old - noise * amount**2, old * np.minimum(rest / np.maximum(mass, 1e-12), 1))
        after = np.where(there, (left[:, 0] - left[:, 1]) / rest, contrast)
        spread = np.where(there, np.clip(kept / rest**2, 0, UNKNOWN), variance)
        self.learnt.append((nodes, after, spread))
        return np.stack([halves, going])
