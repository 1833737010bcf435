"""Events at rest, encrypted with keys that can be rotated. Optional: the private folder is its owner's alone anyway.

A key file has one line a key: a short number and 32 random bytes in hexadecimal. The last line encrypts, all decrypt;
so a key is rotated by adding a line, and an old one can go as soon as no open tick holds events encrypted with it (a
tick's events are gone when it is released). AES-256 in Galois/counter mode, a fresh random nonce for each blob; where
the blob belongs (tick and sign) is authenticated, so that blobs cannot be moved to another tick.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from phdstream.errors import ConfigError, StateError
from phdstream.streams.durable.folders import replace_file

__all__ = ["Plain", "Sealed", "add_key", "sealing"]

_LINE = re.compile(r"([1-9][0-9]{0,8}) ([0-9a-f]{64})")
_NONCE = 12


class Plain:
    """No encryption: blobs stay as they are."""

    def seal(self, blob: bytes, about: bytes) -> bytes:
        """Return what is stored for a blob."""
        return blob

    def open(self, stored: bytes, about: bytes) -> bytes:
        """Return the blob that was stored."""
        return stored


class Sealed(Plain):
    """Encryption with the keys of a file."""

    def __init__(self, keys: dict[int, bytes]) -> None:
        self._keys = {number: AESGCM(key) for number, key in keys.items()}
        self.current = list(keys)[-1]

    def seal(self, blob: bytes, about: bytes) -> bytes:
        """Return the key's number, a nonce, and the blob encrypted."""
        nonce = secrets.token_bytes(_NONCE)
        return self.current.to_bytes(4) + nonce + self._keys[self.current].encrypt(nonce, blob, about)

    def open(self, stored: bytes, about: bytes) -> bytes:
        """Return the blob; refuse one that was altered, moved, or whose key is gone."""
        number, nonce = int.from_bytes(stored[:4]), stored[4 : 4 + _NONCE]
        if number not in self._keys:
            raise StateError(f"events wait that were encrypted with key {number}: put it back into the key file.")
        try:
            return self._keys[number].decrypt(nonce, stored[4 + _NONCE :], about)
        except InvalidTag:
            raise StateError("events in the journal were altered, or their key is another one. Restore both.") from None


def sealing(path: Path | None) -> Plain:
    """Return the encryption with the keys of a file, or none."""
    return Plain() if path is None else Sealed(_read(path))


def add_key(path: Path) -> int:
    """Add a new key to a file, made if missing; from the next start or reload it encrypts. Return its number."""
    keys = _read(path) if path.exists() else {}
    number = max(keys, default=0) + 1
    keys[number] = secrets.token_bytes(32)
    text = "".join(f"{number} {key.hex()}\n" for number, key in keys.items()).encode()
    replace_file(path, lambda file: file.write(text))
    return number


def _read(path: Path) -> dict[int, bytes]:
    try:
        mode = path.stat().st_mode
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"the key file {path} cannot be read: `phdstream key CONFIG` makes one.") from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"others can read the key file {path}. Run: chmod 600 '{os.fspath(path)}'")
    found = [_LINE.fullmatch(line) for line in lines]
    keys = {int(line[1]): bytes.fromhex(line[2]) for line in found if line}
    if not keys or len(keys) != len(lines):
        raise ConfigError(f"{path} is no key file: each line is a number of its own and 64 hexadecimal digits.")
    return keys
