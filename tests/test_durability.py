"""Once means once: commits before releases, one owner, no way back."""

from __future__ import annotations

import errno
import os
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
from phdstream import durability as module
from phdstream.errors import StateError
from phdstream.state import replace_file

SQUARE = phd.Box([(0, 1), (0, 1)], depth=8)


def new_stream(**options: Any) -> phd.PHDStream:
    return phd.PHDStream(SQUARE, **({"epsilon": 1.0, "unit": phd.Event()} | options))


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


def test_its_state_cannot_be_loaded_past_the_owner(tmp_path: Path) -> None:
    phd.durable(tmp_path, new_stream()).close()
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
    phd.durable(tmp_path, new_stream()).close()
    with pytest.raises(StateError, match="cannot change on the way"):
        phd.durable(tmp_path, new_stream(**options))


def test_a_full_disk_loses_nothing_and_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with phd.durable(tmp_path, new_stream()) as stream:
        first = stream.update(points(1))

        def full(*args: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(module, "write_state", full)
            with pytest.raises(StateError, match="No space left"):
                stream.update(points(2))
        with pytest.raises(StateError, match="could not be committed"):
            stream.update(points(2))
    with phd.durable(tmp_path, new_stream()) as stream:
        assert stream.tick == 1
        assert stream.release is not None
        assert stream.release.cells().equals(first.cells())
        assert stream.update(points(2)).tick == 2


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


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StateError, match="cannot be written"):
        phd.durable(tmp_path / "s", new_stream())


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot be written"):
        phd.durable(tmp_path / "file" / "s", new_stream())


def test_killed_at_random_instants_nothing_is_released_twice(tmp_path: Path) -> None:
    """A child prints every release it is handed; we kill it at random and start another, again and again.

    Whatever tick was seen more than once must have been seen with the same bits.
    """
    seen: dict[int, str] = {}
    rng = np.random.default_rng(int.from_bytes(os.urandom(4), "big"))
    last = 0
    for _ in range(8):
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
