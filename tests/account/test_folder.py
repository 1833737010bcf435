"""An account on the disk: crashes are mended, changes refused, and nobody overspends."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from phdstream.account import folder as folder_module
from phdstream.account.folder import AccountFolder
from phdstream.errors import BudgetError, ConfigError, StateError
from tests.account.accounts import EVENT, book, draw, files, settings, stream_id

DYING = """
import os, sys
from pathlib import Path
from tests.account.accounts import draw

left = int(sys.argv[2])
def dying(name):
    call = getattr(os, name)
    def wrapped(*given, **named):
        global left
        left -= 1
        if left < 0:
            if name == "write":
                call(given[0], given[1][: len(given[1]) // 2])
            os._exit(9)
        return call(*given, **named)
    return wrapped
draw(Path(sys.argv[1]), 1, "0.4")
for name in ("write", "fsync", "replace", "ftruncate", "unlink"):
    setattr(os, name, dying(name))
draw(Path(sys.argv[1]), 2, "0.4")
"""


class TestOnce:
    def test_a_stream_is_charged_once(self, tmp_path: Path) -> None:
        draw(tmp_path, 1, "0.6")
        before = files(tmp_path)
        for _ in range(5):
            draw(tmp_path, 1, "0.6")
        assert files(tmp_path) == before
        assert book(tmp_path).drawn == Fraction("0.6")

    @pytest.mark.parametrize(("epsilon", "unit"), [("0.7", EVENT), ("0.5", EVENT), ("0.6", {"type": "record"})])
    def test_but_not_for_another_promise(self, tmp_path: Path, epsilon: str, unit: dict[str, Any]) -> None:
        draw(tmp_path, 1, "0.6")
        with pytest.raises(BudgetError, match=r"was charged ε = 0\.6"):
            draw(tmp_path, 1, epsilon, unit)

    def test_population_and_budget_are_fixed(self, tmp_path: Path) -> None:
        draw(tmp_path, 1, "0.1")
        with pytest.raises(ConfigError, match=r"population is 'others', .* opened with 'residents'"):
            draw(tmp_path, 2, "0.1", population="others")
        for number in (1, 2):
            with pytest.raises(ConfigError, match="epsilon is '2'"):
                draw(tmp_path, number, "0.1", budget="2")


class TestCrashes:
    def test_killed_between_any_two_calls(self, tmp_path: Path) -> None:
        """Killed at its n-th call of the system, a draw was made or was not; it never takes more, nor any other's."""
        made = []
        for calls in range(40):
            folder = tmp_path / str(calls)
            end = subprocess.run([sys.executable, "-c", DYING, str(folder), str(calls)], check=False).returncode
            assert end in (0, 9)
            drawn = book(folder).drawn
            assert drawn in (Fraction("0.4"), Fraction("0.8"))
            made.append(drawn == Fraction("0.8"))
            draw(folder, 2, "0.4")
            with pytest.raises(BudgetError):
                draw(folder, 3, "0.4")
            found = AccountFolder(folder).read()
            assert (found.torn, found.behind, book(folder).drawn) == (False, False, Fraction("0.8"))
            assert set(files(folder)) <= {"log", "ledger", ".ledger.tmp"}
            if end == 0:
                break
        assert end == 0
        assert made == sorted(made)
        assert made.count(False) >= 1 < made.count(True)

    def test_cut_anywhere_within_the_first_line(self, tmp_path: Path) -> None:
        draw(tmp_path, 1, "0.25")
        log = (tmp_path / "log").read_bytes()
        for cut in range(1, log.index(b"\n"), 5):
            (tmp_path / "ledger").unlink()
            (tmp_path / "log").write_bytes(log[:cut])
            assert AccountFolder(tmp_path).read().torn
            draw(tmp_path, 1, "0.25")
            assert book(tmp_path).drawn == Fraction("0.25")

    def test_cut_anywhere_within_the_line_being_written(self, tmp_path: Path) -> None:
        """The ledger is as it was before that line; what there is of it does not count, and is taken off."""
        draw(tmp_path, 1, "0.25")
        before = files(tmp_path)
        draw(tmp_path, 2, "0.5")
        log = (tmp_path / "log").read_bytes()
        for cut in range(len(before["log"]) + 1, len(log), 5):
            (tmp_path / "log").write_bytes(log[:cut])
            (tmp_path / "ledger").write_bytes(before["ledger"])
            assert AccountFolder(tmp_path).read().torn
            assert book(tmp_path).drawn == Fraction("0.25")
            draw(tmp_path, 2, "0.5")
            assert book(tmp_path).drawn == Fraction("0.75")
        (tmp_path / "log").write_bytes(log)  # whole, and not yet acknowledged: the charge stands
        (tmp_path / "ledger").write_bytes(before["ledger"])
        assert AccountFolder(tmp_path).read().behind
        with pytest.raises(BudgetError):
            draw(tmp_path, 3, "0.5")
        draw(tmp_path, 2, "0.5")
        assert not AccountFolder(tmp_path).read().behind

    def test_zeros_after_a_power_failure(self, tmp_path: Path) -> None:
        draw(tmp_path, 1, "0.5")
        with (tmp_path / "log").open("ab") as log:
            log.write(bytes(300))
        assert AccountFolder(tmp_path).read().torn
        draw(tmp_path, 2, "0.5")
        assert b"\0" not in (tmp_path / "log").read_bytes()

    @pytest.mark.parametrize("call", ["write", "fsync", "replace"])
    def test_a_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
        draw(tmp_path, 1, "0.5")

        def full(*_: Any, **__: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            with pytest.raises(StateError, match=r"No space left on device\), so the stream was not started"):
                draw(tmp_path, 2, "0.5")
        draw(tmp_path, 2, "0.5")
        assert book(tmp_path).left == 0

    def test_nothing_is_drawn_if_the_id_cannot_be_kept(self, tmp_path: Path) -> None:
        def refuse(*_: object) -> None:
            raise StateError("no")

        with pytest.raises(StateError, match="no"):
            AccountFolder(tmp_path).draw(settings(tmp_path), stream_id(1), "0.5", EVENT, refuse)
        assert files(tmp_path) == {}


class TestChanges:
    def spent(self, folder: Path) -> dict[str, bytes]:
        for number in (1, 2, 3):
            draw(folder, number, "0.25")
        return files(folder)

    def refused(self, folder: Path, why: str) -> None:
        before = files(folder)
        with pytest.raises(StateError, match=f"was changed by something other than phdstream: .*{why}"):
            draw(folder, 4, "0.1")
        with pytest.raises(StateError, match=why):
            AccountFolder(folder).read()
        assert files(folder) == before

    def test_every_byte_of_the_log(self, tmp_path: Path) -> None:
        log = self.spent(tmp_path)["log"]
        for place in range(0, len(log), 7):
            (tmp_path / "log").write_bytes(log[:place] + bytes([log[place] ^ 1]) + log[place + 1 :])
            self.refused(tmp_path, "line|ledger")

    def test_cut_at_every_byte(self, tmp_path: Path) -> None:
        """What was acknowledged cannot be cut off, not even the end of its line."""
        log = self.spent(tmp_path)["log"]
        for cut in range(len(log)):
            (tmp_path / "log").write_bytes(log[:cut])
            self.refused(tmp_path, "the log is gone" if cut < log.index(b"\n") + 1 else "the ledger knows of 3 charges")

    def test_files_gone(self, tmp_path: Path) -> None:
        kept = self.spent(tmp_path)
        (tmp_path / "ledger").unlink()
        self.refused(tmp_path, "the log has 3 charges, and the ledger knows of 0")
        (tmp_path / "ledger").write_bytes(kept["ledger"])
        (tmp_path / "log").unlink()
        self.refused(tmp_path, "the log is gone")

    def test_an_older_file_put_back(self, tmp_path: Path) -> None:
        draw(tmp_path, 1, "0.25")
        older = files(tmp_path)
        newer = self.spent(tmp_path)
        (tmp_path / "log").write_bytes(older["log"])
        self.refused(tmp_path, "the ledger knows of 3 charges, and the log has 1")
        (tmp_path / "log").write_bytes(newer["log"])
        (tmp_path / "ledger").write_bytes(older["ledger"])
        self.refused(tmp_path, "the log has 3 charges, and the ledger knows of 1")

    def test_the_ledger_of_another_account(self, tmp_path: Path) -> None:
        self.spent(tmp_path / "a")
        other = self.spent(tmp_path / "b")
        (tmp_path / "a" / "ledger").write_bytes(other["ledger"])
        self.refused(tmp_path / "a", "the ledger and a replay of the log differ")

    def test_a_damaged_ledger(self, tmp_path: Path) -> None:
        self.spent(tmp_path)
        (tmp_path / "ledger").write_bytes(b"x")
        self.refused(tmp_path, "of the ledger, it is damaged")


class TestTheFolder:
    def test_it_is_its_owners(self, tmp_path: Path) -> None:
        draw(tmp_path / "account", 1, "0.5")
        assert (tmp_path / "account").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "account" / "log").stat().st_mode & 0o777 == 0o600
        (tmp_path / "account").chmod(0o770)
        with pytest.raises(StateError, match="others could change"):
            draw(tmp_path / "account", 2, "0.5")
        (tmp_path / "account").chmod(0o755)
        draw(tmp_path / "account", 2, "0.5")

    def test_reading_makes_nothing(self, tmp_path: Path) -> None:
        assert AccountFolder(tmp_path / "none").read().book is None
        assert list(tmp_path.iterdir()) == []

    def test_one_that_stays_locked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(folder_module, "_PATIENCE", 0.05)
        handle = os.open(tmp_path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            with pytest.raises(StateError, match="in use for a minute"):
                draw(tmp_path, 1, "0.5")
        finally:
            os.close(handle)
        draw(tmp_path, 1, "0.5")

    def test_a_file_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "account").write_text("x")
        with pytest.raises(StateError, match="could not be written"):
            draw(tmp_path / "account", 1, "0.5")
