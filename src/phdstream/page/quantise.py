"""Synthetic points as whole numbers in a frame around the domain, and how they come and go over ticks. Public.

A point is stored once, with the tick at which it appears and the one at which it disappears: changes, not copies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phdstream.arrays import Floats
from phdstream.domains import ROOT, Domain

__all__ = ["Frame", "encode_lifetimes", "encode_points"]

Keys = NDArray[np.uint32]
_STEPS = 65536
NEVER = 65535


@dataclass(frozen=True)
class Frame:
    """The rectangle around a domain, in 65,536 steps each way: in a city of 60 km a step is under a metre."""

    west: float
    south: float
    east: float
    north: float

    @classmethod
    def of(cls, domain: Domain) -> Frame:
        """Return a domain's."""
        return cls(*domain.bounds(np.array([ROOT]))[0].tolist())

    def keys(self, points: Floats) -> Keys:
        """Return points as one number each: steps from the west, then from the south."""
        x = _steps(points[:, 0], self.west, self.east)
        y = _steps(points[:, 1], self.south, self.north)
        return (x << np.uint32(16)) | y

    def boxes(self, bounds: Floats) -> bytes:
        """Return rectangles as steps from the west, south, west and south: one column after the other."""
        sides = [
            _steps(bounds[:, i], *((self.west, self.east) if i % 2 == 0 else (self.south, self.north)))
            for i in range(4)
        ]
        return b"".join(side.astype("<u2").tobytes() for side in sides)


def _steps(x: Floats, low: float, high: float) -> Keys:
    return np.clip(np.floor((x - low) / (high - low) * _STEPS), 0, _STEPS - 1).astype(np.uint32)


def _difference(come: Keys, gone: Keys) -> tuple[Keys, Keys]:
    """Return the keys of ``come`` that are not in ``gone``, and the reverse; repeated ones are counted."""
    every, inverse = np.unique(np.concatenate([come, gone]), return_inverse=True)
    net = np.bincount(inverse, np.repeat([1, -1], [come.size, gone.size]), every.size).astype(np.int64)
    return np.repeat(every, np.maximum(net, 0)), np.repeat(every, np.maximum(-net, 0))


def encode_points(now: Keys, before: Keys | None) -> bytes:
    """Return a tick's points: how many stay, are new and are gone, then the steps of all three. For a live page."""
    new, gone = _difference(now, now if before is None else before)
    stay = _difference(now, new)[0]
    keys = np.concatenate([stay, new, gone])
    head = struct.pack("<III", stay.size, new.size, gone.size)
    return head + (keys >> 16).astype("<u2").tobytes() + (keys & 0xFFFF).astype("<u2").tobytes()


def encode_lifetimes(ticks: Iterable[Keys]) -> bytes:
    """Return all points of some ticks: where they are, and at which position they appear and disappear.

    They stand in the order of their appearance and then by place, so that steps from one to the next are small.

    >>> encode_lifetimes([np.array([5], np.uint32), np.array([5, 7], np.uint32)])[:12].hex()
    '020000000200000001000000'
    """
    alive: dict[str, Any] = {"key": np.zeros(0, np.uint32), "at": np.zeros(0, np.int64)}
    keys, deaths, born, number = [], [], [], 0
    for position, now in enumerate(ticks):
        new, gone = _difference(now, alive["key"])
        first = np.searchsorted(alive["key"], gone, side="left")
        repeat = np.arange(gone.size) - np.searchsorted(gone, gone, side="left")
        dead = first + repeat
        for_dead = alive["at"][dead]
        keys.append(new)
        born.append(new.size)
        deaths.append((for_dead, position))
        stay = np.ones(alive["key"].size, dtype=bool)
        stay[dead] = False
        key = np.concatenate([alive["key"][stay], new])
        at = np.concatenate([alive["at"][stay], number + np.arange(new.size)])
        order = np.argsort(key, kind="stable")
        alive, number = {"key": key[order], "at": at[order]}, number + new.size
    death = np.full(number, NEVER, np.uint16)
    for which, position in deaths:
        death[which] = position
    every = np.concatenate([*keys, np.zeros(0, np.uint32)])
    x, y = (every >> 16).astype(np.uint16), (every & 0xFFFF).astype(np.uint16)
    steps = np.diff(x, prepend=np.uint16(0)).astype(np.uint16)
    planes = [(column >> shift & 255).astype(np.uint8).tobytes() for column in (steps, y, death) for shift in (8, 0)]
    return struct.pack("<II", number, len(born)) + np.array(born, "<u4").tobytes() + b"".join(planes)
