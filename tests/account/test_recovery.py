"""What a crash leaves behind, and what none does."""

from __future__ import annotations

from pathlib import Path

import pytest

from phdstream.account.recovery import Found, recover
from phdstream.errors import StateError
from tests.account.accounts import draw, files


def test_no_line_is_begun_before_the_one_before_it_is_acknowledged(tmp_path: Path) -> None:
    draw(tmp_path, 1, "0.25")
    before = files(tmp_path)
    draw(tmp_path, 2, "0.25")
    log = (tmp_path / "log").read_bytes()
    assert recover(log, before["ledger"]).behind
    for tail, known in ((b"{", before["ledger"]), (b"{", None), (b"", None)):
        with pytest.raises(StateError, match="the log has 2 charges, and the ledger knows of"):
            recover(log + tail, known)


def test_nothing_yet() -> None:
    assert recover(None, None) == recover(b"", None) == Found(None)
    with pytest.raises(StateError, match="line 1"):
        recover(b"\n", None)
