"""One code made of several: which bits of a product's code are which part's. Public, and fixed beforehand.

A **schedule** says for each level of the product which part is divided there. The bits of the parts' codes are
interleaved accordingly, so a prefix of the product's code is a prefix of each part's code: a node of the product is one
node of each part. (A Morton code is the case of equal parts in turn.)
"""

from __future__ import annotations

import numpy as np

from phdstream.arrays import Ints
from phdstream.domains.codes import ROOT

__all__ = ["Interleaving"]

_CHUNK = 13
"""Bits looked up at once: a table of 64 KB, which stays in a processor's nearest cache."""


class Interleaving:
    """The bits of some parts' codes, interleaved by a schedule that names, for each level, the part divided there.

    >>> mixed = Interleaving([(1, 1), (1,)], schedule=(0, 1, 0))
    >>> mixed.join([np.array([0b10]), np.array([0b1])]).tolist() == [0b110]
    True
    >>> mixed.codes_of(np.array([0b110]), part=0).tolist() == [0b10]
    True
    """

    def __init__(self, level_bits: list[tuple[int, ...]], schedule: tuple[int, ...]) -> None:
        self.schedule = schedule
        used = [0] * len(level_bits)
        source: list[list[int]] = [[] for _ in level_bits]  # which bit of the whole code is each bit of a part's
        bits, self.level_bits, through = 0, [], [[0] * len(level_bits)]
        for part in schedule:
            wide = level_bits[part][used[part]]
            used[part] += 1
            source[part] += range(bits, bits + wide)
            self.level_bits.append(wide)
            bits += wide
            through.append([len(each) for each in source])
        self._through = np.array(through, dtype=np.int64)
        """How many bits of each part a node of level 0, 1, 2, ... names."""
        self._lengths = [len(each) for each in source]
        gathers = [[(bits - 1 - at, len(each) - 1 - i) for i, at in enumerate(each)] for each in source]
        self._gather = [_Mover(pairs) for pairs in gathers]
        self._spread = [_Mover([(inner, outer) for outer, inner in pairs]) for pairs in gathers]

    def join(self, codes: list[Ints]) -> Ints:
        """Return the codes of the whole, from those of each part."""
        joined = self._spread[0](codes[0])
        for mover, code in zip(self._spread[1:], codes[1:], strict=True):
            joined |= mover(code)
        return joined

    def codes_of(self, codes: Ints, part: int) -> Ints:
        """Return a part's codes."""
        return self._gather[part](codes)

    def nodes_of(self, first: Ints, levels: Ints, part: int) -> Ints:
        """Return a part's nodes, from the first code of nodes of the whole and their levels."""
        length = self._through[levels, part]
        nodes: Ints = (self._gather[part](first) >> (self._lengths[part] - length)) | (np.int64(ROOT) << length)
        return nodes

    def bits_by_part(self) -> list[int]:
        """Return the part that each bit of the code belongs to."""
        return [part for part, wide in zip(self.schedule, self.level_bits, strict=True) for _ in range(wide)]


class _Mover:
    """Moves bits of numbers to other places, some bits at a time by tables; the others are dropped."""

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        """Each pair says from which place, counted from the last bit, a bit goes to which."""
        self._tables: list[tuple[int, int, Ints]] = []
        for low in range(0, max((place for place, _ in pairs), default=0) + 1, _CHUNK):
            some = [(place - low, to) for place, to in pairs if low <= place < low + _CHUNK]
            wide = max((place for place, _ in some), default=-1) + 1
            values = np.arange(1 << wide, dtype=np.int64)
            table = np.zeros_like(values)
            for place, to in some:
                table |= ((values >> place) & 1) << to
            if some:
                self._tables.append((low, (1 << wide) - 1, table))

    def __call__(self, numbers: Ints) -> Ints:
        moved = np.zeros(numbers.shape, dtype=np.int64)
        for low, mask, table in self._tables:
            moved |= table[(numbers >> low) & mask]
        return moved
