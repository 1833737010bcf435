"""Whole points apportioned to parts: always the same way for the same key, without bias, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Bools, Floats, Ints, ragged
from phdstream.domains.codes import hash_uniform

__all__ = ["collected", "divide_among_children", "groups", "repeated"]

_KIN = 6
"""Parts that are the same but for this many last bits share one random offset, each shifted by its own amount."""
_POINTS_AT_ONCE = 1 << 18


def divide_among_children(counts: Ints, parent: Ints, share: Floats, nodes: Ints, key: int) -> Ints:
    """Divide whole counts among children without bias, so that each family adds up to its parent's count.

    ``counts`` and ``nodes`` are the parents'; ``parent`` is the position of each child's parent, and children of one
    parent stand together. A family is halved, its halves are halved, and so on: the first half of a part with n
    points and share p of them gets ``floor(n·p + u)``, where u in [0, 1) belongs to the part and never changes. Its
    expectation over u is ``n·p``; and if n grows by one, exactly one child gets one more.

    >>> parent, share = np.array([0, 0, 1, 1]), np.array([0.5, 0.5, 0.0, 1.0])
    >>> divide_among_children(np.array([10, 4]), parent, share, nodes=np.array([2, 3]), key=1).tolist()
    [5, 5, 0, 4]
    """
    sizes = np.bincount(parent, minlength=counts.size)
    width = 1 << max(0, int(sizes.max(initial=1)) - 1).bit_length()
    if parent.size == counts.size * width:  # all families are whole, so their members stand in the rows of a table
        return _halve(counts, share.reshape(-1, width), None, nodes, key).ravel()
    _, within = ragged(sizes)
    shares, there = np.zeros((counts.size, width)), np.zeros((counts.size, width), dtype=bool)
    shares[parent, within], there[parent, within] = share, True
    return _halve(counts, shares, there, nodes, key)[parent, within]


def _halve(counts: Ints, shares: Floats, there: Bools | None, nodes: Ints, key: int) -> Ints:
    """Apportion each family's count to its members, a row of ``shares`` each; ``there`` tells them from padding."""
    count, part = counts[:, None], nodes[:, None]
    reals = None if there is None else _halves(there)
    for step, halves in enumerate(steps := _halves(shares)):
        total = halves[:, :, 0] + halves[:, :, 1]
        first_share = np.divide(halves[:, :, 0], total, out=np.full(total.shape, 0.5), where=total > 0)
        first = np.minimum(np.floor(count * first_share + _offset(key, part)), count).astype(np.int64)
        count = _alternate(first, count - first)
        if step + 1 < len(steps):  # a part whose second half is padding stays itself
            halved = 2 * part if reals is None else np.where(reals[step][:, :, 1], 2 * part, part)
            part = _alternate(halved, 2 * part + 1)
    return count


def _offset(key: int, part: Ints) -> Floats:
    """Return a number in [0, 1) for each part, fixed for the key; those of 64 parts side by side are spread evenly.

    Each is uniform over keys, and independent of those of the parts it lies in (which have other ancestors six levels
    up, or are themselves among the first six levels), so the result has no bias. Parts side by side round at different
    places, so their roundings partly cancel, and synthetic points lie more evenly than if each were rounded for itself.

    >>> kin = _offset(1, np.arange(64, 128))
    >>> np.diff(np.unique(kin.round(6))).round(6).tolist()
    [0.25, 0.25, 0.25]
    """
    ancestor = part >> _KIN
    offset: Floats = hash_uniform(key, np.where(ancestor > 0, ancestor, -part)) + _SHIFTS[part & (2**_KIN - 1)]
    offset -= offset >= 1
    return offset


def _shifts() -> Floats:
    """Return the shift of each of 64 parts of one ancestor, in quarters: chosen by trial among such rules of parity.

    Halving the two coordinates of a plane in turn, the last bit and the third last are those of the coordinate that is
    not halved next, the second, fourth and sixth last those of the one that is. A half for the parity of the former
    puts the lone points of neighbouring parts on different sides; a quarter for that of the latter balances the rest.
    On evenly filled squares a rectangle of 50 points is then off by 1.8 (standard deviation), with independent offsets
    by 2.5, and with points of Sobol's sequence by 1.5.
    """
    bits = (np.arange(2**_KIN)[:, None] >> np.arange(_KIN)) & 1
    shifts: Floats = (bits[:, [0, 2]].sum(axis=1) % 2) / 2 + (bits[:, [1, 3, 5]].sum(axis=1) % 2) / 4
    return shifts


_SHIFTS = _shifts()


def _alternate(first: Ints, second: Ints) -> Ints:
    """Return first and second columns in turn."""
    both = np.empty((first.shape[0], 2 * first.shape[1]), dtype=np.int64)
    both[:, ::2], both[:, 1::2] = first, second
    return both


def _halves(parts: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the sums over all halves, over halves of halves, and so on: arrays (families, parts, 2)."""
    levels = []
    while parts.shape[1] > 1:
        pairs = parts.reshape(parts.shape[0], -1, 2)
        levels.append(pairs)
        parts = pairs[:, :, 0] + pairs[:, :, 1]
    return levels[::-1]


def groups(first: Ints, past: Ints, counts: Ints) -> Iterator[Ints]:
    """Yield positions of nodes in the order of their codes, some points' worth at a time; nested nodes all at once."""
    order = np.argsort(first, kind="stable")
    if (past[order][:-1] > first[order][1:]).any():
        yield np.arange(first.size)
        return
    group = np.cumsum(counts[order]) // _POINTS_AT_ONCE
    yield from np.split(order, np.flatnonzero(np.diff(group)) + 1)


def repeated(codes: Ints, counts: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Repeat each code ``counts`` times, numbering the copies 0, 1, 2, ...; yield that piece by piece, at least one."""
    ends = np.cumsum(counts)
    for start in range(0, max(int(ends[-1]), 1) if ends.size else 1, _POINTS_AT_ONCE):
        stop = min(start + _POINTS_AT_ONCE, int(ends[-1]) if ends.size else 0)
        rows = slice(*np.searchsorted(ends, [start, stop - 1], side="right") + np.array([0, 1]))
        begins = np.maximum(ends[rows] - counts[rows], start)
        number = np.minimum(ends[rows], stop) - begins
        index = np.arange(start, stop) - np.repeat(ends[rows] - counts[rows], number)
        yield np.repeat(codes[rows], number), index


def collected(pieces: Iterator[NDArray[Any]], rows: int) -> NDArray[Any]:
    """Return pieces of rows as one array, made once and filled."""
    first = next(pieces)
    if len(first) == rows:
        return first
    whole = np.empty((rows, *first.shape[1:]), dtype=first.dtype)
    at = len(first)
    whole[:at] = first
    for piece in pieces:
        whole[at : at + len(piece)] = piece
        at += len(piece)
    return whole
