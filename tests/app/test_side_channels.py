"""Side channels in reach: what files, answers, messages and logs could tell beside the released numbers.

Not tested, for it is not promised: how long things take, how much memory, when a file appears
(docs/privacy/known-limits.md).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phdstream as phd
from phdstream.arrays import Ints
from phdstream.errors import PhdstreamError
from phdstream.io.sinks.folder import ReleaseFolder
from phdstream.privacy import DivisibleNoise
from phdstream.streams.durable.stream import durable
from phdstream.streams.state import read_state
from tests.app.commands import phdstream
from tests.noises import KnownNoise

CITY = phd.Box([(0, 10), (40, 50)], names=("lon", "lat"), crs="EPSG:4326", depth=40)
SMALL = phd.Box([(0, 10), (40, 50)], names=("lon", "lat"), crs="EPSG:4326", depth=8)
STREAMS: dict[str, Callable[..., Any]] = {
    "tracking": phd.TrackingStream,
    "simple": phd.PHDStream,
    "hybrid": lambda *about, **more: phd.PHDStream(*about, counter="hybrid", **more),
}


class Forced(KnownNoise):
    """What comes out belongs to the seed and to how often noise was asked for, not to what was counted."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = np.random.default_rng(seed)

    def add(self, values: Ints, scale: float, at: Ints) -> Ints:
        return self._rng.choice([-20, 0, 30, 300], values.size)

    def divisible(self, scale: float, parts: Ints, at: Ints) -> DivisibleNoise:
        return _ForcedParts(self.add(np.zeros(int(parts.sum()), np.int64), scale, at))


class _ForcedParts(DivisibleNoise):
    def add(self, values: Ints, first: Ints, parts: Ints, at: Ints) -> Ints:
        return super().add(np.zeros_like(values), first, parts, at)


def places(rng: np.random.Generator, number: int) -> np.ndarray:
    return rng.uniform((0, 40), (10, 50), (number, 2))


