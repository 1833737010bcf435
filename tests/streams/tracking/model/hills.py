"""Densities to measure, and what was measured of them: for tests of what is released of the splits."""

from __future__ import annotations

import numpy as np

import phdstream as phd
from phdstream.arrays import Floats
from phdstream.domains.binary_tree import BinaryTree
from phdstream.streams.tracking.model.split_tree import SplitTree, by_contrast
from phdstream.streams.tracking.model.walk import leaves_of

BOX = phd.Box([(0, 1), (0, 1)], depth=12)
PLANE = BinaryTree(BOX)


def leaf_counts(tree: BinaryTree, splits: SplitTree, total: float, bits: int) -> Floats:
    """Return how many points each node of one length holds, in order."""
    nodes, held = leaves_of(
        tree.total_bits,
        np.array([1]),
        np.array([[total]]),
        lambda here, _, at: np.full(here.size, at < bits),
        by_contrast(tree, (splits,)),
    )
    counts: Floats = held[0, np.argsort(nodes)]
    return counts


def measured_splits(counts: Floats, noise: float, seed: int) -> SplitTree:
    """Return the splits of a full tree whose leaves were counted with normal noise."""
    noisy = np.maximum(counts + np.random.default_rng(seed).normal(0, noise, counts.size), 0.5)
    parts, variance = [], np.full(counts.size, noise**2)
    while noisy.size > 1:
        first, second = noisy[::2], noisy[1::2]
        mass, variance = first + second, variance[::2] + variance[1::2]
        parts.append((np.arange(mass.size) + mass.size, (first - second) / mass, variance / mass**2))
        noisy = mass
    return SplitTree(*(np.concatenate(column[::-1]) for column in zip(*parts, strict=True)))


def bump(bits: int, points: float) -> Floats:
    """Return a smooth hill's counts in the cells of one length."""
    corners = BOX.bounds(np.arange(1 << bits) + (1 << bits))
    x, y = (corners[:, 0] + corners[:, 2]) / 2, (corners[:, 1] + corners[:, 3]) / 2
    hill: Floats = np.exp(-((x - 0.45) ** 2 + (y - 0.5) ** 2) / 0.05)
    return points * hill / hill.sum()
