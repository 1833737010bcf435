"""The lines of an account's log, and the ledger that goes with it: plain, exact, and each with one way to be written.

The first line opens the account, every other one is a charge and holds the digest of the line before it. So a line that
was changed, taken out, put in or moved breaks the chain from there on. The ledger says how far the log was
acknowledged: number and digest of the last line, and the sum up to it. Public: nothing here comes from data.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from phdstream.errors import BudgetError, StateError
from phdstream.privacy import unit_from_dict
from phdstream.streams.guarantee import exactly

__all__ = ["Charge", "LedgerLine", "Opening", "digest"]

_ID = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_EPSILON = re.compile(r"[0-9][0-9.e+-]{0,30}")
_LEDGER = re.compile(
    rb"(phdstream-account ([0-9a-f]{32}) (0|[1-9][0-9]{0,17}) ([0-9]{1,80}(?:/[0-9]{1,80})?) ([0-9a-f]{64})) "
    rb"([0-9a-f]{64})\n"
)


def digest(content: bytes) -> str:
    """Return the SHA-256 of a line, without its end."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Opening:
    """The first line: the account's random name, its population, its whole budget, and the kind of unit it is for.

    >>> opening = Opening("0" * 32, "2026-01-31T12:00:00Z", "residents", "3", "user")
    >>> Opening.decode(opening.encode()) == opening
    True
    """

    account: str
    time: str
    population: str
    epsilon: str
    unit: str

    def encode(self) -> bytes:
        """Return the line, without its end."""
        return _line(asdict(self))

    @classmethod
    def decode(cls, line: bytes) -> Opening:
        """Return what `encode` wrote, and refuse anything else."""
        opening = cls(**_fields(line, {"account": _ID, "time": _TIME, "epsilon": _EPSILON}, {"population", "unit"}))
        _exact(opening.epsilon)
        return opening

    @property
    def limit(self) -> Fraction:
        """The whole budget, exactly."""
        return Fraction(self.epsilon)


@dataclass(frozen=True)
class Charge:
    """One stream's draw: its number, when, which stream, its ε as exact text, its unit, the line before.

    >>> charge = Charge(1, "2026-01-31T12:00:00Z", "0" * 32, "0.1", {"type": "event"}, "f" * 64)
    >>> Charge.decode(charge.encode()) == charge, charge.amount
    (True, Fraction(1, 10))
    """

    sequence: int
    time: str
    stream: str
    epsilon: str
    unit: dict[str, Any]
    previous: str

    def encode(self) -> bytes:
        """Return the line, without its end."""
        return _line(asdict(self))

    @classmethod
    def decode(cls, line: bytes) -> Charge:
        """Return what `encode` wrote, and refuse anything else."""
        texts = {"time": _TIME, "stream": _ID, "epsilon": _EPSILON, "previous": _DIGEST}
        charge = cls(**_fields(line, texts, {"sequence", "unit"}))
        _exact(charge.epsilon)
        try:
            same = type(charge.sequence) is int and unit_from_dict(charge.unit).to_dict() == charge.unit
        except (BudgetError, TypeError, ValueError):
            same = False
        if not same:
            raise StateError("it is no charge")
        return charge

    @property
    def amount(self) -> Fraction:
        """The stream's ε, exactly."""
        return Fraction(self.epsilon)


@dataclass(frozen=True)
class LedgerLine:
    """How far an account's log was acknowledged: number and digest of the last line, and what was drawn up to it.

    >>> ledger = LedgerLine("0" * 32, 2, Fraction(3, 10), "f" * 64)
    >>> LedgerLine.decode(ledger.encode()) == ledger
    True
    """

    account: str
    sequence: int
    drawn: Fraction
    digest: str

    def encode(self) -> bytes:
        """Return the ledger as a file's content: one line, which ends with its own checksum."""
        line = f"phdstream-account {self.account} {self.sequence} {self.drawn} {self.digest}"
        return f"{line} {digest(line.encode())}\n".encode()

    @classmethod
    def decode(cls, content: bytes) -> LedgerLine:
        """Return what `encode` wrote, and refuse anything else."""
        found = _LEDGER.fullmatch(content)
        if found is None or digest(found[1]).encode() != found[6]:
            raise StateError("it is damaged")
        try:
            return cls(found[2].decode(), int(found[3]), Fraction(found[4].decode()), found[5].decode())
        except ZeroDivisionError:
            raise StateError("it is damaged") from None


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def _fields(line: bytes, texts: dict[str, re.Pattern[str]], others: set[str]) -> dict[str, Any]:
    """Return a line's fields, if they are these and are written as we write them."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise StateError("it is not readable") from None
    if not isinstance(fields, dict) or set(fields) != set(texts) | others or _line(fields) != line:
        raise StateError("it is not a line of an account")
    for name, form in texts.items():
        if not isinstance(fields[name], str) or not form.fullmatch(fields[name]):
            raise StateError(f"its {name} is not one")
    return fields


def _exact(epsilon: str) -> None:
    """Refuse an ε that is not written as `exactly` writes it, or is not positive."""
    try:
        right = 0 < float(epsilon) < float("inf") and exactly(float(epsilon)) == epsilon
    except ValueError:
        right = False
    if not right:
        raise StateError("its epsilon is not one")
