"""From public weights at places to a prior: how each node of a domain's tree divides them. Public.

The weights of a node's halves give its split contrast (see `phdstream.streams.tracking.model.split_tree`). Few points
tell little of that: it is drawn towards the measure's contrast as if `_PSEUDO` points of the measure had been there
too (a Pólya tree), with the variance that this leaves. How many points weights are worth is ``W²/Σw²`` (Kish's
effective sample size), so scaling all of them changes nothing. A node that is worth fewer than `_ENOUGH` is not
divided: inside it the prior is the measure.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from phdstream.arrays import Floats, Ints
from phdstream.domains import ROOT
from phdstream.domains.binary_tree import BinaryTree

__all__ = ["MOST_NODES", "PriorSplits", "divided"]

MOST_NODES = 1 << 16
"""A prior has no more nodes: those of the largest weight."""
_PSEUDO = 1.0
_ENOUGH = 4.0
_DIGITS = 6
"""Contrasts and variances are rounded to so many digits: enough, and the same wherever they are computed."""


@dataclass(frozen=True)
class PriorSplits:
    """The contrasts of a prior's nodes, and what few points leave of variance; in order of the nodes."""

    node: Ints
    contrast: Floats
    variance: Floats

    @property
    def digest(self) -> str:
        """A name for exactly these numbers."""
        columns = [np.ascontiguousarray(column) for column in (self.node, self.contrast, self.variance)]
        return hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()


def divided(tree: BinaryTree, codes: Ints, weights: Floats, most: int = MOST_NODES) -> PriorSplits:
    """Return how weights at codes divide, down to where they tell nothing more.

    >>> import phdstream as phd
    >>> tree = BinaryTree(phd.Box([(0, 1)], depth=4))
    >>> splits = divided(tree, np.array([0] * 30 + [15] * 10), np.ones(40))
    >>> splits.node.tolist()[:3], splits.contrast.round(2).tolist()[:3]
    ([1, 2, 3], [0.49, 0.97, -0.91])
    """
    order = np.argsort(codes, kind="stable")
    codes, weights = codes[order], weights[order]
    sums, squares = (np.concatenate([[0.0], np.cumsum(column)]) for column in (weights, weights**2))
    here, none = np.array([ROOT]), np.zeros(0)
    columns = [(here[:0], none, none, none)]
    for bits in range(tree.total_bits):
        cuts = [np.searchsorted(codes, edge) for edge in tree.code_range(here, bits)]
        weight, square = (sums[cuts[1]] - sums[cuts[0]]), (squares[cuts[1]] - squares[cuts[0]])
        worth = np.divide(weight**2, square, out=np.zeros(here.size), where=square > 0)
        told = worth >= _ENOUGH
        if not told.any():
            break
        here, weight, worth = here[told], weight[told], worth[told]
        halves = np.stack([2 * here, 2 * here + 1], axis=1).ravel()
        cuts = [np.searchsorted(codes, edge) for edge in tree.code_range(halves[::2], bits + 1)]
        first = (sums[cuts[1]] - sums[cuts[0]]) / weight
        measure = 2 * tree.first_share(here, bits) - 1
        contrast = np.clip(((2 * first - 1) * worth + _PSEUDO * measure) / (worth + _PSEUDO), -1, 1)
        columns.append((here, contrast, (1 - contrast**2) / (worth + _PSEUDO + 1), weight))
        here = halves
    node, contrast, variance, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
    kept = np.sort(np.argsort(-weight, kind="stable")[:most])  # of equals those higher up: so whole subtrees go
    return PriorSplits(node[kept], contrast[kept].round(_DIGITS), variance[kept].round(_DIGITS))
