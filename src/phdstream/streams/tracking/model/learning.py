"""Learning that cannot fail: a tick whose noise has been drawn is released in any case. Public."""

from __future__ import annotations

from collections.abc import Callable

from phdstream.domains.binary_tree import BinaryTree
from phdstream.release.soundness import Fallback
from phdstream.streams.tracking.model.split_tree import SplitTree

__all__ = ["learnt"]


def learnt(tree: BinaryTree, fallback: Fallback, learn: Callable[[], SplitTree], before: SplitTree) -> SplitTree:
    """Return the splits that ``learn`` gives, mended where they are not sound; those from ``before`` if it fails."""
    splits = fallback.first_sound([learn, lambda: before], lambda _: True)
    return fallback.first_sound([lambda: splits, lambda: splits.mended(tree)], SplitTree.sound)
