"""Arithmetic on hierarchical codes and on the nodes of the tree they define.

A point's *code* is an integer of ``depth · bits`` bits. Its first ``ℓ · bits`` bits name the node of level ℓ that
holds the point. A *node* is written with a leading one bit before its prefix: the root is 1, and child k of node v is
``v << bits | k``. So one int64 names any node of any level, nodes of a deeper level are larger, and sorting nodes of
one level sorts them along the code.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from phdstream.arrays import Floats, Ints

__all__ = ["MAX_BITS", "ROOT", "compress_bits", "hash_uniform", "spread_bits"]

MAX_BITS = 62
"""The longest code: with the leading one it fills the 63 value bits of an int64."""
ROOT = 1
_CHUNK = 8


@lru_cache(maxsize=64)
def _spread_table(stride: int) -> Ints:
    values = np.arange(1 << _CHUNK, dtype=np.int64)
    spread = np.zeros_like(values)
    for i in range(_CHUNK):
        if i * stride < MAX_BITS:
            spread |= ((values >> i) & 1) << (i * stride)
    return spread


def spread_bits(values: Ints, bits: int, stride: int) -> Ints:
    """Put bit i of each value at position ``i · stride``, for the lowest ``bits`` bits.

    >>> [bin(v) for v in spread_bits(np.array([0b1011]), bits=4, stride=2)]
    ['0b1000101']
    """
    table, spread = _spread_table(stride), np.zeros_like(values)
    values = values & ((1 << bits) - 1)
    for low in range(0, bits, _CHUNK):
        spread |= table[(values >> low) & ((1 << _CHUNK) - 1)] << (low * stride)
    return spread


def compress_bits(values: Ints, bits: int, stride: int) -> Ints:
    """Undo `spread_bits`: collect the bits at positions 0, stride, 2·stride, ...

    >>> compress_bits(np.array([0b1000101]), bits=4, stride=2).tolist()
    [11]
    """
    compressed = np.zeros_like(values)
    for i in range(bits):
        compressed |= ((values >> (i * stride)) & 1) << i
    return compressed


def hash_uniform(key: int, nodes: Ints, salt: int | Ints = 0) -> Floats:
    """Return a number in [0, 1) for each node: fixed for the key, and as good as random across nodes.

    Used for public choices only (where synthetic points fall). The mixing is splitmix64's finaliser (Steele et al.
    2014), applied to key, node and salt in turn. Not a source of privacy noise.

    >>> hash_uniform(1, np.array([5])) == hash_uniform(1, np.array([5]))
    array([ True])
    """
    with np.errstate(over="ignore"):
        mixed = _mix(np.asarray(nodes).astype(np.uint64) ^ _mix(np.asarray(key & (2**64 - 1), dtype=np.uint64)))
        mixed = _mix(mixed ^ _mix(np.asarray(salt).astype(np.uint64)))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(x: np.typing.NDArray[np.uint64]) -> np.typing.NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
