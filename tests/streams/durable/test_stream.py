"""Once means once: commits before releases, one owner, no way back."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.errors import InputError, StateError
from phdstream.streams.durable.commits import Marker
from phdstream.streams.durable.locked_folder import LockedFolder
from phdstream.streams.paper.method import PaperMethod
from phdstream.streams.state import decode_state, encode_state, replace_file
from tests.thorough import cases

SQUARE = phd.Box([(0, 1), (0, 1)], depth=8)
ODD: tuple[Any, ...] = (None, [], "x", {"a": 1})


def new_stream(**options: Any) -> phd.PHDStream:
    defaults: dict[str, Any] = {"epsilon": 1.0, "unit": phd.Event()}
    return phd.PHDStream(SQUARE, **(defaults | options))


def full(*args: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def failing_at(call: int) -> Any:
    """Return a `LockedFolder.replace` that fails at one call, before it does anything."""
    real, calls = LockedFolder.replace, [0]

    def replace(*args: Any) -> None:
        calls[0] += 1
        full() if calls[0] == call else real(*args)

    return replace


def points(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((100, 2))


def test_goes_on_where_it_was_left(tmp_path: Path) -> None:
    for tick in range(1, 4):
        with phd.durable(tmp_path / "s", new_stream()) as stream:
            assert stream.tick == tick - 1
            stream.notes["rows"] = tick * 100
            release = stream.update(points(tick))
    with phd.durable(tmp_path / "s", new_stream()) as stream:
        assert stream.notes == {"rows": 300}
        assert stream.release is not None
        np.testing.assert_array_equal(stream.release.sample(), release.sample())
        assert "1-differentially private" in stream.describe()
        assert stream.private_tally.outside == 0


def test_two_owners_are_refused(tmp_path: Path) -> None:
    with phd.durable(tmp_path, new_stream()), pytest.raises(StateError, match="another process"):
        phd.durable(tmp_path, new_stream())
    phd.durable(tmp_path, new_stream()).close()  # free again


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    code = (
        "import phdstream as phd, sys\n"
        "try: phd.durable(sys.argv[1], phd.PHDStream(phd.Box([(0, 1), (0, 1)], depth=8), 1.0, phd.Event()))\n"
        "except phd.errors.StateError as error: print(error)\n"
    )
    with phd.durable(tmp_path, new_stream()):
        said = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "another process" in said.stdout


def test_an_older_state_is_refused(tmp_path: Path) -> None:
    """A restored backup would release its next tick a second time, with other noise."""
    with phd.durable(tmp_path, new_stream()) as stream:
        stream.update(points(1))
        shutil.copy(tmp_path / "state.npz", tmp_path / "backup")
        stream.update(points(2))
    shutil.copy(tmp_path / "backup", tmp_path / "state.npz")
    with pytest.raises(StateError, match="tick 2 was released already"):
        phd.durable(tmp_path, new_stream())


def test_a_lost_state_is_refused(tmp_path: Path) -> None:
    with phd.durable(tmp_path, new_stream()) as stream:
        stream.update(points(1))
    (tmp_path / "state.npz").unlink()
    with pytest.raises(StateError, match="its state is gone"):
        phd.durable(tmp_path, new_stream())


def begin(folder: Path) -> None:
    with phd.durable(folder, new_stream()) as stream:
        stream.begin()


def test_its_state_cannot_be_loaded_past_the_owner(tmp_path: Path) -> None:
    begin(tmp_path)
    with pytest.raises(StateError, match="belongs to a directory"):
        phd.PHDStream.load(tmp_path / "state.npz")


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 2.0},
        {"unit": phd.Record()},
        {"window": 3},
        {"counter": "block"},
        {"noise": phd.Simulation(1)},
        {"max_nodes": 99},
    ],
)
def test_another_promise_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    begin(tmp_path)
    with pytest.raises(StateError, match="cannot change on the way"):
        phd.durable(tmp_path, new_stream(**options))


class TestNothingBeforeTheBeginning:
    def test_opening_writes_nothing(self, tmp_path: Path) -> None:
        """A run that failed before its first tick left a promise behind, which the next run could not change."""
        with phd.durable(tmp_path / "a" / "s", new_stream()) as stream:
            assert stream.tick == 0
            assert stream.release is None
            assert list((tmp_path / "a" / "s").iterdir()) == []
            assert (tmp_path / "a" / "s").stat().st_mode & 0o777 == 0o700
        assert not (tmp_path / "a" / "s").exists()
        (tmp_path / "kept").mkdir(0o700)
        phd.durable(tmp_path / "kept", new_stream()).close()
        assert (tmp_path / "kept").exists()

    def test_a_refused_first_tick_leaves_no_promise(self, tmp_path: Path) -> None:
        with phd.durable(tmp_path / "s", new_stream()) as stream, pytest.raises(InputError):
            stream.update([["north", "east"]])
        assert not (tmp_path / "s").exists()
        with phd.durable(tmp_path / "s", new_stream(epsilon=2.0)) as stream:
            stream.update(points(1))

    def test_beginning_commits_notes_and_the_promise(self, tmp_path: Path) -> None:
        with phd.durable(tmp_path, new_stream()) as stream:
            stream.notes["where"] = 7
            stream.begin()
            name = stream.id
            stream.begin()
        with phd.durable(tmp_path, new_stream()) as stream:
            assert (stream.tick, stream.notes, stream.id) == (0, {"where": 7}, name)
            assert re.fullmatch("[0-9a-f]{32}", name)
            stream.update(points(1))
            assert stream.id == name

    def test_a_crash_within_the_first_commit_is_no_beginning(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its marker of tick 0 is there, its state is not: it may begin anew under its id, and crash at every step."""
        names = set()
        for call in (2, 1, 2):
            with monkeypatch.context() as patch:
                patch.setattr(LockedFolder, "replace", failing_at(call))
                with phd.durable(tmp_path, new_stream()) as stream:
                    names.add(stream.id)
                    with pytest.raises(StateError):
                        stream.update(points(1))
        with phd.durable(tmp_path, new_stream()) as stream:
            assert stream.tick == 1
            assert names == {stream.id}

    def test_a_claim_keeps_the_id_and_nothing_else(self, tmp_path: Path) -> None:
        with phd.durable(tmp_path / "s", new_stream()) as stream:
            stream.claim()
            stream.claim()
            stream.write_extra("ledger", {"of": "a run that never began"}, {})
            assert stream.read_extra("ledger") is not None
            name = stream.id
        with phd.durable(tmp_path / "s", new_stream(epsilon=2.0)) as stream:
            assert (stream.id, stream.tick, stream.read_extra("ledger")) == (name, 0, None)
            stream.begin()
            stream.claim()
        with phd.durable(tmp_path / "s", new_stream(epsilon=2.0)) as stream:
            assert (stream.id, stream.parameters["epsilon"]) == (name, 2.0)

    def test_a_claim_that_cannot_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with phd.durable(tmp_path, new_stream()) as stream:
            monkeypatch.setattr(LockedFolder, "replace", full)
            with pytest.raises(StateError, match="committed cannot be written"):
                stream.claim()

    def test_a_stream_that_took_ticks_before_begins_at_once(self, tmp_path: Path) -> None:
        stream = new_stream()
        release = stream.update(points(1))
        phd.durable(tmp_path, stream).close()
        with phd.durable(tmp_path, new_stream()) as again:
            assert again.release is not None
            np.testing.assert_array_equal(again.release.sample(), release.sample())