def published(folder: Path, kind: str, format: str, number: int) -> dict[str, bytes]:
    """Return all files of a stream whose noisy numbers are forced; ``number`` is how many events a tick has."""
    stream, rng = STREAMS[kind](SMALL, 1.0, phd.Event(), noise=Forced(3)), np.random.default_rng(number)
    with ReleaseFolder(folder, "0" * 32, {}, format) as releases:
        releases.bind()
        for _ in range(5):
            releases.publish(stream.update(places(rng, number), places(rng, number // 3)))
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_files_are_a_function_of_the_noisy_numbers(tmp_path: Path, kind: str, format: str) -> None:
    """Streams of 4 and of 900 events a tick, forced to the same noisy numbers: all files are the same, to the byte.

    So names, sizes, numbers and order of rows tell nothing more than the numbers do.
    """
    few, many = (published(tmp_path / str(number), kind, format, number) for number in (4, 900))
    assert few.keys() == many.keys()
    assert [name for name in few if few[name] != many[name]] == []
    assert len(few) > 10


@pytest.mark.parametrize("kind", STREAMS)
def test_answers_are_too(kind: str) -> None:
    """The order of cells and points, answers and their intervals, what came and went, what is said in words."""
    said = []
    for number in (4, 900):
        stream, rng = STREAMS[kind](SMALL, 1.0, phd.Event(), noise=Forced(4)), np.random.default_rng(number)
        for _ in range(4):
            release = stream.update(places(rng, number))
        counts = release.count([[0, 40, 5, 45], [1, 41, 1.5, 41.5]])
        texts = [repr(release), stream.describe(), repr(stream.release), release.usefulness.warning]
        changes = release.changes()
        said.append([release.cells(), release.sample().tolist(), counts.value.tolist(), counts.high.tolist(), texts])
        said[-1] += [changes.inserts.tolist(), changes.deletes.tolist()]
    assert said[0] == said[1]


def wrong_uses(number: int) -> list[Callable[[], object]]:
    """Return uses that are refused, with so many events."""
    points, user = np.random.default_rng(0).uniform((0, 40), (10, 50), (number, 2)), phd.User(inserts=2, deletes=1)

    def stream(unit: Any = None, **options: Any) -> Any:
        return phd.TrackingStream(CITY, 1.0, unit or phd.Event(), **options)

    return [
        lambda: stream(user).update(points),
        lambda: stream(user).update(points, users=["a"] * (number - 1)),
        lambda: stream(user).update(points, users=[None] * number),
        lambda: stream(user).update(points, users=[1.5] * number),
        lambda: stream(user).update(points, users=["x" * 5000] * number),
        lambda: stream(user).update(points, points, users=["a"] * number, delete_users=[1] * number),
        lambda: stream(insert_only=True).update(points, points),
        lambda: stream(window=2).update(points, points[:1]),
        lambda: stream().update(points[:, :1]),
        lambda: stream().update(points[:, [0, 0, 1]]),
        lambda: stream().update(points.astype(str)),
        lambda: stream().update([*points.tolist(), [1]]),
        lambda: stream().update({"lon": points[:, 0], "lat": points[:-1, 1]}),
    ]


@pytest.mark.parametrize("case", range(len(wrong_uses(0))))
def test_errors_are_the_same_on_neighbouring_inputs(case: int) -> None:
    messages = []
    for number in (40, 41, 4000):
        with pytest.raises(PhdstreamError) as error:
            wrong_uses(number)[case]()
        messages.append(str(error.value))
    assert len(set(messages)) == 1


def test_a_stream_logs_nothing(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    with caplog.at_level(logging.DEBUG):
        for kind in STREAMS:
            STREAMS[kind](CITY, 1.0, phd.Event()).update(places(np.random.default_rng(1), 300))
    out, err = capfd.readouterr()
    assert (caplog.records, out, err) == ([], "", "")


CONFIG = """
[input]
files = "events.csv"
time = "time"
coordinates = ["lon", "lat"]
user = "who"
bad_rows = "drop"
[ticks]
every = "1d"
start = 2024-03-01
end = 2024-03-04
[domain]
type = "box"
bounds = [[0, 10], [40, 50]]
crs = "EPSG:4326"
[privacy]
epsilon = 1.0
unit = { type = "user", inserts = 2 }
[output]
releases = "out"
state = "private"
[simulation]
seed = 1
"""
NOT_COUNTED = {
    "outside": "2024-03-02 12:00:00,99.0,44.5,u3",
    "of no tick": "2031-01-01 12:00:00,3.0,44.5,u3",
    "beyond a user's bound": "2024-03-03 23:00:00,3.0,44.5,u3",
    "without a place": "2024-03-02 12:00:00,,44.5,u3",
    "damaged": "yesterday,3.0,44.5,u3",
    "ragged": "2024-03-02 12:00:00,3.0",
}


def run_on(folder: Path, lines: list[str]) -> tuple[dict[str, bytes], str, str]:
    """Run on a file, and return the files in `out`, and what was said to everybody and to the operator."""
    folder.mkdir()
    (folder / "stream.toml").write_text(CONFIG)
    (folder / "events.csv").write_text("\n".join(["time,lon,lat,who", *lines]) + "\n")
    done = phdstream("run", "stream.toml", cwd=folder)
    assert done.returncode == 0, done.stderr
    stream = _identity(folder)
    files = {
        str(path.relative_to(folder / "out")): path.read_bytes().replace(stream, b"the stream")
        for path in sorted((folder / "out").rglob("*"))
        if path.is_file()
    }
    public_errors = done.stderr.split("PRIVATE")[0]
    return files, done.stdout.replace(str(folder), ""), public_errors.replace(str(folder), "")


def _identity(folder: Path) -> bytes:
    return str(json.loads((folder / "out" / "stream.json").read_bytes())["stream"]).encode()


@pytest.mark.parametrize("row", NOT_COUNTED.values(), ids=NOT_COUNTED)
def test_a_row_that_is_not_counted_leaves_no_trace(tmp_path: Path, row: str) -> None:
    """Not in files, their names and sizes, in what is said, nor in warnings; only in what is marked PRIVATE."""
    rng = np.random.default_rng(2)
    lines = [
        f"2024-03-0{1 + i % 3} 1{i % 10}:00:00,{x:.4f},{y:.4f},u{i % 40}" for i, (x, y) in enumerate(places(rng, 120))
    ]
    without, with_row = run_on(tmp_path / "without", lines), run_on(tmp_path / "with", [*lines[:50], row, *lines[50:]])
    assert with_row == without


def codes_in(state: Path) -> set[int]:
    """Return all whole numbers in a state that are not public releases."""
    arrays = read_state(state)[1]
    private = [array for name, array in arrays.items() if array.dtype.kind in "iu" and not name.startswith("release")]
    return set(np.concatenate([array.ravel().astype(np.int64) for array in private]).tolist())


def test_counted_events_are_gone_from_the_state(tmp_path: Path) -> None:
    """An event is in the state while its block is open, and in no file of the folder when it has been counted."""
    rng, marked = np.random.default_rng(3), np.array([[3.141592653, 42.718281828]])
    code = int(CITY.encode(marked)[0][0])
    state, there = tmp_path / "private" / "state.npz", []
    with durable(tmp_path / "private", phd.TrackingStream(CITY, 1.0, phd.Event(), insert_only=True)) as stream:
        for tick in range(25):
            points = places(rng, 150 if tick else 4000)
            stream.update(np.vstack([points, marked]) if tick == 1 else points)
            there.append(code in codes_in(state))
    assert there[1]  # the test sees it where it is
    assert not there[-1]
    assert there == sorted(there[:1]) + sorted(there[1:], reverse=True)  # and it never comes back
    assert sorted(path.name for path in (tmp_path / "private").iterdir()) == ["committed", "state.npz"]


def test_the_starts_events_are_gone_when_it_is_counted(tmp_path: Path) -> None:
    marked = np.array([[3.141592653, 42.718281828]])
    code, there = int(CITY.encode(marked)[0][0]), []
    with durable(tmp_path / "private", phd.TrackingStream(CITY, 1.0, phd.Event(), start_after=3)) as stream:
        for tick in range(4):
            stream.update(marked if tick == 0 else None)
            there.append(code in codes_in(tmp_path / "private" / "state.npz"))
    assert there == [True, True, False, False]


def test_a_run_leaves_no_rows_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Input that did not fit into memory was spilled to a file without a name: none is left, anywhere it could be."""
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    lines = [f"2024-03-01 10:00:00,3.1415926{i % 10},42.7182,only-here-{i}" for i in range(40_000)]
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "stream.toml").write_text(CONFIG.replace('bad_rows = "drop"', 'bad_rows = "drop"\nmemory = "1MB"'))
    (folder / "events.csv").write_text("\n".join(["time,lon,lat,who", *lines]) + "\n")
    assert phdstream("run", "stream.toml", cwd=folder).returncode == 0
    assert list(spare.iterdir()) == []
    left = [
        path for path in folder.rglob("*") if path.is_file() and path.name not in ("events.csv", "state.npz")
    ]  # the state names users
    assert [path.name for path in left if b"only-here" in path.read_bytes() or b"3.14159" in path.read_bytes()] == []
    assert sorted(path.name for path in (folder / "private").iterdir()) == ["committed", "inputs.npz", "state.npz"]
