"""Lines of an account's log are read only as they were written."""

from __future__ import annotations

from fractions import Fraction

import pytest

from phdstream.account.entries import Charge, LedgerLine, Opening
from phdstream.errors import StateError

CHARGE = Charge(1, "2026-01-31T12:00:00Z", "0" * 32, "0.5", {"type": "user", "inserts": 4, "deletes": 0}, "f" * 64)
OPENING = Opening("0" * 32, "2026-01-31T12:00:00Z", "Bürger\tof X", "3", "user")


def test_there_and_back() -> None:
    assert Charge.decode(CHARGE.encode()) == CHARGE
    assert Opening.decode(OPENING.encode()) == OPENING
    assert b"\n" not in Opening("0" * 32, OPENING.time, "two\nlines", "3", "user").encode()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"0.5"', b'"0.50"'), (b'"0.5"', b"0.5"), (b'"0.5"', b'"-1"'), (b'"0.5"', b'"nan"'), (b'"0.5"', b'"inf"'),
        (b'"0.5"', b'"0"'), (b'"0.5"', b'"1/2"'), (b'"0.5"', b'"1e999"'), (b":1,", b":1.0,"), (b":1,", b":true,"),
        (b'"user"', b'"usr"'), (b':4', b':-4'), (b':4', b':4.0'), (b"}", b"} "), (b"12:00:00Z", b"12:00:00"),
        (b'{"sequence"', b'{"x":1,"sequence"'), (b"ffff", b"FFFF"), (b"0000", b"000g"), (b'{"type":"user",', b"[{"),
    ],
)  # fmt: skip
def test_a_charge_that_is_none(old: bytes, new: bytes) -> None:
    line = CHARGE.encode()
    assert old in line
    with pytest.raises(StateError):
        Charge.decode(line.replace(old, new, 1))


@pytest.mark.parametrize("line", [b"", b"[]", b"null", b"{}", b"\xff", b"[" * 100_000, b"1" * 5000])
def test_no_line_at_all(line: bytes) -> None:
    for kind in (Opening, Charge):
        with pytest.raises(StateError):
            kind.decode(line)


def test_a_ledger_is_read_only_as_it_was_written() -> None:
    content = LedgerLine("0" * 32, 3, Fraction(3, 4), "f" * 64).encode()
    assert LedgerLine.decode(content).drawn == Fraction(3, 4)
    for place in range(len(content)):
        with pytest.raises(StateError):
            LedgerLine.decode(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    for part in (content[:-1], content * 2, b""):
        with pytest.raises(StateError):
            LedgerLine.decode(part)