class TestWhatTheHandleShows:
    def test_a_full_disk_loses_nothing_and_shows_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The handle showed the tick that was not committed; opened again, the same tick had other noise."""
        with phd.durable(tmp_path, new_stream(unit=phd.User(1))) as stream:
            stream.notes["rows"] = 1
            first = stream.update(points(1), users=np.arange(100))
            shown = stream.describe()
            stream.notes["rows"] = 2
            with monkeypatch.context() as patch:
                patch.setattr(LockedFolder, "replace", full)
                with pytest.raises(StateError, match="No space left"):
                    stream.update(points(2), users=np.arange(100))
            assert (stream.tick, stream.release, stream.describe()) == (1, first, shown)
            assert stream.private_tally.over_bound == 0
            assert stream.notes == {"rows": 1}
            with pytest.raises(StateError, match="could not be committed"):
                stream.update(points(2), users=np.arange(100))
        with phd.durable(tmp_path, new_stream(unit=phd.User(1))) as stream:
            assert (stream.tick, stream.notes) == (1, {"rows": 1})
            assert stream.release is not None
            assert stream.release.cells().equals(first.cells())
            assert stream.update(points(2), users=np.arange(100)).tick == 2
            assert stream.private_tally.over_bound == 100

    def test_a_tick_whose_mark_failed_is_saved_and_said_to_be(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The message said that the tick was not saved, but it was."""
        with phd.durable(tmp_path, new_stream()) as stream:
            stream.update(points(1))
            stream.notes["rows"] = 2
            with monkeypatch.context() as patch:
                patch.setattr(LockedFolder, "replace", failing_at(2))
                with pytest.raises(StateError, match=r"tick 2 is saved; .* open the folder again to go on"):
                    stream.update(points(2))
            release = stream.release
            assert (stream.tick, stream.notes) == (2, {"rows": 2})
            assert release is not None
            with pytest.raises(StateError, match="tick 2 is saved"):
                stream.update(points(3))
        with phd.durable(tmp_path, new_stream()) as stream:
            assert (stream.tick, stream.notes) == (2, {"rows": 2})
            assert stream.release is not None
            np.testing.assert_array_equal(stream.release.sample(), release.sample())
        assert b" 2 " in (tmp_path / "committed").read_bytes()  # mended

    @pytest.mark.parametrize("call", range(1, 10))
    def test_a_failure_at_every_write_in_turn(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
        """Whatever was handed out or shown as committed is there when the directory is opened again, with its bits."""
        seen: dict[int, bytes] = {}
        with monkeypatch.context() as patch:
            patch.setattr(LockedFolder, "replace", failing_at(call))
            with phd.durable(tmp_path, new_stream()) as stream:
                for tick in range(1, 5):
                    try:
                        release = stream.update(points(tick))
                    except StateError:
                        break
                    seen[tick] = release.sample().tobytes()
                if stream.release is not None:
                    assert seen.setdefault(stream.tick, stream.release.sample().tobytes())
                shown = stream.tick
        with phd.durable(tmp_path, new_stream()) as stream:
            assert stream.tick == shown
            if stream.release is not None:
                assert stream.release.sample().tobytes() == seen[shown]
            assert stream.update(points(9)).tick == shown + 1

    def test_a_tick_that_failed_half_way_is_not_shown(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*args: Any) -> Any:
            raise MemoryError

        with phd.durable(tmp_path, new_stream()) as stream:
            stream.update(points(1))
            with monkeypatch.context() as patch:
                patch.setattr(PaperMethod, "release_tick", fail)
                with pytest.raises(MemoryError):
                    stream.update(points(2))
            assert stream.tick == 1
            with pytest.raises(StateError, match="half-way"):
                stream.update(points(2))

    def test_notes_must_be_plain_data(self, tmp_path: Path) -> None:
        with phd.durable(tmp_path, new_stream()) as stream:
            stream.notes["x"] = object()
            with pytest.raises(InputError, match="plain data"):
                stream.update(points(1))
            stream.notes["x"] = 1
            assert stream.update(points(1)).tick == 1


class TestWhoMayGoOn:
    def test_not_after_closing(self, tmp_path: Path) -> None:
        """Two handles released tick 4 twice: one was closed, and went on without the lock."""
        closed = phd.durable(tmp_path, new_stream())
        closed.update(points(1))
        closed.close()
        with phd.durable(tmp_path, new_stream()) as stream:
            for refused in (lambda: closed.update(points(2)), lambda: closed.write_extra("x", {}, {})):
                with pytest.raises(StateError, match="was closed"):
                    refused()
            assert closed.tick == 1
            assert stream.update(points(2)).tick == 2

    def test_not_after_forking(self, tmp_path: Path) -> None:
        done = subprocess.run([sys.executable, "-c", _FORK, str(tmp_path)], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == ["child refused at 1", "parent at 2"]

    def test_not_in_another_folder(self, tmp_path: Path) -> None:
        with phd.durable(tmp_path / "s", new_stream()) as stream:
            stream.update(points(1))
            shutil.copytree(tmp_path / "s", tmp_path / "copy")
            stream.update(points(2))
            (tmp_path / "s").rename(tmp_path / "moved")
            (tmp_path / "copy").rename(tmp_path / "s")
            with pytest.raises(StateError, match="no longer the folder"):
                stream.update(points(3))
            assert stream.tick == 2

    @pytest.mark.parametrize("names", [["state.npz"], ["committed"], ["state.npz", "committed"]])
    def test_not_when_a_backup_was_put_back(self, tmp_path: Path, names: list[str]) -> None:
        folder, copy = tmp_path / "s", tmp_path / "copy"
        with phd.durable(folder, new_stream()) as stream:
            stream.update(points(1))
            shutil.copytree(folder, copy)
            stream.update(points(2))
            for name in names:
                shutil.copy2(copy / name, folder / name)
            before = {path.name: path.read_bytes() for path in folder.iterdir()}
            for _ in range(2):
                with pytest.raises(StateError, match="not those that were committed last"):
                    stream.update(points(3))
            assert stream.tick == 2
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    def test_but_after_its_own_files_were_put_back(self, tmp_path: Path) -> None:
        folder, copy = tmp_path / "s", tmp_path / "copy"
        with phd.durable(folder, new_stream()) as stream:
            stream.update(points(1))
            shutil.copytree(folder, copy)
            for name in ("state.npz", "committed"):
                (folder / name).unlink()
                shutil.copy(copy / name, folder / name)
            assert stream.update(points(2)).tick == 2

    def test_not_when_the_files_are_gone(self, tmp_path: Path) -> None:
        with phd.durable(tmp_path, new_stream()) as stream:
            stream.update(points(1))
            (tmp_path / "state.npz").unlink()
            with pytest.raises(StateError, match="not those that were committed last"):
                stream.update(points(2))

    def test_not_past_its_directory(self, tmp_path: Path) -> None:
        mine = new_stream()
        with phd.durable(tmp_path, mine) as stream:
            stream.update(points(1))
            mine.update(points(2))
            assert stream.tick == 1
            with pytest.raises(StateError, match="past its directory"):
                stream.update(points(2))

    def test_not_where_others_can_look(self, tmp_path: Path) -> None:
        (tmp_path / "s").mkdir()
        (tmp_path / "s").chmod(0o777)
        with pytest.raises(StateError, match="chmod 700"):
            phd.durable(tmp_path / "s", new_stream())


class TestDamage:
    def taken(self, folder: Path, ticks: int = 2) -> None:
        with phd.durable(folder, new_stream()) as stream:
            for tick in range(ticks):
                stream.update(points(tick))

    def test_the_marker(self, tmp_path: Path) -> None:
        """A marker of -3 was accepted, and a deleted one ignored."""
        self.taken(tmp_path)
        marker = tmp_path / "committed"
        good = marker.read_bytes()
        for damaged in (b"-3", b"2", b"", b"\xff\n", good[:-2], good.replace(b" 2 ", b" 1 ")):
            marker.write_bytes(damaged)
            with pytest.raises(StateError, match="committed is damaged"):
                phd.durable(tmp_path, new_stream())
        marker.unlink()
        with pytest.raises(StateError, match="committed is gone"):
            phd.durable(tmp_path, new_stream())
        marker.mkdir()
        with pytest.raises(StateError, match="cannot be read"):
            phd.durable(tmp_path, new_stream())
        marker.rmdir()
        found = Marker.decode(good, marker)
        marker.write_bytes(Marker("0" * 32, found.tick, found.digest).encode())
        with pytest.raises(StateError, match="two streams"):
            phd.durable(tmp_path, new_stream())
        marker.write_bytes(Marker(found.stream, 1, "0" * 64).encode())  # a crash between the two files
        phd.durable(tmp_path, new_stream()).close()
        assert marker.read_bytes() == good

    def test_another_state_of_the_same_tick(self, tmp_path: Path) -> None:
        """A copy of the folder that went on elsewhere has another noise for the same tick."""
        self.taken(tmp_path / "s", 1)
        shutil.copytree(tmp_path / "s", tmp_path / "copy")
        for folder in ("s", "copy"):
            self.taken(tmp_path / folder, 1)
        shutil.copy(tmp_path / "copy" / "state.npz", tmp_path / "s" / "state.npz")
        with pytest.raises(StateError, match="a copy went on elsewhere"):
            phd.durable(tmp_path / "s", new_stream())

    def test_a_state_that_is_whole_but_no_stream(self, tmp_path: Path) -> None:
        """Whatever it is, it is refused as a state, not met with a traceback."""
        self.taken(tmp_path)
        path, marker = tmp_path / "state.npz", tmp_path / "committed"
        meta, arrays = decode_state(path.read_bytes(), path)
        name = next(name for name in arrays if name.startswith("release."))
        others = [
            *(
                (({key: value for key, value in meta.items() if key != left}), arrays)
                for left in meta
                if left != "owner"
            ),
            *((meta | {key: odd}, arrays) for key in meta if key != "owner" for odd in ODD),
            (meta | {"tick": -1}, arrays),
            (meta | {"id": "A" * 32}, arrays),
            (meta, {key: value for key, value in arrays.items() if key != name}),
            (meta, arrays | {"intake.live": np.array(["x"])}),
        ]
        refused = 0
        for wrong, arrays_too in others:
            content = encode_state(wrong, arrays_too)
            path.write_bytes(content)
            marker.write_bytes(Marker(meta["id"], 1, "0" * 64).encode())  # as after a crash, so any state is looked at
            try:
                phd.durable(tmp_path, new_stream()).close()
            except StateError:
                refused += 1
        assert refused > len(others) / 2

    @pytest.mark.parametrize("place", [0, 17, 40, 200, -1])
    def test_a_flipped_bit(self, tmp_path: Path, place: int) -> None:
        self.taken(tmp_path)
        content = bytearray((tmp_path / "state.npz").read_bytes())
        content[place] ^= 4
        (tmp_path / "state.npz").write_bytes(bytes(content))
        with pytest.raises(StateError, match=r"state\.npz"):
            phd.durable(tmp_path, new_stream())


class TestFurtherFiles:
    def test_there_and_back(self, tmp_path: Path) -> None:
        with phd.durable(tmp_path, new_stream()) as stream:
            assert stream.read_extra("ledger") is None
            stream.begin()
            stream.write_extra("ledger", {"files": ["a"]}, {"rows": np.arange(3)})
        with phd.durable(tmp_path, new_stream()) as stream:
            found = stream.read_extra("ledger")
            assert found is not None
            assert found[0]["files"] == ["a"]
            assert found[1]["rows"].tolist() == [0, 1, 2]
            assert (tmp_path / "ledger.npz").stat().st_mode & 0o077 == 0

    def test_damaged_or_of_another_stream(self, tmp_path: Path) -> None:
        for folder in ("a", "b"):
            with phd.durable(tmp_path / folder, new_stream()) as stream:
                stream.begin()
                stream.write_extra("ledger", {}, {})
        shutil.copy(tmp_path / "a" / "ledger.npz", tmp_path / "b" / "ledger.npz")
        with phd.durable(tmp_path / "b", new_stream()) as stream, pytest.raises(StateError, match="another stream"):
            stream.read_extra("ledger")
        (tmp_path / "a" / "ledger.npz").write_bytes(b"x")
        with phd.durable(tmp_path / "a", new_stream()) as stream, pytest.raises(StateError, match=r"ledger\.npz"):
            stream.read_extra("ledger")

    def test_left_by_a_run_that_never_began(self, tmp_path: Path) -> None:
        with phd.durable(tmp_path, new_stream()) as stream:
            stream.write_extra("ledger", {}, {})
        with phd.durable(tmp_path, new_stream()) as stream:
            assert stream.read_extra("ledger") is None

    @pytest.mark.parametrize("name", ["state", "../x", "", "A", "committed/x", ".x"])
    def test_names(self, tmp_path: Path, name: str) -> None:
        with phd.durable(tmp_path, new_stream()) as stream, pytest.raises(InputError, match="plain lower-case name"):
            stream.write_extra(name, {}, {})

    def test_a_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with phd.durable(tmp_path, new_stream()) as stream:
            monkeypatch.setattr(LockedFolder, "replace", full)
            with pytest.raises(StateError, match="No space left"):
                stream.write_extra("ledger", {}, {})

    def test_a_temporary_file(self, tmp_path: Path) -> None:
        with phd.durable(tmp_path, new_stream()) as stream, stream.temporary_file() as file:
            file.write(b"private")
            assert list(tmp_path.iterdir()) == []


def test_a_real_full_device(tmp_path: Path) -> None:
    """A write that fails in the middle leaves the old file whole and nothing beside it."""
    path = tmp_path / "file"
    replace_file(path, lambda file: file.write(b"old"))

    def write(file: Any) -> None:
        file.write(b"new" * 1000)
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        replace_file(path, write)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    folder = tmp_path if os.geteuid() else Path("/proc")  # root may write anywhere but there
    with pytest.raises(StateError, match="cannot be written"):
        phd.durable(folder / "s", new_stream())


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot be written"):
        phd.durable(tmp_path / "file" / "s", new_stream())


@pytest.mark.slow
def test_killed_at_random_instants_nothing_is_released_twice(tmp_path: Path) -> None:
    """A child prints every release it is handed; we kill it at random and start another, again and again.

    Whatever tick was seen more than once must have been seen with the same bits.
    """
    seen: dict[int, str] = {}
    rng = np.random.default_rng(int.from_bytes(os.urandom(4), "big"))
    last = 0
    for number in range(100):  # on a busy machine they are killed before they have released anything
        if number >= cases(5, 50) and last > 3:
            break
        with subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline().strip() == "ready"
            time.sleep(float(rng.uniform(0.01, 0.5)))
            child.send_signal(signal.SIGKILL)
            lines = child.stdout.read().splitlines()
        for line in lines:
            if line.count(" ") == 1 and line.endswith("."):
                tick, digest = line.split()
                assert seen.setdefault(int(tick), digest) == digest
                last = max(last, int(tick))
    assert last > 3
    with phd.durable(tmp_path, new_stream()) as stream:
        assert stream.tick >= last


_FORK = """
import os, sys, numpy as np, phdstream as phd
from phdstream.errors import StateError
stream = phd.durable(sys.argv[1], phd.PHDStream(phd.Box([(0, 1), (0, 1)], depth=8), 1.0, phd.Event()))
stream.update(np.full((9, 2), 0.5))
if os.fork() == 0:
    try:
        stream.update(np.full((9, 2), 0.5))
    except StateError as error:
        assert "forked" in str(error), error
        print("child refused at", stream.tick, flush=True)
    stream.close()
    os._exit(0)
os.wait()
print("parent at", stream.update(np.full((9, 2), 0.5)).tick, flush=True)
"""
_CHILD = """
import hashlib, sys, numpy as np, phdstream as phd
def show(release):
    digest = hashlib.sha256(release.sample().tobytes() + release.estimate.unbiased.tobytes()).hexdigest()
    print(release.tick, digest + ".", flush=True)
stream = phd.durable(sys.argv[1], phd.PHDStream(phd.Box([(0, 1), (0, 1)], depth=8), 1.0, phd.Event()))
phd.ExactNoise().add(np.zeros(1, np.int64), 1.0, np.zeros(1, np.int64))  # slow to load
print("ready", flush=True)
if stream.release is not None:
    show(stream.release)
while True:
    show(stream.update(np.random.default_rng(stream.tick).random((100, 2))))
"""
