"""PrivTree: Zhang, Xiao, Xie, *PrivTree: a differentially private algorithm for hierarchical decompositions* (2016).

`phdstream.streams.paper.privtree` is another: as the paper of PHDStream uses it, halving one coordinate at a time, with
whole noise and points. This is the authors' own, on quadtrees.
"""

from __future__ import annotations

import numpy as np

from benchmarks.literature.densities import Cells
from phdstream.arrays import Floats
from phdstream.domains import ROOT, Box

__all__ = ["privtree", "split_noise"]

_FANOUT, _TREE_SHARE, _THRESHOLD, _DEEPEST = 4, 0.5, 0.0, 20
"""β and θ are the authors', as is half of ε for the tree. Depth needs no limit; this one is not reached by noise."""


def split_noise(epsilon: float) -> tuple[float, float]:
    """Return the scale λ of the noise of a split, and the bias δ per level, for a tree of so much ε."""
    scale = (2 * _FANOUT - 1) / (_FANOUT - 1) / epsilon
    return scale, scale * float(np.log(_FANOUT))


def privtree(points: Floats, epsilon: float, rng: np.random.Generator) -> Cells:
    """Split while a count, less δ for each level and at least θ - δ, is over θ with noise; then count the leaves."""
    scale, bias = split_noise(_TREE_SHARE * epsilon)
    domain = Box([(0, 1), (0, 1)], fanout=_FANOUT, depth=_DEEPEST)
    codes = np.sort(domain.encode(points)[0])
    leaves, nodes = [], np.array([ROOT])
    for depth in range(_DEEPEST + 1):
        first, past = domain.code_range(nodes)
        counts = np.searchsorted(codes, past) - np.searchsorted(codes, first)
        biased = np.maximum(counts - depth * bias, _THRESHOLD - bias)
        splits = (biased + rng.laplace(0, scale, nodes.size) > _THRESHOLD) & (depth < _DEEPEST)
        noise = rng.laplace(0, 1 / ((1 - _TREE_SHARE) * epsilon), nodes.size)
        leaves.append((nodes[~splits], (counts + noise)[~splits]))
        nodes = domain.children(nodes[splits])[0]
    ends, counted = (np.concatenate(each) for each in zip(*leaves, strict=True))
    return Cells(domain.bounds(ends), counted)
