"""Who may do what: tokens with roles. A token is shown once; only its hash is kept, in the private folder.

Roles: ``ingest`` (send events), ``read`` (read releases where they are not open to the public), ``operate`` (read what
operators need, add errata, reload). A token is 32 random bytes, so a plain SHA-256 of it cannot be searched.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from phdstream.errors import InputError, StateError
from phdstream.streams.durable.folders import make_folder, replace_file

__all__ = ["ROLES", "Token", "Tokens"]

ROLES = ("ingest", "read", "operate")
FILE = "tokens.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PREFIX = "phd_"


@dataclass(frozen=True)
class Token:
    """What is kept of a token: a name for people, its roles, its hash."""

    name: str
    roles: tuple[str, ...]
    digest: str


class Tokens:
    """The tokens of one stream, in its private folder; looked at anew when the file changes."""

    def __init__(self, folder: Path) -> None:
        self._path, self._stamp = folder / FILE, (0, 0)
        self._known: list[Token] = []

    def all(self) -> list[Token]:
        """Return the tokens as they are now."""
        try:
            found = self._path.stat()
            if (found.st_mtime_ns, found.st_ino) != self._stamp:
                listed = json.loads(self._path.read_bytes())
                self._known = [Token(t["name"], tuple(t["roles"]), t["digest"]) for t in listed]
                self._stamp = found.st_mtime_ns, found.st_ino
        except FileNotFoundError:
            self._known, self._stamp = [], (0, 0)
        except (OSError, ValueError, TypeError, KeyError):
            raise StateError(f"{self._path} cannot be read: delete it and make new tokens.") from None
        return self._known

    def find(self, secret: str) -> Token | None:
        """Return what a token is, comparing with every one so that the time taken says nothing."""
        digest, found = _digest(secret), None
        for token in self.all():
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found

    def add(self, name: str, roles: tuple[str, ...]) -> str:
        """Make a token, and return it: it is not kept, and cannot be shown again."""
        if not _NAME.fullmatch(name):
            raise InputError("a token's name has up to 64 letters, digits, dots, hyphens or underscores.")
        if not roles or any(role not in ROLES for role in roles):
            raise InputError(f"a token needs a role: {', '.join(ROLES)}.")
        if any(token.name == name for token in self.all()):
            raise InputError(f"there is a token {name!r} already: remove it first, or choose another name.")
        secret = _PREFIX + secrets.token_urlsafe(32)
        self._write([*self.all(), Token(name, roles, _digest(secret))])
        return secret

    def remove(self, name: str) -> None:
        """Let a token be valid no more, at once."""
        rest = [token for token in self.all() if token.name != name]
        if len(rest) == len(self.all()):
            raise InputError(f"there is no token {name!r}.")
        self._write(rest)

    def _write(self, tokens: list[Token]) -> None:
        content = json.dumps([asdict(token) for token in tokens], indent=2).encode()
        try:
            make_folder(self._path.parent, 0o700)
            replace_file(self._path, lambda file: file.write(content))
        except OSError as error:
            raise StateError(f"{self._path} cannot be written ({error.strerror}).") from None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
