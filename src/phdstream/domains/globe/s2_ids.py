"""Nodes of a globe's tree as S2 cell ids, and back.

An S2 cell id has the same bits as a node, but from the left: the face and the position on the Hilbert curve, then a
one bit as a mark, then zeros. A node has its one bit in front.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Ints
from phdstream.domains.codes import ROOT
from phdstream.errors import InputError

__all__ = ["nodes_from_s2_ids", "s2_ids"]

_FACES = 6


def s2_ids(nodes: Ints, bits: Ints) -> NDArray[np.uint64]:
    """Return the S2 cell ids of nodes, of which so many bits name each; not for the root, which is no cell."""
    marked = (nodes - (np.int64(ROOT) << bits)) << 1 | 1
    return marked.astype(np.uint64) << (63 - bits).astype(np.uint64)


def nodes_from_s2_ids(ids: Any, total_bits: int) -> Ints:
    """Return the nodes that have these S2 cell ids, in a tree whose codes have ``total_bits`` bits."""
    array = _read_ids(ids)
    zeros = np.bitwise_count(~array & (array - np.uint64(1))).astype(np.int64)  # below the mark
    bits = 63 - zeros
    prefixes = (array >> np.uint64(1) >> zeros.astype(np.uint64)).astype(np.int64)
    known = (zeros % 2 == 0) & (bits >= 3) & (prefixes >> np.maximum(bits - 3, 0) < _FACES)
    if not known.all():
        raise InputError("some numbers are not ids of S2 cells.")
    if (bits > total_bits).any():
        finest = (total_bits - 3) // 2
        raise InputError(f"some S2 cells are finer than this tree's, of level {finest}: take their parents.")
    return prefixes | np.int64(ROOT) << bits


def _read_ids(ids: Any) -> NDArray[np.uint64]:
    try:
        array = np.asarray(ids)
        if array.dtype.kind not in "iu":  # NumPy makes floats of a list with numbers below and above 2^63
            array = np.array([operator.index(i) for i in ids], dtype=np.uint64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise InputError("S2 cell ids are whole numbers of 64 bits, in a one-dimensional array.")
    return array.astype(np.uint64)
