"""What fast code must agree with to the bit: the same things computed one step at a time, as they first were."""

from __future__ import annotations

import numpy as np

from phdstream.domains import Box, Domain

MASK = 2**64 - 1


def mix(x: int) -> int:
    """splitmix64's finaliser, in Python's own whole numbers."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def hash_uniform(key: int, node: int, salt: int = 0) -> float:
    return (mix(mix(node ^ mix(key)) ^ mix(salt)) >> 11) * 2.0**-53


def encode(box: Box, point: tuple[float, ...]) -> tuple[int, bool]:
    """A point's code by halving the box, one bit at a time, at the edges that `Box.edges` gives."""
    corners = box.bounds(np.array([1]))[0]
    low, high = corners[: box.dimension], corners[box.dimension :]
    if not all(a <= x <= b for a, x, b in zip(low, point, high, strict=True)):
        return 0, False
    slices = []
    for axis, x in enumerate(point):
        edges = box.edges(axis)
        slices.append(min(int(np.searchsorted(edges, x, side="right")) - 1, edges.size - 2))
    code = 0
    halvings = [(box.edges(axis).size - 1).bit_length() - 1 for axis in range(box.dimension)]
    for bit in range(box.total_bits):
        axis, which = bit % box.dimension, bit // box.dimension
        code = code << 1 | (slices[axis] >> (halvings[axis] - 1 - which)) & 1
    return code, True


def count(domain: Domain, codes: list[int], node: int) -> int:
    """How many codes begin with a node's prefix."""
    bits = node.bit_length() - 1
    return sum((1 << bits | code >> (domain.total_bits - bits)) == node for code in codes)


def deal(count: int, shares: list[float], node: int, key: int) -> list[int]:
    """One family's points: halve the family (padded to a power of two), deal, go on with the halves."""
    width = 1 << max(0, len(shares) - 1).bit_length()
    return _deal(count, shares + [0.0] * (width - len(shares)), len(shares), node, key)[: len(shares)]


def _deal(count: int, shares: list[float], real: int, part: int, key: int) -> list[int]:
    if len(shares) == 1:
        return [count]
    half = len(shares) // 2
    a, b = _sum(shares[:half]), _sum(shares[half:])
    fraction = a / (a + b) if a + b > 0 else 0.5
    last = [part >> i & 1 for i in range(6)]
    shift = (last[0] ^ last[2]) / 2 + (last[1] ^ last[3] ^ last[5]) / 4
    offset = (hash_uniform(key, part >> 6 or -part) + shift) % 1
    first = min(int(np.floor(count * fraction + offset)), count)
    left = 2 * part if real > half else part
    return _deal(first, shares[:half], min(real, half), left, key) + _deal(
        count - first, shares[half:], max(real - half, 0), 2 * part + 1, key
    )


def _sum(shares: list[float]) -> float:
    """Pairs first, then pairs of pairs: the order decides the last bit."""
    return shares[0] if len(shares) == 1 else _sum(shares[: len(shares) // 2]) + _sum(shares[len(shares) // 2 :])
