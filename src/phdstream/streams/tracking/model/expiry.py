"""What expires, with a window: each block's own splits are remembered, and taken off when its ticks are gone. Public.

What expires needs no count: it is what came in the tick that expires. Where a block divided otherwise than all points
do, by more than its noise and chance explain, its difference is taken off: what is left is how the newer points divide.
Elsewhere what expires divides as all points do, and the splits stay as they are; taking off every block's difference
would only add noise to thin nodes.

Without this a release forgets only slowly where the expired points were, which is right if points come where they
always came. Crowds that move are not like that, nor are attributes that go with time: of daily ticks with a window of
two, half of a release's weekdays were wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Bools, Floats, Ints
from phdstream.domains import ROOT
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.state import Arrays, nest, unnest
from phdstream.streams.tracking.model.split_tree import UNKNOWN, SplitTree
from phdstream.streams.tracking.model.walk import walk
from phdstream.streams.tracking.parameters import Expiry

__all__ = ["Expiring", "without"]

_TINY = 1e-300


@dataclass
class Expiring:
    """The measured splits of a window's closed blocks, the oldest first, and how many ticks of each are left."""

    ticks: list[int]
    blocks: list[SplitTree]

    @classmethod
    def nothing(cls) -> Expiring:
        """Return what is remembered before anything came."""
        return cls([], [])

    def add(self, ticks: int, splits: SplitTree, most: int) -> None:
        """Remember a block of some ticks by its upper nodes, so many at most."""
        self.ticks.append(ticks)
        self.blocks.append(splits.only(np.arange(splits.node.size) < most))

    def pass_tick(self, held: int) -> SplitTree:
        """Let a tick pass; return the splits of the block whose tick is gone, if no more than ``held`` may stay."""
        if sum(self.ticks) <= held:
            return SplitTree.empty()
        gone = self.blocks[0]
        self.ticks[0] -= 1
        if not self.ticks[0]:
            del self.ticks[0], self.blocks[0]
        return gone

    def to_arrays(self) -> Arrays:
        """Return what is remembered as plain arrays."""
        arrays = {"ticks": np.array(self.ticks, dtype=np.int64)}
        for i, block in enumerate(self.blocks):
            arrays |= nest(str(i), block.to_arrays())
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Expiring:
        """Return what `to_arrays` described; nothing if a state is from before this was remembered."""
        ticks = arrays["ticks"].tolist() if "ticks" in arrays else []
        return cls(ticks, [SplitTree(**unnest(str(i), arrays)) for i in range(len(ticks))])


def without(
    rule: Expiry, tree: BinaryTree, splits: SplitTree, gone: SplitTree, mass: float, amount: float
) -> SplitTree:
    """Return the splits of what is left when ``amount`` points that divided as ``gone`` are taken off ``mass``."""
    taken = _Taken(rule, tree, splits, gone)
    if amount > 0 and gone.node.size and splits.node.size:
        walk(tree.total_bits, np.array([ROOT]), np.array([[mass], [amount]]), taken.opens, taken.halve)
    if not taken.left:
        return splits
    return splits.updated(*(np.concatenate(column) for column in zip(*taken.left, strict=True)))


class _Taken:
    """Walks down the nodes that a block measured; the rows of amounts are their masses, and what goes of them."""

    def __init__(self, rule: Expiry, tree: BinaryTree, splits: SplitTree, gone: SplitTree) -> None:
        self._rule, self._tree, self._splits, self._gone = rule, tree, splits, gone
        self.left: list[tuple[Ints, Floats, Floats]] = []

    def opens(self, nodes: Ints, amounts: Floats, bits: int) -> Bools:
        """Open the nodes that the block measured, and that are still known."""
        there: Bools = self._gone.find(nodes)[1] & self._splits.find(nodes)[1] & (amounts[1] > 0)
        return there

    def halve(self, nodes: Ints, amounts: Floats, bits: int) -> Floats:
        """Take the block's differences off, and return the halves' masses and what goes of them."""
        mass, amount = amounts
        contrast, variance = self._splits.of(self._tree, nodes, bits)
        theirs, chance = self._gone.of(self._tree, nodes, bits)
        apart = np.maximum((theirs - contrast) ** 2, _TINY)
        believed = np.maximum(1 - self._rule.chance * (chance + variance) / apart, 0)
        halves = _divided(mass, contrast)
        going = np.minimum(_divided(amount, contrast + believed * (theirs - contrast)), halves)
        first, second = (halves - going).T
        some = first + second > 0
        rest = np.where(some, first + second, 1.0)
        after = np.where(some, np.clip((first - second) / rest, -1, 1), contrast)
        lost = np.where(some, believed * (mass / rest - 1), 0)  # what is known of those that stay is of fewer points
        self.left.append((nodes, after, np.clip(variance * (1 + lost), 0, UNKNOWN)))
        return np.stack([halves, going])


def _divided(amount: Floats, contrast: Floats) -> Floats:
    """Return the amounts of nodes' halves, (nodes, 2)."""
    return np.stack([amount * (1 + contrast) / 2, amount * (1 - contrast) / 2], axis=1)
