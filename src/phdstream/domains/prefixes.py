"""Nodes as prefixes of codes: their lengths, their ranges of codes, and whether they are disjoint.

A node is a prefix of a code with a one bit before it (see `phdstream.domains.codes`), of any length: a node of the
domain's tree, or of its binary view.
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Ints

__all__ = ["are_disjoint", "code_range", "prefix_length"]

_POWERS = np.int64(1) << np.arange(63, dtype=np.int64)


def prefix_length(nodes: Ints) -> Ints:
    """Return the length of each prefix in bits; the root has length 0.

    >>> prefix_length(np.array([1, 2, 3, 4])).tolist()
    [0, 1, 1, 2]
    """
    return np.searchsorted(_POWERS, nodes, side="right").astype(np.int64) - 1


def code_range(nodes: Ints, total_bits: int, bits: int | None = None) -> tuple[Ints, Ints]:
    """Return the first code of each node and the first one past it; quicker if all are of one given length.

    >>> [ends.tolist() for ends in code_range(np.array([1, 3, 6]), total_bits=3)]
    [[0, 4, 4], [8, 8, 6]]
    """
    length = prefix_length(nodes) if bits is None else bits
    prefix, rest = nodes - (np.int64(1) << length), total_bits - length
    return prefix << rest, (prefix + 1) << rest


def are_disjoint(nodes: Ints, total_bits: int) -> bool:
    """Whether no code lies in two of the nodes.

    >>> are_disjoint(np.array([2, 6, 7]), total_bits=4), are_disjoint(np.array([2, 4]), total_bits=4)
    (True, False)
    """
    first, past = code_range(nodes, total_bits)
    order = np.argsort(first, kind="stable")
    return bool((past[order[:-1]] <= first[order[1:]]).all())
