"""`phdstream run` and `check` on objects of a store: what holds for files holds for them."""

from __future__ import annotations

import gzip
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from phdstream.app.check import check
from phdstream.app.config import load_config
from phdstream.app.run import RunReport
from phdstream.errors import ConfigError, InputError, StateError
from phdstream.io.sources import objects
from tests.app.commands import phdstream
from tests.app.test_daily import CONFIG, FIRST, at, totals, write_day
from tests.io.sources.stores import CREDENTIALS, Store, running_store, use_credentials

SEEDED = "[simulation]\nseed = 7\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    yield from running_store(tmp_path_factory.mktemp("store"))


@pytest.fixture
def store(running: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    use_credentials(monkeypatch)
    running.fresh()
    return running


def prepare(folder: Path, files: str, more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "stream.toml"
    path.write_text(CONFIG.replace('"events/*.csv"', files) + more)
    return path


def put_day(store: Store, folder: Path, day: int, **options: Any) -> str:
    """Write the events of a day to an object."""
    path = write_day(folder, day, **options)
    return store.put(f"events/{path.name}", path)


def after(day: int) -> datetime:
    return FIRST + timedelta(days=day, hours=3)


def daily(store: Store, folder: Path, day: int) -> RunReport:
    return at(folder, after(day))


def left(folder: Path) -> list[str]:
    """Return what lies in the state folder that a commit did not put there."""
    known = {"state.npz", "committed", "inputs.npz"}
    return sorted(set(os.listdir(folder / "private")) - known) if (folder / "private").exists() else []  # noqa: PTH208


def test_the_same_releases_as_from_files_each_object_read_once(store: Store, tmp_path: Path) -> None:
    prepare(tmp_path, f'"{store.address("events/*.csv")}"', SEEDED)
    prepare(tmp_path / "files", '"../events/*.csv"', SEEDED)
    for day in (1, 2, 3):
        name = put_day(store, tmp_path, day)
        for _ in range(2):
            daily(store, tmp_path, day)
        at(tmp_path / "files", after(day))
        assert store.fetched()[day - 1 :] == [name.partition("/events/")[2].join(["events/", ""])]
        assert left(tmp_path) == []
    for part in ("points", "cells", "estimates"):
        ours, theirs = (sorted((folder / "out" / part).iterdir()) for folder in (tmp_path, tmp_path / "files"))
        assert [path.read_bytes() for path in ours] == [path.read_bytes() for path in theirs]
        assert len(ours) == 3


def test_objects_and_files_in_one_list_and_what_check_says(store: Store, tmp_path: Path) -> None:
    put_day(store, tmp_path, 1)
    write_day(tmp_path, 2)
    path = prepare(tmp_path, f'["{store.address("events/2024-03-01.csv")}", "events/2024-03-02.csv"]')
    report = check(load_config(path), now=after(2))
    assert report.ready
    assert "rows read: 400" in report.lines
    assert not (tmp_path / "private").exists()
    daily(store, tmp_path, 2)
    assert totals(tmp_path)[1] == pytest.approx(400, abs=40)


class TestWhatWasCountedStays:
    def test_grown_at_its_end(self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(objects, "_AT_ONCE", 1000)
        prepare(tmp_path, f'"{store.address("events/*.csv")}"')
        path = write_day(tmp_path, 1)
        store.put("events/all.csv", path)
        daily(store, tmp_path, 1)
        path.write_text(path.read_text() + "2024-03-01 05:00:00,1,41\n2024-03-02 05:00:00,1,41\n")
        store.put("events/all.csv", path)
        report = daily(store, tmp_path, 2)
        assert any(note.startswith("201 rows are of ticks that an earlier run") for note in report.private_notes)
        assert totals(tmp_path)[1] == pytest.approx(201, abs=30)

    @pytest.mark.parametrize("how", ["moved to another day", "altered", "more, and others moved"])
    def test_events_that_were_counted_must_stay(self, store: Store, tmp_path: Path, how: str) -> None:
        prepare(tmp_path, f'"{store.address("events/*.csv")}"')
        put_day(store, tmp_path, 1)
        daily(store, tmp_path, 1)
        path = tmp_path / "events" / "2024-03-01.csv"
        lines = path.read_text().splitlines()
        if how == "altered":
            lines[5] = lines[5].rsplit(",", 1)[0] + ",40.001"
        else:
            lines[5] = lines[5].replace("2024-03-01", "2024-03-02")
        if how == "more, and others moved":
            lines[1:1] = ["2024-03-01 01:00:00,1,41"] * 2
        store.put("events/2024-03-01.csv", "\n".join(lines) + "\n")
        with pytest.raises(StateError, match=r"s3://bucket\d+/events/2024-03-01.csv has changed, and not only at its"):
            daily(store, tmp_path, 2)
        assert len(totals(tmp_path)) == 1
        assert left(tmp_path) == []

    def test_overwritten_with_the_same_or_moved_is_not_counted_again(self, store: Store, tmp_path: Path) -> None:
        prepare(tmp_path, f'"{store.address("events/*.csv")}"')
        put_day(store, tmp_path, 1)
        daily(store, tmp_path, 1)
        put_day(store, tmp_path, 1)  # the same content
        put_day(store, tmp_path, 2)
        daily(store, tmp_path, 2)
        store.put("events/moved.csv", tmp_path / "events" / "2024-03-01.csv")
        store.delete("events/2024-03-01.csv")
        report = daily(store, tmp_path, 3)
        assert not any("rows are of ticks" in note for note in report.private_notes)
        assert totals(tmp_path) == pytest.approx([200, 400, 400], abs=50)

    @pytest.mark.parametrize("packed", [False, True])
    def test_a_copy_under_another_name(self, store: Store, tmp_path: Path, packed: bool) -> None:
        prepare(tmp_path, f'"{store.address("events/*")}"')
        path = write_day(tmp_path, 1)
        store.put("events/a.csv", path)
        if packed:
            store.put("events/b.csv.gz", gzip.compress(path.read_bytes()))
        else:
            store.put("events/b.csv", path)
        with pytest.raises(InputError, match=r"events/b.csv.* holds the same as s3://bucket\d+/events/a.csv"):
            daily(store, tmp_path, 1)
        assert not (tmp_path / "private").exists()

    def test_a_copy_of_one_that_was_counted(self, store: Store, tmp_path: Path) -> None:
        """One that is not read again, because nothing of it is new, is there all the same."""
        prepare(tmp_path, f'"{store.address("events/*")}"')
        put_day(store, tmp_path, 1)
        daily(store, tmp_path, 1)
        store.put("events/b.csv.gz", gzip.compress((tmp_path / "events" / "2024-03-01.csv").read_bytes()))
        with pytest.raises(InputError, match=r"b.csv.gz holds the same as s3://bucket\d+/events/2024-03-01.csv"):
            daily(store, tmp_path, 2)

    def test_nothing_of_how_it_is_reached_is_written_down(self, store: Store, tmp_path: Path) -> None:
        prepare(tmp_path, f'"{store.address("events/*.csv")}"')
        put_day(store, tmp_path, 1)
        daily(store, tmp_path, 1)
        there = [path for part in ("private", "out") for path in (tmp_path / part).rglob("*") if path.is_file()]
        for path in there:
            content = path.read_bytes()
            for secret in ("endpoint_override", *list(CREDENTIALS.values())[:2]):
                assert secret.encode() not in content
            assert (store.bucket.encode() in content) == (path.name == "inputs.npz")


class TestNothingIsSpent:
    @pytest.mark.parametrize("fault", ["overwritten", "gone", "refused", "damaged"])
    def test_by_a_fault_and_no_copy_is_left(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
    ) -> None:
        monkeypatch.setattr(objects, "_AT_ONCE", 1000)
        config = prepare(tmp_path, f'"{store.address("events/*")}"')
        put_day(store, tmp_path, 1)
        put_day(store, tmp_path, 2)

        def interfere(request: tuple[str, str]) -> str | None:
            if store.fetched().count("events/2024-03-02.csv") == 3:
                if fault == "overwritten":
                    put_day(store, tmp_path, 2, rows=199)
                elif fault == "gone":
                    store.delete("events/2024-03-02.csv")
                return "AccessDenied" if fault == "refused" else None
            return None

        store.before = interfere
        if fault == "damaged":
            store.put("events/2024-03-03.parquet", b"PAR1" + b"x" * 5000 + b"PAR1")
        said = phdstream("run", config, "--until", "2024-03-03")
        assert said.returncode == 1
        assert "s3://bucket" in said.stderr
        assert "Traceback" not in said.stderr
        assert str(tmp_path / "private") not in said.stderr
        assert not (tmp_path / "private").exists()
        assert not (tmp_path / "out").exists()

    def test_a_password_in_the_file_or_a_cluster(self, tmp_path: Path) -> None:
        config = prepare(tmp_path, '"s3://AKIA:SECRET@bucket/events/*.csv"')
        said = phdstream("check", config)
        assert (said.returncode, "SECRET" in said.stderr) == (1, False)
        assert "holds credentials" in said.stderr
        storage = '\n[engine]\ntype = "spark"\nstorage = "parts"\n'
        config = prepare(tmp_path, '["a.parquet", "s3://bucket/events/*.parquet"]', storage)
        with pytest.raises(ConfigError, match="Structured Streaming query of your own; or leave out"):
            load_config(config)


@pytest.mark.slow
def test_killed_while_an_object_is_fetched(store: Store, tmp_path: Path) -> None:
    """Half of a copy is in the private folder then, for its owner's eyes; the next start removes it."""
    config = prepare(tmp_path, f'"{store.address("events/*.csv")}"')
    store.put("events/a.csv", b"time,lon,lat\n" + b"2024-03-01 01:00:00,1.00001,41.00001\n" * 300_000)  # two requests
    waits, go_on = threading.Event(), threading.Event()

    def wait(request: tuple[str, str]) -> None:
        if len(store.fetched()) == 2:
            waits.set()
            go_on.wait(300)

    store.before = wait
    command = [sys.executable, "-m", "phdstream", "run", str(config), "--until", "2024-03-02"]
    process = subprocess.Popen(command, env=os.environ | CREDENTIALS, stderr=subprocess.DEVNULL)
    assert waits.wait(300)
    (copy,) = (tmp_path / "private").glob("fetched-*")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700
    assert copy.stat().st_size == 8 << 20
    process.send_signal(signal.SIGKILL)
    process.wait()
    go_on.set()
    assert copy.exists()
    store.before = lambda request: None
    put_day(store, tmp_path, 1, name="a.csv")
    daily(store, tmp_path, 1)
    assert left(tmp_path) == []
    assert totals(tmp_path) == pytest.approx([200], abs=40)


@pytest.mark.slow
def test_interrupted_while_an_object_is_fetched(store: Store, tmp_path: Path) -> None:
    config = prepare(tmp_path, f'"{store.address("events/*.csv")}"')
    put_day(store, tmp_path, 1)
    waits, go_on = threading.Event(), threading.Event()

    def wait(request: tuple[str, str]) -> None:
        if store.fetched():
            waits.set()
            go_on.wait(300)

    store.before = wait
    command = [sys.executable, "-m", "phdstream", "run", str(config)]
    process = subprocess.Popen(command, env=os.environ | CREDENTIALS, stderr=subprocess.DEVNULL)
    assert waits.wait(300)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    go_on.set()
    assert process.wait(300) == 130
    assert not (tmp_path / "private").exists()
