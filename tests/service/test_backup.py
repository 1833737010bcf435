"""Copies of the private folder: whole, private, free of what is purged, and of no use for releasing a tick twice."""

from __future__ import annotations

import secrets
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from phdstream.app.cli import app
from phdstream.errors import StateError
from phdstream.service.backup import copy_state, restore_state
from tests.service.streams import HandClock, deliver, row, service_at, write_config
from tests.service.test_journal import files_with
from tests.service.test_publisher import contents, play, rows_of

USER = {"unit": '{ type = "user", inserts = 3, deletes = 3 }', "input": 'user = "who"'}


def tick(service: object, hand: HandClock, number: int) -> None:
    hand.go_to(10 * number - 2)
    deliver(service, f"tick {number}", rows_of(number))  # type: ignore[arg-type]
    hand.go_to(10 * number)
    service.publisher.release_due()  # type: ignore[attr-defined]


class TestNothingLeft:
    @pytest.mark.parametrize("keys", [False, True])
    def test_no_planted_id_or_place_is_in_any_file_once_its_tick_is_released(self, tmp_path: Path, keys: bool) -> None:
        """In the database, its log, the backup, temporary files or the releases. The state knows users by need."""
        more = 'backup = "copies"\n' + ('key_file = "keys"' if keys else "")
        path = write_config(tmp_path, service=more)
        path.write_text(path.read_text().replace("depth = 12", "depth = 50"))  # codes too long to be there by chance
        if keys:
            assert CliRunner().invoke(app, ["key", str(path)]).exit_code == 0
        hand = HandClock(1)
        service = service_at(path, hand)
        x, y = 0.123456789123, 0.987654321987
        secret = secrets.token_hex(12)
        rows = [row(5, x, y, ignored=secret), *rows_of(1)]
        deliver(service, f"key {secret}", rows)
        planted = [secret.encode(), f"{x}".encode(), f"{y}".encode(), _bytes(x), _bytes(y)]
        code = int(service.domain.encode(np.array([[x, y]]))[0][0]).to_bytes(8, "little")
        found = [name for what in planted for name in files_with(tmp_path, what)]
        assert not found  # not even now: only codes are kept
        assert bool(files_with(tmp_path / "private", code)) != keys
        hand.go_to(10)
        service.publisher.release_due()
        assert not [name for what in planted for name in files_with(tmp_path, what)]
        left = [name for name in files_with(tmp_path, code) if "state.npz" not in name]  # the method may need it there
        assert not left
        assert any("copies" in str(path) for path in tmp_path.rglob("intake.db"))
        service.stop()

    def test_users_ids_are_in_no_journal_or_copy_of_one_after_their_tick(self, tmp_path: Path) -> None:
        path = write_config(tmp_path, service='backup = "copies"', **USER)
        hand = HandClock(1)
        service = service_at(path, hand)
        who = secrets.token_hex(12)
        deliver(service, "a", [row(5, who=who), row(15, who="later")])
        assert files_with(tmp_path / "private", who.encode())
        hand.go_to(10)
        service.publisher.release_due()
        journals = [name for name in files_with(tmp_path, who.encode()) if "state.npz" not in name]
        assert not journals
        assert service._journal.waiting(1)  # that of the open tick stays
        service.stop()


def _bytes(number: float) -> bytes:
    return struct.pack("<d", number)


class TestRestore:
    def test_a_copy_made_with_every_commit_goes_on_as_the_original_would(self, tmp_path: Path) -> None:
        whole = play(tmp_path / "whole", 4)
        folder = tmp_path / "lost"
        folder.mkdir()
        path = write_config(folder, service='backup = "copies"')
        hand = HandClock()
        service = service_at(path, hand)
        for number in (1, 2):
            tick(service, hand, number)
        service.stop()
        shutil.rmtree(folder / "private")
        answer = CliRunner().invoke(app, ["restore", str(path), str(folder / "copies")])
        assert answer.exit_code == 0, answer.output
        assert "Restored at tick 2" in answer.output
        service = service_at(path, hand)
        for number in (3, 4):
            tick(service, hand, number)
        service.stop()
        assert contents(folder / "releases") == whole

    def test_a_copy_that_is_behind_cannot_go_on(self, tmp_path: Path) -> None:
        """Neither by `restore`, nor by copying its files by hand."""
        path = write_config(tmp_path)
        hand = HandClock()
        service = service_at(path, hand)
        tick(service, hand, 1)
        copy_state(tmp_path / "private", tmp_path / "copies", service._journal)
        tick(service, hand, 2)
        service.stop()
        shutil.rmtree(tmp_path / "private")
        with pytest.raises(StateError, match="readers may have seen tick 2"):
            restore_state(tmp_path / "copies", tmp_path / "private", seen=2)
        shutil.copytree(tmp_path / "copies" / "latest", tmp_path / "private")
        (tmp_path / "private").chmod(0o700)
        with pytest.raises(StateError, match="twice with different noise"):
            service_at(path, hand)

    def test_without_the_releases_it_must_be_said_what_was_seen(self, tmp_path: Path) -> None:
        play(tmp_path, 2)
        path = tmp_path / "stream.toml"
        run = CliRunner()
        assert run.invoke(app, ["backup", str(path), str(tmp_path / "copies")]).exit_code == 0
        shutil.rmtree(tmp_path / "private")
        shutil.rmtree(tmp_path / "releases")
        for options, why in (([], "put that folder back"), (["--seen", "3"], "readers may have seen tick 3")):
            answer = run.invoke(app, ["restore", str(path), str(tmp_path / "copies"), *options])
            assert answer.exit_code == 1
            assert why in str(answer.exception).lower()
        assert run.invoke(app, ["restore", str(path), str(tmp_path / "copies"), "--seen", "2"]).exit_code == 0

    def test_nothing_is_overwritten_and_a_copy_is_private(self, tmp_path: Path) -> None:
        play(tmp_path, 1)
        latest = copy_state(tmp_path / "private", tmp_path / "copies")
        copy_state(tmp_path / "private", tmp_path / "copies")
        assert sorted(p.name for p in (tmp_path / "copies").iterdir()) == ["latest"]
        assert all(path.stat().st_mode & 0o077 == 0 for path in [latest, *latest.iterdir()])
        with pytest.raises(StateError, match="not empty"):
            restore_state(tmp_path / "copies", tmp_path / "private", seen=0)
        with pytest.raises(StateError, match="holds no backup"):
            restore_state(tmp_path / "releases", tmp_path / "other", seen=0)

    def test_the_copy_comes_before_the_release(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """If it cannot be written, nobody sees the tick; so the copy is never behind what was seen."""
        path = write_config(tmp_path, service='backup = "copies"')
        hand = HandClock()
        service = service_at(path, hand)
        (tmp_path / "copies").write_text("in the way")
        hand.go_to(10)
        service.publisher._try()
        assert "backup" in service.publisher.failure
        assert service.archive.last_tick == 0
        (tmp_path / "copies").unlink()
        service.publisher._try()
        assert service.archive.last_tick == 1
        assert (tmp_path / "copies" / "latest" / "backup.json").exists()
        service.stop()
