"""Accepted events wait on the disk, once, and leave nothing behind."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path

import apsw
import numpy as np
import pyarrow as pa
import pytest

from phdstream.errors import ConfigError, StateError
from phdstream.service.encryption import Plain, Sealed, add_key, sealing
from phdstream.service.journal import Delivery, Journal, Part

USERS = pa.schema([("code", pa.int64()), ("time", pa.int64()), ("user", pa.large_binary())])


def part(tick: int, codes: list[int], sign: int = 1, users: list[bytes] | None = None) -> Part:
    columns: dict[str, pa.Array] = {"code": pa.array(codes, pa.int64())}
    if users is not None:
        columns |= {"time": pa.array([0] * len(codes), pa.int64()), "user": pa.array(users, pa.large_binary())}
    return Part(tick, sign, len(codes), pa.RecordBatch.from_pydict(columns).serialize().to_pybytes())


def delivery(key: str, *parts: Part, received: int = 10) -> Delivery:
    return Delivery(key.encode(), b"payload", received, list(parts), {"accepted": sum(p.number for p in parts)})


def codes(journal: Journal, tick: int, sign: int = 1) -> list[int]:
    return sorted(journal.events(tick)[sign < 0].codes.tolist())


def files_with(folder: Path, secret: bytes) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


class TestOnce:
    def test_events_wait_by_tick_and_sign(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        journal.accept([delivery("a", part(1, [5, 6]), part(2, [7])), delivery("b", part(1, [8]), part(1, [9], -1))])
        assert (codes(journal, 1), codes(journal, 1, -1), codes(journal, 2), codes(journal, 3)) == (
            [5, 6, 8], [9], [7], [],
        )  # fmt: skip
        journal.close()
        again = Journal(tmp_path, users=False)
        assert codes(again, 1) == [5, 6, 8]
        answered = again.answered(b"a")
        assert answered is not None
        assert answered.answer == {"accepted": 3}
        assert again.answered(b"c") is None

    def test_all_or_none(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        journal.accept([delivery("a", part(1, [5]))])
        with pytest.raises(StateError, match="cannot be used now"):
            journal.accept([delivery("b", part(1, [6])), delivery("a", part(1, [7]))])  # a key comes but once
        assert codes(journal, 1) == [5]
        assert journal.answered(b"b") is None

    def test_nothing_comes_into_a_closed_tick(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        journal.close_tick(3)
        journal.close_tick(2)  # closing never goes back
        assert journal.closed == 3
        with pytest.raises(StateError, match="closed already"):
            journal.accept([delivery("a", part(3, [1]))])
        journal.accept([delivery("a", part(4, [1]))])

    def test_one_owner(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        with pytest.raises(StateError, match="one is enough"):
            Journal(tmp_path, users=False)
        script = (
            "import sys; from pathlib import Path; from phdstream.service.journal import Journal; "
            "Journal(Path(sys.argv[1]), users=False)"
        )
        command = [sys.executable, "-c", script, str(tmp_path)]
        assert b"one is enough" in subprocess.run(command, capture_output=True, check=False).stderr
        journal.close()
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0

    def test_another_streams_journal_is_refused(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        journal.bind("a" * 32, 0)
        journal.bind("a" * 32, 0)
        with pytest.raises(StateError, match="another stream"):
            journal.bind("b" * 32, 0)

    def test_what_is_counted_is_forgotten_when_a_stream_comes_back(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        journal.accept([delivery("a", part(1, [5]), part(2, [6]), part(3, [7]))])
        journal.bind("a" * 32, 2)
        assert [codes(journal, tick) for tick in (1, 2, 3)] == [[], [], [7]]
        assert journal.closed == 2

    def test_keys_outlive_their_events_until_they_expire(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        journal.accept([delivery("old", part(1, [5]), received=10), delivery("new", part(1, [6]), received=500)])
        journal.purge(1, now=1000, remember=600)
        assert journal.answered(b"old") is None
        assert journal.answered(b"new") is not None

    def test_a_damaged_database_is_named(self, tmp_path: Path) -> None:
        Journal(tmp_path, users=False).close()
        (tmp_path / "intake.db").write_bytes(b"no database at all, but long enough to be looked at" * 100)
        with pytest.raises(StateError, match=r"intake\.db is damaged"):
            Journal(tmp_path, users=False)

    def test_a_full_disk_stores_nothing_and_passes(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        journal.accept([delivery("a", part(1, [5]))])
        pages = journal._db.execute("PRAGMA page_count").get
        journal._db.execute(f"PRAGMA max_page_count={pages + 1}")
        with pytest.raises(StateError, match=r"cannot be used now \(Full\)"):
            journal.accept([delivery("b", part(1, list(range(10_000)))), delivery("c", part(1, [6]))])
        assert (codes(journal, 1), journal.answered(b"b"), journal.answered(b"c")) == ([5], None, None)
        journal._db.execute("PRAGMA max_page_count=1000000")
        journal.accept([delivery("b", part(1, [7]))])
        assert codes(journal, 1) == [5, 7]

    def test_a_busy_database_stores_nothing_and_passes(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        journal._db.set_busy_timeout(50)
        other = apsw.Connection(str(tmp_path / "intake.db"))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StateError, match=r"cannot be used now \(Busy\)"):
            journal.accept([delivery("a", part(1, [5]))])
        other.execute("ROLLBACK")
        other.close()
        journal.accept([delivery("a", part(1, [5]))])
        assert codes(journal, 1) == [5]

    def test_a_read_only_database_stores_nothing(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        journal._db.execute("PRAGMA query_only=ON")
        with pytest.raises(StateError, match=r"cannot be used now \(ReadOnly\)"):
            journal.accept([delivery("a", part(1, [5]))])
        assert codes(journal, 1) == []

    def test_sqlite_is_newer_than_its_fault(self) -> None:
        assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)


class TestNothingLeft:
    @pytest.mark.parametrize("rows", [1, 3000])
    def test_no_byte_of_a_purged_event_is_in_any_file(self, tmp_path: Path, rows: int) -> None:
        """Planted ids and codes are found before, so that the search can find; and nowhere after."""
        journal = Journal(tmp_path, users=True)
        user = secrets.token_hex(16).encode()
        code = int.from_bytes(secrets.token_bytes(7))
        planted = part(1, [code] * rows, users=[user] * rows)
        kept = part(2, [77], users=[b"stays-until-its-tick"])
        journal.accept([delivery("a", planted, kept)])
        assert files_with(tmp_path, user)
        assert files_with(tmp_path, code.to_bytes(8, "little"))
        journal.purge(1)
        assert not files_with(tmp_path, user)
        assert not files_with(tmp_path, code.to_bytes(8, "little"))
        assert codes(journal, 2) == [77]  # that of an open tick is never purged
        assert files_with(tmp_path, b"stays-until-its-tick")
        journal.copy_to(tmp_path / "copy.db")
        assert not files_with(tmp_path, user)

    def test_a_planted_fault_would_be_seen(self, tmp_path: Path) -> None:
        """Without secure_delete the search finds what was deleted: so it can."""
        journal = Journal(tmp_path, users=True)
        journal._db.execute("PRAGMA secure_delete=OFF")
        user = secrets.token_hex(16).encode()
        journal.accept([delivery("a", part(1, [1] * 3000, users=[user] * 3000))])
        journal.purge(1)
        assert files_with(tmp_path, user)

    def test_files_are_for_their_owner_only(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path, users=False)
        journal.accept([delivery("a", part(1, [1]))])
        journal.copy_to(tmp_path / "copy.db")
        assert {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == dict.fromkeys(
            ["intake.db", "intake.db-wal", "intake.db-shm", "intake.lock", "copy.db"], 0
        )


class TestEncryption:
    def test_sealed_rows_say_nothing_and_open_again(self, tmp_path: Path) -> None:
        keys = tmp_path / "keys"
        assert add_key(keys) == 1
        folder = tmp_path / "private"
        folder.mkdir()
        journal = Journal(folder, users=True, sealed=sealing(keys))
        user = secrets.token_hex(16).encode()
        journal.accept([delivery("a", part(1, [3], users=[user]))])
        assert not files_with(folder, user)
        assert codes(journal, 1) == [3]
        assert add_key(keys) == 2  # rotated: old rows open with the old key, new ones are sealed with the new
        journal.sealed = sealing(keys)
        journal.accept([delivery("b", part(1, [4], users=[user]))])
        assert codes(journal, 1) == [3, 4]
        numbers = [int.from_bytes(row[0][:4]) for row in journal._db.execute("SELECT rows FROM events")]
        assert sorted(numbers) == [1, 2]

    def test_without_its_key_or_moved_to_another_tick_a_row_does_not_open(self) -> None:
        sealed = Sealed({1: bytes(32)})
        stored = sealed.seal(b"rows", b"tick 1")
        assert sealed.open(stored, b"tick 1") == b"rows"
        with pytest.raises(StateError, match="altered"):
            sealed.open(stored, b"tick 2")
        with pytest.raises(StateError, match="altered"):
            sealed.open(stored[:-1] + bytes([stored[-1] ^ 1]), b"tick 1")
        with pytest.raises(StateError, match="key 1: put it back"):
            Sealed({2: bytes(32)}).open(stored, b"tick 1")

    def test_a_key_file_that_others_can_read_is_refused(self, tmp_path: Path) -> None:
        keys = tmp_path / "keys"
        add_key(keys)
        keys.chmod(0o644)
        with pytest.raises(ConfigError, match="chmod 600"):
            sealing(keys)
        keys.write_text("nonsense")
        keys.chmod(0o600)
        with pytest.raises(ConfigError, match="no key file"):
            sealing(keys)
        assert type(sealing(None)) is Plain


def test_the_answer_is_kept_as_it_was(tmp_path: Path) -> None:
    journal = Journal(tmp_path, users=False)
    answer = {"accepted": 2, "rejected": [{"reason": "ε", "rows": 1}]}
    journal.accept([Delivery(b"k", b"p", 1, [], answer)])
    kept = journal.answered(b"k")
    assert kept is not None
    assert json.dumps(kept.answer) == json.dumps(answer)
    assert np.array_equal(journal.events(1)[0].codes, [])
