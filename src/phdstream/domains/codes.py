"""Arithmetic on hierarchical codes and on the nodes of the tree they define.

A point's *code* is an integer of ``depth · bits`` bits. Its first ``ℓ · bits`` bits name the node of level ℓ that
holds the point. A *node* is written with a leading one bit before its prefix: the root is 1, and child k of node v is
``v << bits | k``. So one int64 names any node of any level, nodes of a deeper level are larger, and sorting nodes of
one level sorts them along the code. For a quadtree this is the linear quadtree (Gargantini 1982; see Samet,
*Foundations of Multidimensional and Metric Data Structures*, 2006).

On a grid the code is the **Morton code** (Z-order; G. M. Morton 1966): the bits of the coordinates, interleaved.
`spread_bits` and `compress_bits` are its two directions.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Floats, Ints

__all__ = ["MAX_BITS", "ROOT", "child_nodes", "compress_bits", "hash_uniform", "spread_bits"]

MAX_BITS = 62
"""The longest code: with the leading one it fills the 63 value bits of an int64."""
ROOT = 1
_CHUNK = 13
"""Bits looked up at once: a table of 64 KB, which stays in a processor's nearest cache."""


def child_nodes(nodes: Ints, bits: int, number: int | None = None) -> Ints:
    """Return the names of the first ``number`` children of each node, or of all that ``bits`` bits name: a row each.

    Whether a child is in the tree (has any measure) is for `Domain.children` to say.

    >>> child_nodes(np.array([1, 5]), bits=1).tolist()
    [[2, 3], [10, 11]]
    """
    children: Ints = (nodes << bits)[:, None] | np.arange(1 << bits if number is None else number)
    return children


@lru_cache(maxsize=64)
def _spread_table(bits: int, stride: int) -> Ints:
    values = np.arange(1 << bits, dtype=np.int64)
    spread = np.zeros_like(values)
    for i in range(bits):
        if i * stride < MAX_BITS:
            spread |= ((values >> i) & 1) << (i * stride)
    return spread


def spread_bits(values: Ints, bits: int, stride: int) -> Ints:
    """Put bit i of each value at position ``i · stride``, for the lowest ``bits`` bits.

    >>> [bin(v) for v in spread_bits(np.array([0b1011]), bits=4, stride=2)]
    ['0b1000101']
    """
    values = values & ((1 << bits) - 1)
    if bits <= _CHUNK:
        return _spread_table(bits, stride)[values]
    table, spread = _spread_table(_CHUNK, stride), np.zeros_like(values)
    for low in range(0, bits, _CHUNK):
        spread |= table[(values >> low) & ((1 << _CHUNK) - 1)] << (low * stride)
    return spread


@lru_cache(maxsize=64)
def _compress_table(stride: int) -> Ints:
    """The collected bits of all values of as many bits as a whole number of strides takes."""
    return _compress_one_by_one(np.arange(1 << _window(stride), dtype=np.int64), _window(stride) // stride, stride)


def _window(stride: int) -> int:
    return _CHUNK // stride * stride


def _compress_one_by_one(values: Ints, bits: int, stride: int) -> Ints:
    compressed = np.zeros_like(values)
    for i in range(bits):
        compressed |= ((values >> (i * stride)) & 1) << i
    return compressed


def compress_bits(values: Ints, bits: int, stride: int) -> Ints:
    """Undo `spread_bits`: collect the bits at positions 0, stride, 2·stride, ...

    >>> compress_bits(np.array([0b1000101]), bits=4, stride=2).tolist()
    [11]
    """
    window = _window(stride)
    if window < 2 * stride:
        return _compress_one_by_one(values, bits, stride)
    table, compressed = _compress_table(stride), np.zeros_like(values)
    for low in range(0, bits * stride, window):
        compressed |= table[(values >> low) & ((1 << window) - 1)] << (low // stride)
    return compressed & ((1 << bits) - 1)


def hash_uniform(key: int, nodes: Ints, salt: int | Ints = 0) -> Floats:
    """Return a number in [0, 1) for each node: fixed for the key, and as good as random across nodes.

    Used for public choices only (where synthetic points fall). The mixing is splitmix64's finaliser (Steele et al.
    2014), applied to key, node and salt in turn. Not a source of privacy noise.

    >>> hash_uniform(1, np.array([5])) == hash_uniform(1, np.array([5]))
    array([ True])
    """
    mixed = np.array(nodes, dtype=np.int64, ndmin=1).view(np.uint64)
    mixed ^= _mixed_number(key)
    _mix(mixed)
    mixed ^= _mixed_number(salt) if isinstance(salt, int) else _mix(np.array(salt, np.int64, ndmin=1).view(np.uint64))
    _mix(mixed)
    mixed >>= np.uint64(11)
    return mixed.astype(np.float64) * 2.0**-53


@lru_cache(maxsize=1024)
def _mixed_number(number: int) -> np.uint64:
    return np.uint64(_mix(np.array([number & (2**64 - 1)], dtype=np.uint64))[0])


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix in place, and return, an array of this function's caller alone."""
    x += np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x
