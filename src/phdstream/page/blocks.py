"""A release's coarse tree as bytes, for `js/tree.js` to answer questions as `Release.count` does. Public.

Numbers are the first bytes of 32-bit floating point, rounded: three for counts (right to 1 in 65,000), two for
variances (right to 1 in 250, so a standard deviation to 1 in 500). The bytes of a column stand plane by plane, which
compresses well. A column that another one tells is left out; see `_FLAGS`. Nodes stand level by level, and on a box
their edges follow from which of them are divided; elsewhere they are stated, with parents and measures.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Floats
from phdstream.domains import Box
from phdstream.page.coarse import parents
from phdstream.page.quantise import Frame
from phdstream.release import Release
from phdstream.release.unevenness import Unevenness

__all__ = ["encode_tree", "pack"]

_UNBIASED, _NOISE_OF_NODES, _ERROR, _OWN, _STATED = 1, 2, 4, 8, 16
"""Flags: which columns are there besides counts, variances of cells and of shares."""


def pack(values: Floats, size: int) -> bytes:
    """Return numbers as the first ``size`` bytes of 32-bit floating point, rounded, all first bytes first.

    >>> pack(np.array([1.0, -2.5]), 2).hex()
    '3fc08020'
    """
    cut = 8 * (4 - size)
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + (1 << (cut - 1))) >> cut).astype(np.uint32) if cut else bits.astype(np.uint32)
    return b"".join(((rounded >> (8 * k)) & 255).astype(np.uint8).tobytes() for k in reversed(range(size)))


def encode_tree(release: Release, frame: Frame) -> bytes:
    """Return a (coarse) release's tree as bytes. Nothing is known of one that is held: it has no nodes."""
    e, n = release.estimate, release.estimate.node.size
    if not n or release.held:
        return struct.pack("<IIf", 0, 0, 0.0)
    parent, domain = parents(release), release.domain
    uneven = Unevenness.of(e, parent)
    stated = type(domain) is not Box
    columns: list[bytes] = [np.packbits(e.leaf).tobytes(), pack(e.count[e.leaf], 3), pack(e.variance[e.leaf], 2)]
    columns.append(pack(e.share_variance, 2))
    flags = 0
    optional = [
        (_UNBIASED, not np.array_equal(e.unbiased, e.count), e.unbiased[e.leaf], 3),
        (_NOISE_OF_NODES, bool(e.own_variance.any()), e.own_variance, 2),
        (_ERROR, bool(e.uncounted[0] > 0), uneven.shares, 2),
        (_OWN, not np.array_equal(e.own, np.where(e.leaf, e.count, 0)), e.own, 2),
        (_STATED, stated, domain.measure(e.node) if stated else e.count, 2),
    ]
    for flag, there, values, size in optional:
        if there:
            flags |= flag
            columns.append(pack(values, size))
    if stated:
        columns += [_planes(parent.astype(np.uint32)), frame.boxes(domain.bounds(e.node))]
    return struct.pack("<IIf", n, flags, uneven.clustering) + b"".join(columns)


def _planes(values: NDArray[np.uint32]) -> bytes:
    return b"".join(((values >> (8 * k)) & 255).astype(np.uint8).tobytes() for k in (3, 2, 1, 0))
