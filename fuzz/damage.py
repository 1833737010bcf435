"""Damage to bytes: flips, cuts, insertions, blocks swapped or repeated, and things no file should hold."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

__all__ = ["damaged", "damaged_within"]

_INSERTS = [
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b'"', b"''", b"\\ud800", b"\xc3", b"\n", b"\r\n", b"\r", b"\x1a", b"\x1e",
    b",,,,,,", b"\t", b"[" * 3000, b'{"a":' * 2000, b"9" * 5000, b"1e999999999", b"-", b"nan", b"=1+1", b"\xef\xbb\xbf",
    b"\x80" * 40, b"A" * 70_000, b"\xe2\x80\xa8", b"\x0b\x0c", b"\xc2\x85", b'"\n"', b"\x1b$B", b"+AAo-", b"~{",
]  # fmt: skip


def _flip(rng: Random, content: bytearray) -> None:
    for _ in range(rng.choice([1, 1, 2, 8])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _set(rng: Random, content: bytearray) -> None:
    at = rng.randrange(len(content))
    size = rng.choice([1, 2, 4, 8])
    content[at : at + size] = bytes([rng.choice([0, 1, 0x7F, 0x80, 0xFF])]) * len(content[at : at + size])


def _cut(rng: Random, content: bytearray) -> None:
    del content[rng.randrange(len(content)) :]


def _remove(rng: Random, content: bytearray) -> None:
    at = rng.randrange(len(content))
    del content[at : at + rng.choice([1, 2, 16, 200])]


def _insert(rng: Random, content: bytearray) -> None:
    at = rng.randrange(len(content) + 1)
    content[at:at] = rng.choice(_INSERTS)


def _overwrite(rng: Random, content: bytearray) -> None:
    at = rng.randrange(len(content))
    content[at : at + 8] = rng.randbytes(len(content[at : at + 8]))


def _swap(rng: Random, content: bytearray) -> None:
    size = min(rng.choice([4, 32, 256]), len(content) // 2)
    a, b = sorted(rng.randrange(len(content) - size + 1) for _ in range(2))
    if b - a >= size:
        content[a : a + size], content[b : b + size] = content[b : b + size], content[a : a + size]


def _repeat(rng: Random, content: bytearray) -> None:
    at = rng.randrange(len(content))
    content[at:at] = content[at : at + rng.choice([1, 10, 100])] * rng.choice([1, 3, 200])


_WAYS: list[Callable[[Random, bytearray], None]] = [_flip, _set, _cut, _remove, _insert, _overwrite, _swap, _repeat]


def damaged(rng: Random, content: bytes) -> bytes:
    """Return content that is damaged in one to three places; half of the time near its end, where footers are."""
    result = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if not result:
            break
        if rng.random() < 0.3:
            tail = bytearray(result[-rng.choice([8, 64, 1024]) :])
            kept = len(result) - len(tail)
            rng.choice(_WAYS)(rng, tail)
            result[kept:] = tail
        else:
            rng.choice(_WAYS)(rng, result)
    return bytes(result)


def damaged_within(rng: Random, line: bytes) -> bytes:
    """Return a line that is damaged; it may have become several, or none."""
    result = bytearray(line)
    if rng.random() < 0.01:
        result[:0] = b"A" * 1_200_000  # longer than any row
    for _ in range(rng.choice([1, 1, 2, 3])):
        rng.choice([*_WAYS, _insert, _insert])(rng, result if result else bytearray(b" "))
    return bytes(result)
